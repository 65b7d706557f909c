//! The live map when messages are lost, Redis dies, readers stall or leave: what people see is what the database has.

use crate::process::{command, free_port, start_with};
use crate::support::{Api, Setup, Socket, Stage, eventually, eventually_within, redis_url};
use futures_util::StreamExt;
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};
use redis::AsyncCommands as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::process::{Child, Command};

const WATCH: &str = "subscription($event: ID!, $sections: [ID!], $after: SeatMapVersion) {
    seatMapChanged(eventId: $event, sectionIds: $sections, afterVersion: $after) { __typename
        ... on SeatMapSnapshot { version sections { seats { seatId status } } }
        ... on SeatMapDelta { fromVersion version changes { seatId status } } } }";

/// What a watcher has put together from what it was told.
#[derive(Debug, Default)]
struct Seen {
    version: Value,
    seats: BTreeMap<String, String>,
    deltas: usize,
}

impl Seen {
    fn take(&mut self, update: &Value) {
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let seats = match update["__typename"].as_str().unwrap() {
            "SeatMapSnapshot" => {
                self.seats.clear();
                let sections = update["sections"].as_array().unwrap().iter();
                sections.flat_map(|section| section["seats"].as_array().unwrap().clone()).collect()
            }
            "SeatMapDelta" => {
                assert_eq!(update["fromVersion"], self.version, "a delta starts where the last message ended");
                self.deltas += 1;
                update["changes"].as_array().unwrap().clone()
            }
            other => panic!("told {other}"),
        };
        self.version = update["version"].clone();
        self.seats.extend(seats.iter().map(|seat| (text(&seat["seatId"]), text(&seat["status"]))));
    }
}

/// Watches from a task of its own, until it is dropped.
struct Watcher {
    seen: Arc<Mutex<Seen>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watcher {
    async fn of(api: &Api, event: &str, sections: Value) -> Self {
        let mut socket = Socket::open(api).await;
        socket.subscribe(WATCH, json!({ "event": event, "sections": sections })).await;
        let seen = Arc::<Mutex<Seen>>::default();
        let first = socket.next().await;
        seen.lock().unwrap().take(&first["seatMapChanged"]);
        let told = Arc::clone(&seen);
        let task = tokio::spawn(async move {
            loop {
                let update = socket.next().await;
                told.lock().unwrap().take(&update["seatMapChanged"]);
            }
        });
        Self { seen, task }
    }

    /// Within three seconds it shows what the database has.
    async fn must_show(&self, stage: &Stage, which: &str) {
        eventually_within(Duration::from_secs(3), "the watcher shows what the database has", || async {
            assert!(!self.task.is_finished(), "the watcher failed");
            let wanted = truth(stage, which).await;
            (self.seen.lock().unwrap().seats == wanted).then_some(())
        })
        .await;
    }
}

/// What the database says of every seat now, by its name.
async fn truth(stage: &Stage, which: &str) -> BTreeMap<String, String> {
    let statement = format!(
        "SELECT json_object_agg(layout_seat.seat_id, CASE WHEN held_until <= clock_timestamp() THEN 'AVAILABLE'
             WHEN status = 'PENDING' THEN 'HELD' ELSE status END)::text
         FROM event_seat JOIN event ON event.id = event_id
         JOIN layout_seat ON layout_seat.layout_id = event.layout_id AND layout_seat.seat_no = event_seat.seat_no
         WHERE {which}"
    );
    serde_json::from_str(&stage.text(&statement).await).unwrap()
}

/// Two sections of five rows of ten.
fn two_sections() -> Value {
    let row = |name: &str| {
        let seats: Vec<Value> = (1..=10).map(|n| json!({ "number": n.to_string(), "zone": "Stalls" })).collect();
        json!({ "name": name, "seats": seats })
    };
    let (left, right) = (["A", "B", "C", "D", "E"].map(row), ["F", "G", "H", "I", "J"].map(row));
    json!([{ "name": "Left", "rows": left }, { "name": "Right", "rows": right }])
}

/// Takes a seat or two, and gives them back more often than not.
async fn shop(stage: &Stage, event: &str, n: usize, random: &Mutex<StdRng>) {
    let (row, seat, returns) = {
        let mut random = random.lock().unwrap();
        (random.random_range(0..10), random.random_range(1..10), random.random_bool(0.9))
    };
    let row =
        ["Left-A", "Left-B", "Left-C", "Left-D", "Left-E", "Right-F", "Right-G", "Right-H", "Right-I", "Right-J"][row];
    let buyer = stage.buyer(&format!("buyer-{n}"));
    let held = buyer.hold(event, "k", &[&format!("{row}-{seat}"), &format!("{row}-{}", seat + 1)]).await;
    if returns && held["hold"]["id"].is_string() {
        buyer.mutate("releaseHold", json!({ "holdId": held["hold"]["id"] }), "hold { id }").await;
    }
}

/// Passes hints from one installation's channel on to another's, with every kind of loss, and counts what it did.
async fn chaotic_relay(from: String, to: String, random: Arc<Mutex<StdRng>>, faults: Arc<AtomicUsize>) {
    let client = redis::Client::open(redis_url()).unwrap();
    let mut hints = client.get_async_pubsub().await.unwrap();
    hints.subscribe(format!("parterre:{from}:hints")).await.unwrap();
    let mut sender = client.get_multiplexed_async_connection().await.unwrap();
    let channel = format!("parterre:{to}:hints");
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut hints = hints.into_on_message();
    while let Some(message) = hints.next().await {
        kept.push(message.get_payload_bytes().to_vec());
        // Lost, sent although it stays, kept for later, or sent with those before it in some order.
        let (go, is_fault): (Vec<Vec<u8>>, bool) = {
            let mut random = random.lock().unwrap();
            let mut go = Vec::new();
            let is_fault = match random.random_range(0..10) {
                0..3 => kept.pop().is_some(),
                3..5 => {
                    go.extend(kept.last().cloned());
                    true
                }
                5..7 => true,
                _ => {
                    go.append(&mut kept);
                    rand::seq::SliceRandom::shuffle(&mut *go, &mut *random);
                    go.len() > 1
                }
            };
            (go, is_fault)
        };
        faults.fetch_add(usize::from(is_fault), Ordering::Relaxed);
        for hint in go {
            sender.publish::<_, _, ()>(&channel, hint).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn messages_lost_doubled_and_reordered_leave_every_map_right() {
    let seed = crate::holds::seed();
    let stage = Stage::with(Setup { redis: true, ..Setup::default() }).await;
    let hall = stage.event(Some(two_sections()), |_| {}).await;
    let lossy = format!("lossy-{}", stage.database);
    let there = stage.beside(|config| config.redis_namespace = lossy.clone()).await;
    let random = Arc::new(Mutex::new(StdRng::seed_from_u64(seed)));
    let faults = Arc::new(AtomicUsize::new(0));
    let relay = tokio::spawn(chaotic_relay(stage.database.clone(), lossy, random.clone(), faults.clone()));
    let api = Api::new(&there.url, None);
    let sections = "query($id: ID!) { seatMap(eventId: $id) { sections { id } } }";
    let right = api.data(sections, json!({ "id": hall.event })).await["seatMap"]["sections"][1]["id"].clone();
    let mut watchers = Vec::new();
    for _ in 0..4 {
        watchers.push((Watcher::of(&api, &hall.event, Value::Null).await, "true"));
        watchers.push((Watcher::of(&api, &hall.event, json!([right])).await, "event_seat.section_no = 1"));
    }
    let mut n = 0;
    while faults.load(Ordering::Relaxed) < 500 {
        let some = (n..n + 8).map(|n| shop(&stage, &hall.event, n, &random));
        futures_util::future::join_all(some).await;
        n += 8;
        if n.is_multiple_of(200) {
            // What buyers kept runs out.
            stage.age_holds().await;
        }
        assert!(n < 20_000 && !relay.is_finished());
    }
    futures_util::future::join_all(watchers.iter().map(|(watcher, which)| watcher.must_show(&stage, which))).await;
    for (watcher, _) in &watchers {
        assert!(watcher.seen.lock().unwrap().deltas > 10);
    }
    relay.abort();
    let differences = there.app.services.seat_maps.differences(parterre::db::Pace::Full).await.unwrap();
    assert_eq!(differences, Vec::<String>::new(), "I11");
    for (watcher, _) in watchers {
        watcher.task.abort();
    }
    there.end().await;
    stage.finish().await;
}

fn redis_at(port: u16) -> Child {
    Command::new("redis-server")
        .args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"])
        .stdout(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redis_killed_and_started_again_under_load_leaves_every_map_right() {
    let random = Mutex::new(StdRng::seed_from_u64(crate::holds::seed()));
    parterre::install_crypto();
    let port = free_port().await;
    let mut redis = redis_at(port);
    let url = format!("redis://127.0.0.1:{port}/");
    let answers = async || {
        let client = redis::Client::open(url.as_str()).unwrap();
        client.get_multiplexed_async_connection().await.ok().map(drop)
    };
    eventually("redis answers", &answers).await;
    let mut stage = Stage::with(Setup { redis: true, ..Setup::default() }).await;
    let hall = stage.event(Some(two_sections()), |_| {}).await;
    let own = |config: &mut parterre::config::Config| config.redis_url = Some(url.clone());
    let (seller, shower) = (stage.beside(own).await, stage.beside(own).await);
    // Holds go through the one, the map is watched at the other; the stage's own server knows of neither.
    let before = std::mem::replace(&mut stage.servers[0].url, seller.url.clone());
    let watcher = Watcher::of(&Api::new(&shower.url, None), &hall.event, Value::Null).await;
    let load = async |from: usize| {
        for n in (from..from + 120).step_by(6) {
            futures_util::future::join_all((n..n + 6).map(|n| shop(&stage, &hall.event, n, &random))).await;
        }
    };
    load(0).await;
    redis.kill().await.unwrap();
    load(1_000).await;
    watcher.must_show(&stage, "true").await;
    redis = redis_at(port);
    load(2_000).await;
    eventually("redis answers again", &answers).await;
    load(3_000).await;
    watcher.must_show(&stage, "true").await;
    // How many depends on how fast the load was: they are told ten times a second at the most.
    assert!(watcher.seen.lock().unwrap().deltas > 5, "{:?}", watcher.seen.lock().unwrap().deltas);
    assert_eq!(
        shower.app.services.seat_maps.differences(parterre::db::Pace::Full).await.unwrap(),
        Vec::<String>::new(),
        "I11"
    );
    watcher.task.abort();
    redis.kill().await.unwrap();
    seller.end().await;
    shower.end().await;
    stage.servers[0].url = before;
    stage.finish().await;
}

/// A server that comes up beside another takes over its map, and finds what happened since.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cold_server_begins_with_what_another_left_in_redis() {
    let stage = Stage::with(Setup { redis: true, ..Setup::default() }).await;
    let hall = stage.event(Some(two_sections()), |_| {}).await;
    stage.buyer("mina").hold(&hall.event, "k", &["Left-A-1"]).await;
    let client = redis::Client::open(redis_url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    let (_, event) = parterre_schema::parse_node_id(&hall.event).unwrap();
    let key = format!("parterre:{}:map:{event}", stage.database);
    let map = "query($id: ID!) { seatMap(eventId: $id) { sections { statuses } } }";
    let look = async |url: &str| Api::new(url, None).data(map, json!({ "id": hall.event })).await;
    connection.del::<_, ()>(&key).await.unwrap();
    let first = stage.beside(|_| {}).await;
    let warm = look(&first.url).await;
    let left: String = connection.get(&key).await.unwrap();
    let seconds: i64 = connection.ttl(&key).await.unwrap();
    assert!((1..=2).contains(&seconds), "{seconds}");
    // What it says is used: a letter is changed in it at the version it has.
    assert!(left.contains("HAAAAAAAAA"), "{left}");
    let changed = left.replace("HAAAAAAAAA", "HBAAAAAAAA");
    connection.set_ex::<_, _, ()>(&key, &changed, 20).await.unwrap();
    let cold = stage.beside(|_| {}).await;
    let statuses = |read: &Value| read["seatMap"]["sections"][0]["statuses"].as_str().unwrap()[..3].to_owned();
    assert_eq!((statuses(&warm), statuses(&look(&cold.url).await)), ("HAA".to_owned(), "HBA".to_owned()));
    // And what happened since is found, since the versions differ.
    stage.buyer("leo").hold(&hall.event, "k", &["Left-A-3"]).await;
    let later = stage.beside(|_| {}).await;
    assert_eq!(statuses(&look(&later.url).await), "HAH");
    // One that can't be read is no harm.
    connection.set_ex::<_, _, ()>(&key, "nonsense", 20).await.unwrap();
    let last = stage.beside(|_| {}).await;
    assert_eq!(statuses(&look(&last.url).await), "HAH");
    for server in [first, cold, later, last] {
        server.end().await;
    }
    stage.finish().await;
}

/// A metric of a process.
async fn metric(admin: &str, name: &str) -> f64 {
    let text = reqwest::get(format!("http://{admin}/metrics")).await.unwrap().text().await.unwrap();
    let line = text.lines().find(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{'])));
    line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0.0)
}

/// Resident memory of a process in KiB.
fn resident(id: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_that_never_reads_costs_little_and_nobody_else_anything() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let row = |r: usize| {
        let seats: Vec<Value> = (1..=100).map(|n| json!({ "number": n.to_string(), "zone": "Stalls" })).collect();
        json!({ "name": format!("R{r}"), "seats": seats })
    };
    let sections = json!([{ "name": "Main", "rows": (0..10).map(row).collect::<Vec<_>>() }]);
    let hall = stage.event(Some(sections), |_| {}).await;
    let admin = format!("127.0.0.1:{}", free_port().await);
    let process = start_with(|| {
        let mut command = command(&stage, "serve");
        command.env("PARTERRE_ADMIN_LISTEN", &admin);
        command
    })
    .await;
    let organizer = Api::new(&process.url, stage.organizer("ACME").token);
    let stranger = Api::new(&process.url, None);
    let (mut reader, mut stuck) = (Socket::open(&stranger).await, Socket::open(&stranger).await);
    reader.subscribe(WATCH, json!({ "event": hall.event })).await;
    reader.next().await;
    stuck.subscribe(WATCH, json!({ "event": hall.event })).await;
    let before = resident(process.child.id().unwrap());
    let seats: Vec<String> = (0..1_000).map(|n| format!("R{}-{}", n / 100, n % 100 + 1)).collect();
    let (mut slowest, mut most, begun) = (Duration::ZERO, before, Instant::now());
    // Each turn tells of a thousand seats, which nobody takes off the second socket: until it is closed.
    let mut blocked = true;
    while metric(&admin, "parterre_sockets_open").await > 1.0 {
        assert!(begun.elapsed() < Duration::from_secs(90), "it is still open");
        let input = json!({ "eventId": hall.event, "seatIds": seats, "blocked": blocked });
        let asked = Instant::now();
        organizer.must("blockSeats", input, "event { id }").await;
        let mut told = 0;
        while told < 1_000 {
            told += reader.next().await["seatMapChanged"]["changes"].as_array().unwrap().len();
        }
        slowest = slowest.max(asked.elapsed());
        most = most.max(resident(process.child.id().unwrap()));
        blocked = !blocked;
    }
    let closed = begun.elapsed();
    eprintln!(
        "closed after {closed:?}; {} KiB more at the most; the other waited {slowest:?} at the most",
        most - before
    );
    assert!(most - before < 64 * 1024, "{} KiB more", most - before);
    assert!(slowest < Duration::from_secs(3), "the other reader waited {slowest:?}");
    drop(stuck);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_that_vanish_leave_nothing_behind() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.event(Some(two_sections()), |_| {}).await;
    let admin = format!("127.0.0.1:{}", free_port().await);
    let process = start_with(|| {
        let mut command = command(&stage, "serve");
        command.env("PARTERRE_ADMIN_LISTEN", &admin);
        command
    })
    .await;
    let stranger = Api::new(&process.url, None);
    // An address may have five hundred at once.
    for turn in 0..4 {
        let opened = (0..250).map(async |_| {
            let mut socket = Socket::open(&stranger).await;
            socket.subscribe(WATCH, json!({ "event": hall.event })).await;
            socket.next().await;
            socket
        });
        let sockets = futures_util::future::join_all(opened).await;
        assert!(metric(&admin, "parterre_subscriptions_running").await >= 250.0);
        // Something is on its way to them when they go, without a word.
        let buyer = Api::new(&process.url, stage.buyer(&format!("buyer-{turn}")).token);
        let hold = buyer.hold(&hall.event, "k", &["Left-A-1"]).await["hold"]["id"].clone();
        for socket in sockets {
            socket.vanish();
        }
        buyer.must("releaseHold", json!({ "holdId": hold }), "hold { id }").await;
    }
    for gauge in ["parterre_sockets_open", "parterre_subscriptions_running", "parterre_seatmap_watchers"] {
        eventually(gauge, || async { (metric(&admin, gauge).await == 0.0).then_some(()) }).await;
    }
    // None of them counts any more.
    let opened = (0..500).map(async |_| Socket::open(&stranger).await);
    drop(futures_util::future::join_all(opened).await);
    stage.finish().await;
}

/// One who falls behind is told so, and the stream ends: they subscribe again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_that_falls_behind_is_told_to_start_over() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(3, 50, |_| {}).await;
    let query = "subscription($event: ID!) { seatMapChanged(eventId: $event) { __typename
        ... on SeatMapDelta { changes { seatId status sectionId } } ... on SeatMapResync { reason } } }";
    let seats: Vec<String> = (0..150).map(|n| format!("{}-{}", ["A", "B", "C"][n / 50], n % 50 + 1)).collect();
    let (mut reader, mut slow) = (Socket::open(&stage.stranger()).await, Socket::open_narrow(&stage.stranger()).await);
    reader.subscribe(query, json!({ "event": hall.event })).await;
    reader.next().await;
    slow.subscribe(query, json!({ "event": hall.event })).await;
    let mut told = vec![slow.message().await];
    // They read one message of ten: never stuck for long, which would close the connection, and ever further behind. The
    // connection takes in about forty messages, and the backlog is 64.
    for turn in 0..160 {
        let input = json!({ "eventId": hall.event, "seatIds": seats, "blocked": turn % 2 == 0 });
        hall.organizer.must("blockSeats", input, "event { id }").await;
        reader.next().await;
        if turn % 10 == 9 {
            told.push(slow.message().await);
        }
    }
    while told.last().is_none_or(|message| message["type"] != "complete") {
        told.push(slow.message().await);
    }
    let last = &told[told.len() - 2];
    assert_eq!(last["payload"]["data"]["seatMapChanged"]["reason"], "SLOW_CONSUMER", "{last}");
    eprintln!("told to start over after {} messages of 161", told.len() - 2);
    stage.finish().await;
}

/// However long nothing happened, and whatever else was looked at meanwhile, those who watch are told at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_map_that_is_watched_is_never_put_aside() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 9, |_| {}).await;
    let mut socket = Socket::open(&stage.stranger()).await;
    socket.subscribe(WATCH, json!({ "event": hall.event })).await;
    socket.next().await;
    let maps = &stage.servers[0].app.services.seat_maps;
    let (_, event) = parterre_schema::parse_node_id(&hall.event).unwrap();
    let watched = maps.of(parterre_entity::EventId(event)).await.unwrap().unwrap();
    maps.cool().await;
    let again = maps.of(parterre_entity::EventId(event)).await.unwrap().unwrap();
    assert!(Arc::ptr_eq(&watched, &again), "there is one map of an event");
    drop((watched, again));
    maps.cool().await;
    let mut slowest = Duration::ZERO;
    for seat in ["A-1", "A-4", "A-7"] {
        let asked = Instant::now();
        stage.buyer(seat).hold(&hall.event, "k", &[seat]).await;
        assert_eq!(socket.next().await["seatMapChanged"]["changes"][0]["seatId"], seat);
        slowest = slowest.max(asked.elapsed());
    }
    assert!(slowest < Duration::from_millis(1_200), "before the comparison with the database: {slowest:?}");
    drop(socket);
    stage.finish().await;
}

/// After a restore the database may be behind what was shown.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_map_follows_a_database_that_was_set_back() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    stage.buyer("mina").hold(&hall.event, "k", &["A-1"]).await;
    let watcher = Watcher::of(&stage.stranger(), &hall.event, Value::Null).await;
    assert_eq!(watcher.seen.lock().unwrap().seats["A-1"], "HELD");
    stage
        .execute(
            "UPDATE event_seat SET status = 'AVAILABLE', hold_id = NULL, held_until = NULL; DELETE FROM hold_item;
             DELETE FROM hold; DELETE FROM idempotency; DELETE FROM outbox WHERE topic IN ('seats', 'hold');
             UPDATE event_counter SET version = version - 1 WHERE section_no = 0",
        )
        .await;
    watcher.must_show(&stage, "true").await;
    watcher.task.abort();
    stage.finish().await;
}
