//! A second payment at the provider with an operation id of ours. It can come of a call that was thought to be lost when
//! the next one was sent. It backs nothing: what is reserved is voided, what was collected goes back in full.

use super::Bookings;
use super::reconcile::ReconcileError;
use super::refunds;
use super::store::BookingError;
use crate::db::repeating;
use crate::payment::{self, Handle, Intent, NewRefund, Standing};
use parterre_entity::{PaymentId, RefundReason, payment as payment_row};
use sea_orm::DbErr;

/// Whether the provider's id is of another payment than the one we know.
pub(super) fn is_stray(row: &payment_row::Model, provider_id: &str) -> bool {
    row.provider_id.as_ref().is_some_and(|known| known != provider_id)
}

impl Bookings {
    /// Gives a second payment of this one back. Returns what was done, for people; none if there was nothing to do.
    pub(super) async fn give_stray_back(
        &self,
        row: &payment_row::Model,
        intent: &Intent,
    ) -> Result<Option<&'static str>, ReconcileError> {
        match intent.standing {
            Standing::Authorized | Standing::WaitsForBuyer => {
                let operation_id = format!("{}-{}", row.operation_id, intent.provider_id);
                let handle = Handle { provider_id: intent.provider_id.clone(), operation_id, key_no: 1 };
                self.provider.turn().await;
                self.provider.void(&handle).await?;
                Ok(Some("voided"))
            }
            Standing::Captured => {
                let made = repeating(|| self.request_stray(row.id, intent)).await?;
                self.wake.wake();
                Ok(made.then_some("to be refunded"))
            }
            Standing::Processing | Standing::Declined | Standing::Cancelled => Ok(None),
        }
    }

    async fn request_stray(&self, id: PaymentId, intent: &Intent) -> Result<bool, BookingError> {
        let tx = self.db.begin("payment_stray").await?;
        let row = payment::lock(&tx, id).await?.ok_or_else(|| DbErr::RecordNotFound("payment".to_owned()))?;
        let refund = NewRefund {
            payment: row.id,
            booking: row.booking_id,
            event: row.event_id,
            amount_minor: intent.amount_minor,
            currency: intent.currency.clone(),
            reason: RefundReason::DuplicateCharge,
            stray_of: Some(intent.provider_id.clone()),
        };
        let made = refunds::request(&tx, refund, "duplicate_charge").await?;
        tx.commit().await?;
        Ok(made)
    }
}
