//! What people should know about money that is not settled: how old the oldest unknown payment is, and whom to call.

use crate::db::Db;
use crate::sql;
use parterre_entity::{PaymentId, PaymentState, RefundId};
use sea_orm::{DbErr, FromQueryResult};

/// What is not settled.
#[derive(Clone, Copy, Debug, Default, PartialEq, FromQueryResult)]
pub struct Watched {
    /// Payments whose outcome is not known.
    pub unknown: i64,
    /// Age of the oldest of them, in seconds; 0 without any.
    pub unknown_oldest_seconds: f64,
    /// Payments that wait for a person's decision.
    pub in_review: i64,
    /// Refunds that have not arrived.
    pub refunds_open: i64,
}

#[derive(FromQueryResult)]
struct State {
    status: PaymentState,
    payments: i64,
}

/// Counts what is not settled, for the metrics, and calls a person, by an error in the log, once about each payment
/// that is unknown for so many minutes or whose reservation lapses within a day, and about each refund that is open
/// for as long.
pub async fn watch(db: &Db, escalate_minutes: u32) -> Result<Watched, DbErr> {
    let minutes = i32::try_from(escalate_minutes).unwrap_or(i32::MAX);
    call_about_payments(db, minutes).await?;
    call_about_refunds(db, minutes).await?;
    let watched = Watched::find_by_statement(sql!(
        "SELECT (SELECT count(*) FROM payment WHERE status = 'UNKNOWN') AS unknown,
            (SELECT coalesce(extract(epoch FROM clock_timestamp() - min(unknown_since)), 0)::float8
             FROM payment WHERE status = 'UNKNOWN') AS unknown_oldest_seconds,
            (SELECT count(*) FROM payment WHERE status = 'NEEDS_REVIEW') AS in_review,
            (SELECT count(*) FROM refund WHERE next_check_at IS NOT NULL AND status IN ('REQUESTED', 'PENDING')) AS refunds_open"
    ))
    .one(db.pool())
    .await?
    .unwrap_or_default();
    let states = State::find_by_statement(sql!(
        "SELECT status, count(*) AS payments FROM payment
         WHERE next_check_at IS NOT NULL OR status IN ('UNKNOWN', 'NEEDS_REVIEW') GROUP BY status"
    ))
    .all(db.pool())
    .await?;
    let gauge = |number: i64| f64::from(i32::try_from(number).unwrap_or(i32::MAX));
    for state in PaymentState::ALL {
        let found = states.iter().find(|row| row.status == *state).map_or(0, |row| row.payments);
        metrics::gauge!("parterre_payments_open", "state" => state.as_str()).set(gauge(found));
    }
    metrics::gauge!("parterre_payments_unknown").set(gauge(watched.unknown));
    metrics::gauge!("parterre_payments_unknown_oldest_seconds").set(watched.unknown_oldest_seconds);
    metrics::gauge!("parterre_payments_in_review").set(gauge(watched.in_review));
    metrics::gauge!("parterre_refunds_open").set(gauge(watched.refunds_open));
    Ok(watched)
}

/// People called in one pass at the most; the next pass goes on.
const CALLS_MAX: i64 = 100;

async fn call_about_payments(db: &Db, minutes: i32) -> Result<(), DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        id: PaymentId,
        status: String,
        lapses: bool,
    }
    let rows = Row::find_by_statement(sql!(
        "UPDATE payment SET escalated_at = clock_timestamp() WHERE id IN (
             SELECT id FROM payment
             WHERE (status = 'UNKNOWN' AND unknown_since <= clock_timestamp() - make_interval(mins => $1)
                    AND (escalated_at IS NULL OR escalated_at < unknown_since))
                OR (status IN ('CAPTURING', 'UNKNOWN') AND next_check_at IS NOT NULL
                    AND capture_before <= clock_timestamp() + interval '1 day'
                    AND (escalated_at IS NULL OR escalated_at < capture_before - interval '1 day'))
             ORDER BY id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED)
         RETURNING id, status, coalesce(capture_before <= clock_timestamp() + interval '1 day', false) AS lapses",
        minutes,
        CALLS_MAX
    ))
    .all(db.pool())
    .await?;
    for row in rows {
        if row.lapses {
            tracing::error!(payment.id = %row.id, status = row.status, "a reservation lapses within a day and is not captured: look at it at the payment provider");
        } else {
            tracing::error!(payment.id = %row.id, minutes, "the outcome of a payment is not known for long: look at it at the payment provider");
        }
    }
    Ok(())
}

async fn call_about_refunds(db: &Db, minutes: i32) -> Result<(), DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        id: RefundId,
    }
    let rows = Row::find_by_statement(sql!(
        "UPDATE refund SET escalated_at = clock_timestamp() WHERE id IN (
             SELECT id FROM refund WHERE next_check_at IS NOT NULL AND status IN ('REQUESTED', 'PENDING')
               AND created_at <= clock_timestamp() - make_interval(mins => $1) AND escalated_at IS NULL
             ORDER BY id LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED)
         RETURNING id",
        minutes,
        CALLS_MAX
    ))
    .all(db.pool())
    .await?;
    for row in rows {
        tracing::error!(refund.id = %row.id, minutes, "a refund has not arrived for long: look at it at the payment provider");
    }
    Ok(())
}
