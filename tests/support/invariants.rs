//! The invariants of the design, at rest, and the provider's own ledger.

use super::Stage;
use parterre::{auditor, sql};
use sea_orm::ConnectionTrait;

/// Checks them all; a violation fails the test by its name.
pub async fn check(stage: &Stage) {
    let violations = auditor::check(&stage.db, chrono::Duration::zero()).await.unwrap();
    assert!(violations.is_empty(), "{violations:#?}");
    let deadlocks = stage.number("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()").await;
    assert_eq!(deadlocks, 0, "deadlocks");
    check_money(stage).await;
}

/// I3 and I4 against the provider's own ledger: what it collected and gave back is what we say.
async fn check_money(stage: &Stage) {
    for payment in stage.simulator.ledger().payments {
        assert!(payment.captures <= 1, "captured twice: {payment:?}");
        let row = stage
            .db
            .pool()
            .query_one_raw(sql!(
                "SELECT payment.status, booking.status AS booking, payment.amount_minor,
                    (SELECT coalesce(sum(amount_minor), 0)::bigint FROM refund WHERE payment_id = payment.id AND status = 'SUCCEEDED') AS refunded
                 FROM payment JOIN booking ON booking.id = payment.booking_id WHERE operation_id = $1",
                payment.operation_id.clone()
            ))
            .await
            .unwrap()
            .unwrap_or_else(|| panic!("the provider has a payment that we do not know: {payment:?}"));
        let status: String = row.try_get("", "status").unwrap();
        let refunded: i64 = row.try_get("", "refunded").unwrap();
        assert_eq!(status == "CAPTURED", payment.captured > 0, "{payment:?} is {status} here");
        if payment.captured > 0 {
            let ours = parterre::payment::currency::to_provider(&payment.currency.to_uppercase(), refunded);
            assert_eq!(Some(payment.refunded), ours, "{payment:?}");
        }
        assert_ne!(payment.status, "requires_capture", "money is still reserved: {payment:?}");
    }
}
