//! What was committed, for those who react to it: appended in the transaction that made the change, read in commit
//! order, delivered at least once.
//!
//! Invariants: rows are read in (xid, id) order below the snapshot's horizon, since a sequence alone skips a low id
//! that commits late; a cursor counts only on the cluster it was read from. This room knows no noun: consumers do.

mod consumer;
mod feed;
mod lag;
mod relay;
mod retention;

pub use consumer::{Consumer, Progress, consume};
pub use feed::{Cluster, Page, Position, Row, cluster, read_after, waiting_behind};
pub use lag::{Lag, forget, lags, watch, watch_all};
pub use relay::Relay;
pub use retention::{forget_some, removed};

use parterre_entity::EventId;
use sea_orm::{ConnectionTrait, DbErr};
use serde_json::Value as Json;
use uuid::Uuid;

use crate::sql;

/// What a row is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Topic {
    /// Seats or tiers, as readers of a map see them. The payload is a `SeatsDelta`.
    Seats,
    /// An event was created, edited, published, paused, resumed or cancelled.
    Event,
    /// A venue was created or edited.
    Venue,
    /// A performer was created or edited.
    Performer,
    /// A hold was made or ended.
    Hold,
    /// A booking, its payment or one of its refunds changed. The payload names the new state.
    Booking,
    /// Tickets were issued or revoked.
    Ticket,
}

impl Topic {
    /// All of them.
    pub const ALL: &[Self] =
        &[Self::Seats, Self::Event, Self::Venue, Self::Performer, Self::Hold, Self::Booking, Self::Ticket];

    /// The database's text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Seats => "seats",
            Self::Event => "event",
            Self::Venue => "venue",
            Self::Performer => "performer",
            Self::Hold => "hold",
            Self::Booking => "booking",
            Self::Ticket => "ticket",
        }
    }
}

/// One change to tell of.
#[derive(Clone, Debug)]
pub struct Change {
    /// What it is about.
    pub topic: Topic,
    /// The event it belongs to, if any.
    pub event: Option<EventId>,
    /// The one thing that changed, if it is one.
    pub subject: Option<Uuid>,
    /// For consumers; small.
    pub payload: Json,
}

/// Appends to the outbox, in the caller's transaction.
pub async fn append(transaction: &impl ConnectionTrait, changes: &[Change]) -> Result<(), DbErr> {
    if changes.is_empty() {
        return Ok(());
    }
    // Arrays can't carry NULL here, so "no event" and "no subject" travel as the nil UUID.
    let or_nil = |id: Option<Uuid>| id.unwrap_or(Uuid::nil());
    let topics: Vec<String> = changes.iter().map(|change| change.topic.as_str().to_owned()).collect();
    let events: Vec<Uuid> = changes.iter().map(|change| or_nil(change.event.map(Uuid::from))).collect();
    let subjects: Vec<Uuid> = changes.iter().map(|change| or_nil(change.subject)).collect();
    let payloads: Vec<String> = changes.iter().map(|change| change.payload.to_string()).collect();
    transaction
        .execute_raw(sql!(
            "INSERT INTO outbox (topic, event_id, subject_id, payload)
             SELECT topic, nullif(event, $5), nullif(subject, $5), payload::jsonb
             FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::text[]) AS new (topic, event, subject, payload)",
            topics,
            events,
            subjects,
            payloads,
            Uuid::nil()
        ))
        .await
        .map(drop)
}
