//! What is removed after a while, and what must not be.

use crate::support::{Setup, Stage, eventually};
use chrono::Duration;
use parterre::discovery::{Discovery, Indexer, Pass};
use parterre::inventory::KEYS_KEPT;
use parterre::outbox::{Change, Topic, append, forget, forget_some, lags, removed, watch_all};
use serde_json::json;

async fn tell(stage: &Stage, count: usize) {
    for _ in 0..count {
        let tx = stage.db.begin("tell").await.unwrap();
        append(&*tx, &[Change { topic: Topic::Venue, event: None, subject: None, payload: json!({}) }]).await.unwrap();
        tx.commit().await.unwrap();
    }
    // As for consumers, which read a row when no older transaction is open, in whatever database.
    let unread = "SELECT count(*) FROM outbox WHERE xid >= pg_snapshot_xmin(pg_current_snapshot())";
    eventually("all can be read", || async { (stage.number(unread).await == 0).then_some(()) }).await;
}

async fn forget_all(stage: &Stage, kept: Duration) {
    eventually("all is removed that may be", || async {
        (forget_some(&stage.db, kept).await.unwrap() == 0).then_some(())
    })
    .await;
}

/// A cursor at the row with a number, from the oldest.
async fn cursor(stage: &Stage, name: &str, at: u32) {
    stage
        .execute(&format!(
            "INSERT INTO outbox_cursor (consumer, xid, id, system_identifier, timeline)
             SELECT '{name}', xid, id, system_identifier::text, timeline_id
             FROM (SELECT xid, id FROM outbox ORDER BY xid, id OFFSET {at} LIMIT 1) AS row, pg_control_system(), pg_control_checkpoint()"
        ))
        .await;
}

/// Nothing is removed that some consumer has not had, that is young, or that was set aside.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn outbox_rows_go_when_everybody_has_had_them() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    tell(&stage, 10).await;
    let left = "SELECT count(*) FROM outbox";
    forget_all(&stage, Duration::zero()).await;
    assert_eq!(stage.number(left).await, 10, "nobody has read anything");
    cursor(&stage, "fast", 7).await;
    cursor(&stage, "slow", 3).await;
    stage
        .execute(
            "INSERT INTO outbox_quarantine (consumer, xid, id, error)
             SELECT 'slow', xid, id, 'poison' FROM outbox ORDER BY xid, id OFFSET 1 LIMIT 1",
        )
        .await;
    forget_all(&stage, Duration::hours(1)).await;
    assert_eq!(stage.number(left).await, 10, "all are young");
    forget_all(&stage, Duration::zero()).await;
    assert_eq!(stage.number(left).await, 7, "the first four but the one that was set aside");
    stage.execute("DELETE FROM outbox_cursor WHERE consumer = 'slow'").await;
    // The first batch is cut where the first young row is.
    stage
        .execute("UPDATE outbox SET created_at = clock_timestamp() + interval '1 hour' WHERE (xid, id) = (SELECT xid, id FROM outbox ORDER BY xid, id OFFSET 3 LIMIT 1)")
        .await;
    forget_all(&stage, Duration::zero()).await;
    assert_eq!(stage.number(left).await, 5, "what follows a young row stays with it");
    stage.discard().await;
}

/// Two processes remove at once: none fails, and every row is passed once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_processes_may_remove_at_once() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let mut rows = 0;
    for _ in 0..5 {
        tell(&stage, 40).await;
        stage.execute("DELETE FROM outbox_cursor").await;
        cursor(&stage, "reader", 39).await;
        let zero = Duration::zero();
        let both = tokio::join!(forget_some(&stage.db, zero), forget_some(&stage.db, zero));
        rows += both.0.unwrap() + both.1.unwrap();
    }
    assert_eq!(rows, 200);
    stage.discard().await;
}

/// A server that was away longer than rows are kept builds its search index anew instead of missing what happened.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_index_that_missed_removed_rows_is_built_anew() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let folder = stage.folder.join("away");
    let mut indexer = Indexer::new(Discovery::open(stage.db.clone(), &folder));
    assert_eq!(indexer.pass().await.unwrap(), Pass::Rebuilt);
    tell(&stage, 3).await;
    while indexer.pass().await.unwrap() != Pass::Idle {}
    cursor(&stage, "reader", 2).await;
    forget_all(&stage, Duration::zero()).await;
    assert_ne!(indexer.pass().await.unwrap(), Pass::Rebuilt, "it had read them all");
    tell(&stage, 3).await;
    stage.execute("DELETE FROM outbox_cursor").await;
    cursor(&stage, "reader", 1).await;
    forget_all(&stage, Duration::zero()).await;
    assert_eq!(indexer.pass().await.unwrap(), Pass::Rebuilt, "two are gone that it never read");
    assert!(indexer.position().unwrap() >= removed(stage.db.pool()).await.unwrap());
    stage.discard().await;
}

/// What an ended hold leaves behind goes; what a booking needs, what is live, and what is young stays.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ended_holds_go_with_their_items_and_keys() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 8, |_| {}).await;
    let inventory = &stage.servers[0].app.services.inventory;
    let (mina, leo, ada) = (stage.buyer("mina"), stage.buyer("leo"), stage.buyer("ada"));
    let released = mina.hold(&hall.event, "k1", &["A-1", "A-2"]).await["hold"]["id"].clone();
    mina.must("releaseHold", json!({ "holdId": released }), "hold { id }").await;
    let bought = leo.hold(&hall.event, "k1", &["A-3"]).await["hold"]["id"].clone();
    let booking = leo.checkout(&bought, "c1", "pm_card_visa").await["booking"]["id"].clone();
    ada.hold(&hall.event, "k1", &["A-4"]).await;
    let declined = ada.hold(&hall.event, "k2", &["A-5"]).await["hold"]["id"].clone();
    ada.checkout(&declined, "c1", "pm_card_chargeDeclined").await;
    ada.must("releaseHold", json!({ "holdId": declined }), "hold { id }").await;

    let seen =
        inventory.forget_keys(KEYS_KEPT).await.unwrap().seen + inventory.forget_holds(KEYS_KEPT).await.unwrap().seen;
    assert_eq!(seen, 0, "all are young");
    let counts = "SELECT (SELECT count(*) FROM hold) * 100 + (SELECT count(*) FROM hold_item) * 10 + (SELECT count(*) FROM idempotency WHERE operation = 'hold')";
    assert_eq!(stage.number(counts).await, 454);
    // As if it were 26 hours later and nothing were kept.
    let later = Duration::hours(-26);
    let swept = inventory.forget_holds(later).await.unwrap();
    assert_eq!((swept.seen, swept.removed), (2, 1), "mina's ended without a booking, leo's did not, and ada's is live");
    assert_eq!(inventory.forget_holds(later).await.unwrap().seen, 0, "none is looked at twice");
    assert_eq!(stage.number("SELECT count(*) FROM hold").await, 3);
    assert_eq!(stage.number("SELECT count(*) FROM hold_item").await, 3);
    assert_eq!(stage.number("SELECT count(*) FROM idempotency WHERE operation = 'checkout'").await, 2);
    assert_eq!(leo.booking(&booking).await["status"], "CONFIRMED");
    // Its key is gone too, so it can be used for something else.
    let again = mina.hold(&hall.event, "k1", &["A-6"]).await;
    assert_eq!(again["hold"]["replayed"], serde_json::Value::Null, "{again}");
    assert_eq!(again["userErrors"], json!([]));
    stage.finish().await;
}

/// A hold whose end is late is waited for: the sweep never comes back to it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_live_hold_is_not_passed_by() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 8, |_| {}).await;
    let inventory = &stage.servers[0].app.services.inventory;
    let mina = stage.buyer("mina");
    let mut ids = Vec::new();
    for seat in ["A-1", "A-3", "A-5"] {
        ids.push(mina.hold(&hall.event, seat, &[seat]).await["hold"]["id"].clone());
    }
    for ended in [&ids[0], &ids[2]] {
        mina.must("releaseHold", json!({ "holdId": ended }), "hold { id }").await;
    }
    let later = Duration::hours(-26);
    let swept = inventory.forget_holds(later).await.unwrap();
    assert_eq!((swept.seen, swept.removed), (1, 1), "the first");
    assert_eq!(inventory.forget_holds(later).await.unwrap().seen, 0, "the second is live");
    mina.must("releaseHold", json!({ "holdId": ids[1] }), "hold { id }").await;
    let swept = inventory.forget_holds(later).await.unwrap();
    assert_eq!((swept.seen, swept.removed), (2, 2), "and now it and the third are gone");
    stage.finish().await;
}

/// Who keeps rows from being removed can be seen, and forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_consumer_that_is_gone_is_told_of_and_can_be_forgotten() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    tell(&stage, 4).await;
    stage.execute("UPDATE outbox SET created_at = created_at - interval '2 hours'").await;
    cursor(&stage, "gone", 0).await;
    cursor(&stage, "here", 3).await;
    let late = watch_all(&stage.db, Duration::hours(1)).await.unwrap();
    assert_eq!(late.iter().map(|lag| lag.consumer.as_str()).collect::<Vec<_>>(), ["gone"]);
    assert!((7_200.0..7_300.0).contains(&late[0].seconds), "{late:?}");
    forget_all(&stage, Duration::zero()).await;
    assert_eq!(stage.number("SELECT count(*) FROM outbox").await, 3);
    assert!(forget(&stage.db, "gone").await.unwrap());
    assert!(!forget(&stage.db, "gone").await.unwrap(), "there is none any more");
    forget_all(&stage, Duration::zero()).await;
    assert_eq!(stage.number("SELECT count(*) FROM outbox").await, 0);
    assert_eq!(lags(&stage.db).await.unwrap().len(), 1);
    stage.discard().await;
}

/// Keys of holds go before the holds; those of checkouts stay as long as the booking.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_holds_go_first() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 4, |_| {}).await;
    let inventory = &stage.servers[0].app.services.inventory;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k1", &["A-1"]).await["hold"]["id"].clone();
    mina.checkout(&hold, "c1", "pm_card_visa").await;
    mina.hold(&hall.event, "k2", &["A-2"]).await;
    let swept = inventory.forget_keys(Duration::hours(-26)).await.unwrap();
    assert_eq!((swept.seen, swept.removed), (2, 2));
    assert_eq!(stage.number("SELECT count(*) FROM hold").await, 2);
    assert_eq!(stage.text("SELECT string_agg(operation, ' ') FROM idempotency").await, "checkout");
    let replay = mina.checkout(&hold, "c1", "pm_card_visa").await;
    assert_eq!(replay["booking"]["status"], "CONFIRMED", "{replay}");
    stage.finish().await;
}
