//! A second payment at the provider with an operation id of ours. It can come of a call that was thought to be lost when
//! the next one was sent. It backs nothing: what is reserved is voided, what was collected goes back in full.

use super::Bookings;
use super::refunds;
use super::store::BookingError;
use crate::db::repeating;
use crate::payment::{self, CallError, Handle, Intent, NewRefund, Standing};
use parterre_entity::{PaymentId, RefundReason, payment as payment_row};
use sea_orm::{DbErr, EntityTrait};

impl Bookings {
    /// Gives a stray back, if this is one. Returns what was done, for people; none if there was nothing to do.
    pub(super) async fn give_stray_back(
        &self,
        payment: PaymentId,
        intent: &Intent,
    ) -> Result<Option<&'static str>, StrayError> {
        let row = payment_row::Entity::find_by_id(payment).one(self.db.pool()).await.map_err(BookingError::from)?;
        let known = row.as_ref().and_then(|row| row.provider_id.as_ref());
        let (Some(row), true) = (&row, known.is_some_and(|known| *known != intent.provider_id)) else {
            return Ok(None);
        };
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

/// Why a stray was not given back yet.
#[derive(Debug, thiserror::Error)]
pub(super) enum StrayError {
    /// The provider did not say that it did.
    #[error(transparent)]
    Provider(#[from] CallError),
    /// It could not be saved.
    #[error(transparent)]
    Booking(#[from] BookingError),
}
