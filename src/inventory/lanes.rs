//! Lanes: requests wait here while the batch before them commits. No timer: an idle lane settles a request at once, a
//! busy one gathers what comes meanwhile. An optimisation inside one process; only row locks decide.
//!
//! A request waits for a batch that has its own event only: beside a crowd at one event, others have a batch of their own.
//!
//! The lanes of a process have a thread and connections of their own: a batch is a dozen statements one after the other, and
//! none of them waits behind what a crowd of requests does elsewhere.

use super::batch::{self, BatchError, Settled};
use super::rules::{HoldRequest, Outcome};
use crate::bus::{Bus, Hint};
use crate::db::{self, Db, MayRepeat, Unreachable};
use crate::wake::Wake;
use chrono::{DateTime, Utc};
use parterre_entity::EventId;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;
use tokio::runtime::{self, Handle};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

/// Requests settled in one transaction at the most.
pub const BATCH_MAX: usize = 256;
/// Batches of one lane that are settled at once: that of a crowd, and that of everybody else.
const BATCHES_AT_ONCE: usize = 2;
/// Requests a lane looks through for those that need not wait.
const LOOKED_THROUGH_MAX: usize = 16 * BATCH_MAX;
/// Requests of one event that may wait in this process.
const WAITING_PER_EVENT_MAX: usize = 2_048;
/// When an overloaded caller should try again.
const RETRY_AFTER_MS: i32 = 500;

/// Why a request was not decided.
#[derive(Clone, Debug, thiserror::Error)]
pub enum LaneError {
    /// Too many wait for this event.
    #[error("too many requests for this event")]
    Overloaded {
        /// When to try again.
        retry_after_ms: i32,
    },
    /// It may or may not have happened: the same key tells.
    #[error("the outcome is not known, repeat the same key")]
    Unknown,
    /// The database failed.
    #[error("the request failed: {0}")]
    Failed(String),
}

type Answer = Result<(Outcome, DateTime<Utc>), LaneError>;

struct Waiting {
    request: HoldRequest,
    since: Instant,
    answer: oneshot::Sender<Answer>,
}

/// Why the lanes can't start.
#[derive(Debug, thiserror::Error)]
pub enum NoLanes {
    /// The database is away.
    #[error(transparent)]
    Database(#[from] Unreachable),
    /// The system gives no thread.
    #[error("the thread of the lanes can't be started: {0}")]
    Thread(#[from] std::io::Error),
}

/// The lanes of a process.
#[derive(Debug)]
pub struct Lanes {
    senders: Vec<mpsc::Sender<Waiting>>,
    waiting: Arc<Mutex<HashMap<EventId, usize>>>,
}

impl Lanes {
    /// Starts `count` lanes. Each ends, its queue settled, when this is dropped.
    pub async fn start(
        count: usize,
        database_url: &str,
        bus: &Arc<dyn Bus>,
        outbox: &Wake,
        tasks: &TaskTracker,
    ) -> Result<Self, NoLanes> {
        let (senders, receivers): (Vec<_>, Vec<_>) =
            (0..count.max(1)).map(|_| mpsc::channel(LOOKED_THROUGH_MAX)).unzip();
        let lanes = Self { senders, waiting: Arc::default() };
        let (url, bus, outbox, waiting) =
            (database_url.to_owned(), Arc::clone(bus), outbox.clone(), Arc::clone(&lanes.waiting));
        let (callers, token) = (Handle::current(), tasks.token());
        let (ready, connected) = oneshot::channel();
        let connections = u32::try_from(receivers.len() * (BATCHES_AT_ONCE + 1)).unwrap_or(u32::MAX);
        let runtime = runtime::Builder::new_current_thread().enable_all().build()?;
        std::thread::Builder::new().name("lanes".to_owned()).spawn(move || {
            runtime.block_on(async {
                // Connections belong to the runtime that they were made in.
                let db = match Db::connect(&url, connections).await {
                    Ok(db) => db,
                    Err(error) => return drop(ready.send(Err(error))),
                };
                drop(ready.send(Ok(())));
                let lane = Arc::new(Lane { db, bus, outbox, waiting, callers });
                let lanes: JoinSet<()> =
                    receivers.into_iter().map(|receiver| Arc::clone(&lane).run(receiver)).collect();
                lanes.join_all().await;
            });
            drop(token);
        })?;
        match connected.await {
            Ok(connected) => connected.map(|()| lanes).map_err(NoLanes::from),
            Err(_) => Err(std::io::Error::other("it ended early").into()),
        }
    }

    /// Queues a request and waits for its outcome, and the time it was decided at.
    pub async fn ask(&self, request: HoldRequest) -> Answer {
        let overloaded = || LaneError::Overloaded { retry_after_ms: RETRY_AFTER_MS };
        let event = request.event;
        let mut hasher = DefaultHasher::new();
        event.hash(&mut hasher);
        let lanes = u64::try_from(self.senders.len()).unwrap_or(1);
        let lane = usize::try_from(hasher.finish() % lanes).unwrap_or(0);
        let sender = self.senders.get(lane).ok_or_else(overloaded)?;
        {
            let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            let count = waiting.entry(event).or_default();
            if *count >= WAITING_PER_EVENT_MAX {
                metrics::counter!("parterre_holds_overloaded_total").increment(1);
                return Err(overloaded());
            }
            *count += 1;
        }
        let (answer, outcome) = oneshot::channel();
        if sender.try_send(Waiting { request, since: Instant::now(), answer }).is_err() {
            leave(&self.waiting, event);
            metrics::counter!("parterre_holds_overloaded_total").increment(1);
            return Err(overloaded());
        }
        outcome.await.unwrap_or(Err(LaneError::Unknown))
    }
}

fn leave(waiting: &Mutex<HashMap<EventId, usize>>, event: EventId) {
    let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(count) = waiting.get_mut(&event) {
        *count -= 1;
        if *count == 0 {
            waiting.remove(&event);
        }
    }
}

/// The events of each batch that is being settled.
type Busy = HashMap<tokio::task::Id, HashSet<EventId>>;

fn is_busy(busy: &Busy, waiting: &Waiting) -> bool {
    busy.values().any(|events| events.contains(&waiting.request.event))
}

/// Takes the first requests whose events nobody is at, in their order.
fn next_batch(queue: &mut VecDeque<Waiting>, busy: &Busy) -> Vec<Waiting> {
    let (mut batch, mut passed_by) = (Vec::new(), Vec::new());
    while batch.len() < BATCH_MAX
        && let Some(waiting) = queue.pop_front()
    {
        if is_busy(busy, &waiting) { passed_by.push(waiting) } else { batch.push(waiting) }
    }
    for waiting in passed_by.into_iter().rev() {
        queue.push_front(waiting);
    }
    batch
}

/// Callers woken at once. All of a batch together would keep every other request waiting until they are done.
const WOKEN_AT_ONCE: usize = 8;

/// Tells each caller its outcome.
async fn tell(answers: Vec<oneshot::Sender<Answer>>, outcomes: Vec<Answer>) {
    for (n, (answer, outcome)) in answers.into_iter().zip(outcomes).enumerate() {
        if n > 0 && n % WOKEN_AT_ONCE == 0 {
            tokio::task::yield_now().await;
        }
        // A caller that has gone does not want its answer; the same key will give it.
        drop(answer.send(outcome));
    }
}

struct Lane {
    db: Db,
    bus: Arc<dyn Bus>,
    outbox: Wake,
    waiting: Arc<Mutex<HashMap<EventId, usize>>>,
    /// Where those run who wait for answers.
    callers: Handle,
}

impl Lane {
    async fn run(self: Arc<Self>, mut receiver: mpsc::Receiver<Waiting>) {
        let mut queue: VecDeque<Waiting> = VecDeque::new();
        let mut settling: JoinSet<()> = JoinSet::new();
        let mut busy = Busy::new();
        // Whether a request of an event that nobody is at may wait: a long queue is not looked through for nothing.
        let mut may_begin = false;
        let mut is_open = true;
        while is_open || !queue.is_empty() || !settling.is_empty() {
            while queue.len() < LOOKED_THROUGH_MAX
                && let Ok(waiting) = receiver.try_recv()
            {
                may_begin |= !is_busy(&busy, &waiting);
                queue.push_back(waiting);
            }
            if may_begin && settling.len() < BATCHES_AT_ONCE {
                let batch = next_batch(&mut queue, &busy);
                may_begin = !batch.is_empty();
                if may_begin {
                    let events = batch.iter().map(|waiting| waiting.request.event).collect();
                    let task = settling.spawn(Arc::clone(&self).answer(batch));
                    busy.insert(task.id(), events);
                    continue;
                }
            }
            tokio::select! {
                Some(ended) = settling.join_next_with_id() => {
                    let id = match ended {
                        Ok((id, ())) => id,
                        Err(error) => {
                            tracing::error!(%error, "a batch of holds broke off, its callers are told to repeat their keys");
                            error.id()
                        }
                    };
                    busy.remove(&id);
                    may_begin = true;
                }
                waiting = receiver.recv(), if is_open && queue.len() < LOOKED_THROUGH_MAX => match waiting {
                    Some(waiting) => {
                        may_begin |= !is_busy(&busy, &waiting);
                        queue.push_back(waiting);
                    }
                    None => is_open = false,
                },
            }
        }
    }

    /// Settles a batch and answers its callers.
    async fn answer(self: Arc<Self>, batch: Vec<Waiting>) {
        let (mut requests, mut answers) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        for waiting in batch {
            leave(&self.waiting, waiting.request.event);
            metrics::histogram!("parterre_hold_lane_wait_seconds").record(waiting.since.elapsed());
            requests.push(waiting.request);
            answers.push(waiting.answer);
        }
        metrics::histogram!("parterre_hold_batch_requests")
            .record(f64::from(u32::try_from(requests.len()).unwrap_or(u32::MAX)));
        let outcomes = self.settle(&requests).await;
        // Not waited for, so that the next batch can begin.
        self.callers.spawn(tell(answers, outcomes));
    }

    /// The whole batch, again while its failure passes; else one by one, so that a bad request fails alone.
    async fn settle(&self, requests: &[HoldRequest]) -> Vec<Answer> {
        match db::repeating(|| batch::settle(&self.db, requests)).await {
            Ok(settled) => self.publish(settled),
            Err(error) if requests.len() == 1 => vec![Err(explain(&error))],
            Err(error) if error.is_connection() => {
                tracing::warn!(%error, requests = requests.len(), "the database does not answer, a batch of holds is sent away");
                requests.iter().map(|_| Err(explain(&error))).collect()
            }
            Err(error) => {
                tracing::warn!(%error, requests = requests.len(), "a batch of holds failed, settling its requests one by one");
                let mut answers = Vec::with_capacity(requests.len());
                for request in requests {
                    let one = std::slice::from_ref(request);
                    match db::repeating(|| batch::settle(&self.db, one)).await {
                        Ok(settled) => answers.extend(self.publish(settled)),
                        Err(error) => answers.push(Err(explain(&error))),
                    }
                }
                answers
            }
        }
    }

    fn publish(&self, settled: Settled) -> Vec<Answer> {
        if !settled.deltas.is_empty() {
            crate::chaos::point("before_publish");
        }
        publish(&*self.bus, &self.outbox, settled.deltas);
        settled.outcomes.into_iter().map(|outcome| Ok((outcome, settled.at))).collect()
    }
}

/// Sends deltas right after their commit, as a hint; the relay sends them again.
pub(super) fn publish(bus: &dyn Bus, outbox: &Wake, deltas: Vec<Arc<crate::bus::SeatsDelta>>) {
    for delta in deltas {
        bus.send(Hint::Seats(delta));
    }
    outbox.wake();
}

fn explain(error: &BatchError) -> LaneError {
    if error.may_repeat() || error.is_connection() {
        return LaneError::Overloaded { retry_after_ms: RETRY_AFTER_MS };
    }
    match error {
        BatchError::Commit(db::CommitError::Unknown(_)) => LaneError::Unknown,
        BatchError::Commit(db::CommitError::RolledBack(_)) | BatchError::Database(_) => {
            LaneError::Failed(error.to_string())
        }
    }
}
