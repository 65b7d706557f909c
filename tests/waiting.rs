//! Waiting rooms: both queues under one contract, a crowd of 100,000, and what a buyer sees of it.

use crate::support::{Api, Setup, Socket, Stage, eventually, redis_url};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::{StreamExt, stream};
use parterre::booking::{BookingError, CheckoutRequest};
use parterre::bus::Hint;
use parterre::db::is_connection;
use parterre::inventory::{Answer, HoldError, HoldRequest, LaneError, Refusal};
use parterre::waiting::{
    Admitted, Allowance, Clock, Departures, EntryError, Gate, MemoryQueue, Parts, Place, Queue, QueueError, RedisQueue,
    TOKEN_LIFE, WaitingRooms,
};
use parterre_entity::{EventId, HoldId};
use parterre_schema::{WaitingRoomStatus, parse_node_id};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt::Display;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

const SECOND: Duration = Duration::from_secs(1);

/// One of each kind, each by a clock of its own.
fn queues() -> Vec<(&'static str, Arc<dyn Queue>, Clock)> {
    let (here, there) = (Clock::default(), Clock::default());
    let shared = RedisQueue::new(&redis_url(), &Uuid::now_v7().to_string(), there.clone()).unwrap();
    vec![("memory", Arc::new(MemoryQueue::new(here.clone())), here), ("redis", Arc::new(shared), there)]
}

fn gate(queue: &dyn Queue, per_minute: u32, slots: u32) -> Gate {
    Gate {
        opens_at_ms: queue.now().timestamp_millis() - 60_000,
        allowance: Allowance { per_minute, slots, factor: 1.0 },
        stay: Duration::from_mins(10),
        process: "one".into(),
    }
}

/// Lets in whoever may, and says who.
async fn admit(queue: &dyn Queue, event: EventId, gate: &Gate) -> Vec<String> {
    queue.admit(event, gate).await.unwrap().expect("an open queue").buyers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_is_kept_and_order_is_arrival_order() {
    for (kind, queue, clock) in queues() {
        let event = EventId::new();
        for (ahead, buyer) in ["ada", "bob", "cleo", "dan"].into_iter().enumerate() {
            let ahead = u64::try_from(ahead).unwrap();
            assert_eq!(queue.join(event, buyer).await.unwrap(), Place::Waiting { ahead }, "{kind}");
        }
        assert_eq!(queue.join(event, "ada").await.unwrap(), Place::Waiting { ahead: 0 }, "{kind}");
        assert_eq!(queue.find(event, "eve").await.unwrap(), Place::Absent, "{kind}");
        assert_eq!(queue.leave(event, "bob").await.unwrap(), None, "{kind}");
        assert_eq!(queue.find(event, "cleo").await.unwrap(), Place::Waiting { ahead: 1 }, "{kind}");
        assert_eq!(queue.join(event, "bob").await.unwrap(), Place::Waiting { ahead: 3 }, "{kind}: he gave it up");
        assert_eq!(queue.find(EventId::new(), "ada").await.unwrap(), Place::Absent, "{kind}: another event");
        queue.open(event, Duration::ZERO).await.unwrap();
        clock.advance(10 * SECOND);
        let gate = gate(&*queue, 6_000, 100);
        assert_eq!(admit(&*queue, event, &gate).await, ["ada", "cleo", "dan", "bob"], "{kind}");
        queue.join(event, "eve").await.unwrap();
        queue.clear(event, queue.now()).await.unwrap();
        assert_eq!(queue.find(event, "eve").await.unwrap(), Place::Absent, "{kind}");
        assert!(
            matches!(queue.find(event, "ada").await.unwrap(), Place::Admitted { .. }),
            "{kind}: inside stays inside"
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nobody_is_let_in_faster_than_the_rate_or_beyond_the_slots_or_before_the_sale() {
    for (kind, queue, clock) in queues() {
        let event = EventId::new();
        queue.open(event, Duration::ZERO).await.unwrap();
        for n in 0..200 {
            queue.join(event, &format!("buyer-{n}")).await.unwrap();
        }
        let mut gate = gate(&*queue, 600, 50);
        gate.opens_at_ms = queue.now().timestamp_millis() + 5_000;
        assert_eq!(admit(&*queue, event, &gate).await.len(), 0, "{kind}: not on sale yet");
        clock.advance(5 * SECOND);
        let mut let_in = admit(&*queue, event, &gate).await.len();
        assert!((1..=3).contains(&let_in), "{kind}: the first at once: {let_in}");
        clock.advance(2 * SECOND);
        let more = admit(&*queue, event, &gate).await.len();
        assert!((10..=11).contains(&more), "{kind}: a second's worth at once, not two: {more}");
        let_in += more;
        for _ in 0..20 {
            clock.advance(SECOND / 2);
            let_in += admit(&*queue, event, &gate).await.len();
        }
        assert_eq!(let_in, 50, "{kind}: the slots are taken");
        // Half of them are renewed, the others run out.
        for n in 0..25 {
            let place = queue.find(event, &format!("buyer-{n}")).await.unwrap();
            assert!(matches!(place, Place::Admitted { .. }), "{kind}: {n} {place:?}");
        }
        clock.advance(TOKEN_LIFE.checked_sub(10 * SECOND).unwrap());
        for n in 0..25 {
            queue.find(event, &format!("buyer-{n}")).await.unwrap();
        }
        clock.advance(15 * SECOND);
        assert_eq!(queue.find(event, "buyer-30").await.unwrap(), Place::Absent, "{kind}: he ran out");
        let told = queue.admit(event, &gate).await.unwrap().unwrap();
        assert!((10..=11).contains(&told.buyers.len()), "{kind}: {told:?}");
        assert_eq!(told.buyers[0], "buyer-50", "{kind}");
        assert_eq!(told.inside, 25 + u64::try_from(told.buyers.len()).unwrap(), "{kind}");
        assert_eq!(told.waiting, 150 - u64::try_from(told.buyers.len()).unwrap(), "{kind}");
        assert!(told.oldest > SECOND, "{kind}: {told:?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stay_ends_however_often_it_is_renewed_and_a_slot_is_free_at_once_when_it_is_given_up() {
    for (kind, queue, clock) in queues() {
        let event = EventId::new();
        queue.open(event, Duration::ZERO).await.unwrap();
        for buyer in ["ada", "bob", "cleo", "dan"] {
            queue.join(event, buyer).await.unwrap();
        }
        let mut gate = gate(&*queue, 60_000, 1);
        gate.stay = Duration::from_mins(2);
        assert_eq!(admit(&*queue, event, &gate).await, ["ada"], "{kind}");
        let Place::Admitted { admission, until_ms } = queue.join(event, "ada").await.unwrap() else { panic!("{kind}") };
        assert!(until_ms <= queue.now().timestamp_millis() + 90_000, "{kind}");
        clock.advance(60 * SECOND);
        let Place::Admitted { admission: same, until_ms: renewed } = queue.find(event, "ada").await.unwrap() else {
            panic!("{kind}")
        };
        assert_eq!(admission, same, "{kind}: one stay, one admission");
        assert!(
            (renewed - until_ms - 30_000).abs() < 2_000,
            "{kind}: only to the end of the stay: {until_ms} {renewed}"
        );
        clock.advance(61 * SECOND);
        assert_eq!(queue.find(event, "ada").await.unwrap(), Place::Absent, "{kind}");
        assert_eq!(admit(&*queue, event, &gate).await, ["bob"], "{kind}");
        assert_eq!(admit(&*queue, event, &gate).await, Vec::<String>::new(), "{kind}");
        let left = queue.leave(event, "bob").await.unwrap();
        assert!(left.is_some(), "{kind}: which admission ended is told");
        assert_eq!(queue.finish(event, "cleo").await.unwrap(), None, "{kind}: she has not been let in");
        clock.advance(SECOND);
        assert_eq!(admit(&*queue, event, &gate).await, ["cleo"], "{kind}");
        assert!(queue.finish(event, "cleo").await.unwrap().is_some(), "{kind}");
        clock.advance(SECOND);
        assert_eq!(admit(&*queue, event, &gate).await, ["dan"], "{kind}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_queue_that_came_into_being_is_opened_once_and_the_most_careful_process_counts() {
    for (kind, queue, clock) in queues() {
        let event = EventId::new();
        queue.join(event, "ada").await.unwrap();
        let full = gate(&*queue, 6_000, 1_000);
        assert_eq!(queue.admit(event, &full).await.unwrap(), None, "{kind}: it may have been lost");
        queue.open(event, TOKEN_LIFE).await.unwrap();
        queue.open(event, Duration::ZERO).await.unwrap();
        assert_eq!(admit(&*queue, event, &full).await.len(), 0, "{kind}: the tokens given out may still be good");
        clock.advance(TOKEN_LIFE + SECOND);
        assert_eq!(admit(&*queue, event, &full).await, ["ada"], "{kind}");
        if kind == "memory" {
            continue;
        }
        for n in 0..1_000 {
            queue.join(event, &format!("buyer-{n}")).await.unwrap();
        }
        let mut careful = full.clone();
        careful.process = "two".into();
        careful.allowance.factor = 0.1;
        clock.advance(10 * SECOND);
        let let_in = admit(&*queue, event, &careful).await.len();
        assert!((10..=11).contains(&let_in), "{kind}: a tenth: {let_in}");
        clock.advance(2 * SECOND);
        let let_in = admit(&*queue, event, &full).await.len();
        assert!((9..=11).contains(&let_in), "{kind}: whoever asks: {let_in}");
        clock.advance(4 * SECOND);
        let let_in = admit(&*queue, event, &full).await.len();
        assert!((100..=101).contains(&let_in), "{kind}: it has not been heard of for long: {let_in}");
    }
}

/// Asks again until there is an answer, as a person would: a busy Redis or a database without a free connection is no
/// failure, and each of these calls may be repeated.
async fn patiently<T, E: Display, F: Future<Output = Result<T, E>>>(ask: impl Fn() -> F) -> T {
    let begun = std::time::Instant::now();
    loop {
        match ask().await {
            Ok(answer) => return answer,
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(30), "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// A queue that fails the test when its promise breaks.
#[derive(Debug)]
struct Checked {
    inner: Arc<dyn Queue>,
    /// Everyone let in, in order.
    order: Mutex<Vec<String>>,
    /// Answers that came too late to be seen here.
    unheard: AtomicU64,
    most_inside: AtomicU64,
    broken: Mutex<Vec<String>>,
}

#[async_trait]
impl Queue for Checked {
    async fn join(&self, event: EventId, buyer: &str) -> Result<Place, QueueError> {
        Ok(patiently(|| self.inner.join(event, buyer)).await)
    }
    async fn find(&self, event: EventId, buyer: &str) -> Result<Place, QueueError> {
        Ok(patiently(|| self.inner.find(event, buyer)).await)
    }
    async fn leave(&self, event: EventId, buyer: &str) -> Result<Option<String>, QueueError> {
        Ok(patiently(|| self.inner.leave(event, buyer)).await)
    }
    async fn finish(&self, event: EventId, buyer: &str) -> Result<Option<String>, QueueError> {
        Ok(patiently(|| self.inner.finish(event, buyer)).await)
    }
    async fn admit(&self, event: EventId, gate: &Gate) -> Result<Option<Admitted>, QueueError> {
        let told = self.inner.admit(event, gate).await;
        self.unheard.fetch_add(u64::from(told.is_err()), Ordering::Relaxed);
        let told = told?;
        if let Some(told) = told.as_ref().filter(|told| !told.buyers.is_empty()) {
            if told.inside > u64::from(gate.allowance.inside_max()) {
                self.broken.lock().unwrap().push(format!("{} inside of {:?}", told.inside, gate.allowance));
            }
            self.most_inside.fetch_max(told.inside, Ordering::Relaxed);
            self.order.lock().unwrap().extend(told.buyers.iter().cloned());
        }
        Ok(told)
    }
    async fn open(&self, event: EventId, quiet: Duration) -> Result<(), QueueError> {
        self.inner.open(event, quiet).await
    }
    async fn clear(&self, event: EventId, before: DateTime<Utc>) -> Result<(), QueueError> {
        self.inner.clear(event, before).await
    }
    fn now(&self) -> DateTime<Utc> {
        self.inner.now()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_queue_in_memory_and_five_thousand_seats_are_sold_in_order() {
    let clock = Clock::default();
    Box::pin(crowd(Arc::new(MemoryQueue::new(clock.clone())), clock, false)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hundred_thousand_queue_in_redis_and_five_thousand_seats_are_sold_in_order() {
    let clock = Clock::default();
    let queue = RedisQueue::new(&redis_url(), &Uuid::now_v7().to_string(), clock.clone()).unwrap();
    Box::pin(crowd(Arc::new(queue), clock, true)).await;
}

const CROWD: usize = 100_000;
const SEATS: i32 = 5_000;

/// Joins, then shoppers: most take two seats and pay nothing, one in ten goes away without a word, one in ten leaves.
async fn crowd(queue: Arc<dyn Queue>, clock: Clock, redis: bool) {
    let stage = Stage::with(Setup { workers: false, redis, ..Setup::default() }).await;
    let hall = stage
        .hall(50, 100, |event| {
            event["zonePrices"] = json!([{ "zone": "Stalls", "price": "0" }]);
            event["waitingRoom"] = json!({ "admitPerMinute": 30_000 });
        })
        .await;
    let event = EventId(parse_node_id(&hall.event).unwrap().1);
    let started = std::time::Instant::now();
    let joins = stream::iter(0..CROWD)
        .map(async |n| {
            let buyer = format!("buyer-{n}");
            let Place::Waiting { ahead } = patiently(|| queue.join(event, &buyer)).await else {
                panic!("{buyer} is not in line")
            };
            (ahead, buyer)
        })
        .buffer_unordered(256);
    let mut line: Vec<(u64, String)> = joins.collect().await;
    eprintln!("{CROWD} joins in {:?}", started.elapsed());
    line.sort();
    assert!(line.iter().zip(0..).all(|((ahead, _), n)| *ahead == n), "every place is somebody's");
    let again = patiently(|| queue.join(event, &line[777].1)).await;
    assert_eq!(again, Place::Waiting { ahead: 777 });

    let queue = Arc::new(Checked {
        inner: queue,
        order: Mutex::default(),
        unheard: AtomicU64::new(0),
        most_inside: AtomicU64::new(0),
        broken: Mutex::default(),
    });
    let services = stage.servers[0].app.services.clone();
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let mut hints = services.bus.subscribe();
    let rooms = WaitingRooms::start(Parts {
        db: stage.db.clone(),
        catalogue: services.catalogue.clone(),
        inventory: Arc::clone(&services.inventory),
        bus: Arc::clone(&services.bus),
        queue: queue.clone(),
        secret: stage.config.admission_secret.clone(),
        limiter: None,
        holds_max: 10,
        tasks: tasks.clone(),
        shutdown: shutdown.clone(),
    })
    .unwrap();
    let free: Arc<Mutex<Vec<i32>>> = Arc::new(Mutex::new((0..SEATS).collect()));
    let refused = Arc::new(AtomicU64::new(0));
    // The room is kept from the first who asks on.
    assert_eq!(rooms.find(event, "nobody").await.unwrap(), None);
    let departures = Departures(rooms.clone());
    let started = std::time::Instant::now();
    let mut shoppers = tokio::task::JoinSet::new();
    let mut time_passes = tokio::time::interval(SECOND / 4);
    loop {
        tokio::select! {
            hint = hints.recv() => {
                let Ok(Hint::Admitted { buyers, .. }) = hint else { continue };
                for buyer in buyers.iter().cloned() {
                    let shopper = Shopper { rooms: rooms.clone(), services: services.clone(), event, buyer };
                    let (free, refused) = (Arc::clone(&free), Arc::clone(&refused));
                    shoppers.spawn(async move { shopper.shop(&free, &refused).await });
                }
            }
            _ = time_passes.tick() => {
                match parterre::outbox::consume(&stage.db, &departures).await {
                    // Those who shop have all connections.
                    Err(error) if is_connection(&error) => {}
                    consumed => drop(consumed.unwrap()),
                }
                // Those who went away without a word hold their slots for a token's life.
                clock.advance(SECOND * 2);
                while let Some(done) = shoppers.try_join_next() {
                    done.unwrap();
                }
                let last = patiently(|| rooms.find(event, &line[CROWD - 1].1)).await;
                if last.unwrap().status == WaitingRoomStatus::SoldOut {
                    break;
                }
                assert!(started.elapsed() < Duration::from_mins(3), "{} seats are left", free.lock().unwrap().len());
            }
        }
    }
    eprintln!("{SEATS} seats were sold in {:?}", started.elapsed());
    while let Some(done) = shoppers.join_next().await {
        done.unwrap();
    }
    assert_eq!(*queue.broken.lock().unwrap(), Vec::<String>::new(), "never more inside than slots");
    let order = queue.order.lock().unwrap().clone();
    let arrival: HashMap<&String, u64> = line.iter().map(|(ahead, buyer)| (buyer, *ahead)).collect();
    assert!(order.iter().is_sorted_by(|a, b| arrival[a] < arrival[b]), "who came first was let in first");
    if queue.unheard.load(Ordering::Relaxed) == 0 {
        assert_eq!(arrival[order.last().unwrap()] + 1, u64::try_from(order.len()).unwrap(), "nobody was passed over");
    }
    assert!(order.len() < CROWD / 2, "the others were not let in for nothing: {}", order.len());
    assert!(queue.most_inside.load(Ordering::Relaxed) > 50, "there was a crowd inside");
    assert!(refused.load(Ordering::Relaxed) > 100, "shoppers met: {refused:?}");
    assert_eq!(stage.number("SELECT count(*) FROM event_seat WHERE status = 'SOLD'").await, i64::from(SEATS));
    let told = rooms.join(event, "somebody-new").await.unwrap();
    assert_eq!(told.status, WaitingRoomStatus::SoldOut);
    eventually("the line went home", || async {
        (queue.find(event, &line[CROWD - 1].1).await.unwrap() == Place::Absent).then_some(())
    })
    .await;
    shutdown.cancel();
    tasks.close();
    tasks.wait().await;
    drop((rooms, departures, services));
    stage.issue_tickets().await;
    stage.finish().await;
}

struct Shopper {
    rooms: WaitingRooms,
    services: parterre::graphql::Services,
    event: EventId,
    buyer: String,
}

impl Shopper {
    fn request(&self, key: &str, seats: Vec<i32>) -> HoldRequest {
        HoldRequest {
            hold: HoldId::new(),
            event: self.event,
            buyer: self.buyer.clone(),
            key: key.to_owned(),
            fingerprint: format!("{seats:?}"),
            seats,
            tiers: Vec::new(),
            best: None,
            layout: None,
        }
    }

    /// Asks for seats, and again when told that too many ask at once.
    async fn hold(&self, key: &str, seats: Vec<i32>, token: &str) -> Result<Answer, EntryError> {
        loop {
            match self.rooms.hold(self.request(key, seats.clone()), Some(token)).await {
                Err(EntryError::Hold(HoldError::Lane(LaneError::Overloaded { retry_after_ms }))) => {
                    let pause = u64::try_from(retry_after_ms).unwrap();
                    tokio::time::sleep(Duration::from_millis(pause)).await;
                }
                Err(EntryError::Database(cause)) if is_connection(&cause) => {}
                answer => return answer,
            }
        }
    }

    async fn shop(&self, free: &Mutex<Vec<i32>>, refused: &AtomicU64) {
        let standing = patiently(|| self.rooms.find(self.event, &self.buyer)).await;
        let Some((token, _)) = standing.and_then(|standing| standing.token) else { return };
        let number: usize = self.buyer.trim_start_matches("buyer-").parse().unwrap();
        match number % 10 {
            0 => return,
            1 => return patiently(|| self.rooms.leave(self.event, &self.buyer)).await,
            2 => {
                // A seat that somebody may have.
                let seat = i32::try_from(number % 500).unwrap();
                match self.hold("hot", vec![seat], &token).await {
                    Ok(Answer::Held { hold, .. }) => {
                        free.lock().unwrap().retain(|other| *other != seat);
                        return self.pay(hold.row.id).await;
                    }
                    Ok(Answer::Refused(Refusal::SeatsUnavailable(_))) => {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                    Ok(Answer::Refused(other)) => panic!("{other:?}"),
                    // Time flies: the token has run out.
                    Err(EntryError::AdmissionRequired) => return,
                    Err(error) => panic!("{error}"),
                }
            }
            _ => {}
        }
        loop {
            let seats: Vec<i32> = {
                let mut free = free.lock().unwrap();
                let from = free.len().saturating_sub(2);
                free.split_off(from)
            };
            if seats.is_empty() {
                return;
            }
            let mut sorted = seats.clone();
            sorted.sort_unstable();
            match self.hold(&format!("{sorted:?}"), sorted, &token).await {
                Ok(Answer::Held { hold, .. }) => return self.pay(hold.row.id).await,
                Err(EntryError::AdmissionRequired) => return free.lock().unwrap().extend(seats),
                Err(error) => panic!("{error}"),
                // One of the two went to somebody who came for it.
                Ok(Answer::Refused(Refusal::SeatsUnavailable(conflicts))) => {
                    let taken = |seat: &i32| {
                        conflicts.iter().any(|conflict| {
                            matches!(conflict, parterre::inventory::Conflict::Seat { seat: at, .. } if at == seat)
                        })
                    };
                    free.lock().unwrap().extend(seats.into_iter().filter(|seat| !taken(seat)));
                }
                Ok(Answer::Refused(other)) => panic!("{other:?}"),
            }
        }
    }

    async fn pay(&self, hold: HoldId) {
        let request = CheckoutRequest {
            hold,
            buyer: self.buyer.clone(),
            key: "c".to_owned(),
            fingerprint: hold.to_string(),
            payment_method: "pm_card_visa".to_owned(),
            return_url: None,
            contact_email: None,
            locale: None,
        };
        loop {
            match self.services.bookings.checkout(&request).await {
                // Whoever waits too long for a connection asks again, with the same key.
                Err(BookingError::Database(cause)) if is_connection(&cause) => {}
                answer => {
                    answer.unwrap().unwrap();
                    return;
                }
            }
        }
    }
}

const JOIN: &str = "waitingRoom { status position estimatedWaitSeconds admissionToken admissionExpiresAt pollAfterMs }";
const WATCH: &str =
    "subscription($event: ID!) { waitingRoomUpdated(eventId: $event) { status position admissionToken } }";

async fn join(buyer: &Api, event: &str) -> Value {
    buyer.must("joinWaitingRoom", json!({ "eventId": event }), JOIN).await["waitingRoom"].clone()
}

/// Asks until let in.
async fn admitted(buyer: &Api, event: &str) -> Value {
    join(buyer, event).await;
    eventually("admitted", || async {
        let read = buyer
            .data(&format!("query($event: ID!) {{ {JOIN_QUERY} }}"), json!({ "event": event }))
            .await["waitingRoom"]
            .clone();
        (read["status"] == "ADMITTED").then_some(read)
    })
    .await
}

const JOIN_QUERY: &str =
    "waitingRoom(eventId: $event) { status position admissionToken admissionExpiresAt pollAfterMs }";

fn with_room(event: &mut Value) {
    event["waitingRoom"] = json!({ "admitPerMinute": 6_000 });
}

async fn hold_with(buyer: &Api, (event, key, seat): (&str, &str, &str), token: &Value) -> Value {
    let input = json!({ "eventId": event, "idempotencyKey": key, "seatIds": [seat], "admissionToken": token });
    buyer.mutate("holdSeats", input, "replayed hold { id }").await
}

fn code(payload: &Value) -> &str {
    payload["userErrors"][0]["code"].as_str().unwrap_or("none")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn seats_of_an_event_with_a_waiting_room_are_held_with_ones_own_token_only() {
    let stage = Stage::with(Setup { redis: true, ..Setup::default() }).await;
    let (hall, other) = (stage.hall(2, 10, with_room).await, stage.hall(1, 5, with_room).await);
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let none = Value::Null;
    assert_eq!(code(&hold_with(&mina, (&hall.event, "k", "A-1"), &none).await), "ADMISSION_REQUIRED");
    let read = mina.data(&format!("query($event: ID!) {{ {JOIN_QUERY} }}"), json!({ "event": hall.event })).await;
    assert_eq!(read["waitingRoom"], Value::Null, "she has not joined");
    let in_line = admitted(&mina, &hall.event).await;
    let token = &in_line["admissionToken"];
    assert_eq!(in_line["position"], Value::Null);
    assert_eq!(code(&hold_with(&leo, (&hall.event, "k", "A-1"), token).await), "ADMISSION_REQUIRED", "it is hers");
    assert_eq!(
        code(&hold_with(&mina, (&other.event, "k", "A-1"), token).await),
        "ADMISSION_REQUIRED",
        "for another event"
    );
    let forged = json!(format!("{}x", token.as_str().unwrap()));
    assert_eq!(code(&hold_with(&mina, (&hall.event, "k", "A-1"), &forged).await), "ADMISSION_REQUIRED");
    let held = hold_with(&mina, (&hall.event, "k", "A-1"), token).await;
    assert_eq!(code(&held), "none", "{held}");
    // A lost reply is never a lost hold; nor does the key buy anything else.
    let replayed = hold_with(&mina, (&hall.event, "k", "A-1"), &none).await;
    assert_eq!((&replayed["replayed"], &replayed["hold"]["id"]), (&json!(true), &held["hold"]["id"]));
    assert_eq!(code(&hold_with(&mina, (&hall.event, "k", "A-2"), &none).await), "IDEMPOTENCY_KEY_REUSED");
    assert_eq!(code(&hold_with(&mina, (&hall.event, "k", "A-1"), &forged).await), "ADMISSION_REQUIRED");
    let mut looked_up = 0;
    for _ in 0..20 {
        looked_up += usize::from(code(&hold_with(&mina, (&hall.event, "k", "A-1"), &none).await) == "none");
    }
    assert!(looked_up < 10, "looks are rationed: {looked_up}");
    // Checkout needs no token; the confirmed booking frees the slot and ends the admission.
    mina.checkout(&held["hold"]["id"], "c", "pm_card_visa").await;
    eventually("the admission has ended", || async {
        let refused = hold_with(&mina, (&hall.event, &Uuid::now_v7().to_string(), "A-3"), token).await;
        (code(&refused) == "ADMISSION_REQUIRED").then_some(())
    })
    .await;
    // So does leaving.
    let token = admitted(&leo, &hall.event).await["admissionToken"].clone();
    leo.must("leaveWaitingRoom", json!({ "eventId": hall.event }), "__typename").await;
    eventually("the admission has ended", || async {
        let refused = hold_with(&leo, (&hall.event, &Uuid::now_v7().to_string(), "B-3"), &token).await;
        (code(&refused) == "ADMISSION_REQUIRED").then_some(())
    })
    .await;
    for bad in ["evt_nonsense", "", hall.venue.as_str()] {
        let refused = leo.refused("joinWaitingRoom", json!({ "eventId": bad })).await;
        assert_eq!(refused, ("NOT_FOUND".to_owned(), "input.eventId".to_owned()), "{bad}");
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_waits_is_told_at_once_when_let_in_on_either_server_and_reads_no_inventory() {
    let clock = Clock::default();
    let stage = Stage::with(Setup { servers: 2, redis: true, clock: clock.clone(), ..Setup::default() }).await;
    let hall = stage
        .hall(1, 20, |event| {
            event["waitingRoom"] = json!({ "admitPerMinute": 6_000, "activePerRemainingSeat": 0.05 });
        })
        .await;
    let first = admitted(&stage.buyer("first"), &hall.event).await;
    assert_eq!(first["status"], "ADMITTED");
    let mina = stage.buyer_at(1, "mina");
    let joined = join(&mina, &hall.event).await;
    assert_eq!((&joined["status"], &joined["position"]), (&json!("WAITING"), &json!(1)));
    assert_eq!(join(&stage.buyer("leo"), &hall.event).await["position"], 2);
    let mut socket = Socket::open(&mina).await;
    socket.subscribe(WATCH, json!({ "event": hall.event })).await;
    assert_eq!(socket.next().await["waitingRoomUpdated"]["status"], "WAITING");
    // Seats and tiers can't be read by anybody for a while.
    stage.execute("ALTER TABLE event_seat RENAME TO hidden_seat; ALTER TABLE event_tier RENAME TO hidden_tier").await;
    for n in 0..100 {
        join(&stage.buyer_at(n % 2, &format!("waiter-{n}")), &hall.event).await;
    }
    stage.execute("ALTER TABLE hidden_seat RENAME TO event_seat; ALTER TABLE hidden_tier RENAME TO event_tier").await;
    stage.buyer("first").must("leaveWaitingRoom", json!({ "eventId": hall.event }), "__typename").await;
    let told = loop {
        let told = socket.next().await["waitingRoomUpdated"].clone();
        if told["status"] == "ADMITTED" {
            break told;
        }
    };
    let held = hold_with(&mina, (&hall.event, "k", "A-1"), &told["admissionToken"]).await;
    assert_eq!(code(&held), "none", "{held}");
    stage.finish().await;
}

/// Another process knew first that nobody can be let in any more, and has sent the line home: whoever was in it is told so
/// by this one too, and not that they never joined.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whose_line_was_sent_home_by_another_process_is_told_why() {
    let stage = Stage::with(Setup { redis: true, ..Setup::default() }).await;
    let client = redis::Client::open(redis_url()).unwrap();
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    for (statement, status) in
        [("UPDATE event_counter SET remaining = 0", "SOLD_OUT"), ("UPDATE event SET state = 'CANCELLED'", "CLOSED")]
    {
        let hall = stage
            .hall(1, 20, |event| {
                event["waitingRoom"] = json!({ "admitPerMinute": 6_000, "activePerRemainingSeat": 0.05 });
            })
            .await;
        admitted(&stage.buyer("first"), &hall.event).await;
        let mina = stage.buyer("mina");
        assert_eq!(join(&mina, &hall.event).await["status"], "WAITING");
        let (_, id) = parse_node_id(&hall.event).unwrap();
        let of_event = if statement.contains("event_counter") { "event_id" } else { "id" };
        stage.execute(&format!("{statement} WHERE {of_event} = '{id}'")).await;
        let lines: Vec<String> =
            redis::cmd("KEYS").arg(format!("*{{{id}}}:line")).query_async(&mut connection).await.unwrap();
        assert_eq!(lines.len(), 1);
        redis::cmd("DEL").arg(&lines).query_async::<()>(&mut connection).await.unwrap();
        let read = mina.data(&format!("query($event: ID!) {{ {JOIN_QUERY} }}"), json!({ "event": hall.event })).await;
        assert_eq!(read["waitingRoom"]["status"], status);
    }
    stage.discard().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_its_queue_tokens_still_work_joins_are_told_when_to_try_again_and_people_queue_anew() {
    let port = crate::process::free_port().await;
    let redis = || {
        tokio::process::Command::new("redis-server")
            .args(["--port", &port.to_string(), "--save", "", "--appendonly", "no"])
            .stdout(std::process::Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap()
    };
    let mut running = redis();
    let clock = Clock::default();
    let stage = Stage::new().await;
    let hall = stage.hall(1, 9, with_room).await;
    let url = format!("redis://127.0.0.1:{port}/");
    let client = redis::Client::open(url.as_str()).unwrap();
    eventually("redis answers", || async { client.get_multiplexed_async_connection().await.ok() }).await;
    let server = stage.beside_at(clock.clone(), |config| config.redis_url = Some(url)).await;
    let buyer = |name: &str| Api::new(&server.url, stage.buyer(name).token);
    let token = admitted(&buyer("mina"), &hall.event).await["admissionToken"].clone();
    running.kill().await.unwrap();
    let held = hold_with(&buyer("mina"), (&hall.event, "k", "A-1"), &token).await;
    assert_eq!(code(&held), "none", "a token needs no queue: {held}");
    let payload = buyer("leo").mutate("joinWaitingRoom", json!({ "eventId": hall.event }), JOIN).await;
    assert_eq!(code(&payload), "OVERLOADED");
    assert_eq!(payload["userErrors"][0]["retryAfterMs"], 2_000);
    running = redis();
    let leo = buyer("leo");
    let again = eventually("he queues again", || async {
        let payload = leo.mutate("joinWaitingRoom", json!({ "eventId": hall.event }), JOIN).await;
        (code(&payload) == "none").then(|| payload["waitingRoom"].clone())
    })
    .await;
    assert_eq!(again["status"], "WAITING");
    // The queue is opened again by the keeper, for a token's life from now on.
    let opened = "SELECT count(*) FROM waiting_room";
    assert_eq!(stage.number(opened).await, 1);
    let mut connection = client.get_multiplexed_async_connection().await.unwrap();
    eventually("the queue is opened", || async {
        let keys: Vec<String> = redis::cmd("KEYS").arg("*:room").query_async(&mut connection.clone()).await.unwrap();
        let key = keys.first()?;
        redis::cmd("HEXISTS")
            .arg(key)
            .arg("opened_at")
            .query_async::<bool>(&mut connection.clone())
            .await
            .unwrap()
            .then_some(())
    })
    .await;
    clock.advance(TOKEN_LIFE.checked_sub(20 * SECOND).unwrap());
    for _ in 0..5 {
        assert_eq!(join(&leo, &hall.event).await["status"], "WAITING", "the tokens given out are still good");
    }
    clock.advance(21 * SECOND);
    admitted(&leo, &hall.event).await;
    redis::cmd("PING").query_async::<String>(&mut connection).await.unwrap();
    server.end().await;
    running.kill().await.unwrap();
    stage.finish().await;
}
