//! Waiting rooms: who may ask for seats of a hot event now, and where everyone else stands.
//!
//! Invariants: order is arrival order; those inside never exceed what the organizer and the seats that are left allow;
//! an admission token is checked without asking anybody; somebody who only waits causes no inventory read. A queue that
//! was lost lets nobody in until the tokens it gave out have run out. Nobody asks for holds too often or for too many at
//! once. This room decides nothing about seats.

mod keeper;
mod memory;
mod queue;
mod redis;
mod rules;
mod token;

pub use self::redis::RedisQueue;
pub use keeper::Departures;
pub use memory::MemoryQueue;
pub use queue::{Admitted, Clock, Gate, Place, Queue, QueueError};
pub use rules::{Allowance, TOKEN_LIFE};

use crate::bus::{Bus, Hint};
use crate::catalogue::Catalogue;
use crate::config::Secret;
use crate::db::Db;
use crate::inventory::{Answer, Conflict, HoldError, HoldRequest, Inventory, Refusal, ReleaseError};
use crate::limit::{Bucket, Limiter, TooOften};
use chrono::{DateTime, Utc};
use governor::DefaultKeyedRateLimiter;
use keeper::{Room, Watcher};
use parterre_entity::{EventId, EventState, HoldId, SeatState, event};
use parterre_schema::WaitingRoomStatus;
use sea_orm::DbErr;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};
use token::{Signer, Verdict};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Why there is no answer about a waiting room.
#[derive(Debug, thiserror::Error)]
pub enum WaitingError {
    /// The queue is away: try again, the place is kept if it comes back.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// The database is away.
    #[error(transparent)]
    Database(#[from] Arc<DbErr>),
    /// A token could not be signed.
    #[error(transparent)]
    Token(#[from] jsonwebtoken::errors::Error),
}

/// Why a hold was not even asked for, or failed.
#[derive(Debug, thiserror::Error)]
pub enum EntryError {
    /// The buyer or the event asks for too many holds.
    #[error("too many holds are asked for")]
    TooOften(TooOften),
    /// The buyer has holds at other events.
    #[error("at most {max} holds at once")]
    TooManyHolds {
        /// At once.
        max: usize,
    },
    /// The event has a waiting room, and the token is none that lets this buyer in.
    #[error("join the waiting room")]
    AdmissionRequired,
    /// The database is away.
    #[error(transparent)]
    Database(#[from] Arc<DbErr>),
    /// The hold failed.
    #[error(transparent)]
    Hold(#[from] HoldError),
}

/// Where a buyer stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Standing {
    /// In one word.
    pub status: WaitingRoomStatus,
    /// How many are before them, while waiting.
    pub ahead: Option<u64>,
    /// How long they may wait, if that can be said.
    pub estimate: Option<Duration>,
    /// While admitted: the token, and until when it is good.
    pub token: Option<(String, DateTime<Utc>)>,
    /// When to ask again.
    pub poll_after: Duration,
}

impl Standing {
    fn outside(status: WaitingRoomStatus) -> Self {
        Self { status, ahead: None, estimate: None, token: None, poll_after: Duration::from_secs(30) }
    }

    /// Whether it says anything new to somebody who knows the other.
    #[must_use]
    pub fn differs(&self, other: &Self) -> bool {
        (self.status, self.ahead, &self.token) != (other.status, other.ahead, &other.token)
    }
}

/// How an organizer lets people in.
#[derive(Clone, Copy, Debug)]
struct Policy {
    per_minute: u32,
    per_remaining: f64,
    stay: Duration,
}

impl Policy {
    /// Of an event. None: it has no waiting room.
    fn of(event: &event::Model) -> Option<Self> {
        let per_minute = u32::try_from(event.admit_per_minute?).unwrap_or(1);
        let stay = Duration::from_secs(u64::try_from(event.admission_seconds).unwrap_or(600));
        Some(Self { per_minute, per_remaining: event.active_per_remaining_seat, stay })
    }
}

/// The waiting rooms of a process.
#[derive(Clone, Debug)]
pub struct WaitingRooms {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    db: Db,
    catalogue: Catalogue,
    inventory: Arc<Inventory>,
    bus: Arc<dyn Bus>,
    queue: Arc<dyn Queue>,
    signer: Signer,
    limiter: Option<Limiter>,
    holds_max: usize,
    /// Names this process in the queue.
    process: Arc<str>,
    rooms: moka::future::Cache<EventId, Arc<Room>>,
    /// Admissions that ended before their tokens ran out.
    ended: moka::sync::Cache<String, ()>,
    /// Looks for a hold that was made, by those who have no token any more.
    looks: DefaultKeyedRateLimiter<(EventId, String)>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// What waiting rooms are built from.
#[derive(Debug)]
pub struct Parts {
    /// Remembers which queues were opened.
    pub db: Db,
    /// What is on.
    pub catalogue: Catalogue,
    /// Who owns seats.
    pub inventory: Arc<Inventory>,
    /// Hints to other processes.
    pub bus: Arc<dyn Bus>,
    /// Who waits.
    pub queue: Arc<dyn Queue>,
    /// Signs tokens.
    pub secret: Secret,
    /// Counts holds, unless that is off.
    pub limiter: Option<Limiter>,
    /// Holds of a buyer at once, over all events.
    pub holds_max: usize,
    /// Where its tasks run.
    pub tasks: TaskTracker,
    /// Ends them.
    pub shutdown: CancellationToken,
}

/// Rooms that nobody asks for are left after this long.
const ROOM_IDLE: Duration = Duration::from_mins(10);
/// Looks for a hold a second and buyer, and at once.
const LOOKS_PER_SECOND: NonZeroU32 = NonZeroU32::MIN;
const LOOKS_BURST: NonZeroU32 = NonZeroU32::MIN.saturating_add(2);

impl WaitingRooms {
    /// Starts listening to the bus.
    pub fn start(parts: Parts) -> Result<Self, jsonwebtoken::errors::Error> {
        let Parts { db, catalogue, inventory, bus, queue, secret, limiter, holds_max, tasks, shutdown } = parts;
        let looks = governor::Quota::per_second(LOOKS_PER_SECOND).allow_burst(LOOKS_BURST);
        let hints = bus.subscribe();
        let inner = Inner {
            db,
            catalogue,
            inventory,
            bus,
            queue,
            signer: Signer::new(&secret)?,
            limiter,
            holds_max,
            process: uuid::Uuid::now_v7().simple().to_string().into(),
            rooms: moka::future::Cache::builder().max_capacity(10_000).time_to_idle(ROOM_IDLE).build(),
            ended: moka::sync::Cache::builder().max_capacity(1_000_000).time_to_live(2 * TOKEN_LIFE).build(),
            looks: governor::RateLimiter::keyed(looks),
            tasks: tasks.clone(),
            shutdown,
        };
        let rooms = Self { inner: Arc::new(inner) };
        tasks.spawn(rooms.clone().listen(hints));
        Ok(rooms)
    }

    /// Takes a place at the end of an event's line, or keeps the one there is.
    pub async fn join(&self, event: EventId, buyer: &str) -> Result<Standing, WaitingError> {
        let Some(room) = self.room(event).await? else { return Ok(Standing::outside(WaitingRoomStatus::OpenAccess)) };
        if let Some(status) = room.told().shut() {
            return Ok(Standing::outside(status));
        }
        let place = self.inner.queue.join(event, buyer).await?;
        metrics::counter!("parterre_waiting_joins_total").increment(1);
        let standing = self.standing(&room, buyer, place)?;
        Ok(standing.unwrap_or_else(|| Standing::outside(WaitingRoomStatus::Closed)))
    }

    /// Where a buyer stands. None: they have not joined. Renews the admission of somebody who is in.
    pub async fn find(&self, event: EventId, buyer: &str) -> Result<Option<Standing>, WaitingError> {
        let Some(room) = self.room(event).await? else {
            return Ok(Some(Standing::outside(WaitingRoomStatus::OpenAccess)));
        };
        if let Some(status) = room.told().shut() {
            return Ok(Some(Standing::outside(status)));
        }
        let place = self.inner.queue.find(event, buyer).await?;
        if place == Place::Absent {
            self.look_again(&room).await?;
        }
        self.standing(&room, buyer, place)
    }

    /// Gives up a buyer's place, or their admission.
    pub async fn leave(&self, event: EventId, buyer: &str) -> Result<(), WaitingError> {
        let ended = self.inner.queue.leave(event, buyer).await?;
        self.end(ended);
        Ok(())
    }

    /// A buyer is done: the slot is free for the next one.
    async fn finish(&self, event: EventId, buyer: &str) -> Result<(), QueueError> {
        let ended = self.inner.queue.finish(event, buyer).await?;
        self.end(ended);
        Ok(())
    }

    fn end(&self, admission: Option<String>) {
        let Some(admission) = admission else { return };
        self.inner.ended.insert(admission.clone(), ());
        // Where it is not heard the token runs out soon.
        self.inner.bus.send(Hint::AdmissionEnded(admission));
    }

    /// Tells a buyer's stream when to look again.
    pub async fn watch(&self, event: EventId, buyer: &str) -> Result<Option<Watcher>, WaitingError> {
        Ok(self.room(event).await?.map(|room| Watcher::new(room, buyer)))
    }

    /// Holds seats, for those who were let in and do not ask too often. Others get what the same key got before, if
    /// anything.
    pub async fn hold(&self, request: HoldRequest, token: Option<&str>) -> Result<Answer, EntryError> {
        let buyer = Bucket::Buyer(request.buyer.clone());
        if let Some(limiter) = &self.inner.limiter {
            limiter.take(&[buyer]).await.map_err(EntryError::TooOften)?;
        }
        let event = self.inner.catalogue.recent(request.event).await?;
        // A draft is nobody's business: the lane says that there is no such event.
        if event.is_none_or(|event| event.state == EventState::Draft || Policy::of(&event).is_none()) {
            return self.enter(request, false).await;
        }
        let whose = (request.event, request.buyer.as_str());
        let verdict = token.map(|token| self.inner.signer.judge(token, whose, self.now_ms()));
        match verdict {
            Some(Verdict::Valid { admission }) if !self.inner.ended.contains_key(&admission) => {
                self.enter(request, true).await
            }
            // Nothing that was given out is lost because its reply was.
            None | Some(Verdict::Valid { .. } | Verdict::RanOut) => {
                self.replay(&request).await?.ok_or(EntryError::AdmissionRequired)
            }
            Some(Verdict::Wrong) => Err(EntryError::AdmissionRequired),
        }
    }

    /// Gives a hold back.
    pub async fn release(&self, hold: HoldId, buyer: &str) -> Result<(), ReleaseError> {
        self.inner.inventory.release(hold, buyer).await?;
        if let Some(limiter) = &self.inner.limiter {
            limiter.let_go(buyer, hold).await;
        }
        Ok(())
    }

    /// Asks for the hold of one who may, unless the event is asked for too much or the buyer has too many.
    async fn enter(&self, request: HoldRequest, note: bool) -> Result<Answer, EntryError> {
        let buyer = request.buyer.clone();
        if let Some(limiter) = &self.inner.limiter {
            limiter.take(&[Bucket::Event(request.event)]).await.map_err(EntryError::TooOften)?;
            if limiter.holds_of(&buyer, crate::clock::now()).await >= self.inner.holds_max {
                let max = self.inner.holds_max;
                return self.replay(&request).await?.ok_or(EntryError::TooManyHolds { max });
            }
        }
        let answer = if note { self.hold_and_note(request).await? } else { self.inner.inventory.hold(request).await? };
        if let (Some(limiter), Answer::Held { hold, replayed: false }) = (&self.inner.limiter, &answer) {
            limiter.held(&buyer, hold.row.id, hold.row.deadline).await;
        }
        Ok(answer)
    }

    /// What the same key got before, for those who do not ask too often.
    async fn replay(&self, request: &HoldRequest) -> Result<Option<Answer>, EntryError> {
        if self.inner.looks.check_key(&(request.event, request.buyer.clone())).is_err() {
            return Ok(None);
        }
        Ok(self.inner.inventory.replay(request).await?)
    }

    async fn hold_and_note(&self, request: HoldRequest) -> Result<Answer, EntryError> {
        let (event, mut seats) = (request.event, request.seats.clone());
        let started = Instant::now();
        let answer = self.inner.inventory.hold(request).await;
        let conflicts = match &answer {
            Ok(Answer::Refused(Refusal::SeatsUnavailable(conflicts))) => seats_of(conflicts),
            Ok(Answer::Held { replayed: false, .. }) => Vec::new(),
            // Neither a key that is repeated nor a request that never came to its seats says anything of the map.
            Ok(Answer::Held { replayed: true, .. } | Answer::Refused(_)) | Err(_) => {
                seats.clear();
                Vec::new()
            }
        };
        if let Some(room) = self.inner.rooms.get(&event).await {
            room.note(self.now(), started.elapsed(), (&seats, &conflicts));
        }
        Ok(answer?)
    }

    /// The room of an event, kept by this process from now on. None: the event has none.
    async fn room(&self, event: EventId) -> Result<Option<Arc<Room>>, Arc<DbErr>> {
        let row = self.inner.catalogue.recent(event).await?;
        let Some(policy) = row.and_then(|row| Policy::of(&row)) else { return Ok(None) };
        let load = async {
            let room = Room::new(event, policy);
            self.look(&room).await?;
            self.inner.tasks.spawn(self.clone().keep(Arc::clone(&room)));
            Ok::<_, Arc<DbErr>>(room)
        };
        match self.inner.rooms.try_get_with(event, load).await {
            Ok(room) => Ok(Some(room)),
            Err(error) => Err(Arc::clone(&error)),
        }
    }

    /// What a place means now. None: nowhere.
    fn standing(&self, room: &Room, buyer: &str, place: Place) -> Result<Option<Standing>, WaitingError> {
        let told = room.told();
        // The line may have been sent home while the queue was asked.
        if let Some(status) = told.shut() {
            return Ok(Some(Standing::outside(status)));
        }
        Ok(match place {
            Place::Absent => None,
            Place::Waiting { ahead } => {
                let opens_in = (told.opens_at - self.now()).to_std().unwrap_or_default();
                Some(Standing {
                    status: WaitingRoomStatus::Waiting,
                    ahead: Some(ahead),
                    estimate: rules::estimate(ahead, opens_in, told.per_second),
                    token: None,
                    poll_after: rules::poll_after(ahead, opens_in, rand::random()),
                })
            }
            Place::Admitted { admission, until_ms } => {
                let token = self.inner.signer.issue((room.event, buyer), (&admission, until_ms))?;
                let until = DateTime::from_timestamp_millis(until_ms).unwrap_or_default();
                Some(Standing {
                    status: WaitingRoomStatus::Admitted,
                    ahead: None,
                    estimate: None,
                    token: Some((token, until)),
                    poll_after: TOKEN_LIFE / 3,
                })
            }
        })
    }

    /// Forgets those who have not looked for a hold for long.
    pub fn tidy(&self) {
        self.inner.looks.retain_recent();
    }

    fn now(&self) -> DateTime<Utc> {
        self.inner.queue.now()
    }

    fn now_ms(&self) -> i64 {
        self.now().timestamp_millis()
    }

    async fn listen(self, mut hints: tokio::sync::broadcast::Receiver<Hint>) {
        loop {
            let hint = tokio::select! {
                () = self.inner.shutdown.cancelled() => return,
                hint = hints.recv() => hint,
            };
            match hint {
                Ok(Hint::Admitted { event, buyers }) => {
                    if let Some(room) = self.inner.rooms.get(&event).await {
                        room.call(&buyers);
                    }
                }
                Ok(Hint::AdmissionEnded(admission)) => self.inner.ended.insert(admission, ()),
                Ok(Hint::Gap) | Err(RecvError::Lagged(_)) => {
                    for (_, room) in &self.inner.rooms {
                        room.call_all();
                    }
                }
                Ok(Hint::Seats(_) | Hint::Booking(_)) => {}
                Err(RecvError::Closed) => return,
            }
        }
    }
}

/// Seats that somebody else is buying. Whoever asks for what is long sold meets nobody.
fn seats_of(conflicts: &[Conflict]) -> Vec<i32> {
    conflicts
        .iter()
        .filter_map(|conflict| match conflict {
            Conflict::Seat { seat, status: SeatState::Held | SeatState::Pending, .. } => Some(*seat),
            Conflict::Seat { .. } | Conflict::Tier { .. } => None,
        })
        .collect()
}
