//! The rows of payments and refunds: made, locked, moved, leased. Each function takes the caller's transaction, but
//! for the leases, which are one statement each.

use super::rules::{PaymentEvent, RefundEvent, next, next_refund};
use crate::db::{Db, MAY_BE_LOST, Single, Transaction};
use crate::sql;
use chrono::{DateTime, Duration, Utc};
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
    /// What was collected, in minor units of its currency.
    pub captured: Option<(i64, String)>,
    /// When the reservation lapses.
    pub capture_before: Option<DateTime<Utc>>,
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
    let (captured_minor, captured_currency) = changes.captured.unzip();
    let written = tx
        .execute_raw(sql!(
            "UPDATE payment SET status = $2, unknown_step = $3,
                unknown_since = CASE WHEN $2 = 'UNKNOWN' THEN coalesce(unknown_since, clock_timestamp()) END,
                provider_id = coalesce(provider_id, $4),
                next_check_at = clock_timestamp() + make_interval(secs => $5),
                decline_code = coalesce($6, decline_code), next_action = $7,
                capture_before = coalesce($8, capture_before),
                captured_minor = coalesce($12, captured_minor), captured_currency = coalesce($13, captured_currency),
                key_no = CASE WHEN $10 THEN 1 WHEN $9 THEN key_no + 1 ELSE key_no END,
                key_used_at = CASE WHEN NOT ($9 OR $10) THEN key_used_at END,
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
            row.status.as_str(),
            captured_minor,
            captured_currency
        ))
        .await?
        .rows_affected();
    if written == 1 { Ok(to) } else { Err(DbErr::Custom(format!("payment {} moved while it was locked", row.id))) }
}

/// How long an idempotency key is used: the provider may forget it after 24 hours.
pub const KEY_HOURS_MAX: i32 = 23;

/// Whether an idempotency key that was first used then must not be used any more.
#[must_use]
pub fn key_is_old(used_at: Option<DateTime<Utc>>, now: DateTime<Utc>) -> bool {
    used_at.is_some_and(|used| used + Duration::hours(KEY_HOURS_MAX.into()) <= now)
}

/// Writes down that a call is about to be made: the provider may know of the payment from here on. Returns which key of
/// the step to use. A key that is too old is followed by the next one: whoever calls has looked at the object, whose own
/// state keeps a step from being done twice; a create, which has no object, is never sent under an old key at all.
pub async fn about_to_call(tx: &Transaction, id: PaymentId) -> Result<i16, DbErr> {
    let row = Single::<i16>::find_by_statement(sql!(
        "UPDATE payment SET attempts = attempts + 1, first_sent_at = coalesce(first_sent_at, clock_timestamp()),
            key_no = CASE WHEN key_used_at <= clock_timestamp() - make_interval(hours => $2) THEN key_no + 1 ELSE key_no END,
            key_used_at = CASE WHEN key_used_at > clock_timestamp() - make_interval(hours => $2) THEN key_used_at
                               ELSE clock_timestamp() END
         WHERE id = $1 RETURNING key_no AS value",
        id,
        KEY_HOURS_MAX
    ))
    .one(&**tx)
    .await?;
    row.map(|row| row.value).ok_or_else(|| DbErr::RecordNotFound(format!("payment {id}")))
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

/// Looks again at an open payment that the provider is still at: soon while it is young, at the latest in five minutes.
pub async fn still_at_it(db: &Db, id: PaymentId, provider_id: &str) -> Result<(), DbErr> {
    let statement = format!(
        "UPDATE payment SET provider_id = coalesce(provider_id, $2), next_check_at = clock_timestamp() + make_interval(secs =>
             least(greatest(extract(epoch FROM clock_timestamp() - created_at)::float8 / 4, 2), 300))
         WHERE id = $1 AND next_check_at IS NOT NULL AND {MAY_BE_LOST}"
    );
    db.pool().execute_raw(sql!(statement, id, provider_id)).await.map(drop)
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

/// Notes that a person decided: whatever money a locked payment moved goes back.
pub async fn set_give_back(tx: &Transaction, id: PaymentId) -> Result<(), DbErr> {
    tx.execute_raw(sql!("UPDATE payment SET give_back = true WHERE id = $1", id)).await.map(drop)
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
    /// The provider's id of a second payment with our operation id, if it is that one's money.
    pub stray_of: Option<String>,
}

/// Saves a refund that is due at once, if no more is given back than was captured, and a stray payment only once. The
/// payment's row is locked.
pub async fn create_refund(tx: &Transaction, new: NewRefund) -> Result<Option<RefundId>, DbErr> {
    let id = RefundId::new();
    let written = tx
        .execute_raw(sql!(
            "INSERT INTO refund (id, booking_id, payment_id, event_id, operation_id, status, amount_minor, currency,
                                 reason, stray_of, next_check_at, created_at)
             SELECT $1, $2, $3, $4, $5, 'REQUESTED', $6, $7, $8, $9,
                -- One that follows others that failed waits longer each time.
                clock_timestamp() + make_interval(secs => (
                    SELECT CASE WHEN count(*) = 0 THEN 0 ELSE least(power(2, least(count(*), 12)), 3600) END
                    FROM refund WHERE payment_id = $3 AND status = 'FAILED')),
                clock_timestamp()
             FROM payment
             WHERE payment.id = $3 AND CASE WHEN $9 IS NULL
                 THEN payment.status = 'CAPTURED' AND payment.captured_currency = $7 AND payment.captured_minor >= $6 +
                     (SELECT coalesce(sum(amount_minor), 0) FROM refund
                      WHERE payment_id = $3 AND status <> 'FAILED' AND stray_of IS NULL)
                 ELSE NOT EXISTS (SELECT FROM refund WHERE stray_of = $9 AND status <> 'FAILED') END",
            id,
            new.booking,
            new.payment,
            new.event,
            format!("rfd-{}", id.0.simple()),
            new.amount_minor,
            new.currency,
            new.reason.as_str(),
            new.stray_of
        ))
        .await?
        .rows_affected();
    Ok((written == 1).then_some(id))
}

/// Locks a refund's row.
pub async fn lock_refund(tx: &Transaction, id: RefundId) -> Result<Option<refund::Model>, DbErr> {
    refund::Entity::find_by_id(id).lock(sea_orm::sea_query::LockType::NoKeyUpdate).one(&**tx).await
}

/// What changes with a refund's step, besides its state.
#[derive(Clone, Debug, Default)]
pub struct RefundChanges {
    /// The provider's id; a known one stays.
    pub provider_id: Option<String>,
    /// When to look again; `None`: at rest.
    pub check_in_seconds: Option<f64>,
    /// The next call uses the next key.
    pub next_key: bool,
    /// It is about to be sent, under its present key.
    pub sent: bool,
}

/// Moves a locked refund. Returns its new state.
pub async fn step_refund(
    tx: &Transaction,
    row: &refund::Model,
    event: RefundEvent,
    changes: RefundChanges,
) -> Result<RefundState, DbErr> {
    let to = next_refund(row.status, event).map_err(|error| DbErr::Custom(format!("refund {}: {error}", row.id)))?;
    let written = tx
        .execute_raw(sql!(
            "UPDATE refund SET status = $2, provider_id = coalesce(provider_id, $3),
                next_check_at = clock_timestamp() + make_interval(secs => $4),
                key_no = CASE WHEN $5 THEN key_no + 1 ELSE key_no END,
                key_used_at = CASE WHEN $7 AND $5 THEN clock_timestamp() WHEN $7 THEN coalesce(key_used_at, clock_timestamp())
                                   WHEN NOT $5 THEN key_used_at END,
                missed_at = CASE WHEN NOT $5 THEN missed_at END,
                first_sent_at = CASE WHEN $7 THEN coalesce(first_sent_at, clock_timestamp()) ELSE first_sent_at END,
                attempts = attempts + 1
             WHERE id = $1 AND status = $6",
            row.id,
            to.as_str(),
            changes.provider_id,
            changes.check_in_seconds,
            changes.next_key,
            row.status.as_str(),
            changes.sent
        ))
        .await?
        .rows_affected();
    if written == 1 { Ok(to) } else { Err(DbErr::Custom(format!("refund {} moved while it was locked", row.id))) }
}

/// Notes that the provider does not list a locked refund that was sent.
pub async fn note_missed_refund(tx: &Transaction, id: RefundId) -> Result<(), DbErr> {
    tx.execute_raw(sql!("UPDATE refund SET missed_at = coalesce(missed_at, clock_timestamp()) WHERE id = $1", id))
        .await
        .map(drop)
}

/// Payments that are due and that nobody is at; those whose outcome is not known are a list of their own, so that
/// however many there are, nobody who pays waits behind them.
pub async fn due(db: &Db, unknown: bool, limit: i64) -> Result<Vec<PaymentId>, DbErr> {
    let which = if unknown { "=" } else { "<>" };
    let rows = Single::<PaymentId>::find_by_statement(sql!(
        format!("SELECT id AS value FROM payment WHERE next_check_at <= (SELECT clock_timestamp()) AND status {which} 'UNKNOWN'
           AND (lease_until IS NULL OR lease_until <= (SELECT clock_timestamp())) ORDER BY next_check_at LIMIT $1"),
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
