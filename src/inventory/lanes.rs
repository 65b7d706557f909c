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
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::runtime::{self, Handle};
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

/// Requests settled in one transaction at the most.
pub const BATCH_MAX: usize = 256;
/// Batches of one lane that are settled at once: that of a crowd, and that of everybody else.
const BATCHES_AT_ONCE: usize = 2;
/// Requests that may wait in a lane.
const WAITING_MAX: usize = 32 * BATCH_MAX;
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

#[derive(Debug)]
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
    lines: Vec<Arc<Line>>,
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
        let lanes = Self { lines: (0..count.max(1)).map(|_| Arc::default()).collect() };
        let lines = lanes.lines.clone();
        let (url, bus, outbox) = (database_url.to_owned(), Arc::clone(bus), outbox.clone());
        let (callers, token) = (Handle::current(), tasks.token());
        let (ready, connected) = oneshot::channel();
        let connections = u32::try_from(lines.len() * (BATCHES_AT_ONCE + 1)).unwrap_or(u32::MAX);
        std::thread::Builder::new().name("lanes".to_owned()).spawn(move || {
            let runtime = match runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return drop(ready.send(Err(NoLanes::from(error)))),
            };
            runtime.block_on(async {
                // Connections belong to the runtime that they were made in.
                let db = match Db::connect(&url, connections).await {
                    Ok(db) => db,
                    Err(error) => return drop(ready.send(Err(error.into()))),
                };
                drop(ready.send(Ok(())));
                let lane = Arc::new(Lane { db, bus, outbox, callers });
                let lanes: JoinSet<()> = lines.into_iter().map(|line| Arc::clone(&lane).run(line)).collect();
                lanes.join_all().await;
            });
            drop(token);
        })?;
        match connected.await {
            Ok(connected) => connected.map(|()| lanes),
            Err(_) => Err(std::io::Error::other("it ended early").into()),
        }
    }

    /// Queues a request and waits for its outcome, and the time it was decided at.
    pub async fn ask(&self, request: HoldRequest) -> Answer {
        let mut hasher = DefaultHasher::new();
        request.event.hash(&mut hasher);
        let lanes = u64::try_from(self.lines.len()).unwrap_or(1);
        let lane = usize::try_from(hasher.finish() % lanes).unwrap_or(0);
        let (answer, outcome) = oneshot::channel();
        let waiting = Waiting { request, since: Instant::now(), answer };
        if self.lines.get(lane).is_none_or(|line| line.queue(waiting).is_err()) {
            metrics::counter!("parterre_holds_overloaded_total").increment(1);
            return Err(LaneError::Overloaded { retry_after_ms: RETRY_AFTER_MS });
        }
        outcome.await.unwrap_or(Err(LaneError::Unknown))
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        for line in &self.lines {
            line.close();
        }
    }
}

/// Who waits in a lane, and for what. Whoever joins wakes the lane only when a batch can begin with them: beside a crowd,
/// a wake for each of it would cost more than its decision.
#[derive(Debug, Default)]
struct Line {
    inside: Mutex<Inside>,
    news: Notify,
}

#[derive(Debug, Default)]
struct Inside {
    waiting: VecDeque<Waiting>,
    /// How many wait of each event.
    of_event: HashMap<EventId, usize>,
    /// The events of each batch that is being settled.
    busy: HashMap<u64, HashSet<EventId>>,
    batches: u64,
    is_closed: bool,
}

impl Inside {
    fn is_busy(&self, event: EventId) -> bool {
        self.busy.values().any(|events| events.contains(&event))
    }
}

/// Nobody more may wait.
struct IsFull;

impl Line {
    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(&self, waiting: Waiting) -> Result<(), IsFull> {
        let mut inside = self.inside();
        let event = waiting.request.event;
        if inside.is_closed
            || inside.waiting.len() >= WAITING_MAX
            || inside.of_event.get(&event).is_some_and(|count| *count >= WAITING_PER_EVENT_MAX)
        {
            return Err(IsFull);
        }
        *inside.of_event.entry(event).or_default() += 1;
        inside.waiting.push_back(waiting);
        let may_begin = inside.busy.len() < BATCHES_AT_ONCE && !inside.is_busy(event);
        drop(inside);
        if may_begin {
            self.news.notify_one();
        }
        Ok(())
    }

    /// Takes the first requests whose events nobody is at, in their order.
    fn next_batch(self: &Arc<Self>) -> Option<(Vec<Waiting>, Busy)> {
        let mut inside = self.inside();
        if inside.busy.len() >= BATCHES_AT_ONCE {
            return None;
        }
        // Looked at before anything is moved: mostly nobody may begin.
        if inside.waiting.iter().all(|waiting| inside.is_busy(waiting.request.event)) {
            return None;
        }
        let (mut batch, mut events, mut passed_by) = (Vec::new(), HashSet::new(), Vec::new());
        while batch.len() < BATCH_MAX
            && let Some(waiting) = inside.waiting.pop_front()
        {
            let event = waiting.request.event;
            if inside.is_busy(event) {
                passed_by.push(waiting);
                continue;
            }
            batch.push(waiting);
            events.insert(event);
            if let Entry::Occupied(mut count) = inside.of_event.entry(event) {
                *count.get_mut() -= 1;
                if *count.get() == 0 {
                    count.remove();
                }
            }
        }
        for waiting in passed_by.into_iter().rev() {
            inside.waiting.push_front(waiting);
        }
        inside.batches += 1;
        let number = inside.batches;
        inside.busy.insert(number, events);
        Some((batch, Busy { line: Arc::clone(self), number }))
    }

    /// Nobody joins any more.
    fn close(&self) {
        self.inside().is_closed = true;
        self.news.notify_one();
    }

    fn is_done(&self) -> bool {
        let inside = self.inside();
        inside.is_closed && inside.waiting.is_empty()
    }
}

/// While this lives, the events of a batch wait for it.
struct Busy {
    line: Arc<Line>,
    number: u64,
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.line.inside().busy.remove(&self.number);
        self.line.news.notify_one();
    }
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

/// A line that somebody serves. Whoever still waits when that ends, whyever, is told so.
struct Served(Arc<Line>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.close();
        let left = std::mem::take(&mut self.0.inside().waiting);
        drop(left);
    }
}

struct Lane {
    db: Db,
    bus: Arc<dyn Bus>,
    outbox: Wake,
    /// Where those run who wait for answers.
    callers: Handle,
}

impl Lane {
    async fn run(self: Arc<Self>, line: Arc<Line>) {
        let served = Served(line);
        let line = &served.0;
        let mut settling: JoinSet<()> = JoinSet::new();
        while !line.is_done() || !settling.is_empty() {
            while let Some((batch, busy)) = line.next_batch() {
                let lane = Arc::clone(&self);
                settling.spawn(async move {
                    lane.answer(batch).await;
                    drop(busy);
                });
            }
            tokio::select! {
                Some(ended) = settling.join_next() => {
                    if let Err(error) = ended {
                        tracing::error!(%error, "a batch of holds broke off, its callers are told to repeat their keys");
                    }
                }
                () = line.news.notified() => {}
            }
        }
    }

    /// Settles a batch and answers its callers.
    async fn answer(&self, batch: Vec<Waiting>) {
        let (mut requests, mut answers) = (Vec::with_capacity(batch.len()), Vec::with_capacity(batch.len()));
        for waiting in batch {
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
                        Err(error) if error.is_connection() => {
                            // It went away: the others need not find that out one by one.
                            answers.resize_with(requests.len(), || Err(explain(&error)));
                            break;
                        }
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
