//! Real processes: killed at any moment, started again, ended in order.

use crate::support::fixtures::rows;
use crate::support::{Api, Stage, eventually};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

struct Process {
    child: Child,
    url: String,
}

fn command(stage: &Stage, role: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parterre"));
    command
        .arg(role)
        .env("DATABASE_URL", &stage.config.database_url)
        .env("STRIPE_API_BASE", &stage.config.stripe_api_base)
        .env("PARTERRE_CREATE_ORGANIZATIONS", "true")
        .env("PARTERRE_DATA", std::env::temp_dir().join(format!("parterre-process-{}", stage.database)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

async fn start(stage: &Stage, port: u16) -> Process {
    let child = command(stage, "serve").env("PARTERRE_LISTEN", format!("127.0.0.1:{port}")).spawn().unwrap();
    let url = format!("http://127.0.0.1:{port}");
    eventually("the server is ready", || async {
        reqwest::get(format!("{url}/readyz")).await.ok()?.status().is_success().then_some(())
    })
    .await;
    Process { child, url }
}

async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// Killed again and again in the middle of holds and payments: every key has one answer, nothing is sold twice, and what
/// was paid is confirmed or given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_nothing_is_lost_and_nothing_happens_twice() {
    let mut random = StdRng::seed_from_u64(crate::holds::seed());
    let stage = Stage::with(crate::support::Setup { workers: false, ..Default::default() }).await;
    let hall = stage.hall(4, 20, |_| {}).await;
    let port = free_port().await;
    for round in 0..4 {
        let mut process = start(&stage, port).await;
        let shoppers: Vec<_> = (0..12)
            .map(|n| {
                let name = format!("r{round}-{n}");
                let api = Api::new(&process.url, stage.buyer(&name).token);
                let (event, seat) = (hall.event.clone(), format!("{}-{}", ["A", "B", "C", "D"][round], n + 1));
                tokio::spawn(async move { shop(&api, &event, &seat).await })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(random.random_range(20..400))).await;
        process.child.kill().await.unwrap();
        let again = start(&stage, port).await;
        for (n, shopper) in shoppers.into_iter().enumerate() {
            let before = shopper.await.unwrap();
            let api = Api::new(&again.url, stage.buyer(&format!("r{round}-{n}")).token);
            let seat = format!("{}-{}", ["A", "B", "C", "D"][round], n + 1);
            let after = shop(&api, &hall.event, &seat).await;
            let (hold, booking) = after.clone();
            assert!(before.0.is_null() || before.0 == hold, "the same key, the same hold: {before:?} {after:?}");
            assert!(before.1.is_null() || before.1 == booking, "the same hold, the same booking: {before:?} {after:?}");
            let status = eventually("the booking is settled", || async {
                let booking = api.booking(&booking).await;
                (booking["status"] != "PAYMENT_PENDING").then(|| booking["status"].clone())
            })
            .await;
            assert_eq!(status, "CONFIRMED");
        }
        let map = stage
            .stranger()
            .data("query($id: ID!) { seatMap(eventId: $id) { sections { statuses } } }", json!({ "id": hall.event }))
            .await;
        let sold = map["seatMap"]["sections"][0]["statuses"].as_str().unwrap().matches('S').count();
        assert_eq!(
            i64::try_from(sold).unwrap(),
            stage.number("SELECT count(*) FROM event_seat WHERE status = 'SOLD'").await
        );
        stage.rest().await;
    }
    stage.finish().await;
}

/// Holds and pays as far as the server lives: the hold's id and the booking's.
async fn shop(api: &Api, event: &str, seat: &str) -> (Value, Value) {
    let hold = "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id } userErrors { code } } }";
    let input = json!({ "eventId": event, "idempotencyKey": "k", "seatIds": [seat] });
    let Ok(held) = api.try_ask(hold, json!({ "input": input })).await else { return (Value::Null, Value::Null) };
    let id = held["data"]["holdSeats"]["hold"]["id"].clone();
    let pay = "mutation($input: CheckoutInput!) { checkout(input: $input) { booking { id } userErrors { code } } }";
    let input = json!({ "holdId": id, "idempotencyKey": "c", "paymentMethod": "pm_sim_slow_50" });
    let paid = api.try_ask(pay, json!({ "input": input })).await.unwrap_or_default();
    (id, paid["data"]["checkout"]["booking"]["id"].clone())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_ends_a_server_within_its_time_also_with_open_sockets() {
    let stage = Stage::with(crate::support::Setup { workers: false, ..Default::default() }).await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let mut process = start(&stage, free_port().await).await;
    let mut sockets = Vec::new();
    for _ in 0..20 {
        let mut socket = crate::support::Socket::open(&Api::new(&process.url, None)).await;
        socket
            .subscribe(
                "subscription($id: ID!) { seatMapChanged(eventId: $id) { __typename } }",
                json!({ "id": hall.event }),
            )
            .await;
        socket.next().await;
        sockets.push(socket);
    }
    let started = Instant::now();
    let id = process.child.id().unwrap();
    Command::new("kill").arg("-TERM").arg(id.to_string()).status().await.unwrap();
    let status =
        tokio::time::timeout(Duration::from_secs(25), process.child.wait()).await.expect("within 25 seconds").unwrap();
    assert!(status.success(), "{status}");
    eprintln!("ended after {:?} with 20 open sockets", started.elapsed());
    stage.finish().await;
}

async fn complaint(mut command: Command) -> String {
    let output = command.stderr(Stdio::piped()).output().await.unwrap();
    assert!(!output.status.success());
    String::from_utf8(output.stderr).unwrap().trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_missing_at_the_start_is_said_in_one_line() {
    let stage = Stage::new().await;
    let mut without = command(&stage, "serve");
    without.env("DATABASE_URL", "postgres://parterre@127.0.0.1:1/none").env("PARTERRE_LISTEN", "127.0.0.1:0");
    let said = complaint(without).await;
    assert!(said.contains("cannot reach PostgreSQL") && said.contains("DATABASE_URL"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut twice = command(&stage, "serve");
    twice.env("PARTERRE_LISTEN", taken.local_addr().unwrap().to_string());
    let said = complaint(twice).await;
    assert!(said.contains("cannot listen") && said.contains("PARTERRE_LISTEN"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
    let mut insecure = command(&stage, "serve");
    insecure.env("PARTERRE_PRODUCTION", "true").env("PARTERRE_LISTEN", "127.0.0.1:0");
    let said = complaint(insecure).await;
    assert!(said.contains("JWT_SECRET"), "{said}");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn creating_a_large_event_does_not_delay_the_map_of_another() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 20, |_| {}).await;
    let acme = hall.organizer.clone();
    let layout = acme
        .must(
            "createLayout",
            json!({ "venueId": hall.venue, "name": "Arena", "sections": rows(250, 200) }),
            "layout { id }",
        )
        .await;
    let input = crate::support::fixtures::event_input(&hall.venue, layout["layout"]["id"].as_str());
    let creating = tokio::spawn(async move { acme.must("createEvent", input, "event { id }").await });
    let mut socket = crate::support::Socket::open(&stage.stranger()).await;
    let query =
        "subscription($id: ID!) { seatMapChanged(eventId: $id) { ... on SeatMapDelta { changes { seatId } } } }";
    socket.subscribe(query, json!({ "id": hall.event })).await;
    socket.next().await;
    let mut slowest = Duration::ZERO;
    for n in 1..=20 {
        let started = Instant::now();
        stage.buyer(&format!("buyer-{n}")).hold(&hall.event, "k", &[&format!("A-{n}")]).await;
        socket.next().await;
        slowest = slowest.max(started.elapsed());
    }
    eprintln!("slowest delta while 50,000 seats were created: {slowest:?}");
    assert!(slowest < Duration::from_secs(2));
    creating.await.unwrap();
    stage.finish().await;
}
