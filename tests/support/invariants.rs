//! The invariants of the design, at rest, and the provider's own ledger.

use super::Stage;
use parterre::payment::currency::{round_down, to_provider};
use parterre::payment::share;
use parterre::{auditor, sql};
use sea_orm::FromQueryResult;

/// Checks them all; a violation fails the test by its name.
pub async fn check(stage: &Stage) {
    let violations = auditor::check(&stage.db, chrono::Duration::zero(), parterre::db::Pace::Full).await.unwrap();
    assert!(violations.is_empty(), "{violations:#?}");
    let deadlocks = stage.number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await;
    assert_eq!(deadlocks, 0, "deadlocks");
    check_money(stage).await;
}

/// What one booking's money should have come to.
#[derive(Debug, FromQueryResult)]
struct Paid {
    provider_id: Option<String>,
    operation_id: String,
    status: String,
    currency: String,
    captured_minor: Option<i64>,
    refunded_minor: i64,
    /// Still owed.
    open_minor: i64,
    booking: String,
    total_minor: i64,
    refund_ppm: i32,
    /// Cancelled by its buyer, under its terms.
    by_buyer: bool,
    refunded_in_full: bool,
}

/// I3, I4 and I5 against the provider's own ledger: what it collected and gave back is what we say, and what we should.
async fn check_money(stage: &Stage) {
    let rows = Paid::find_by_statement(sql!(
        "SELECT provider_id, operation_id, payment.status, coalesce(captured_currency, payment.currency) AS currency, captured_minor,
            booking.status AS booking, booking.total_minor, refund_ppm,
            (SELECT coalesce(sum(amount_minor), 0)::bigint FROM refund
             WHERE payment_id = payment.id AND status = 'SUCCEEDED' AND stray_of IS NULL) AS refunded_minor,
            (SELECT coalesce(sum(amount_minor), 0)::bigint FROM refund
             WHERE payment_id = payment.id AND status IN ('REQUESTED', 'PENDING') AND stray_of IS NULL) AS open_minor,
            cancelled_at IS NOT NULL AND NOT EXISTS (SELECT FROM refund WHERE booking_id = booking.id
                AND reason <> 'BUYER_CANCELLED' AND stray_of IS NULL) AS by_buyer,
            booking.status IN ('REFUND_REQUIRED', 'REFUNDED') OR EXISTS (SELECT FROM refund
                WHERE booking_id = booking.id AND reason = 'EVENT_CANCELLED') AS refunded_in_full
         FROM payment JOIN booking ON booking.id = payment.booking_id"
    ))
    .all(stage.db.pool())
    .await
    .unwrap();
    let ledger = stage.simulator.ledger();
    for payment in &ledger.payments {
        assert!(payment.captures <= 1, "captured twice: {payment:?}");
        assert_ne!(payment.status, "requires_capture", "money is still reserved: {payment:?}");
        let row = rows.iter().find(|row| row.provider_id.as_deref() == Some(&payment.id));
        let Some(row) = row else {
            let known = rows.iter().any(|row| row.operation_id == payment.operation_id);
            assert!(known, "the provider has a payment that we do not know: {payment:?}");
            assert_eq!(payment.captured, payment.refunded, "a second payment backs nothing: {payment:?}");
            continue;
        };
        let theirs = |minor: i64| to_provider(&row.currency, minor).unwrap();
        assert_eq!(row.status == "CAPTURED", payment.captured > 0, "{payment:?} is {row:?} here");
        if let Some(captured) = row.captured_minor {
            assert_eq!((theirs(captured), theirs(row.refunded_minor)), (payment.captured, payment.refunded), "{row:?}");
        }
    }
    for row in rows.iter().filter(|row| row.status == "CAPTURED") {
        let there = ledger.payments.iter().any(|payment| Some(payment.id.as_str()) == row.provider_id.as_deref());
        assert!(there, "captured here and nowhere else: {row:?}");
        let captured = row.captured_minor.unwrap();
        let due = if row.by_buyer {
            round_down(&row.currency, share(row.total_minor, row.refund_ppm))
        } else if row.refunded_in_full {
            captured
        } else {
            assert!(row.booking == "CONFIRMED", "money without a booking: {row:?}");
            0
        };
        // A test may have given a part back by hand.
        let gone = row.refunded_minor + row.open_minor;
        assert!(gone == due || (row.booking == "CONFIRMED" && gone <= captured), "{due} should go back: {row:?}");
    }
}
