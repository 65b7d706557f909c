//! Real processes: killed at any moment, started again, ended in order.

use crate::support::fixtures::rows;
use crate::support::{Api, PATIENCE, Stage, eventually};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

pub struct Process {
    pub child: Child,
    pub url: String,
}

pub fn command(stage: &Stage, role: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_parterre"));
    command
        .arg(role)
        .env("DATABASE_URL", &stage.config.database_url)
        .env("STRIPE_API_BASE", &stage.config.stripe_api_base)
        .env("PARTERRE_CREATE_ORGANIZATIONS", "true")
        .env("PARTERRE_LIMITS", "off")
        .env("PARTERRE_DATA", stage.folder.join("process"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .kill_on_drop(true);
    command
}

/// A server that ends at a point as a kill would end it.
pub fn dying(stage: &Stage, point: &str) -> Command {
    let mut command = command(stage, "serve");
    command.env("PARTERRE_DIE_AT", point);
    command
}

pub async fn start(stage: &Stage) -> Process {
    start_with(|| command(stage, "serve")).await
}

/// Starts a server on a free port; on another one if somebody was faster there.
pub async fn start_with(command: impl Fn() -> Command) -> Process {
    let patience = Instant::now() + Duration::from_mins(2);
    loop {
        let url = format!("127.0.0.1:{}", free_port().await);
        let mut child = command().env("PARTERRE_LISTEN", &url).spawn().unwrap();
        let url = format!("http://{url}");
        while child.try_wait().unwrap().is_none() {
            if reqwest::get(format!("{url}/readyz")).await.is_ok_and(|answer| answer.status().is_success()) {
                return Process { child, url };
            }
            assert!(Instant::now() < patience, "the server was not ready within two minutes");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert!(Instant::now() < patience, "the server could not start");
    }
}

pub async fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port()
}

/// Killed again and again in the middle of holds and payments: every key has one answer, nothing is sold twice, and what
/// was paid is confirmed or given back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_at_any_moment_nothing_is_lost_and_nothing_happens_twice() {
    let mut random = StdRng::seed_from_u64(crate::holds::seed());
    let stage = Stage::with(crate::support::Setup { workers: false, ..Default::default() }).await;
    let hall = stage.hall(4, 20, |_| {}).await;
    for round in 0..4 {
        let mut process = start(&stage).await;
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
        let again = start(&stage).await;
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
        let map = Api::new(&again.url, None)
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
async fn killed_between_commit_and_publish_the_hold_is_there_once_and_the_map_says_so() {
    let stage = Stage::with(crate::support::Setup { workers: false, ..Default::default() }).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let mut process = start_with(|| dying(&stage, "before_publish")).await;
    let there = Api::new(&process.url, mina.token.clone());
    let query = "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id } } }";
    let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "seatIds": ["A-2"] });
    assert!(there.try_ask(query, json!({ "input": input })).await.is_err(), "it died before it could answer");
    process.child.wait().await.unwrap();
    assert_eq!(stage.number("SELECT count(*) FROM hold").await, 1, "it had committed");
    let again = start(&stage).await;
    let there = Api::new(&again.url, mina.token.clone());
    let mut socket = crate::support::Socket::open(&there).await;
    let map =
        "subscription($id: ID!) { seatMapChanged(eventId: $id) { ... on SeatMapSnapshot { sections { statuses } } } }";
    socket.subscribe(map, json!({ "id": hall.event })).await;
    assert_eq!(socket.next().await["seatMapChanged"]["sections"][0]["statuses"], "AHAAA");
    let replayed = there.hold(&hall.event, "k", &["A-2"]).await;
    assert_eq!((&replayed["replayed"], stage.number("SELECT count(*) FROM hold").await), (&json!(true), 1));
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_ends_a_server_within_its_time_also_with_open_sockets() {
    let stage = Stage::with(crate::support::Setup { workers: false, ..Default::default() }).await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let mut process = start(&stage).await;
    let mut sockets = Vec::new();
    for _ in 0..100 {
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
    for socket in &mut sockets {
        assert_eq!(socket.closed().await, 1001, "told to go on elsewhere, not that it is over");
    }
    eprintln!("all were closed after {:?}", started.elapsed());
    let status =
        tokio::time::timeout(Duration::from_secs(25), process.child.wait()).await.expect("within 25 seconds").unwrap();
    assert!(status.success(), "{status}");
    eprintln!("ended after {:?} with 100 open sockets", started.elapsed());
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
    insecure.env("PARTERRE_PRODUCTION", "true").env_remove("PARTERRE_LIMITS").env("PARTERRE_LISTEN", "127.0.0.1:0");
    let said = complaint(insecure).await;
    assert!(said.contains("JWT_PUBLIC_KEY_FILE"), "{said}");
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
    assert!(slowest < Duration::from_secs(5));
    creating.await.unwrap();
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_simulator_of_its_own_keeps_its_ledger_over_a_kill() {
    let ledger = std::env::temp_dir().join(format!("ledger-{}.json", uuid::Uuid::now_v7()));
    let begin = async || {
        let address = format!("127.0.0.1:{}", free_port().await);
        let mut command = Command::new(env!("CARGO_BIN_EXE_parterre"));
        command.arg("simulator").env("SIMULATOR_LISTEN", &address).env("SIMULATOR_LEDGER", &ledger);
        let child = command.stderr(Stdio::null()).kill_on_drop(true).spawn().unwrap();
        let url = format!("http://{address}");
        eventually("it answers", || async { reqwest::get(format!("{url}/ledger")).await.ok().map(drop) }).await;
        (child, url)
    };
    let pay = async |url: &str| -> Value {
        let order = [
            ("amount", "2500"),
            ("currency", "eur"),
            ("payment_method", "pm_card_visa"),
            ("metadata[operation_id]", "pay-1"),
        ];
        let request = reqwest::Client::new().post(format!("{url}/v1/payment_intents")).form(&order);
        request.header("Idempotency-Key", "pay-1:create").send().await.unwrap().json().await.unwrap()
    };
    let (mut first, url) = begin().await;
    let made = pay(&url).await;
    assert_eq!(made["status"], "requires_capture");
    first.kill().await.unwrap();
    let (_second, url) = begin().await;
    assert_eq!(pay(&url).await["id"], made["id"], "the key is remembered too");
    let kept: Value = reqwest::get(format!("{url}/ledger")).await.unwrap().json().await.unwrap();
    assert_eq!(
        (kept["payments"].as_array().unwrap().len(), &kept["payments"][0]["operation_id"]),
        (1, &json!("pay-1"))
    );
    std::fs::remove_file(&ledger).unwrap();
}

/// Asks one server after the other, as a proxy would, until one answers.
async fn insist(servers: &[std::sync::Mutex<String>; 2], token: Option<&str>, query: &str, input: &Value) -> Value {
    let patience = Instant::now() + PATIENCE;
    for turn in 0.. {
        let url = servers[turn % 2].lock().unwrap().clone();
        let answer = Api::new(&url, token.map(str::to_owned)).try_ask(query, json!({ "input": input })).await;
        // No answer, or "repeat the same key": nothing else may be told while a server goes away.
        match answer {
            Ok(answer) if answer["errors"].is_null() => {
                let payload = answer["data"].as_object().unwrap().values().next().unwrap().clone();
                if payload["userErrors"][0]["code"] != "OVERLOADED" {
                    return payload;
                }
            }
            Ok(answer) => assert_eq!(answer["errors"][0]["extensions"]["code"], "SERVICE_UNAVAILABLE", "{answer}"),
            Err(_) => {}
        }
        assert!(Instant::now() < patience, "no server answers");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    unreachable!()
}

/// Under load, each stopped and started in turn, twice: no write fails that could not be repeated, none happens twice.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_servers_stopped_and_started_in_turn_lose_nothing() {
    const BUYERS: usize = 120;
    let stage = Stage::with(crate::support::Setup { workers: false, ..Default::default() }).await;
    let hall = stage.hall(6, 20, |_| {}).await;
    let redis = crate::support::redis_url();
    let serve = || {
        let mut command = command(&stage, "serve");
        command.env("REDIS_URL", &redis).env("REDIS_NAMESPACE", &stage.database);
        command
    };
    let mut running = [start_with(serve).await, start_with(serve).await];
    let servers = [0, 1].map(|n: usize| std::sync::Mutex::new(running[n].url.clone()));
    let done = std::sync::atomic::AtomicBool::new(false);
    let shop = async |n: usize| {
        let token = stage.buyer(&format!("buyer-{n}")).token;
        let token = token.as_deref();
        let seat = format!("{}-{}", ["A", "B", "C", "D", "E", "F"][n / 20], n % 20 + 1);
        let hold = "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id } userErrors { code } } }";
        let pay = "mutation($input: CheckoutInput!) { checkout(input: $input) { booking { id } userErrors { code } } }";
        let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "seatIds": [seat] });
        let held = insist(&servers, token, hold, &input).await;
        assert_eq!(held["userErrors"], json!([]), "{seat}");
        let again = insist(&servers, token, hold, &input).await;
        assert_eq!(again["hold"], held["hold"], "the same key, the same hold");
        let input = json!({ "holdId": held["hold"]["id"], "idempotencyKey": "c", "paymentMethod": "pm_sim_slow_20" });
        let paid = insist(&servers, token, pay, &input).await;
        assert_eq!(paid["userErrors"], json!([]), "{seat}");
    };
    let shopping = async {
        use futures_util::{StreamExt, stream};
        stream::iter((0..BUYERS).map(shop)).buffer_unordered(8).collect::<Vec<()>>().await;
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    };
    let turning = async {
        let mut turns = 0;
        for turn in 0.. {
            let n = turn % 2;
            let id = running[n].child.id().unwrap().to_string();
            Command::new("kill").arg("-TERM").arg(id).status().await.unwrap();
            let ended = tokio::time::timeout(Duration::from_secs(25), running[n].child.wait()).await;
            assert!(ended.expect("within 25 seconds").unwrap().success());
            running[n] = start_with(serve).await;
            running[n].url.clone_into(&mut servers[n].lock().unwrap());
            turns += 1;
            if done.load(std::sync::atomic::Ordering::Relaxed) && turns >= 4 {
                return turns;
            }
        }
        unreachable!()
    };
    let ((), turns) = tokio::join!(shopping, turning);
    eprintln!("{turns} restarts under load");
    eventually("all are confirmed", || async {
        (stage.number("SELECT count(*) FROM booking WHERE status = 'CONFIRMED'").await
            == i64::try_from(BUYERS).unwrap())
        .then_some(())
    })
    .await;
    assert_eq!(stage.number("SELECT count(*) FROM hold").await, i64::try_from(BUYERS).unwrap(), "one hold a key");
    assert_eq!(
        stage.number("SELECT count(*) FROM booking").await,
        i64::try_from(BUYERS).unwrap(),
        "one booking a hold"
    );
    stage.rest().await;
    drop(running);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_read_from_files_and_the_doctor_says_what_is_missing() {
    let stage = Stage::new().await;
    std::fs::create_dir_all(&stage.folder).unwrap();
    let file = stage.folder.join("database_url");
    std::fs::write(&file, format!("{}\n", stage.config.database_url)).unwrap();
    let doctor = |change: &dyn Fn(&mut Command)| {
        let mut command = command(&stage, "doctor");
        command.env_remove("DATABASE_URL").env("DATABASE_URL_FILE", &file).stdout(Stdio::piped());
        change(&mut command);
        async move {
            let output = command.output().await.unwrap();
            (output.status.success(), String::from_utf8(output.stdout).unwrap())
        }
    };
    let (well, told) = doctor(&|_| {}).await;
    assert!(well, "{told}");
    assert!(told.contains("ok       PostgreSQL") && told.contains("migrated"), "{told}");
    let (well, told) = doctor(&|command| {
        command.env("REDIS_URL", "redis://127.0.0.1:1/").env("STRIPE_API_BASE", "http://127.0.0.1:1");
        command.env("PARTERRE_PRODUCTION", "true").env_remove("PARTERRE_LIMITS");
    })
    .await;
    assert!(!well);
    for problem in ["settings", "Redis", "payment provider"] {
        assert!(told.contains(&format!("problem  {problem}")), "{told}");
    }
    let mut both = command(&stage, "doctor");
    both.env("DATABASE_URL_FILE", &file);
    assert!(complaint(both).await.contains("DATABASE_URL and DATABASE_URL_FILE are both set"));
    let mut gone = command(&stage, "doctor");
    gone.env_remove("DATABASE_URL").env("DATABASE_URL_FILE", stage.folder.join("nothing"));
    assert!(complaint(gone).await.contains("can't be read"));
    let process = start(&stage).await;
    let healthy = async |url: &str| {
        let mut command = command(&stage, "healthcheck");
        command.env("PARTERRE_LISTEN", url.trim_start_matches("http://")).status().await.unwrap().success()
    };
    assert!(healthy(&process.url).await);
    assert!(!healthy("127.0.0.1:1").await);
    drop(process);
    stage.finish().await;
}
