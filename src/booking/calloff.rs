//! After an event was called off: every confirmed booking is undone and refunded in full, whatever its terms, and every
//! hold is released. Resumable: a pass takes what it finds, and the last one finds nothing.

use super::cancel::{Terms, undo};
use super::store::{self, BookingError, lock_event};
use super::{BookingId, Bookings};
use crate::db::{Single, repeating};
use crate::inventory;
use crate::sql;
use parterre_entity::{BookingState, EventState, HoldId};
use sea_orm::{DbErr, EntityTrait, FromQueryResult};
use uuid::Uuid;

/// Bookings and holds that a pass takes at the most.
const A_PASS: i64 = 100;

impl Bookings {
    /// Undoes some bookings and releases some holds of cancelled events. Returns how many.
    pub async fn undo_cancelled_events(&self) -> Result<usize, BookingError> {
        let (mut undone, mut last) = (0, BookingId(Uuid::nil()));
        // On to those behind the ones that fail, which must not keep the others from their money.
        while undone == 0 {
            let bookings = Single::<BookingId>::find_by_statement(sql!(
                "SELECT booking.id AS value FROM booking JOIN event ON event.id = booking.event_id
                 WHERE event.state = 'CANCELLED' AND booking.status = 'CONFIRMED' AND booking.id > $2
                 ORDER BY booking.id LIMIT $1",
                A_PASS,
                last
            ))
            .all(self.db.pool())
            .await?;
            let Some(row) = bookings.last() else { break };
            last = row.value;
            for row in &bookings {
                match repeating(|| self.undo_for_event(row.value)).await {
                    Ok(deltas) => {
                        undone += 1;
                        self.inventory.publish(deltas);
                        self.announce(row.value);
                    }
                    Err(error) => {
                        tracing::error!(booking.id = %row.value, %error, "a booking of a cancelled event could not be undone yet");
                    }
                }
            }
        }
        if undone > 0 {
            self.wake.wake();
        }
        Ok(undone + self.release_holds_of_cancelled_events().await?)
    }

    async fn undo_for_event(&self, id: BookingId) -> Result<Vec<std::sync::Arc<crate::bus::SeatsDelta>>, BookingError> {
        let found = parterre_entity::booking::Entity::find_by_id(id).one(self.db.pool()).await?;
        let found = found.ok_or_else(|| DbErr::RecordNotFound(format!("booking {id}")))?;
        let tx = self.db.begin("event_calloff").await?;
        let terms = lock_event(&tx, found.event_id).await?;
        crate::inventory::lock(&tx, found.hold_id).await?;
        let row = store::lock(&tx, id).await?;
        if row.status != BookingState::Confirmed || terms.state != EventState::Cancelled {
            tx.rollback().await?;
            return Ok(Vec::new());
        }
        let bump = undo(&tx, &row, Terms::of_cancelled_event(&row)).await?;
        let deltas = inventory::bump(&tx, bump).await?;
        tx.commit().await?;
        Ok(deltas)
    }

    async fn release_holds_of_cancelled_events(&self) -> Result<usize, BookingError> {
        #[derive(FromQueryResult)]
        struct Row {
            id: HoldId,
            buyer: String,
        }
        let holds = Row::find_by_statement(sql!(
            "SELECT hold.id, hold.buyer FROM hold JOIN event ON event.id = hold.event_id
             WHERE event.state = 'CANCELLED' AND hold.status = 'ACTIVE' ORDER BY hold.id LIMIT $1",
            A_PASS
        ))
        .all(self.db.pool())
        .await?;
        let mut released = 0;
        for hold in &holds {
            match self.inventory.release(hold.id, &hold.buyer).await {
                Ok(()) => released += 1,
                Err(error) => {
                    tracing::warn!(hold.id = %hold.id, %error, "a hold of a cancelled event could not be released yet");
                }
            }
        }
        Ok(released)
    }
}
