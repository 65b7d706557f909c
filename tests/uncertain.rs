//! Money under uncertainty: every way a provider can behave, and a process that dies at every point of it.

use crate::process::{dying, start, start_with};
use crate::support::{Api, Setup, Stage, eventually, eventually_within};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Where the process dies: never, before the provider is called, after it did its part and before we saved that, after
/// we saved the first half, after the money moved and before we saved that, after all is saved.
const DEATHS: [&str; 6] =
    ["never", "before_authorize", "after_authorize", "after_settle", "after_capture", "after_confirm"];

/// A payment method and how its booking must end.
const METHODS: [(&str, &str); 15] = [
    ("pm_card_visa", "CONFIRMED"),
    ("pm_card_chargeDeclined", "FAILED"),
    ("pm_sim_capture_fails", "FAILED"),
    ("pm_sim_lost_reply", "CONFIRMED"),
    ("pm_sim_slow_300", "CONFIRMED"),
    ("pm_sim_500_then_ok", "CONFIRMED"),
    ("pm_sim_500_but_done", "CONFIRMED"),
    ("pm_sim_webhook_only", "CONFIRMED"),
    ("pm_sim_silent", "CONFIRMED"),
    ("pm_sim_duplicate_webhooks", "CONFIRMED"),
    ("pm_sim_reordered_webhooks", "CONFIRMED"),
    ("pm_sim_requires_action", "CONFIRMED"),
    ("pm_sim_action_abandoned", "FAILED"),
    ("pm_sim_collects_at_once_400", "CONFIRMED"),
    ("pm_sim_refund_fails_later", "CONFIRMED"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_payment_method_and_every_death_ends_in_the_right_state() {
    let room = Arc::new(Semaphore::new(5));
    let mut cases = Vec::new();
    for (method, expected) in METHODS {
        for death in DEATHS {
            let room = room.clone();
            cases.push(tokio::spawn(async move {
                let _place = room.acquire().await.unwrap();
                one_case(method, death, expected).await;
            }));
        }
    }
    for case in cases {
        case.await.unwrap();
    }
}

async fn one_case(method: &str, death: &str, expected: &str) {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let mut process = start_with(|| {
        let mut command = dying(&stage, death);
        command.env("CHECKOUT_WAIT_MS", "1000");
        command
    })
    .await;
    let there = Api::new(&process.url, mina.token.clone());
    let query = "mutation($input: CheckoutInput!) { checkout(input: $input) { booking { id } } }";
    let input = json!({ "holdId": hold, "idempotencyKey": "c", "paymentMethod": method });
    // The process may die in the middle of this: then there is no answer, and the same key asks again later.
    drop(there.try_ask(query, json!({ "input": input })).await);
    if method == "pm_sim_requires_action" && !stage.simulator.ledger().payments.is_empty() {
        complete_action(&stage).await;
    }
    if tokio::time::timeout(Duration::from_millis(500), process.child.wait()).await.is_err() && death != "never" {
        process.child.kill().await.unwrap();
    }
    let again = if death == "never" { process } else { start(&stage).await };
    let there = Api::new(&again.url, mina.token.clone());
    let asked = there.checkout(&hold, "c", method).await;
    let booking = asked["booking"]["id"].clone();
    assert!(booking.is_string(), "{method}, death {death}: {asked}");
    if method == "pm_sim_requires_action" {
        complete_action(&stage).await;
    }
    if method == "pm_sim_action_abandoned" {
        // Nobody comes back from the provider's page before the hold runs out.
        eventually_within(Duration::from_secs(90), "the buyer was asked, or it is over", || async {
            let status = mina.booking(&booking).await["payment"]["status"].clone();
            (status != "CREATED" && status != "AUTHORIZING" && status != "UNKNOWN").then_some(())
        })
        .await;
        stage.age_holds().await;
    }
    let what = format!("{method}, death {death}, is {expected}");
    let status = eventually_within(Duration::from_secs(150), &what, || async {
        let status = mina.booking(&booking).await["status"].clone();
        (status != "PAYMENT_PENDING").then_some(status)
    })
    .await;
    assert_eq!(status, expected, "{what}");
    let free = stage.number("SELECT count(*) FROM event_seat WHERE status = 'AVAILABLE'").await;
    stage.rest().await;
    let captured: Vec<u32> = stage.simulator.ledger().payments.iter().map(|payment| payment.captures).collect();
    let captures: u32 = captured.iter().sum();
    assert_eq!(captures, u32::from(expected == "CONFIRMED"), "{what}: exactly one capture of {captured:?}");
    if expected == "CONFIRMED" {
        assert_eq!(free, 2, "{what}");
    }
    stage.finish().await;
}

/// What the buyer does on the provider's page, as soon as there is one.
async fn complete_action(stage: &Stage) {
    eventually_within(Duration::from_secs(90), "the provider waits for the buyer, or does not any more", || async {
        let ledger = stage.simulator.ledger();
        let payment = ledger.payments.first()?;
        if payment.status != "requires_action" {
            return Some(());
        }
        reqwest::get(format!("{}/actions/{}", stage.config.stripe_api_base, payment.id)).await.ok().map(drop)
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_d_secure_done_in_time_is_confirmed_and_abandoned_frees_the_seats() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let asked = mina.checkout(&hold, "c", "pm_sim_requires_action").await["booking"].clone();
    assert_eq!(asked["payment"]["status"], "REQUIRES_ACTION");
    let url = asked["payment"]["nextAction"]["redirectUrl"].as_str().unwrap();
    reqwest::get(url).await.unwrap();
    eventually("confirmed after the action", || async {
        (mina.booking(&asked["id"]).await["status"] == "CONFIRMED").then_some(())
    })
    .await;

    let hold = leo.hold(&hall.event, "k", &["A-4"]).await["hold"]["id"].clone();
    let asked = leo.checkout(&hold, "c", "pm_sim_action_abandoned").await["booking"].clone();
    assert_eq!(asked["payment"]["status"], "REQUIRES_ACTION");
    stage.age_holds().await;
    eventually("failed after the deadline", || async {
        (leo.booking(&asked["id"]).await["status"] == "FAILED").then_some(())
    })
    .await;
    eventually("given back at the provider", || async {
        (leo.booking(&asked["id"]).await["payment"]["status"] == "VOIDED").then_some(())
    })
    .await;
    assert_eq!(stage.buyer("ada").hold(&hall.event, "k", &["A-4"]).await["userErrors"], json!([]));
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_d_secure_done_after_the_hold_is_over_is_repaired_and_the_seats_stay_with_their_new_owner() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let asked = mina.checkout(&hold, "c", "pm_sim_requires_action").await["booking"].clone();
    stage.age_holds().await;
    let taken = leo.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    reqwest::get(asked["payment"]["nextAction"]["redirectUrl"].as_str().unwrap()).await.unwrap();
    assert_eq!(stage.simulator.ledger().payments[0].status, "requires_capture", "the buyer did it, too late");
    stage
        .drive_until("failed, and given back at the provider", || async {
            let booking = mina.booking(&asked["id"]).await;
            (booking["status"] == "FAILED" && booking["payment"]["status"] == "VOIDED").then_some(())
        })
        .await;
    assert_eq!(leo.checkout(&taken, "c", "pm_card_visa").await["booking"]["status"], "CONFIRMED");
    let captured: Vec<i64> = stage.simulator.ledger().payments.iter().map(|payment| payment.captured).collect();
    assert_eq!(captured, [0, 2_500], "nobody is charged for a seat that someone else owns");
    stage.issue_tickets().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_that_overtakes_the_issuing_of_tickets_leaves_no_valid_one() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1", "A-2"]).await["hold"]["id"].clone();
    let booking = mina.checkout(&hold, "c", "pm_card_visa").await["booking"].clone();
    assert_eq!((&booking["status"], &booking["tickets"]), (&json!("CONFIRMED"), &json!([])), "not issued yet");
    mina.must("cancel", json!({ "bookingId": booking["id"], "idempotencyKey": "x" }), "booking { status }").await;
    stage.issue_tickets().await;
    assert_eq!(stage.number("SELECT count(*) FROM ticket WHERE status = 'ISSUED'").await, 0);
    stage
        .drive_until("refunded", || async {
            (mina.booking(&booking["id"]).await["status"] == "REFUNDED").then_some(())
        })
        .await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn partial_refunds_in_parallel_never_give_back_more_than_was_captured() {
    use parterre::payment::{NewRefund, create_refund, lock};
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    mina.checkout(&hold, "c", "pm_card_visa").await;
    stage.issue_tickets().await;
    let paid: uuid::Uuid = stage.text("SELECT id::text FROM payment").await.parse().unwrap();
    let one = async |amount_minor: i64| {
        let tx = stage.db.begin("test_refund").await.unwrap();
        let row = lock(&tx, parterre_entity::PaymentId(paid)).await.unwrap().unwrap();
        let new = NewRefund {
            payment: row.id,
            booking: row.booking_id,
            event: row.event_id,
            amount_minor,
            currency: row.currency,
            reason: parterre_entity::RefundReason::Other,
            stray_of: None,
        };
        let made = create_refund(&tx, new).await.unwrap();
        tx.commit().await.unwrap();
        made.is_some()
    };
    // 25.00 were paid: of five times 9.00 only two fit.
    let made = futures_util::future::join_all([900, 900, 900, 900, 900].map(one)).await;
    assert_eq!(made.iter().filter(|made| **made).count(), 2);
    stage
        .drive_until("both arrived", || async {
            (stage.number("SELECT count(*) FROM refund WHERE status = 'SUCCEEDED'").await == 2).then_some(())
        })
        .await;
    assert_eq!(stage.simulator.ledger().payments[0].refunded, 1_800);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_not_definite_are_unknown_until_a_look_up_and_never_failed() {
    for status in [400_u16, 409, 401, 429, 503] {
        let stage = Stage::with(Setup { checkout_wait_ms: 300, ..Setup::default() }).await;
        let hall = stage.hall(1, 3, |_| {}).await;
        let mina = stage.buyer("mina");
        let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
        let faults = json!({ "faults": [
            { "endpoint": "capture", "status": status, "done": true },
            { "endpoint": "retrieve", "status": 503 }, { "endpoint": "retrieve", "status": 503 },
            { "endpoint": "retrieve", "status": 503 },
        ] });
        reqwest::Client::new()
            .post(format!("{}/faults", stage.config.stripe_api_base))
            .json(&faults)
            .send()
            .await
            .unwrap();
        let pending = mina.checkout(&hold, "c", "pm_card_visa").await;
        assert_eq!(pending["userErrors"], json!([]));
        assert_eq!(pending["booking"]["status"], "PAYMENT_PENDING", "{status}");
        eventually("the hold is converted", || async {
            (stage.number("SELECT count(*) FROM hold WHERE status = 'CONVERTED'").await == 1).then_some(())
        })
        .await;
        stage.age_holds().await;
        let taken = stage.buyer("leo").hold(&hall.event, "k", &["A-1"]).await;
        assert_eq!(taken["userErrors"][0]["code"], "SEATS_UNAVAILABLE", "the seats are protected past any deadline");
        let seen = eventually("it is told as not known", || async {
            let payment = mina.booking(&pending["booking"]["id"]).await["payment"].clone();
            (payment["status"] == "UNKNOWN").then_some(payment)
        })
        .await;
        assert!(seen["unknownSince"].is_string() && seen["nextCheckAt"].is_string(), "{seen}");
        eventually("confirmed by a look-up", || async {
            let status = mina.booking(&pending["booking"]["id"]).await["status"].clone();
            assert_ne!(status, "FAILED");
            (status == "CONFIRMED").then_some(())
        })
        .await;
        stage.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconciliation_repairs_what_it_finds_and_nothing_the_second_time() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 9, |_| {}).await;
    let bookings = &stage.servers[0].app.services.bookings;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let confirmed = mina.checkout(&hold, "c", "pm_card_visa").await["booking"]["id"].clone();
    stage.execute("UPDATE booking SET confirmed_at = confirmed_at - interval '1 hour'").await;
    // A payment that was given up here, and was collected at the provider all the same.
    let hold = leo.hold(&hall.event, "k", &["A-5"]).await["hold"]["id"].clone();
    leo.checkout(&hold, "c", "pm_sim_collects_at_once_1").await;
    stage.execute(
        "UPDATE payment SET status = 'FAILED', unknown_since = NULL, unknown_step = NULL, next_check_at = NULL WHERE status <> 'CAPTURED';
         UPDATE booking SET status = 'FAILED', failure = 'ABANDONED' WHERE status = 'PAYMENT_PENDING'",
    )
    .await;
    let lost = stage.number("SELECT count(*) FROM payment WHERE status = 'FAILED'").await;
    let now = bookings.now().await.unwrap();
    let range = (now - chrono::Duration::hours(1), now + chrono::Duration::hours(1));
    let report = bookings.reconcile(range.0, range.1).await.unwrap();
    assert_eq!(i64::try_from(report.repaired.len()).unwrap(), lost + 1, "the money, and the tickets: {report:?}");
    assert_eq!(report.unexplained, Vec::<String>::new());
    let read = leo.data("{ bookings { nodes { status } } }", json!({})).await;
    assert_eq!(read["bookings"]["nodes"][0]["status"], "CONFIRMED", "exactly its seats were still free");
    assert_eq!(mina.booking(&confirmed).await["tickets"].as_array().unwrap().len(), 1);
    stage.issue_tickets().await;
    let again = bookings.reconcile(range.0, range.1).await.unwrap();
    assert_eq!((again.woken, again.repaired.len(), again.unexplained.len()), (0, 0, 0), "{again:?}");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_that_dies_before_the_first_send_and_comes_back_too_late_sends_nothing() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let mut process = start_with(|| dying(&stage, "before_authorize")).await;
    let there = Api::new(&process.url, mina.token.clone());
    let query = "mutation($input: CheckoutInput!) { checkout(input: $input) { booking { id } } }";
    let input = json!({ "holdId": hold, "idempotencyKey": "c", "paymentMethod": "pm_card_visa" });
    drop(there.try_ask(query, json!({ "input": input })).await);
    process.child.wait().await.unwrap();
    stage.age_holds().await;
    let other = leo.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    assert_eq!(leo.checkout(&other, "c", "pm_card_visa").await["booking"]["status"], "CONFIRMED");
    let _again = start(&stage).await;
    let read = "{ bookings { nodes { status } } }";
    eventually("the booking failed", || async {
        (mina.data(read, json!({})).await["bookings"]["nodes"][0]["status"] == "FAILED").then_some(())
    })
    .await;
    // It was marked as sent before it was: looked for twice, an hour apart, then closed.
    stage.execute("UPDATE payment SET missed_at = missed_at - interval '2 hours', next_check_at = clock_timestamp() WHERE missed_at IS NOT NULL").await;
    stage.rest().await;
    assert_eq!(stage.simulator.ledger().payments.len(), 1, "only the other buyer's was ever sent");
    stage.finish().await;
}
