//! The auditor: what breaks a promise is found, and the command says so.

use crate::process::command;
use crate::support::{Setup, Stage};
use parterre::auditor;
use serde_json::json;

/// What breaks a promise, behind the back of every rule, and the promise.
const BREAKS: [(&str, &str); 15] = [
    ("UPDATE event_seat SET status = 'AVAILABLE', booking_id = NULL WHERE status = 'SOLD'", "I1"),
    ("UPDATE hold_item SET state = 'RETURNED' WHERE state = 'SOLD'", "I2"),
    (
        "DROP INDEX booking_one_a_hold; INSERT INTO booking SELECT (jsonb_populate_record(booking, jsonb_build_object(
            'id', gen_random_uuid(), 'code', 'TWICE'))).* FROM booking WHERE status = 'CONFIRMED'",
        "I4: one booking",
    ),
    (
        "UPDATE payment SET captured_minor = 1 WHERE EXISTS (SELECT FROM refund WHERE payment_id = payment.id)",
        "I4: refunds",
    ),
    ("UPDATE booking SET status = 'FAILED', failure = 'ABANDONED' WHERE status = 'CONFIRMED'", "I5: money"),
    ("UPDATE payment SET status = 'VOIDED' WHERE status = 'CAPTURED'", "I5: what was confirmed"),
    ("DELETE FROM outbox WHERE topic = 'booking'", "I8"),
    (
        "UPDATE outbox SET created_at = created_at - interval '1 hour'; UPDATE outbox_cursor SET xid = '0', id = 0",
        "I8: what committed is",
    ),
    ("UPDATE refund SET status = 'FAILED'", "I5: a cancelled booking"),
    ("INSERT INTO outbox_quarantine (consumer, xid, id, error) VALUES ('tickets', '1', 1, 'poison')", "no outbox row"),
    ("UPDATE event_tier SET sold = sold + 1, available = available - 1", "I9"),
    ("UPDATE event_counter SET remaining = remaining + 1", "what may still be sold"),
    ("UPDATE ticket SET status = 'REVOKED'", "I13"),
    ("UPDATE hold SET deadline = deadline + interval '1 second' WHERE status = 'ACTIVE'", "I6"),
    ("UPDATE payment SET status = 'CAPTURING', next_check_at = NULL", "an open payment is due"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_breaks_a_promise_is_found_and_the_command_says_so() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage
        .event(Some(crate::support::fixtures::rows(1, 6)), |event| {
            event["inventoryMode"] = json!("MIXED");
            event["tiers"] = json!([{ "name": "Floor", "price": "20.00", "capacity": 10 }]);
        })
        .await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    mina.checkout(&hold, "c", "pm_card_visa").await;
    let hold = leo.hold(&hall.event, "k", &["A-3"]).await["hold"]["id"].clone();
    let cancelled = leo.checkout(&hold, "c", "pm_card_visa").await["booking"]["id"].clone();
    stage.issue_tickets().await;
    leo.must("cancel", json!({ "bookingId": cancelled, "idempotencyKey": "x" }), "booking { status }").await;
    stage
        .drive_until("the money is back", || async {
            (leo.booking(&cancelled).await["status"] == "REFUNDED").then_some(())
        })
        .await;
    leo.hold(&hall.event, "k2", &["A-5"]).await;
    assert_eq!(auditor::check(&stage.db, chrono::Duration::zero(), parterre::db::Pace::Full).await.unwrap(), []);
    let audit = async || {
        let output = command(&stage, "audit").stdout(std::process::Stdio::piped()).output().await.unwrap();
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(audit().await, (true, "0 violations\n".to_owned()));
    for (breakage, promise) in BREAKS {
        let database = crate::support::copy_of(&stage.database).await;
        let db = parterre::db::Db::connect(&crate::support::url_of(&database), 1).await.unwrap();
        sea_orm::ConnectionTrait::execute_unprepared(db.pool(), breakage).await.unwrap();
        let found = auditor::check(&db, chrono::Duration::zero(), parterre::db::Pace::Full).await.unwrap();
        assert!(found.iter().any(|one| one.invariant.starts_with(promise)), "{breakage}: {found:?}");
        db.pool().clone().close().await.unwrap();
    }
    stage.execute("UPDATE event_counter SET remaining = remaining + 1").await;
    let (success, printed) = audit().await;
    assert!(!success && printed.contains("what may still be sold"), "{printed}");
    stage.discard().await;
}
