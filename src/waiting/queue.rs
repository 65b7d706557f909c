//! What a queue does, whoever keeps it.

use super::rules::Allowance;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use parterre_entity::EventId;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

/// The queue does not answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("the queue is not reachable: {0}")]
pub struct QueueError(pub String);

/// Where somebody stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere.
    Absent,
    /// In line.
    Waiting {
        /// So many are before them.
        ahead: u64,
    },
    /// Let in.
    Admitted {
        /// This admission's id.
        admission: String,
        /// Until then, unless asked for again. Milliseconds of Unix time.
        until_ms: i64,
    },
}

/// How a queue of an event is run now.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Nobody is let in before. Milliseconds of Unix time.
    pub opens_at_ms: i64,
    /// How many.
    pub allowance: Allowance,
    /// How long somebody may stay however often they renew.
    pub stay: Duration,
    /// Names this process among those that run the same queue: the most careful one counts.
    pub process: Arc<str>,
}

/// What became of a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Admitted {
    /// Let in just now, in order.
    pub buyers: Vec<String>,
    /// Let in since the queue was opened.
    pub total: u64,
    /// In line.
    pub waiting: u64,
    /// Inside.
    pub inside: u64,
    /// How long the first in line has been there.
    pub oldest: Duration,
}

/// A line an event. Every call is one round trip at the most.
#[async_trait]
pub trait Queue: Send + Sync + std::fmt::Debug {
    /// Takes a place at the end, or keeps the one there is. Renews the admission of somebody who is in.
    async fn join(&self, event: EventId, buyer: &str) -> Result<Place, QueueError>;

    /// Where somebody stands. Renews the admission of somebody who is in.
    async fn find(&self, event: EventId, buyer: &str) -> Result<Place, QueueError>;

    /// Gives up the place, or the admission, whose id it returns.
    async fn leave(&self, event: EventId, buyer: &str) -> Result<Option<String>, QueueError>;

    /// Gives up the admission, if there is one, and returns its id; a place in line stays.
    async fn finish(&self, event: EventId, buyer: &str) -> Result<Option<String>, QueueError>;

    /// Lets people in, as many as may. None: this queue was not opened since it came into being.
    async fn admit(&self, event: EventId, gate: &Gate) -> Result<Option<Admitted>, QueueError>;

    /// Opens a queue that came into being, after so long. One that is open stays as it is.
    async fn open(&self, event: EventId, quiet: Duration) -> Result<(), QueueError>;

    /// Sends everyone home who was in line before.
    async fn clear(&self, event: EventId, before: DateTime<Utc>) -> Result<(), QueueError>;

    /// The queue's clock.
    fn now(&self) -> DateTime<Utc>;
}

/// How long a queue is kept after it was last used.
pub(super) const KEPT: Duration = Duration::from_hours(48);
/// Let in by one call at the most.
pub(super) const ADMITTED_MAX: usize = 1_000;

/// The wall clock, which a test may put ahead.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    ahead_ms: Arc<AtomicI64>,
}

impl Clock {
    /// Puts it ahead by so much more.
    pub fn advance(&self, by: Duration) {
        self.ahead_ms.fetch_add(i64::try_from(by.as_millis()).unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// By how much it is ahead.
    pub(super) fn ahead_ms(&self) -> i64 {
        self.ahead_ms.load(Ordering::Relaxed)
    }

    /// The time.
    pub(super) fn now(&self) -> DateTime<Utc> {
        crate::clock::now() + chrono::Duration::milliseconds(self.ahead_ms())
    }
}
