//! Connections that break at the worst moment: ours to the database during a commit, and clients' to us.

use crate::support::{Api, PATIENCE, Setup, Stage, eventually, url_of};
use futures_util::{StreamExt, stream};
use parterre::config::Config;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

/// What a proxy does with a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commit {
    /// Lets it through.
    Through,
    /// The server commits, and the reply is swallowed.
    ReplyLost,
    /// The server never hears of it.
    NeverArrives,
}

/// A proxy before PostgreSQL that breaks connections at commits, so many in a thousand, and counts them.
struct Proxy {
    url: String,
    per_mille: Arc<AtomicU32>,
    broken: Arc<AtomicU64>,
    /// Whether nobody gets through.
    down: tokio::sync::watch::Sender<bool>,
}

impl Proxy {
    async fn before(database: &str, seed: u64) -> Self {
        let url = url_of(database);
        let (user, rest) = url.split_once('@').unwrap();
        let (socket, name) = rest.split_once('/').unwrap();
        let socket = PathBuf::from(socket.replace("%2F", "/")).join(".s.PGSQL.5432");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{user}@{}/{name}?sslmode=disable", listener.local_addr().unwrap());
        let (per_mille, broken) = (Arc::new(AtomicU32::new(0)), Arc::new(AtomicU64::new(0)));
        let random = Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
        let chances = (per_mille.clone(), broken.clone());
        let (down, is_down) = tokio::sync::watch::channel(false);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                if *is_down.borrow() {
                    continue;
                }
                let mut is_down = is_down.clone();
                let server = UnixStream::connect(&socket).await.unwrap();
                let (random, (per_mille, broken)) = (random.clone(), chances.clone());
                let decide = move || {
                    let mut random = random.lock().unwrap();
                    if random.random_range(0..1_000) >= per_mille.load(Ordering::Relaxed) {
                        return Commit::Through;
                    }
                    broken.fetch_add(1, Ordering::Relaxed);
                    if random.random_bool(0.5) { Commit::ReplyLost } else { Commit::NeverArrives }
                };
                tokio::spawn(async move {
                    tokio::select! {
                        _ = pass(client, server, decide) => {}
                        _ = is_down.wait_for(|down| *down) => {}
                    }
                });
            }
        });
        Self { url, per_mille, broken, down }
    }

    fn break_commits(&self, per_mille: u32) {
        self.per_mille.store(per_mille, Ordering::Relaxed);
    }
}

/// Passes bytes on until a commit is to be broken; then both ends are closed.
async fn pass(mut client: TcpStream, mut server: UnixStream, decide: impl Fn() -> Commit) -> std::io::Result<()> {
    let (mut from_client, mut from_server) = (vec![0; 65_536], vec![0; 65_536]);
    loop {
        tokio::select! {
            read = client.read(&mut from_client) => {
                let sent = &from_client[..read?];
                if sent.is_empty() {
                    return Ok(());
                }
                // A simple query of its own.
                let commit = if sent.ends_with(b"COMMIT\0") { decide() } else { Commit::Through };
                match commit {
                    Commit::Through => server.write_all(sent).await?,
                    Commit::NeverArrives => return Ok(()),
                    Commit::ReplyLost => {
                        server.write_all(sent).await?;
                        // Its first byte is there once it is committed.
                        server.read_u8().await?;
                        return Ok(());
                    }
                }
            }
            read = server.read(&mut from_server) => {
                let read = read?;
                if read == 0 {
                    return Ok(());
                }
                client.write_all(&from_server[..read]).await?;
            }
        }
    }
}

/// Asks until there is an answer that is not "repeat the same key". Every other answer must be a success.
async fn insist(api: &Api, name: &str, input: &Value, fields: &str) -> Value {
    let kind = format!("{}{}Input", name[..1].to_uppercase(), &name[1..]);
    let query = format!("mutation($input: {kind}!) {{ {name}(input: $input) {{ {fields} userErrors {{ code }} }} }}");
    eventually("an answer", || async {
        let answer = api.ask(&query, json!({ "input": input })).await;
        if let Some(error) = answer["errors"].get(0) {
            assert_eq!(error["extensions"]["code"], "SERVICE_UNAVAILABLE", "{answer}");
            return None;
        }
        let payload = answer["data"][name].clone();
        match payload["userErrors"][0]["code"].as_str() {
            None => Some(payload),
            Some("OVERLOADED") => None,
            Some(other) => panic!("told {other} though nothing was wrong: {answer}"),
        }
    })
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_reply_lost_during_our_commit_is_never_told_as_a_failure_of_what_happened() {
    let seed = crate::holds::seed();
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(2, 20, |_| {}).await;
    let proxy = Proxy::before(&stage.database, seed).await;
    let beside = stage.beside(|config| config.database_url = proxy.url.clone()).await;
    proxy.break_commits(300);
    let (server, hall) = (&beside, &hall);
    let stage_ref = &stage;
    let one = async |n: usize| {
        let there = Api::new(&server.url, stage_ref.buyer(&format!("buyer-{n}")).token);
        let seat = format!("{}-{}", ["A", "B"][n % 2], n / 2 + 1);
        let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "seatIds": [seat] });
        let held = insist(&there, "holdSeats", &input, "hold { id }").await;
        let input = json!({ "holdId": held["hold"]["id"], "idempotencyKey": "c", "paymentMethod": "pm_card_visa" });
        let paid = insist(&there, "checkout", &input, "booking { id status }").await["booking"].clone();
        eventually("confirmed", || async {
            // Time passes: what failed waits longer each time.
            stage_ref
                .execute(
                    "UPDATE payment SET next_check_at = clock_timestamp() WHERE id IN (
                         SELECT id FROM payment WHERE next_check_at IS NOT NULL FOR NO KEY UPDATE SKIP LOCKED)",
                )
                .await;
            drop(server.app.services.bookings.drive_due().await);
            let read = stage_ref.buyer(&format!("buyer-{n}")).booking(&paid["id"]).await;
            assert_ne!(read["status"], "FAILED");
            (read["status"] == "CONFIRMED").then_some(())
        })
        .await;
        let input = json!({ "bookingId": paid["id"], "idempotencyKey": "x" });
        if n.is_multiple_of(3) {
            insist(&there, "cancel", &input, "booking { status }").await;
        }
    };
    stream::iter((0..40).map(one)).buffer_unordered(6).collect::<Vec<()>>().await;
    proxy.break_commits(0);
    eprintln!("{} commits were broken", proxy.broken.load(Ordering::Relaxed));
    assert!(proxy.broken.load(Ordering::Relaxed) > 20);
    assert_eq!(stage.number("SELECT count(*) FROM hold").await, 40, "one hold a key");
    assert_eq!(stage.number("SELECT count(*) FROM booking").await, 40, "one booking a hold");
    stage
        .drive_until("the money of the cancelled is back", || async {
            (stage.number("SELECT count(*) FROM booking WHERE status = 'REFUNDED'").await == 14).then_some(())
        })
        .await;
    beside.end().await;
    stage.issue_tickets().await;
    stage.finish().await;
}

/// A raw request of a client that goes away after a while, whether it was answered or not.
async fn ask_and_leave(stage: &Stage, token: &str, body: &str, after: Duration) {
    let address = stage.servers[0].url.strip_prefix("http://").unwrap();
    let mut client = TcpStream::connect(address).await.unwrap();
    let request = format!(
        "POST /graphql HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    client.write_all(request.as_bytes()).await.unwrap();
    tokio::time::sleep(after).await;
    drop(client);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_thousand_clients_that_leave_during_checkout_leave_no_half_state() {
    const HOLDS: usize = 400;
    let seed = crate::holds::seed();
    let stage = Stage::with(Setup { checkout_wait_ms: 60, ..Setup::default() }).await;
    let hall = stage.club(5_000, |_| {}).await;
    let buyers: Vec<Api> = (0..HOLDS).map(|n| stage.buyer(&format!("buyer-{n}"))).collect();
    let held = stream::iter(&buyers)
        .map(async |buyer| {
            let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "admissions": [{ "tierId": hall.tiers[0].1, "quantity": 2 }] });
            buyer.must("holdSeats", input, "hold { id }").await["hold"]["id"].clone()
        })
        .buffered(16);
    let holds: Vec<Value> = held.collect().await;
    let (stage_ref, buyers, holds) = (&stage, &buyers, &holds);
    let leave = async |n: usize| {
        let mut random = StdRng::seed_from_u64(seed.wrapping_add(u64::try_from(n).unwrap()));
        let which = n % HOLDS;
        let body = json!({
            "query": "mutation($input: CheckoutInput!) { checkout(input: $input) { booking { id } userErrors { code } } }",
            "variables": { "input": { "holdId": holds[which], "idempotencyKey": "c", "paymentMethod": "pm_card_visa" } },
        });
        let after = Duration::from_micros(random.random_range(0..40_000));
        ask_and_leave(stage_ref, buyers[which].token.as_ref().unwrap(), &body.to_string(), after).await;
    };
    stream::iter((0..2_000).map(leave)).buffer_unordered(24).collect::<Vec<()>>().await;
    eventually("what was begun is done", || async {
        (stage.number("SELECT count(*) FROM booking WHERE status = 'PAYMENT_PENDING'").await == 0).then_some(())
    })
    .await;
    let begun = stage.number("SELECT count(*) FROM booking").await;
    assert_eq!(stage.number("SELECT count(*) FROM booking WHERE status = 'CONFIRMED'").await, begun);
    assert!(begun > i64::try_from(HOLDS / 2).unwrap(), "most got as far as a booking: {begun}");
    assert_eq!(i64::try_from(stage.simulator.ledger().payments.len()).unwrap(), begun, "one payment each");
    for (buyer, hold) in buyers.iter().zip(holds).take(40) {
        let replayed = buyer.checkout(hold, "c", "pm_card_visa").await;
        assert_eq!(replayed["userErrors"], json!([]), "the pool still serves");
    }
    let idle =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'
                AND state_change < clock_timestamp() - interval '1 second'";
    assert_eq!(stage.number(idle).await, 0, "no connection is left inside a transaction");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_transaction_is_open_while_the_provider_is_being_called() {
    let stage = Stage::with(Setup { workers: false, checkout_wait_ms: 100, ..Setup::default() }).await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let booking = mina.checkout(&hold, "c", "pm_sim_slow_800").await["booking"].clone();
    let (mut looks, mut cancelled) = (0, false);
    let begun = std::time::Instant::now();
    while begun.elapsed() < PATIENCE {
        stage.servers[0].app.services.bookings.drive_due().await.unwrap();
        let status = mina.booking(&booking["id"]).await["status"].clone();
        if status == "CONFIRMED" && !cancelled {
            let input = json!({ "bookingId": booking["id"], "idempotencyKey": "x" });
            mina.must("cancel", input, "booking { status }").await;
            cancelled = true;
        }
        if status == "REFUNDED" {
            break;
        }
        if stage.simulator.ledger().running > 0 {
            let open = stage
                .number(
                    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()
                       AND state LIKE 'idle in transaction%'",
                )
                .await;
            assert!(open == 0 || stage.simulator.ledger().running == 0, "{open} transactions are open during a call");
            looks += 1;
        }
    }
    assert!(looks > 5, "the calls were seen: {looks}");
    assert_eq!(mina.booking(&booking["id"]).await["status"], "REFUNDED");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_away_while_a_payment_is_driven_leaves_it_to_others() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let proxy = Proxy::before(&stage.database, 0).await;
    let change = |config: &mut Config| {
        config.database_url = proxy.url.clone();
        config.checkout_wait_ms = 100;
    };
    let server = stage.beside(change).await;
    let (mina, there) = (stage.buyer("mina"), Api::new(&server.url, stage.buyer("mina").token));
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let booking = there.checkout(&hold, "c", "pm_sim_slow_700").await["booking"]["id"].clone();
    eventually("the provider is being called", || async { (stage.simulator.ledger().running == 1).then_some(()) })
        .await;
    proxy.down.send(true).unwrap();
    eventually("the call is over", || async { (stage.simulator.ledger().running == 0).then_some(()) }).await;
    // Longer than the driver waits for a connection, so that all it tries fails.
    tokio::time::sleep(Duration::from_secs(32)).await;
    proxy.down.send(false).unwrap();
    stage
        .drive_until("another server takes it up", || async {
            (mina.booking(&booking).await["status"] == "CONFIRMED").then_some(())
        })
        .await;
    assert_eq!(stage.simulator.ledger().payments.len(), 1);
    server.end().await;
    stage.issue_tickets().await;
    stage.finish().await;
}
