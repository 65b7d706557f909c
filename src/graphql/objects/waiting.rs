//! The waiting room as a buyer sees it.

use crate::waiting::Standing;
use async_graphql::{ID, SimpleObject};
use parterre_entity::EventId;
use parterre_schema::scalars::DateTime;
use parterre_schema::{Kind, WaitingRoomStatus, node_id};

/// Where a buyer stands in an event's waiting room.
#[derive(Clone, Debug, SimpleObject)]
pub struct WaitingRoom {
    /// The event.
    pub event_id: ID,
    /// Where the buyer stands.
    pub status: WaitingRoomStatus,
    /// The place in line, 1 being next, while waiting.
    pub position: Option<i32>,
    /// An honest estimate, while waiting; null while nobody can say.
    pub estimated_wait_seconds: Option<i32>,
    /// For a new hold, while admitted. Bound to buyer and event.
    pub admission_token: Option<String>,
    /// Until when; renewed by asking again.
    pub admission_expires_at: Option<DateTime>,
    /// Ask again after so long.
    pub poll_after_ms: i32,
}

impl WaitingRoom {
    /// Of an event.
    #[must_use]
    pub fn of(event: EventId, standing: Standing) -> Self {
        let whole = |number: u128| i32::try_from(number).unwrap_or(i32::MAX);
        let (token, until) = standing.token.unzip();
        Self {
            event_id: node_id(Kind::Event, event),
            status: standing.status,
            position: standing.ahead.map(|ahead| whole(u128::from(ahead) + 1)),
            estimated_wait_seconds: standing.estimate.map(|wait| whole(u128::from(wait.as_secs()))),
            admission_token: token,
            admission_expires_at: until.map(DateTime::from),
            poll_after_ms: whole(standing.poll_after.as_millis()),
        }
    }
}
