//! The rows of payments and refunds: made, locked, moved, leased. Each function takes the caller's transaction, but
//! for the leases, which are one statement each.

use super::rules::{PaymentEvent, RefundEvent, next, next_refund};
use crate::db::{Db, Single, Transaction};
use crate::sql;
use parterre_entity::{
    BookingId, EventId, PaymentId, PaymentState, PaymentStep, RefundId, RefundReason, RefundState, payment, refund,
};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QuerySelect};

/// A payment to be made.
#[derive(Clone, Debug)]
pub struct NewPayment {
    /// Of which booking.
    pub booking: BookingId,
    /// Of which event.
    pub event: EventId,
    /// In minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// A token of the provider.
    pub payment_method: String,
    /// Where a redirect comes back to.
    pub return_url: Option<String>,
}

/// Saves a payment that is due at once.
pub async fn create(tx: &Transaction, new: NewPayment) -> Result<PaymentId, DbErr> {
    let id = PaymentId::new();
    tx.execute_raw(sql!(
        "INSERT INTO payment (id, booking_id, event_id, operation_id, status, amount_minor, currency, payment_method,
                              return_url, next_check_at, created_at)
         VALUES ($1, $2, $3, $4, 'CREATED', $5, $6, $7, $8, clock_timestamp(), clock_timestamp())",
        id,
        new.booking,
        new.event,
        format!("pay-{}", id.0.simple()),
        new.amount_minor,
        new.currency,
        new.payment_method,
        new.return_url
    ))
    .await?;
    Ok(id)
}

/// Locks a payment's row.
pub async fn lock(tx: &Transaction, id: PaymentId) -> Result<Option<payment::Model>, DbErr> {
    payment::Entity::find_by_id(id).lock(sea_orm::sea_query::LockType::NoKeyUpdate).one(&**tx).await
}

/// What changes with a payment's step, besides its state.
#[derive(Clone, Debug, Default)]
pub struct PaymentChanges {
    /// The step whose outcome is not known, when the event is `Lose`.
    pub unknown_step: Option<PaymentStep>,
    /// The provider's id; a known one stays.
    pub provider_id: Option<String>,
    /// When to look again; `None`: at rest.
    pub check_in_seconds: Option<f64>,
    /// Why it was declined.
    pub decline_code: Option<String>,
    /// What the buyer has to do.
    pub next_action: Option<serde_json::Value>,
    /// When the reservation lapses.
    pub capture_before: Option<chrono::DateTime<chrono::Utc>>,
    /// The next call of the step uses its next key.
    pub next_key: bool,
    /// A new step begins: first key, no attempts.
    pub new_step: bool,
}

/// Moves a locked payment. Returns its new state.
pub async fn step(
    tx: &Transaction,
    row: &payment::Model,
    event: PaymentEvent,
    changes: PaymentChanges,
) -> Result<PaymentState, DbErr> {
    let to = next(row.status, event).map_err(|error| DbErr::Custom(format!("payment {}: {error}", row.id)))?;
    let unknown_step = (to == PaymentState::Unknown).then(|| changes.unknown_step.or(row.unknown_step)).flatten();
    let written = tx
        .execute_raw(sql!(
            "UPDATE payment SET status = $2, unknown_step = $3,
                unknown_since = CASE WHEN $2 = 'UNKNOWN' THEN coalesce(unknown_since, clock_timestamp()) END,
                provider_id = coalesce(provider_id, $4),
                next_check_at = clock_timestamp() + make_interval(secs => $5),
                decline_code = coalesce($6, decline_code), next_action = $7,
                capture_before = coalesce($8, capture_before),
                key_no = CASE WHEN $10 THEN 1 WHEN $9 THEN key_no + 1 ELSE key_no END,
                attempts = CASE WHEN $10 THEN 0 WHEN $2 = 'UNKNOWN' THEN attempts + 1 ELSE attempts END
             WHERE id = $1 AND status = $11",
            row.id,
            to.as_str(),
            unknown_step.map(|step| step.as_str().to_owned()),
            changes.provider_id,
            changes.check_in_seconds,
            changes.decline_code,
            changes.next_action,
            changes.capture_before,
            changes.next_key,
            changes.new_step,
            row.status.as_str()
        ))
        .await?
        .rows_affected();
    if written == 1 { Ok(to) } else { Err(DbErr::Custom(format!("payment {} moved while it was locked", row.id))) }
}

/// Writes down that a call is about to be made: the provider may know of the payment from here on.
pub async fn about_to_call(tx: &Transaction, id: PaymentId) -> Result<(), DbErr> {
    tx.execute_raw(sql!(
        "UPDATE payment SET attempts = attempts + 1, first_sent_at = coalesce(first_sent_at, clock_timestamp()) WHERE id = $1",
        id
    ))
    .await
    .map(drop)
}

/// Looks at a locked payment again later; its state stays.
pub async fn look_again(tx: &Transaction, id: PaymentId, changes: PaymentChanges) -> Result<(), DbErr> {
    tx.execute_raw(sql!(
        "UPDATE payment SET provider_id = coalesce(provider_id, $2),
            next_check_at = clock_timestamp() + make_interval(secs => $3) WHERE id = $1",
        id,
        changes.provider_id,
        changes.check_in_seconds
    ))
    .await
    .map(drop)
}

/// Leaves a locked payment alone: nothing is due any more.
pub async fn rest(tx: &Transaction, id: PaymentId) -> Result<(), DbErr> {
    tx.execute_raw(sql!("UPDATE payment SET next_check_at = NULL WHERE id = $1", id)).await.map(drop)
}

/// Notes that the provider did not list a locked payment that was sent.
pub async fn note_missed(tx: &Transaction, id: PaymentId) -> Result<(), DbErr> {
    tx.execute_raw(sql!("UPDATE payment SET missed_at = coalesce(missed_at, clock_timestamp()) WHERE id = $1", id))
        .await
        .map(drop)
}

/// Makes payments and refunds due that are open but were not to be asked for. Returns how many.
pub async fn wake_stranded(db: &Db) -> Result<u64, DbErr> {
    let payments = db
        .pool()
        .execute_raw(sql!(
            "UPDATE payment SET next_check_at = clock_timestamp() WHERE next_check_at IS NULL
               AND status IN ('CREATED', 'AUTHORIZING', 'REQUIRES_ACTION', 'AUTHORIZED', 'CAPTURING', 'VOIDING', 'UNKNOWN')"
        ))
        .await?;
    let refunds = db
        .pool()
        .execute_raw(sql!(
            "UPDATE refund SET next_check_at = clock_timestamp() WHERE next_check_at IS NULL AND status IN ('REQUESTED', 'PENDING')"
        ))
        .await?;
    Ok(payments.rows_affected() + refunds.rows_affected())
}

/// Puts a due payment off after a failure of our own, with growing pauses.
pub async fn postpone(db: &Db, id: PaymentId) -> Result<(), DbErr> {
    db.pool()
        .execute_raw(sql!(
            "UPDATE payment SET attempts = attempts + 1,
                next_check_at = clock_timestamp() + make_interval(secs => least(power(2, least(attempts, 9)), 300))
             WHERE id = $1 AND next_check_at IS NOT NULL",
            id
        ))
        .await
        .map(drop)
}

/// Puts a refund's next look off.
pub async fn postpone_refund(db: &Db, id: RefundId, seconds: f64) -> Result<(), DbErr> {
    db.pool()
        .execute_raw(sql!(
            "UPDATE refund SET attempts = attempts + 1, next_check_at = clock_timestamp() + make_interval(secs => $2)
             WHERE id = $1 AND next_check_at IS NOT NULL",
            id,
            seconds
        ))
        .await
        .map(drop)
}

/// A refund to be made.
#[derive(Clone, Debug)]
pub struct NewRefund {
    /// Of which payment, locked by the caller.
    pub payment: PaymentId,
    /// Of which booking.
    pub booking: BookingId,
    /// Of which event.
    pub event: EventId,
    /// In minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// Why.
    pub reason: RefundReason,
}

/// Saves a refund that is due at once, if no more is given back than was captured. The payment's row is locked.
pub async fn create_refund(tx: &Transaction, new: NewRefund) -> Result<Option<RefundId>, DbErr> {
    let id = RefundId::new();
    let written = tx
        .execute_raw(sql!(
            "INSERT INTO refund (id, booking_id, payment_id, event_id, operation_id, status, amount_minor, currency,
                                 reason, next_check_at, created_at)
             SELECT $1, $2, $3, $4, $5, 'REQUESTED', $6, $7, $8,
                -- One that follows others that failed waits longer each time.
                clock_timestamp() + make_interval(secs => (
                    SELECT CASE WHEN count(*) = 0 THEN 0 ELSE least(power(2, least(count(*), 12)), 3600) END
                    FROM refund WHERE payment_id = $3 AND status = 'FAILED')),
                clock_timestamp()
             FROM payment
             WHERE payment.id = $3 AND payment.status = 'CAPTURED'
               AND $6 + (SELECT coalesce(sum(amount_minor), 0) FROM refund WHERE payment_id = $3 AND status <> 'FAILED')
                   <= payment.amount_minor",
            id,
            new.booking,
            new.payment,
            new.event,
            format!("rfd-{}", id.0.simple()),
            new.amount_minor,
            new.currency,
            new.reason.as_str()
        ))
        .await?
        .rows_affected();
    Ok((written == 1).then_some(id))
}

/// Locks a refund's row.
pub async fn lock_refund(tx: &Transaction, id: RefundId) -> Result<Option<refund::Model>, DbErr> {
    refund::Entity::find_by_id(id).lock(sea_orm::sea_query::LockType::NoKeyUpdate).one(&**tx).await
}

/// Moves a locked refund. Returns its new state.
pub async fn step_refund(
    tx: &Transaction,
    row: &refund::Model,
    event: RefundEvent,
    (provider_id, check_in_seconds, next_key): (Option<String>, Option<f64>, bool),
) -> Result<RefundState, DbErr> {
    let to = next_refund(row.status, event).map_err(|error| DbErr::Custom(format!("refund {}: {error}", row.id)))?;
    let written = tx
        .execute_raw(sql!(
            "UPDATE refund SET status = $2, provider_id = coalesce(provider_id, $3),
                next_check_at = clock_timestamp() + make_interval(secs => $4),
                key_no = CASE WHEN $5 THEN key_no + 1 ELSE key_no END,
                first_sent_at = CASE WHEN $2 = 'PENDING' THEN coalesce(first_sent_at, clock_timestamp()) ELSE first_sent_at END,
                attempts = attempts + 1
             WHERE id = $1 AND status = $6",
            row.id,
            to.as_str(),
            provider_id,
            check_in_seconds,
            next_key,
            row.status.as_str()
        ))
        .await?
        .rows_affected();
    if written == 1 { Ok(to) } else { Err(DbErr::Custom(format!("refund {} moved while it was locked", row.id))) }
}

/// Payments that are due and that nobody is at.
pub async fn due(db: &Db, limit: i64) -> Result<Vec<PaymentId>, DbErr> {
    let rows = Single::<PaymentId>::find_by_statement(sql!(
        "SELECT id AS value FROM payment WHERE next_check_at <= (SELECT clock_timestamp())
           AND (lease_until IS NULL OR lease_until <= (SELECT clock_timestamp())) ORDER BY next_check_at LIMIT $1",
        limit
    ))
    .all(db.pool())
    .await?;
    Ok(rows.into_iter().map(|row| row.value).collect())
}

/// Refunds that are due and that nobody is at.
pub async fn due_refunds(db: &Db, limit: i64) -> Result<Vec<RefundId>, DbErr> {
    let rows = Single::<RefundId>::find_by_statement(sql!(
        "SELECT id AS value FROM refund WHERE next_check_at <= (SELECT clock_timestamp())
           AND (lease_until IS NULL OR lease_until <= (SELECT clock_timestamp())) ORDER BY next_check_at LIMIT $1",
        limit
    ))
    .all(db.pool())
    .await?;
    Ok(rows.into_iter().map(|row| row.value).collect())
}
