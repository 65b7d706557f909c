//! Who lets people in: a task a room, in every process that serves it. The queue sees to it that together they let in
//! no more than one would.

use super::queue::{Admitted, Gate, QueueError};
use super::rules::{Allowance, Pace, Pulse, TOKEN_LIFE, slots};
use super::{Policy, WaitingRooms};
use crate::bus::Hint;
use crate::catalogue::{RECENT, Schedule, sale_status};
use crate::outbox::{Consumer, Row, Topic};
use crate::sql;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures_util::StreamExt as _;
use parterre_entity::{EventId, event};
use parterre_schema::{SaleStatus, WaitingRoomStatus};
use sea_orm::{DbErr, FromQueryResult};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};
use uuid::Uuid;

/// How often people are let in.
const TICK: Duration = Duration::from_millis(100);
/// How often the event and what is left of it are looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Over how long the rate of admissions is measured.
const MEASURED: Duration = Duration::from_secs(30);
/// A shorter measure says too little: the organizer's rate is told instead.
const MEASURED_MIN: Duration = Duration::from_secs(5);

/// What everyone in a room may know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Told {
    pub(super) status: SaleStatus,
    pub(super) opens_at: DateTime<Utc>,
    /// Admissions a second, as measured; none if that is not known.
    pub(super) per_second: Option<f64>,
}

impl Told {
    /// The word for everyone, if nobody can be let in any more.
    pub(super) const fn shut(&self) -> Option<WaitingRoomStatus> {
        match self.status {
            SaleStatus::SoldOut => Some(WaitingRoomStatus::SoldOut),
            SaleStatus::Cancelled | SaleStatus::Draft | SaleStatus::Ended => Some(WaitingRoomStatus::Closed),
            SaleStatus::Scheduled | SaleStatus::OnSale | SaleStatus::Paused => None,
        }
    }
}

/// A waiting room in use.
#[derive(Debug)]
pub(super) struct Room {
    pub(super) event: EventId,
    told: watch::Sender<Told>,
    pulse: Mutex<Pulse>,
    /// Streams to wake when their buyer is let in.
    waiting: Mutex<HashMap<String, Vec<Arc<Notify>>>>,
    policy: Mutex<Allowed>,
    /// When the event was looked at with success, until that was acted upon.
    seen: Mutex<Option<DateTime<Utc>>>,
    /// When the last look for somebody who is nowhere began.
    looked_again: tokio::sync::Mutex<Option<Instant>>,
}

/// What the last look found.
#[derive(Clone, Copy, Debug)]
struct Allowed {
    policy: Policy,
    slots: u32,
}

fn since_epoch(at: DateTime<Utc>) -> Duration {
    Duration::from_millis(u64::try_from(at.timestamp_millis()).unwrap_or(0))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Room {
    pub(super) fn new(event: EventId, policy: Policy) -> Arc<Self> {
        let told = Told { status: SaleStatus::Scheduled, opens_at: DateTime::UNIX_EPOCH, per_second: None };
        Arc::new(Self {
            event,
            told: watch::Sender::new(told),
            pulse: Mutex::default(),
            waiting: Mutex::default(),
            policy: Mutex::new(Allowed { policy, slots: 0 }),
            seen: Mutex::default(),
            looked_again: tokio::sync::Mutex::default(),
        })
    }

    pub(super) fn told(&self) -> Told {
        *self.told.borrow()
    }

    /// Takes note of how a hold went: what it asked for, and what was in the way.
    pub(super) fn note(&self, now: DateTime<Utc>, took: Duration, (asked, conflicts): (&[i32], &[i32])) {
        lock(&self.pulse).note(since_epoch(now), took, asked, conflicts);
    }

    /// Wakes the streams of those who were let in.
    pub(super) fn call(&self, buyers: &[String]) {
        let waiting = lock(&self.waiting);
        for stream in buyers.iter().filter_map(|buyer| waiting.get(buyer)).flatten() {
            stream.notify_one();
        }
    }

    /// Wakes every stream: something may have been missed.
    pub(super) fn call_all(&self) {
        lock(&self.waiting).values().flatten().for_each(|stream| stream.notify_one());
    }
}

/// Tells one stream when to look again.
#[derive(Debug)]
pub struct Watcher {
    room: Arc<Room>,
    buyer: String,
    called: Arc<Notify>,
    told: watch::Receiver<Told>,
    /// As it was before the buyer was told where they stand.
    status: SaleStatus,
}

impl Watcher {
    pub(super) fn new(room: Arc<Room>, buyer: &str) -> Self {
        let (called, told) = (Arc::new(Notify::new()), room.told.subscribe());
        lock(&room.waiting).entry(buyer.to_owned()).or_default().push(Arc::clone(&called));
        let status = told.borrow().status;
        Self { room, buyer: buyer.to_owned(), called, told, status }
    }

    /// Until the buyer was let in, or the sale changed, or so long.
    pub async fn changed(&mut self, at_most: Duration) {
        let status = self.status;
        tokio::select! {
            () = self.called.notified() => {}
            // A receiver outlives its sender only while the process ends.
            _ = self.told.wait_for(|told| told.status != status) => {}
            () = tokio::time::sleep(at_most) => {}
        }
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        let mut waiting = lock(&self.room.waiting);
        if let Some(streams) = waiting.get_mut(&self.buyer) {
            streams.retain(|stream| !Arc::ptr_eq(stream, &self.called));
            if streams.is_empty() {
                waiting.remove(&self.buyer);
            }
        }
    }
}

/// The rate of admissions of late.
#[derive(Debug, Default)]
struct Measure {
    totals: VecDeque<(Instant, u64)>,
}

impl Measure {
    /// Takes the total so far, of a line in which somebody waits. Returns admissions a second, if that can be said.
    fn note(&mut self, total: u64) -> Option<f64> {
        let now = Instant::now();
        self.totals.push_back((now, total));
        while self.totals.front().is_some_and(|(then, _)| now.duration_since(*then) > MEASURED) {
            self.totals.pop_front();
        }
        let (then, before) = self.totals.front()?;
        let (elapsed, let_in) = (now.duration_since(*then), total.checked_sub(*before)?);
        (elapsed >= MEASURED_MIN).then(|| f64::from(u32::try_from(let_in).unwrap_or(u32::MAX)) / elapsed.as_secs_f64())
    }
}

impl WaitingRooms {
    /// Reads the event and what is left of it: three numbers a second, however many wait.
    pub(super) async fn look(&self, room: &Room) -> Result<(), Arc<DbErr>> {
        let Some(event) = self.inner.catalogue.recent(room.event).await? else { return Ok(()) };
        self.look_at(room, &event).await
    }

    /// Looks once more, at what is so now: whoever is nowhere may have been in a line that another process, which knew
    /// earlier that nobody can be let in any more, has sent home. Many who ask at once are looked for once.
    pub(super) async fn look_again(&self, room: &Room) -> Result<(), Arc<DbErr>> {
        let asked = Instant::now();
        let mut begun = room.looked_again.lock().await;
        if begun.is_some_and(|begun| begun > asked) {
            return Ok(());
        }
        *begun = Some(Instant::now());
        match self.inner.catalogue.events(&[room.event]).await.map_err(Arc::new)?.remove(&room.event) {
            Some(event) => self.look_at(room, &event).await,
            None => Ok(()),
        }
    }

    async fn look_at(&self, room: &Room, event: &event::Model) -> Result<(), Arc<DbErr>> {
        let remaining = self.inner.catalogue.remaining(&[room.event]).await.map_err(Arc::new)?;
        let remaining = remaining.get(&room.event).copied().unwrap_or(0);
        if let Some(policy) = Policy::of(event) {
            *lock(&room.policy) = Allowed { policy, slots: slots(policy.per_remaining, remaining) };
        }
        let status = sale_status(event.state, Schedule::of(event), remaining, self.now());
        *lock(&room.seen) = Some(self.now());
        room.told.send_if_modified(|told| {
            let before = *told;
            (told.status, told.opens_at) = (status, event.on_sale_at);
            before != *told
        });
        Ok(())
    }

    /// Lets people in for as long as this process serves the room.
    pub(super) async fn keep(self, room: Arc<Room>) {
        let weak: Weak<Room> = Arc::downgrade(&room);
        drop(room);
        let (mut pace, mut measure) = (Pace::default(), Measure::default());
        let mut looked = Instant::now();
        let mut ticks = tokio::time::interval(TICK);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.inner.shutdown.cancelled() => return,
                _ = ticks.tick() => {}
            }
            let Some(room) = weak.upgrade() else { return };
            if looked.elapsed() >= LOOK_EVERY {
                looked = Instant::now();
                if let Err(error) = self.look(&room).await {
                    tracing::warn!(event.id = %room.event, %error, "a waiting room goes by what was last known of its event");
                }
            }
            if let Err(error) = self.tick(&room, (&mut pace, &mut measure)).await {
                metrics::counter!("parterre_waiting_queue_failures_total").increment(1);
                tracing::warn!(event.id = %room.event, %error, "nobody is let in while the queue is away");
                tokio::time::sleep(LOOK_EVERY).await;
            }
        }
    }

    async fn tick(&self, room: &Room, (pace, measure): (&mut Pace, &mut Measure)) -> Result<(), QueueError> {
        let told = room.told();
        let now = since_epoch(self.now());
        let trouble = lock(&room.pulse).in_trouble(now);
        let factor = pace.step(now, trouble);
        let event = room.event.to_string();
        metrics::gauge!("parterre_waiting_pace", "event" => event.clone()).set(factor);
        match told.shut() {
            None if told.status != SaleStatus::Paused => {}
            None => return Ok(()),
            // By what was seen just now only: another process may know better.
            Some(_) => {
                let Some(seen) = lock(&room.seen).take() else { return Ok(()) };
                let lately = chrono::Duration::from_std(RECENT).unwrap_or_default();
                return self.inner.queue.clear(room.event, seen - lately).await;
            }
        }
        let Allowed { policy, slots } = *lock(&room.policy);
        let gate = Gate {
            opens_at_ms: told.opens_at.timestamp_millis(),
            allowance: Allowance { per_minute: policy.per_minute, slots, factor },
            stay: policy.stay,
            process: Arc::clone(&self.inner.process),
        };
        let Some(admitted) = self.inner.queue.admit(room.event, &gate).await? else {
            return self.open(room.event).await;
        };
        let Admitted { buyers, total, waiting, inside, oldest } = admitted;
        metrics::gauge!("parterre_waiting_people", "event" => event.clone()).set(float(waiting));
        metrics::gauge!("parterre_waiting_inside", "event" => event.clone()).set(float(inside));
        metrics::gauge!("parterre_waiting_oldest_seconds", "event" => event).set(oldest);
        let per_second = if waiting > 0 && told.status == SaleStatus::OnSale {
            measure.note(total)
        } else {
            *measure = Measure::default();
            None
        };
        let per_second = per_second.or_else(|| Some(1_000_000.0 / gate.allowance.micros_each()));
        room.told.send_if_modified(|told| {
            told.per_second = per_second;
            false
        });
        if !buyers.is_empty() {
            metrics::counter!("parterre_waiting_admissions_total").increment(u64::try_from(buyers.len()).unwrap_or(0));
            // Whoever does not hear of it learns it when they ask.
            self.inner.bus.send(Hint::Admitted { event: room.event, buyers: buyers.into() });
        }
        Ok(())
    }

    /// Opens a queue that has just come into being. If there was one before, it was lost with everybody inside: nobody
    /// is let in until the last of their tokens has run out.
    async fn open(&self, event: EventId) -> Result<(), QueueError> {
        let opening = first_opening(&self.inner.db, event).await.map_err(|error| QueueError(error.to_string()))?;
        match opening {
            Opening::First => self.inner.queue.open(event, Duration::ZERO).await,
            Opening::UnderWay => Ok(()),
            Opening::Again => {
                tracing::warn!(event.id = %event, "a queue was lost, people queue again");
                self.inner.queue.open(event, TOKEN_LIFE).await
            }
        }
    }
}

fn float(number: u64) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}

enum Opening {
    /// Nobody was ever let in.
    First,
    /// Another process is opening it for the first time just now.
    UnderWay,
    /// It was open before.
    Again,
}

async fn first_opening(db: &crate::db::Db, event: EventId) -> Result<Opening, DbErr> {
    #[derive(FromQueryResult)]
    struct Opened {
        new: bool,
        lately: bool,
    }
    let row = Opened::find_by_statement(sql!(
        "WITH new AS (INSERT INTO waiting_room (event_id) VALUES ($1) ON CONFLICT DO NOTHING RETURNING true)
         SELECT EXISTS (SELECT FROM new) AS new,
                EXISTS (SELECT FROM waiting_room
                        WHERE event_id = $1 AND opened_at > clock_timestamp() - interval '5 seconds') AS lately",
        event
    ))
    .one(db.pool())
    .await?;
    Ok(match row {
        Some(Opened { new: true, .. }) => Opening::First,
        Some(Opened { lately: true, .. }) => Opening::UnderWay,
        Some(_) | None => Opening::Again,
    })
}

/// Slots freed at once.
const FINISHED_AT_ONCE: usize = 32;

/// Frees the slots of those whose booking is confirmed.
#[derive(Clone, Debug)]
pub struct Departures(pub WaitingRooms);

#[async_trait]
impl Consumer for Departures {
    fn name(&self) -> &'static str {
        "waiting_room"
    }

    fn topics(&self) -> &'static [Topic] {
        &[Topic::Booking]
    }

    async fn act(&self, rows: &[Row]) -> Result<(), DbErr> {
        #[derive(FromQueryResult)]
        struct Booking {
            event_id: EventId,
            buyer: String,
        }
        let confirmed = |row: &&Row| row.topic == "booking" && row.says("to", "CONFIRMED");
        let bookings: Vec<Uuid> = rows.iter().filter(confirmed).filter_map(|row| row.subject).collect();
        if bookings.is_empty() {
            return Ok(());
        }
        // An older one is of an earlier stay.
        let statement = sql!(
            "SELECT booking.event_id, booking.buyer FROM booking JOIN event ON event.id = booking.event_id
             WHERE booking.id = ANY ($1) AND event.admit_per_minute IS NOT NULL
               AND booking.created_at > clock_timestamp() - interval '1 hour'",
            bookings
        );
        let bookings = Booking::find_by_statement(statement).all(self.0.inner.db.pool()).await?;
        let finished = bookings.into_iter().map(async |booking| self.0.finish(booking.event_id, &booking.buyer).await);
        let mut finished = futures_util::stream::iter(finished).buffer_unordered(FINISHED_AT_ONCE);
        while let Some(result) = finished.next().await {
            // Whoever can't be told of runs out soon: a queue that is away is not waited for.
            if let Err(error) = result {
                tracing::debug!(%error, "slots were not freed at once");
                break;
            }
        }
        Ok(())
    }
}
