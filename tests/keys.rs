//! Lost answers and idempotency keys that grew old: found and settled, never posted twice. And a provider that is down.

use crate::support::{Api, Setup, Stage, eventually};
use parterre::payment;
use serde_json::{Value, json};

/// A stage whose workers are run by hand.
async fn by_hand() -> Stage {
    Stage::with(Setup { workers: false, checkout_wait_ms: 300, ..Setup::default() }).await
}

/// A booking whose payment was given to the provider once.
async fn checked_out(stage: &Stage, buyer: &Api, change: impl FnOnce(&mut Value)) -> Value {
    let hall = stage.hall(1, 4, change).await;
    let hold = buyer.hold(&hall.event, "k", &["A-2"]).await["hold"]["id"].clone();
    let booking = buyer.checkout(&hold, "c", "pm_card_visa").await["booking"].clone();
    stage.nobody_drives().await;
    booking
}

/// A day goes by: the provider's clock moves and it forgets its keys, our rows grow as old. Holds stay as they are.
async fn a_day_later(stage: &Stage) {
    stage.simulate(json!({ "advance_seconds": 86_400, "forget_keys": true })).await;
    stage
        .execute(
            "UPDATE payment SET created_at = created_at - interval '1 day', first_sent_at = first_sent_at - interval '1 day',
                 key_used_at = key_used_at - interval '1 day', unknown_since = unknown_since - interval '1 day';
             UPDATE refund SET created_at = created_at - interval '1 day', first_sent_at = first_sent_at - interval '1 day',
                 key_used_at = key_used_at - interval '1 day'",
        )
        .await;
    due(stage).await;
}

/// What waits is due at once, without waiting for its pause.
async fn due(stage: &Stage) {
    stage
        .execute(
            "UPDATE payment SET next_check_at = clock_timestamp() WHERE next_check_at IS NOT NULL;
             UPDATE refund SET next_check_at = clock_timestamp() WHERE next_check_at IS NOT NULL",
        )
        .await;
}

async fn status(buyer: &Api, booking: &Value) -> Value {
    buyer.booking(&booking["id"]).await["status"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_whose_reply_was_lost_is_found_after_its_key_is_forgotten() {
    let stage = by_hand().await;
    let mina = stage.buyer("mina");
    stage.simulate(json!({ "faults": [{ "endpoint": "create", "dropped": true }] })).await;
    let booking = checked_out(&stage, &mina, |event| event["holdSeconds"] = json!(86_400)).await;
    assert_eq!(booking["status"], "PAYMENT_PENDING");
    a_day_later(&stage).await;
    stage
        .drive_until("confirmed by what was found", || async {
            (status(&mina, &booking).await == "CONFIRMED").then_some(())
        })
        .await;
    assert_eq!(stage.calls("create"), 1, "never posted again");
    stage.issue_tickets().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_create_the_provider_never_got_is_closed_after_two_looks_an_hour_apart() {
    let stage = by_hand().await;
    let mina = stage.buyer("mina");
    // Nothing is done, the answer says nothing, and looking does not help before the day is over.
    let faults = json!([{ "endpoint": "create", "status": 429 }]);
    stage.simulate(json!({ "faults": faults })).await;
    let booking = checked_out(&stage, &mina, |event| event["holdSeconds"] = json!(86_400)).await;
    assert_eq!(booking["status"], "PAYMENT_PENDING");
    a_day_later(&stage).await;
    stage
        .drive_until("the booking failed, the payment is not known", || async {
            (status(&mina, &booking).await == "FAILED").then_some(())
        })
        .await;
    let unknown = "SELECT count(*) FROM payment WHERE status = 'UNKNOWN' AND missed_at IS NOT NULL";
    assert_eq!(stage.number(unknown).await, 1, "one look that finds nothing proves nothing");
    due(&stage).await;
    stage.servers[0].app.services.bookings.drive_due().await.unwrap();
    assert_eq!(stage.number(unknown).await, 1, "nor do two in a minute");
    stage.execute("UPDATE payment SET missed_at = missed_at - interval '1 hour'").await;
    due(&stage).await;
    stage
        .drive_until("closed", || async {
            (stage.number("SELECT count(*) FROM payment WHERE status = 'FAILED'").await == 1).then_some(())
        })
        .await;
    assert_eq!(stage.calls("create"), 1, "never posted again");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_whose_reply_was_lost_is_found_after_its_key_is_forgotten() {
    let stage = by_hand().await;
    let mina = stage.buyer("mina");
    stage.simulate(json!({ "faults": [{ "endpoint": "capture", "dropped": true }] })).await;
    let booking = checked_out(&stage, &mina, |_| {}).await;
    assert_eq!(booking["status"], "PAYMENT_PENDING");
    stage.age_holds().await;
    a_day_later(&stage).await;
    stage.drive_until("confirmed", || async { (status(&mina, &booking).await == "CONFIRMED").then_some(()) }).await;
    assert_eq!(stage.calls("capture"), 1, "never posted again");
    stage.issue_tickets().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_capture_that_never_arrived_is_sent_under_its_next_key() {
    let stage = by_hand().await;
    let mina = stage.buyer("mina");
    stage.simulate(json!({ "faults": [{ "endpoint": "capture", "status": 429 }] })).await;
    let booking = checked_out(&stage, &mina, |_| {}).await;
    assert_eq!(booking["status"], "PAYMENT_PENDING");
    a_day_later(&stage).await;
    stage.drive_until("confirmed", || async { (status(&mina, &booking).await == "CONFIRMED").then_some(()) }).await;
    assert_eq!(stage.number("SELECT key_no::bigint FROM payment").await, 2, "the old key is not used again");
    stage.issue_tickets().await;
    stage.finish().await;
}

/// A confirmed booking that is being cancelled; the call that gives its money back behaves as told.
async fn cancelled_with(stage: &Stage, buyer: &Api, fault: Value) -> Value {
    let booking = checked_out(stage, buyer, |_| {}).await;
    assert_eq!(status(buyer, &booking).await, "CONFIRMED");
    stage.simulate(json!({ "faults": [fault] })).await;
    buyer.must("cancel", json!({ "bookingId": booking["id"], "idempotencyKey": "x" }), "booking { status }").await;
    stage.drive_until("the refund was sent once", || async { (stage.calls("refund") == 1).then_some(()) }).await;
    stage.nobody_drives().await;
    booking
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_whose_reply_was_lost_is_found_and_never_sent_twice() {
    for key_forgotten in [false, true] {
        let stage = by_hand().await;
        let mina = stage.buyer("mina");
        let booking = cancelled_with(&stage, &mina, json!({ "endpoint": "refund", "dropped": true })).await;
        if key_forgotten {
            a_day_later(&stage).await;
        }
        due(&stage).await;
        stage.drive_until("refunded", || async { (status(&mina, &booking).await == "REFUNDED").then_some(()) }).await;
        assert_eq!(stage.calls("refund"), 1, "looked for, not sent again");
        stage.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_that_never_arrived_goes_out_under_its_next_key_after_two_looks_an_hour_apart() {
    let stage = by_hand().await;
    let mina = stage.buyer("mina");
    let booking = cancelled_with(&stage, &mina, json!({ "endpoint": "refund", "status": 429 })).await;
    a_day_later(&stage).await;
    stage
        .drive_until("missed once", || async {
            (stage.number("SELECT count(*) FROM refund WHERE missed_at IS NOT NULL").await == 1).then_some(())
        })
        .await;
    due(&stage).await;
    stage
        .drive_until("looked again", || async {
            (stage.number("SELECT count(*) FROM refund WHERE lease_token IS NULL AND next_check_at > clock_timestamp() + interval '10 minutes'").await == 1)
                .then_some(())
        })
        .await;
    assert_eq!(stage.calls("refund"), 1, "too early to say");
    stage.execute("UPDATE refund SET missed_at = missed_at - interval '1 hour'").await;
    due(&stage).await;
    stage.drive_until("refunded", || async { (status(&mina, &booking).await == "REFUNDED").then_some(()) }).await;
    assert_eq!(stage.number("SELECT key_no::bigint FROM refund").await, 2);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_ran_out_while_its_call_succeeded_does_not_undo_the_success() {
    let stage = Stage::with(Setup { workers: false, checkout_wait_ms: 100, ..crate::holds::two_servers() }).await;
    let hall = stage.hall(1, 4, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-2"]).await["hold"]["id"].clone();
    let booking = mina.checkout(&hold, "c", "pm_sim_slow_3000").await["booking"].clone();
    eventually("the call is under way", || async { (stage.simulator.ledger().running == 1).then_some(()) }).await;
    stage.execute("UPDATE payment SET lease_until = clock_timestamp(), next_check_at = clock_timestamp()").await;
    let other = &stage.servers[1].app.services.bookings;
    eventually("both drive it, and it is confirmed", || async {
        other.drive_due().await.unwrap();
        (status(&mina, &booking).await == "CONFIRMED").then_some(())
    })
    .await;
    let ledger = stage.simulator.ledger();
    assert_eq!((ledger.payments.len(), ledger.payments[0].captures), (1, 1));
    stage.issue_tickets().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_the_provider_is_down_checkout_fails_fast_and_the_hold_stays() {
    let stage = Stage::with(Setup { workers: false, checkout_wait_ms: 200, ..Setup::default() }).await;
    let hall = stage.hall(1, 20, |_| {}).await;
    let buyer = |n: usize| stage.buyer(&format!("buyer-{n}"));
    let fault = json!({ "endpoint": "create", "status": 503 });
    stage.simulate(json!({ "faults": vec![fault; 5] })).await;
    let mut pending = Vec::new();
    for n in 0..5 {
        let hold = buyer(n).hold(&hall.event, "k", &[&format!("A-{}", 3 * n + 1)]).await["hold"]["id"].clone();
        let asked = buyer(n).checkout(&hold, "c", "pm_card_visa").await;
        assert_eq!(asked["booking"]["status"], "PAYMENT_PENDING", "not known is not failed");
        pending.push(asked["booking"].clone());
    }
    let hold = buyer(9).hold(&hall.event, "k", &["A-20"]).await["hold"]["id"].clone();
    let refused = buyer(9).checkout(&hold, "c", "pm_card_visa").await;
    let error = &refused["userErrors"][0];
    assert_eq!((&refused["booking"], &error["code"]), (&Value::Null, &json!("PAYMENT_UNAVAILABLE")), "{refused}");
    assert!(error["retryAfterMs"].as_i64().unwrap() > 0);
    let kept =
        buyer(9).data("query($id: ID!) { hold(id: $id) { status booking { id } } }", json!({ "id": hold })).await;
    assert_eq!(kept["hold"], json!({ "status": "ACTIVE", "booking": null }), "the hold stays as it was");
    assert_eq!(stage.number("SELECT count(*) FROM booking").await, 5, "nothing was begun");
    let paid = eventually("the provider is tried again", || async {
        let asked = buyer(9).checkout(&hold, "c", "pm_card_visa").await;
        (asked["booking"]["status"] == "CONFIRMED").then_some(asked)
    })
    .await;
    assert_eq!(paid["replayed"], false);
    for (n, booking) in pending.iter().enumerate() {
        stage
            .drive_until("those that were not known are confirmed", || async {
                (status(&buyer(n), booking).await == "CONFIRMED").then_some(())
            })
            .await;
    }
    stage.issue_tickets().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_oldest_unknown_payment_is_measured_and_a_person_is_called_once() {
    let stage = by_hand().await;
    let mina = stage.buyer("mina");
    stage.simulate(json!({ "faults": [{ "endpoint": "capture", "dropped": true }] })).await;
    checked_out(&stage, &mina, |_| {}).await;
    stage.execute("UPDATE payment SET unknown_since = unknown_since - interval '20 minutes'").await;
    let called = "SELECT count(*) FROM payment WHERE escalated_at IS NOT NULL";
    let watched = payment::watch(&stage.db, 30).await.unwrap();
    assert_eq!((watched.unknown, stage.number(called).await), (1, 0), "too early to call");
    assert!((1_200.0..1_300.0).contains(&watched.unknown_oldest_seconds), "{watched:?}");
    payment::watch(&stage.db, 15).await.unwrap();
    assert_eq!(stage.number(called).await, 1);
    stage.execute("UPDATE payment SET escalated_at = escalated_at - interval '1 minute'").await;
    let first = stage.number("SELECT extract(epoch FROM escalated_at)::bigint FROM payment").await;
    payment::watch(&stage.db, 15).await.unwrap();
    assert_eq!(stage.number("SELECT extract(epoch FROM escalated_at)::bigint FROM payment").await, first, "once");
    due(&stage).await;
    stage
        .drive_until("it is settled", || async {
            (payment::watch(&stage.db, 15).await.unwrap().unknown == 0).then_some(())
        })
        .await;
    assert!(payment::watch(&stage.db, 15).await.unwrap().unknown_oldest_seconds.abs() < f64::EPSILON);
    stage.issue_tickets().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failure_that_is_kept_under_its_key_is_got_round_by_the_next_one_at_every_step() {
    let stage = by_hand().await;
    let mina = stage.buyer("mina");
    let kept = |endpoint: &str| json!({ "endpoint": endpoint, "status": 500 });
    stage.simulate(json!({ "faults": [kept("create"), kept("capture"), kept("refund")] })).await;
    let booking = checked_out(&stage, &mina, |_| {}).await;
    let soon = async || due(&stage).await;
    stage
        .drive_until("confirmed", || async {
            soon().await;
            (status(&mina, &booking).await == "CONFIRMED").then_some(())
        })
        .await;
    mina.must("cancel", json!({ "bookingId": booking["id"], "idempotencyKey": "x" }), "booking { status }").await;
    stage
        .drive_until("refunded", || async {
            soon().await;
            (status(&mina, &booking).await == "REFUNDED").then_some(())
        })
        .await;
    assert_eq!(stage.number("SELECT key_no::bigint FROM refund").await, 2);

    let leo = stage.buyer("leo");
    let hall = stage.hall(1, 3, |_| {}).await;
    let hold = leo.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let asked = leo.checkout(&hold, "c", "pm_sim_requires_action").await["booking"].clone();
    stage.nobody_drives().await;
    stage.age_holds().await;
    stage.simulate(json!({ "faults": [kept("cancel")] })).await;
    stage
        .drive_until("voided", || async {
            soon().await;
            (leo.booking(&asked["id"]).await["payment"]["status"] == "VOIDED").then_some(())
        })
        .await;
    stage.issue_tickets().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_method_that_the_provider_turns_away_is_declined_at_once_and_another_may_be_tried() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let mina = stage.buyer("mina");
    let hall = stage.hall(1, 4, |_| {}).await;
    let hold = mina.hold(&hall.event, "k", &["A-2"]).await["hold"]["id"].clone();
    let refused = mina.checkout(&hold, "c1", "pm_sim_no_such_method").await;
    assert_eq!(refused["userErrors"][0]["code"], "PAYMENT_DECLINED", "{refused}");
    assert_eq!(refused["userErrors"][0]["holdStillActive"], true);
    assert_eq!(mina.checkout(&hold, "c2", "pm_card_visa").await["booking"]["status"], "CONFIRMED");
    stage.issue_tickets().await;
    stage.finish().await;
}
