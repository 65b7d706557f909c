//! The waiting room as a buyer sees it.

use async_graphql::{ID, SimpleObject};
use parterre_schema::WaitingRoomStatus;
use parterre_schema::scalars::DateTime;

/// Where a buyer stands in an event's waiting room.
#[derive(Clone, Debug, SimpleObject)]
pub struct WaitingRoom {
    /// The event.
    pub event_id: ID,
    /// Where the buyer stands.
    pub status: WaitingRoomStatus,
    /// How many are ahead, while waiting.
    pub position: Option<i32>,
    /// An honest estimate, while waiting.
    pub estimated_wait_seconds: Option<i32>,
    /// For a new hold, while admitted. Bound to buyer and event.
    pub admission_token: Option<String>,
    /// Until when; renewed by asking again.
    pub admission_expires_at: Option<DateTime>,
    /// Ask again after so long.
    pub poll_after_ms: i32,
}

impl WaitingRoom {
    /// There is no queue.
    #[must_use]
    pub const fn open(event_id: ID) -> Self {
        Self {
            event_id,
            status: WaitingRoomStatus::OpenAccess,
            position: None,
            estimated_wait_seconds: None,
            admission_token: None,
            admission_expires_at: None,
            poll_after_ms: 30_000,
        }
    }
}
