//! The consumer that sends every change to the bus again, in case its committer could not.

use super::Topic;
use super::consumer::Consumer;
use super::feed::Row;
use crate::bus::{Bus, Hint, SeatsDelta};
use async_trait::async_trait;
use parterre_entity::BookingId;
use sea_orm::DbErr;
use std::sync::Arc;

/// From the outbox to the bus.
#[derive(Debug)]
pub struct Relay {
    /// Where to.
    pub bus: Arc<dyn Bus>,
}

#[async_trait]
impl Consumer for Relay {
    fn name(&self) -> &'static str {
        "relay"
    }

    fn topics(&self) -> &'static [Topic] {
        &[Topic::Seats, Topic::Booking, Topic::Ticket]
    }

    async fn act(&self, rows: &[Row]) -> Result<(), DbErr> {
        let mut hints = Vec::new();
        for row in rows {
            match (row.topic.as_str(), row.subject) {
                ("seats", _) => {
                    let delta = serde_json::from_value::<SeatsDelta>(row.payload.clone())
                        .map_err(|error| DbErr::Custom(format!("a seats payload can't be read: {error}")))?;
                    hints.push(Hint::Seats(Arc::new(delta)));
                }
                ("booking" | "ticket", Some(id)) => hints.push(Hint::Booking(BookingId(id))),
                _ => {}
            }
        }
        self.bus.publish(&hints).await.map_err(|error| DbErr::Conn(sea_orm::RuntimeErr::Internal(error.0)))
    }
}
