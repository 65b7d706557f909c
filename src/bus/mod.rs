//! Hints between processes: what just changed, sent right after the commit and again by the outbox relay.
//!
//! Invariants: a hint may be lost, doubled or late, and nothing but freshness suffers: every seat delta carries the
//! version that tells a reader what it missed. This room knows nothing of the database.

mod memory;
mod redis;

pub use memory::MemoryBus;
pub use redis::RedisBus;

use async_trait::async_trait;
use parterre_entity::{BookingId, EventId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use tokio::sync::broadcast;

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hint {
    /// Seats or tiers of an event.
    Seats(Arc<SeatsDelta>),
    /// A booking, its payment, refunds or tickets.
    Booking(BookingId),
    /// People were let in from a waiting room.
    Admitted {
        /// To which event.
        event: EventId,
        /// Who.
        buyers: Arc<[String]>,
    },
    /// An admission ended before its token ran out: the token is worth nothing any more.
    AdmissionEnded(String),
    /// Messages may have been lost: look for yourself.
    Gap,
}

/// The seats and tiers that one transaction changed, as readers see them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeatsDelta {
    /// The event.
    pub event: EventId,
    /// Sections whose counter moved.
    pub sections: Vec<SectionDelta>,
    /// The tiers, if their counter moved.
    pub tiers: Option<TiersDelta>,
}

/// One section's change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SectionDelta {
    /// The section's number in the layout.
    pub section: i16,
    /// Its counter after the change.
    pub version: i64,
    /// Seat number, status letter (A H S B) and, when held, the deadline in milliseconds of Unix time, else 0.
    pub seats: Vec<(i32, char, i64)>,
}

/// The tiers' change.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TiersDelta {
    /// The counter of all tiers of the event after the change.
    pub version: i64,
    /// Tier number and what is available in it.
    pub available: Vec<(i16, i32)>,
}

/// Why a hint could not be sent.
#[derive(Debug, thiserror::Error)]
#[error("the bus is not reachable: {0}")]
pub struct BusError(pub String);

/// Carries hints to every process, this one included.
#[async_trait]
pub trait Bus: Send + Sync + std::fmt::Debug {
    /// Sends without waiting: a bus that is away costs its callers nothing. What can't be sent is lost, and the relay
    /// sends it again.
    fn send(&self, hint: Hint);

    /// Sends, and waits until it was taken.
    async fn publish(&self, hints: &[Hint]) -> Result<(), BusError>;

    /// All hints from now on. A reader that lags behind gets `Lagged` and must treat it as a gap.
    fn subscribe(&self) -> broadcast::Receiver<Hint>;
}

/// Hints a reader may be behind before it has to look for itself.
const BACKLOG_MAX: usize = 4_096;
