//! Reconciliation: our payments against the provider's list, money without seats, bookings without tickets. It reports
//! what it finds, repairs what it can, and finds nothing the second time.

use super::store::BookingError;
use super::strays::is_stray;
use super::{Bookings, refunds, tickets};
use crate::db::{Single, is_connection, repeating};
use crate::payment::{self, CallError, Intent, NewRefund, Standing};
use crate::sql;
use chrono::{DateTime, Utc};
use parterre_entity::{BookingId, PaymentId, PaymentState, RefundReason, payment as payment_row};
use sea_orm::{ColumnTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter};
use std::collections::{HashMap, HashSet};

/// What a reconciliation found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// Payments and refunds that were open and are due to be asked for now.
    pub woken: u64,
    /// Differences that were repaired, for people.
    pub repaired: Vec<String>,
    /// Differences that nobody but a person can repair.
    pub unexplained: Vec<String>,
}

/// How long a payment may take from our row to the provider's list.
const LIST_LAG: chrono::Duration = chrono::Duration::minutes(15);

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The provider's list could not be read.
    #[error("the payment provider's list could not be read: {0}")]
    Provider(#[from] CallError),
    /// A repair failed.
    #[error(transparent)]
    Booking(#[from] BookingError),
}

impl From<DbErr> for ReconcileError {
    fn from(error: DbErr) -> Self {
        Self::Booking(error.into())
    }
}

impl Bookings {
    /// Compares payments created in a range of time with the provider's list, and sweeps everything that is open.
    pub async fn reconcile(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Report, ReconcileError> {
        let mut report = Report { woken: payment::wake_stranded(&self.db).await?, ..Report::default() };
        // What needs no provider first: it may be down.
        self.refund_money_without_seats(&mut report).await?;
        self.issue_missing_tickets(&mut report).await?;
        self.wake.wake();
        let listed = self.provider.list(from, to).await?;
        self.compare(&listed, (from, to), &mut report).await?;
        self.wake.wake();
        Ok(report)
    }

    async fn compare(
        &self,
        listed: &[Intent],
        (from, to): (DateTime<Utc>, DateTime<Utc>),
        report: &mut Report,
    ) -> Result<(), ReconcileError> {
        let ours = payment_row::Entity::find()
            .filter(payment_row::Column::CreatedAt.between(from - chrono::Duration::hours(1), to))
            .all(self.db.pool())
            .await?;
        let mut ours: HashMap<String, payment_row::Model> =
            ours.into_iter().map(|row| (row.operation_id.clone(), row)).collect();
        let mut seen = HashSet::new();
        for intent in listed {
            let known = intent.operation_id.as_ref().and_then(|operation| ours.get(operation));
            let Some(row) = known else {
                report.unexplained.push(format!(
                    "the provider has {} of {} {}, which we do not",
                    intent.provider_id, intent.amount_minor, intent.currency
                ));
                continue;
            };
            // One that can't be compared now must not keep the others from it.
            if let Err(error) = self.compare_one(row, intent, report).await {
                tracing::warn!(payment.id = %row.id, %error, "a payment could not be reconciled yet");
                report.unexplained.push(format!("payment {} could not be reconciled: {error}", row.id));
            }
            if !is_stray(row, &intent.provider_id) {
                seen.insert(row.id);
            }
        }
        ours.retain(|_, row| row.status == PaymentState::Captured && !seen.contains(&row.id));
        // The list may have been read before a young one came into being.
        let old = |row: &payment_row::Model| row.created_at >= from && row.created_at <= to - LIST_LAG;
        for row in ours.into_values().filter(old) {
            report.unexplained.push(format!("payment {} is captured here and not in the provider's list", row.id));
        }
        Ok(())
    }

    async fn compare_one(
        &self,
        row: &payment_row::Model,
        intent: &Intent,
        report: &mut Report,
    ) -> Result<(), ReconcileError> {
        if is_stray(row, &intent.provider_id) {
            if let Some(done) = self.give_stray_back(row, intent).await? {
                report.repaired.push(format!("{} is a second one of payment {}: {done}", intent.provider_id, row.id));
            }
            return Ok(());
        }
        let over = matches!(row.status, PaymentState::Declined | PaymentState::Failed | PaymentState::Voided);
        let differs = match intent.standing {
            Standing::Captured => !matches!(row.status, PaymentState::Captured | PaymentState::NeedsReview),
            Standing::Authorized | Standing::WaitsForBuyer | Standing::Processing => over,
            Standing::Declined | Standing::Cancelled => false,
        };
        if differs && self.look_at(row.id, "reconciliation".into()).await? {
            let note = format!("payment {} was {} here and {:?} at the provider", row.id, row.status, intent.standing);
            tracing::warn!(payment.id = %row.id, note, "reconciliation repaired a difference");
            report.repaired.push(note);
        }
        let captured = (row.captured_minor, row.captured_currency.as_deref());
        let collected = (Some(intent.amount_minor), Some(intent.currency.as_str()));
        if intent.standing == Standing::Captured && row.status == PaymentState::Captured && captured != collected {
            report.unexplained.push(format!(
                "payment {} collected {} {} at the provider, and not what is written here",
                row.id, intent.amount_minor, intent.currency
            ));
        }
        let gone = matches!(intent.standing, Standing::Declined | Standing::Cancelled);
        if gone && row.status == PaymentState::Captured {
            report
                .unexplained
                .push(format!("payment {} is captured here and {:?} at the provider", row.id, intent.standing));
        }
        Ok(())
    }

    /// A booking whose money has to go back always has a refund that has not failed.
    async fn refund_money_without_seats(&self, report: &mut Report) -> Result<(), ReconcileError> {
        #[derive(FromQueryResult)]
        struct Row {
            booking_id: BookingId,
            payment_id: PaymentId,
        }
        let rows = Row::find_by_statement(sql!(
            "SELECT booking.id AS booking_id, payment.id AS payment_id FROM booking JOIN payment ON payment.booking_id = booking.id
             WHERE booking.status = 'REFUND_REQUIRED' AND payment.status = 'CAPTURED'
               AND NOT EXISTS (SELECT FROM refund WHERE refund.booking_id = booking.id AND refund.status <> 'FAILED' AND stray_of IS NULL)"
        ))
        .all(self.db.pool())
        .await?;
        for row in rows {
            let made = repeating(|| async {
                let tx = self.db.begin("reconcile_refund").await?;
                let paid = payment::lock(&tx, row.payment_id)
                    .await?
                    .ok_or_else(|| DbErr::RecordNotFound("payment".to_owned()))?;
                let new = NewRefund {
                    payment: paid.id,
                    booking: paid.booking_id,
                    event: paid.event_id,
                    amount_minor: paid.captured_minor.unwrap_or(paid.amount_minor),
                    currency: paid.captured_currency.unwrap_or(paid.currency),
                    reason: RefundReason::Other,
                    stray_of: None,
                };
                let made = refunds::request(&tx, new, "reconciliation").await?;
                tx.commit().await?;
                Ok::<_, BookingError>(made)
            })
            .await?;
            if made {
                report.repaired.push(format!("booking {} had money without seats and no refund", row.booking_id));
            }
        }
        Ok(())
    }

    async fn issue_missing_tickets(&self, report: &mut Report) -> Result<(), ReconcileError> {
        let rows = Single::<BookingId>::find_by_statement(sql!(
            "SELECT id AS value FROM booking WHERE status = 'CONFIRMED' AND confirmed_at < clock_timestamp() - interval '1 minute'
               AND NOT EXISTS (SELECT FROM ticket WHERE booking_id = booking.id) LIMIT 1000"
        ))
        .all(self.db.pool())
        .await?;
        for booking in rows.into_iter().map(|row| row.value) {
            let issued = repeating(|| async {
                let tx = self.db.begin("reconcile_tickets").await?;
                let issued = tickets::issue(&tx, vec![booking]).await?;
                tx.commit().await?;
                Ok::<_, BookingError>(!issued.is_empty())
            });
            match issued.await {
                Ok(true) => report.repaired.push(format!("booking {booking} had no tickets")),
                Ok(false) => {}
                // One that can't be helped does not keep the others from their tickets.
                Err(BookingError::Database(error)) if !is_connection(&error) => {
                    report.unexplained.push(format!("booking {booking} has no tickets: {error}"));
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}
