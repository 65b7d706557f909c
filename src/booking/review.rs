//! Payments whose amount or currency at the provider is not the booking's: a person decides, and the worker does it.
//!
//! Invariant: a mismatch is never confirmed. It is given back, or looked at again after it was put right elsewhere.

use super::Bookings;
use super::settle::{lock_all, move_row};
use super::store::BookingError;
use crate::audit;
use crate::db::repeating;
use crate::payment::{self, CallError, Intent, PaymentChanges, PaymentEvent};
use crate::sql;
use parterre_entity::{HoldState, PaymentId, PaymentState, PaymentStep};
use sea_orm::FromQueryResult;

/// A payment that waits for a decision.
#[derive(Clone, Debug)]
pub struct Review {
    /// Which.
    pub payment: PaymentId,
    /// What the buyer calls it.
    pub booking_code: String,
    /// What it should be, in minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// What the provider has now.
    pub found: Result<Intent, CallError>,
}

/// What a person decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Whatever money moved goes back, and the booking ends without seats.
    GiveBack,
    /// It was put right at the provider: settle it by what is there now.
    LookAgain,
}

/// Who decided, and why.
#[derive(Clone, Debug)]
pub struct Decided {
    /// What.
    pub decision: Decision,
    /// Who, for the trail.
    pub actor: String,
    /// Why, for the trail.
    pub reason: String,
}

/// Why a decision was not taken.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// It does not wait for one.
    #[error("payment {0} does not wait for a decision: it is {1}")]
    NotInReview(PaymentId, PaymentState),
    /// The database failed.
    #[error(transparent)]
    Booking(#[from] BookingError),
}

impl From<sea_orm::DbErr> for ReviewError {
    fn from(error: sea_orm::DbErr) -> Self {
        Self::Booking(error.into())
    }
}

impl From<crate::db::CommitError> for ReviewError {
    fn from(error: crate::db::CommitError) -> Self {
        Self::Booking(error.into())
    }
}

impl crate::db::MayRepeat for ReviewError {
    fn may_repeat(&self) -> bool {
        match self {
            Self::NotInReview(..) => false,
            Self::Booking(error) => error.may_repeat(),
        }
    }
}

impl Bookings {
    /// Payments that wait for a decision, oldest first, with what the provider has.
    pub async fn reviews(&self) -> Result<Vec<Review>, BookingError> {
        #[derive(FromQueryResult)]
        struct Row {
            id: PaymentId,
            code: String,
            amount_minor: i64,
            currency: String,
            provider_id: Option<String>,
        }
        let rows = Row::find_by_statement(sql!(
            "SELECT payment.id, booking.code, payment.amount_minor, payment.currency, payment.provider_id
             FROM payment JOIN booking ON booking.id = payment.booking_id
             WHERE payment.status = 'NEEDS_REVIEW' ORDER BY payment.id"
        ))
        .all(self.db.pool())
        .await?;
        let mut reviews = Vec::new();
        for row in rows {
            let found = self.provider.retrieve(row.provider_id.as_deref().unwrap_or_default()).await;
            reviews.push(Review {
                payment: row.id,
                booking_code: row.code,
                amount_minor: row.amount_minor,
                currency: row.currency,
                found,
            });
        }
        Ok(reviews)
    }

    /// Takes a decision, with its row in the trail. The payment worker does what follows from it.
    pub async fn decide(&self, payment: PaymentId, decided: &Decided) -> Result<(), ReviewError> {
        repeating(|| self.decide_once(payment, decided)).await?;
        self.wake.wake();
        Ok(())
    }

    async fn decide_once(&self, id: PaymentId, decided: &Decided) -> Result<(), ReviewError> {
        let tx = self.db.begin("payment_decide").await?;
        let locked = lock_all(&tx, id).await?;
        let row = &locked.payment;
        if row.status != PaymentState::NeedsReview {
            return Err(ReviewError::NotInReview(id, row.status));
        }
        let at_once = PaymentChanges { check_in_seconds: Some(0.0), ..PaymentChanges::default() };
        let action = match decided.decision {
            Decision::GiveBack => {
                payment::set_give_back(&tx, id).await?;
                let changes = PaymentChanges { new_step: true, ..at_once };
                move_row(&tx, row, PaymentEvent::Void, (changes, "review")).await?;
                "payment_give_back"
            }
            Decision::LookAgain => {
                let taken_over = locked.hold.status == HoldState::Converted;
                let step = if taken_over { PaymentStep::Capture } else { PaymentStep::Authorize };
                let changes = PaymentChanges { unknown_step: Some(step), ..at_once };
                move_row(&tx, row, PaymentEvent::Reconsider, (changes, "review")).await?;
                "payment_look_again"
            }
        };
        let detail = serde_json::json!({ "reason": decided.reason });
        audit::record_admin(&*tx, &decided.actor, (action, id.0), detail).await?;
        tx.commit().await?;
        Ok(())
    }
}
