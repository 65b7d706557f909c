//! The outbox, the bus and what hangs on them.

use crate::support::{PATIENCE, Setup, Socket, Stage, eventually, redis_url, url_of};
use async_trait::async_trait;
use parterre::bus::{Bus, Hint, MemoryBus, RedisBus, SeatsDelta, SectionDelta};
use parterre::db::{Db, Transaction};
use parterre::outbox::{Change, Topic};
use parterre::outbox::{Consumer, Position, Progress, Row, append, consume, read_after};
use parterre_entity::{BookingId, EventId};
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

fn change(word: &str) -> Change {
    Change { topic: Topic::Venue, event: None, subject: Some(Uuid::now_v7()), payload: json!({ "word": word }) }
}

/// Notes the words it sees; one word is poison.
#[derive(Default)]
struct Reader(Mutex<Vec<String>>);

#[async_trait]
impl Consumer for Reader {
    fn name(&self) -> &'static str {
        "reader"
    }

    fn topics(&self) -> &'static [Topic] {
        Topic::ALL
    }

    async fn write(&self, _: &Transaction, rows: &[Row]) -> Result<(), DbErr> {
        let words: Vec<String> =
            rows.iter().map(|row| row.payload["word"].as_str().unwrap_or_default().to_owned()).collect();
        if words.iter().any(|word| word == "poison") {
            return Err(DbErr::Custom("poison".into()));
        }
        self.0.lock().unwrap().extend(words);
        Ok(())
    }
}

async fn alone() -> (Stage, Db) {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let db = stage.db.clone();
    (stage, db)
}

async fn until_idle(db: &Db, reader: &Reader) {
    eventually("all is read", || async { (consume(db, reader).await.unwrap() == Progress::Idle).then_some(()) }).await;
}

/// Transaction ids are numbers, though they travel as text: 100 comes after 99. In the order of text a page that crosses
/// such a boundary would end behind rows that nobody has read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rows_are_read_in_the_order_of_numbers_over_every_power_of_ten() {
    let (stage, db) = alone().await;
    for xid in [8, 9, 10, 11, 98, 99, 100, 101, 102] {
        stage.execute(&format!("INSERT INTO outbox (xid, topic, payload) VALUES ('{xid}', 'venue', '{{}}')")).await;
    }
    let (mut after, mut read) = (Position::default(), Vec::new());
    loop {
        let rows = read_after(db.pool(), after, 3, Topic::ALL).await.unwrap().rows;
        let Some(last) = rows.last() else { break };
        after = last.position;
        read.extend(rows.iter().map(|row| row.position.xid));
    }
    assert_eq!(read, [8, 9, 10, 11, 98, 99, 100, 101, 102]);
    stage.discard().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_low_id_that_commits_late_is_delivered_and_one_that_rolls_back_does_not_stall() {
    let (stage, db) = alone().await;
    let reader = Reader::default();
    let (late, gone) = (db.begin("late").await.unwrap(), db.begin("gone").await.unwrap());
    append(&*late, &[change("late")]).await.unwrap();
    append(&*gone, &[change("gone")]).await.unwrap();
    let early = db.begin("early").await.unwrap();
    append(&*early, &[change("early")]).await.unwrap();
    early.commit().await.unwrap();
    assert_ne!(consume(&db, &reader).await.unwrap(), Progress::Moved, "the early one waits behind the late one");
    gone.rollback().await.unwrap();
    late.commit().await.unwrap();
    until_idle(&db, &reader).await;
    assert_eq!(*reader.0.lock().unwrap(), ["late", "early"], "in the order of their transactions, none missing");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poisoned_row_is_set_aside_and_the_feed_goes_on() {
    let (stage, db) = alone().await;
    let reader = Reader::default();
    for word in ["one", "poison", "two"] {
        let tx = db.begin("word").await.unwrap();
        append(&*tx, &[change(word)]).await.unwrap();
        tx.commit().await.unwrap();
    }
    until_idle(&db, &reader).await;
    assert_eq!(*reader.0.lock().unwrap(), ["one", "two"]);
    assert_eq!(stage.number("SELECT count(*) FROM outbox_quarantine WHERE consumer = 'reader'").await, 1);
    stage.execute("DELETE FROM outbox_quarantine").await;
    stage.finish().await;
}

/// Notes at each row whether its lease was there; one word is poison.
struct Leased {
    db: Db,
    seen: Mutex<Vec<bool>>,
}

#[async_trait]
impl Consumer for Leased {
    fn name(&self) -> &'static str {
        "leased"
    }

    fn topics(&self) -> &'static [Topic] {
        Topic::ALL
    }

    async fn act(&self, rows: &[Row]) -> Result<(), DbErr> {
        let statement = "SELECT lease_until > clock_timestamp() FROM outbox_cursor WHERE consumer = 'leased'";
        let row = self.db.pool().query_one_raw(parterre::sql!(statement)).await?.unwrap();
        self.seen.lock().unwrap().push(row.try_get_by_index::<Option<bool>>(0)? == Some(true));
        if rows.iter().any(|row| row.payload["word"] == "poison") {
            return Err(DbErr::Custom("poison".into()));
        }
        Ok(())
    }
}

/// Nobody else takes up rows that are being delivered one by one, and the lease is given back in the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_kept_while_rows_are_delivered_one_by_one() {
    let (stage, db) = alone().await;
    for word in ["one", "poison", "two", "three"] {
        let tx = db.begin("word").await.unwrap();
        append(&*tx, &[change(word)]).await.unwrap();
        tx.commit().await.unwrap();
    }
    let leased = Leased { db: db.clone(), seen: Mutex::default() };
    eventually("all is read", || async { (consume(&db, &leased).await.unwrap() == Progress::Idle).then_some(()) })
        .await;
    let seen = leased.seen.lock().unwrap().clone();
    assert!(seen.len() >= 5 && seen.iter().all(|leased| *leased), "together, then each of four: {seen:?}");
    assert_eq!(stage.number("SELECT count(*) FROM outbox_quarantine WHERE consumer = 'leased'").await, 1);
    assert_eq!(
        stage.number("SELECT count(*) FROM outbox_cursor WHERE consumer = 'leased' AND lease_until IS NOT NULL").await,
        0
    );
    stage.execute("DELETE FROM outbox_quarantine").await;
    stage.finish().await;
}

/// Fails its row, and before it does, another process goes past it.
struct Overtaken(Db);

#[async_trait]
impl Consumer for Overtaken {
    fn name(&self) -> &'static str {
        "overtaken"
    }

    fn topics(&self) -> &'static [Topic] {
        Topic::ALL
    }

    async fn act(&self, _: &[Row]) -> Result<(), DbErr> {
        let newest = "UPDATE outbox_cursor SET (xid, id) = (SELECT xid, id FROM outbox ORDER BY outbox.xid DESC, outbox.id DESC LIMIT 1)
            WHERE consumer = 'overtaken'";
        self.0.pool().execute_raw(parterre::sql!(newest)).await?;
        Err(DbErr::Custom("too late".into()))
    }
}

/// What another process has delivered is not set aside, and is not delivered again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_row_that_others_have_delivered_is_not_set_aside() {
    let (stage, db) = alone().await;
    for word in ["one", "two", "three"] {
        let tx = db.begin("word").await.unwrap();
        append(&*tx, &[change(word)]).await.unwrap();
        tx.commit().await.unwrap();
    }
    let overtaken = Overtaken(db.clone());
    eventually("all is read", || async { (consume(&db, &overtaken).await.unwrap() == Progress::Idle).then_some(()) })
        .await;
    assert_eq!(stage.number("SELECT count(*) FROM outbox_quarantine").await, 0);
    let behind = "SELECT count(*) FROM outbox, outbox_cursor AS cursor WHERE cursor.consumer = 'overtaken' AND (outbox.xid, outbox.id) > (cursor.xid, cursor.id)";
    assert_eq!(stage.number(behind).await, 0, "the cursor was not moved back");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_read_every_row_once() {
    let (stage, db) = alone().await;
    for n in 0..200 {
        let tx = db.begin("word").await.unwrap();
        append(&*tx, &[change(&n.to_string())]).await.unwrap();
        tx.commit().await.unwrap();
    }
    let reader = Arc::new(Reader::default());
    let both = (0..4).map(|_| {
        let (db, reader) = (db.clone(), reader.clone());
        async move { until_idle(&db, &reader).await }
    });
    futures_util::future::join_all(both).await;
    until_idle(&db, &reader).await;
    let words = reader.0.lock().unwrap().clone();
    assert_eq!(words, (0..200).map(|n| n.to_string()).collect::<Vec<_>>());
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cursors_of_another_cluster_start_over() {
    let (stage, db) = alone().await;
    let reader = Reader::default();
    let tx = db.begin("word").await.unwrap();
    append(&*tx, &[change("one")]).await.unwrap();
    tx.commit().await.unwrap();
    until_idle(&db, &reader).await;
    // As after a restore: another cluster's identity, and transaction ids from the future.
    stage.execute("UPDATE outbox_cursor SET system_identifier = 'another', xid = '99999999999'; UPDATE outbox SET xid = '99999999998'").await;
    let tx = db.begin("word").await.unwrap();
    append(&*tx, &[change("two")]).await.unwrap();
    tx.commit().await.unwrap();
    until_idle(&db, &reader).await;
    assert_eq!(*reader.0.lock().unwrap(), ["one", "one", "two"], "at least once, none skipped");
    assert!(read_after(db.pool(), Position::default(), 10, Topic::ALL).await.unwrap().rows.len() == 2);
    stage.finish().await;
}

async fn carries_hints(one: &dyn Bus, other: &dyn Bus) {
    let (mut here, mut there) = (one.subscribe(), other.subscribe());
    let delta = SeatsDelta {
        event: EventId::new(),
        sections: vec![SectionDelta { section: 3, version: 9, seats: vec![(1, 'H', 1_700_000_000_000), (2, 'A', 0)] }],
        tiers: None,
    };
    let hints = [Hint::Seats(Arc::new(delta)), Hint::Booking(BookingId::new())];
    for waited_for in [true, false] {
        if waited_for {
            one.publish(&hints).await.unwrap();
        } else {
            for hint in &hints {
                one.send(hint.clone());
            }
        }
        for receiver in [&mut here, &mut there] {
            for hint in &hints {
                let got = tokio::time::timeout(PATIENCE, receiver.recv()).await.unwrap().unwrap();
                assert_eq!(got, *hint, "in order, once, to everybody, the sender included");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_buses_keep_one_contract() {
    parterre::install_crypto();
    let memory = MemoryBus::default();
    carries_hints(&memory, &memory).await;
    let namespace = Uuid::now_v7().to_string();
    let shutdown = CancellationToken::new();
    let one = RedisBus::connect(&redis_url(), &namespace, shutdown.clone()).await.unwrap();
    let other = RedisBus::connect(&redis_url(), &namespace, shutdown.clone()).await.unwrap();
    carries_hints(&one, &other).await;
    one.publish(&[]).await.expect("nothing to send is no failure");
    shutdown.cancel();
}

/// Rows that nobody is told of are not in the way of those that come after them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_relay_goes_past_rows_without_hints() {
    let stage = Stage::with(Setup { redis: true, workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let relay = parterre::outbox::Relay { bus: stage.servers[0].app.services.bus.clone() };
    eventually("all is read", || async { (consume(&stage.db, &relay).await.unwrap() == Progress::Idle).then_some(()) })
        .await;
    let mut hints = relay.bus.subscribe();
    let input = json!({ "eventId": hall.event, "expectedVersion": "2", "title": "Aida again" });
    hall.organizer.must("updateEvent", input, "event { id }").await;
    stage.buyer("mina").hold(&hall.event, "k", &["A-2"]).await;
    eventually("all is read again", || async {
        (consume(&stage.db, &relay).await.unwrap() == Progress::Idle).then_some(())
    })
    .await;
    for from in ["the committer", "the relay"] {
        let hint = tokio::time::timeout(PATIENCE, hints.recv()).await.expect(from).unwrap();
        assert!(matches!(hint, Hint::Seats(_)), "{from}: {hint:?}");
    }
    stage.finish().await;
}

/// A line that is open and dead: nothing comes, and nobody says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_redis_line_that_went_silent_is_given_up() {
    parterre::install_crypto();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let proxy = listener.local_addr().unwrap();
    let redis = redis_url();
    let to = redis.trim_start_matches("redis://").trim_end_matches('/').to_owned();
    let (hole, _) = tokio::sync::watch::channel(0_u32);
    let holes = hole.clone();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            let mut far = tokio::net::TcpStream::connect(&to).await.unwrap();
            let mut silent = holes.subscribe();
            tokio::spawn(async move {
                tokio::select! {
                    _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                    // Neither passed on nor closed.
                    _ = silent.changed() => tokio::time::sleep(Duration::from_mins(2)).await,
                }
            });
        }
    });
    let namespace = Uuid::now_v7().to_string();
    let shutdown = CancellationToken::new();
    let bus = RedisBus::connect(&format!("redis://{proxy}/"), &namespace, shutdown.clone()).await.unwrap();
    let mut hints = bus.subscribe();
    hole.send(1).unwrap();
    let hint = tokio::time::timeout(PATIENCE, hints.recv()).await.expect("hints arrive again").unwrap();
    assert_eq!(hint, Hint::Gap);
    let other = RedisBus::connect(&redis, &namespace, shutdown.clone()).await.unwrap();
    let booking = Hint::Booking(BookingId::new());
    other.publish(std::slice::from_ref(&booking)).await.unwrap();
    let hint = tokio::time::timeout(PATIENCE, hints.recv()).await.expect("hints arrive again").unwrap();
    assert_eq!(hint, booking);
    shutdown.cancel();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_redis_subscription_comes_back_and_says_that_something_was_missed() {
    parterre::install_crypto();
    // A Redis of its own: killing subscriptions would disturb the other tests.
    let port = crate::process::free_port().await;
    let mut redis = tokio::process::Command::new("redis-server")
        .args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"])
        .stdout(std::process::Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .unwrap();
    let url = format!("redis://127.0.0.1:{port}/");
    let shutdown = CancellationToken::new();
    let bus =
        eventually("redis answers", || async { RedisBus::connect(&url, "test", shutdown.clone()).await.ok() }).await;
    let mut hints = bus.subscribe();
    let client = redis::Client::open(url.as_str()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    redis::cmd("CLIENT").arg("KILL").arg("TYPE").arg("PUBSUB").query_async::<i64>(&mut connection).await.unwrap();
    let hint = tokio::time::timeout(PATIENCE, hints.recv()).await.expect("a hint").unwrap();
    assert_eq!(hint, Hint::Gap);
    let booking = Hint::Booking(BookingId::new());
    // Of another process: its own hints need no subscription.
    let other = RedisBus::connect(&url, "test", shutdown.clone()).await.unwrap();
    other.publish(std::slice::from_ref(&booking)).await.unwrap();
    let hint = tokio::time::timeout(PATIENCE, hints.recv()).await.expect("hints arrive again").unwrap();
    assert_eq!(hint, booking);
    shutdown.cancel();
    redis.kill().await.unwrap();
}

const DELTAS: &str = "subscription($event: ID!) { seatMapChanged(eventId: $event) { __typename ... on SeatMapDelta { changes { seatId } } } }";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_watcher_on_one_server_sees_a_hold_on_the_other() {
    let stage = Stage::with(crate::holds::two_servers()).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mut socket = Socket::open(&stage.buyer_at(1, "leo")).await;
    socket.subscribe(DELTAS, json!({ "event": hall.event })).await;
    assert_eq!(socket.next().await["seatMapChanged"]["__typename"], "SeatMapSnapshot");
    stage.buyer_at(0, "mina").hold(&hall.event, "k", &["A-3"]).await;
    assert_eq!(socket.next().await["seatMapChanged"]["changes"][0]["seatId"], "A-3");
    stage.finish().await;
}

/// The horizon of the outbox is the whole cluster's: a transaction left open anywhere holds the feed back, not the map.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_transaction_left_open_in_another_database_does_not_delay_the_map() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 9, |_| {}).await;
    let elsewhere = Db::connect(&url_of("postgres"), 1).await.unwrap();
    let open = elsewhere.begin("left_open").await.unwrap();
    open.execute_unprepared("CREATE TEMP TABLE left_open (n int); SELECT pg_current_xact_id()").await.unwrap();
    let mut socket = Socket::open(&stage.stranger()).await;
    socket.subscribe(DELTAS, json!({ "event": hall.event })).await;
    socket.next().await;
    for n in 1..=5 {
        let started = Instant::now();
        stage.buyer(&format!("buyer-{n}")).hold(&hall.event, "k", &[&format!("A-{n}")]).await;
        socket.next().await;
        assert!(started.elapsed() < Duration::from_secs(5), "a delta took {:?}", started.elapsed());
    }
    open.rollback().await.unwrap();
    stage.finish().await;
}

/// What a committer could not publish, because it died after its commit, the relay does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_nobody_published_reaches_the_map_all_the_same() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mut socket = Socket::open(&stage.stranger()).await;
    socket.subscribe(DELTAS, json!({ "event": hall.event })).await;
    socket.next().await;
    let (_, event) = parterre_schema::parse_node_id(&hall.event).unwrap();
    let tx = stage.db.begin("test").await.unwrap();
    tx.execute_unprepared("UPDATE event_seat SET status = 'BLOCKED' WHERE seat_no = 2; UPDATE event_counter SET version = version + 1, remaining = remaining - 1")
        .await
        .unwrap();
    let version = stage.number("SELECT version FROM event_counter").await + 1;
    let delta = SeatsDelta {
        event: EventId(event),
        sections: vec![SectionDelta { section: 0, version, seats: vec![(2, 'B', 0)] }],
        tiers: None,
    };
    let payload = serde_json::to_value(&delta).unwrap();
    append(&*tx, &[Change { topic: Topic::Seats, event: Some(EventId(event)), subject: None, payload }]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(socket.next().await["seatMapChanged"]["changes"][0]["seatId"], "A-3");
    stage.finish().await;
}

/// Not even in the outbox: the comparison of counters notices it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_delta_is_noticed_by_its_counter() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mut socket = Socket::open(&stage.stranger()).await;
    socket.subscribe(DELTAS, json!({ "event": hall.event })).await;
    socket.next().await;
    stage.execute("UPDATE event_seat SET status = 'BLOCKED' WHERE seat_no = 4; UPDATE event_counter SET version = version + 1, remaining = remaining - 1").await;
    let started = Instant::now();
    assert_eq!(socket.next().await["seatMapChanged"]["changes"][0]["seatId"], "A-5");
    eprintln!("a lost delta was noticed after {:?}", started.elapsed());
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_passes_on_the_map_by_itself() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 5, |input| input["holdSeconds"] = json!(1)).await;
    let mut socket = Socket::open(&stage.stranger()).await;
    let query = "subscription($event: ID!) { seatMapChanged(eventId: $event) { ... on SeatMapDelta { changes { seatId status } } } }";
    socket.subscribe(query, json!({ "event": hall.event })).await;
    socket.next().await;
    stage.buyer("mina").hold(&hall.event, "k", &["A-1"]).await;
    assert_eq!(socket.next().await["seatMapChanged"]["changes"][0]["status"], "HELD");
    assert_eq!(socket.next().await["seatMapChanged"]["changes"][0]["status"], "AVAILABLE", "with no worker at all");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_index_search_says_so_everything_else_answers_and_it_rebuilds_itself() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let query = "query($id: ID) { searchEvents(query: \"aida\") { totalCount } event(id: $id) { title } }";
    let ask = || async { stage.stranger().ask(query, json!({ "id": hall.event })).await };
    eventually("the event is found", || async {
        (ask().await["data"]["searchEvents"]["totalCount"] == 1).then_some(())
    })
    .await;
    // Another server whose index is gone, and whose indexer is not running yet.
    let mut config = stage.config.clone();
    config.data = stage.servers[0].app.config.data.join("other");
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let shutdown = CancellationToken::new();
    let app = parterre::app::App::build(config, shutdown.clone()).await.unwrap();
    tokio::spawn(parterre::http::serve(app.clone(), listener));
    let other = crate::support::Api::new(&url, None);
    let answer = other.ask(query, json!({ "id": hall.event })).await;
    assert_eq!(answer["errors"][0]["extensions"]["code"], "SEARCH_UNAVAILABLE", "never an empty list");
    assert_eq!(answer["data"], json!({ "searchEvents": null, "event": { "title": "Aida" } }), "the known event loads");
    parterre::workers::start_indexer(&app);
    eventually("the index was built by itself", || async {
        (other.ask(query, json!({ "id": hall.event })).await["data"]["searchEvents"]["totalCount"] == 1).then_some(())
    })
    .await;
    let generation = app.services.discovery.index().unwrap().generation().to_owned();
    std::fs::remove_file(app.config.data.join("search/current")).unwrap();
    eventually("and again when it was lost", || async {
        let again = app.services.discovery.index().is_some_and(|index| index.generation() != generation);
        (again && other.ask(query, json!({ "id": hall.event })).await["data"]["searchEvents"]["totalCount"] == 1)
            .then_some(())
    })
    .await;
    shutdown.cancel();
    app.drain(Duration::from_secs(5)).await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_document_follows_its_events_newest_row() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    mina.checkout(&hold, "c", "pm_card_visa").await;
    hall.organizer
        .must(
            "updateVenue",
            json!({ "venueId": hall.venue, "expectedVersion": "1", "name": "Semperoper" }),
            "venue { id }",
        )
        .await;
    let (_, event) = parterre_schema::parse_node_id(&hall.event).unwrap();
    let discovery = &stage.servers[0].app.services.discovery;
    let newest = "SELECT xid::text || ' ' || id FROM outbox
        WHERE topic IN ('seats', 'event', 'venue') ORDER BY outbox.xid DESC, id DESC LIMIT 1";
    let is_at_the_newest_row = async || {
        let newest = stage.text(newest).await;
        let position = discovery.index()?.position_of(event).ok()??;
        (format!("{} {}", position.xid, position.id) == newest).then_some(())
    };
    eventually("the document is at the newest row, which was about the venue", is_at_the_newest_row).await;
    // Nothing that the document says changes, but it is as new as this all the same.
    mina.hold(&hall.event, "k2", &["A-2"]).await;
    eventually("the document is at the row of the second hold", is_at_the_newest_row).await;
    eventually("the new name is found", || async {
        let answer = mina.ask("{ searchEvents(query: \"semperoper\") { totalCount } }", json!({})).await;
        (answer["data"]["searchEvents"]["totalCount"] == 1).then_some(())
    })
    .await;
    stage.finish().await;
}

const RESUMED: &str = "subscription($event: ID!, $after: SeatMapVersion) { seatMapChanged(eventId: $event, afterVersion: $after) {
    __typename ... on SeatMapSnapshot { version } ... on SeatMapDelta { fromVersion version changes { seatId status } } } }";

/// A stream that broke off goes on where it was, on either server, and one that can't is given the whole map.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_resumes_after_the_version_it_had_on_any_server() {
    let stage = Stage::with(crate::holds::two_servers()).await;
    let hall = stage.hall(1, 9, |_| {}).await;
    let watch = async |server: usize, after: Value| {
        let mut socket = Socket::open(&stage.buyer_at(server, "leo")).await;
        socket.subscribe(RESUMED, json!({ "event": hall.event, "after": after })).await;
        let first = socket.next().await["seatMapChanged"].clone();
        (socket, first)
    };
    // Both know the event from here on.
    let (mut one, first) = watch(0, Value::Null).await;
    let (_other, _) = watch(1, Value::Null).await;
    assert_eq!(first["__typename"], "SeatMapSnapshot");
    stage.buyer("mina").hold(&hall.event, "k", &["A-1"]).await;
    let seen = one.next().await["seatMapChanged"].clone();
    assert_eq!((&seen["fromVersion"], &seen["changes"][0]["seatId"]), (&first["version"], &json!("A-1")));
    drop(one);
    stage.buyer("ada").hold(&hall.event, "k", &["A-5", "A-6"]).await;
    for server in [0, 1] {
        let missed = eventually("this server has seen it too", || async {
            let (_socket, missed) = watch(server, seen["version"].clone()).await;
            (missed["changes"].as_array().map(Vec::len) == Some(2)).then_some(missed)
        })
        .await;
        assert_eq!(missed["__typename"], "SeatMapDelta", "server {server}");
        assert_eq!(missed["fromVersion"], seen["version"], "server {server}");
        let seats: Vec<&str> =
            missed["changes"].as_array().unwrap().iter().map(|change| change["seatId"].as_str().unwrap()).collect();
        assert_eq!(seats, ["A-5", "A-6"], "server {server}");
    }
    let (_, unknown) = watch(0, json!("17;0@0")).await;
    assert_eq!(unknown["__typename"], "SeatMapSnapshot");
    let (_, nonsense) = watch(0, json!("nonsense")).await;
    assert_eq!(nonsense["__typename"], "SeatMapSnapshot");
    stage.finish().await;
}

/// The root field of a subscription may be in fragments, as of any other operation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscription_may_be_written_with_fragments() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let field = format!("seatMapChanged(eventId: \"{}\") {{ __typename }}", hall.event);
    for document in [
        format!("subscription {{ ... on Subscription {{ {field} }} }}"),
        format!("subscription {{ ... {{ {field} }} }}"),
        format!("subscription {{ ...A }} fragment A on Subscription {{ {field} }}"),
        format!(
            "subscription {{ ...A }} fragment A on Subscription {{ ...B }} fragment B on Subscription {{ {field} }}"
        ),
    ] {
        let mut socket = Socket::open(&stage.stranger()).await;
        socket.subscribe(&document, json!({})).await;
        assert_eq!(socket.next().await["seatMapChanged"]["__typename"], "SeatMapSnapshot", "{document}");
    }
    stage.finish().await;
}
