//! Money under uncertainty: every way a provider can behave, and a process that dies at every point of it.

use crate::process::{dying, start, start_with};
use crate::support::{Api, Setup, Stage, eventually, eventually_within};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Where the process dies: never, before the provider is called, after it did its part and before we saved that, after
/// we saved the first half, after the money moved and before we saved that, after all is saved.
const DEATHS: [&str; 6] =
    ["never", "before_authorize", "after_authorize", "after_settle", "after_capture", "after_confirm"];

/// A payment method and how its booking must end.
const METHODS: [(&str, &str); 14] = [
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
    ("pm_sim_collects_at_once_400", "CONFIRMED"),
    ("pm_sim_refund_fails_later", "CONFIRMED"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_payment_method_and_every_death_ends_in_the_right_state() {
    let room = Arc::new(Semaphore::new(5));
    let mut cases = Vec::new();
    for (method, expected) in METHODS {
        // Every death with the ordinary card, and with the others the three moments that differ for the provider.
        let deaths = DEATHS
            .into_iter()
            .filter(|death| method == "pm_card_visa" || !matches!(*death, "after_authorize" | "after_settle"));
        for death in deaths {
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
    let stage = Stage::with(Setup { checkout_wait_ms: 3_000, ..Setup::default() }).await;
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
async fn answers_that_are_not_definite_are_unknown_until_a_look_up_and_never_failed() {
    for status in [409_u16, 401, 429, 503] {
        let stage = Stage::with(Setup { checkout_wait_ms: 300, ..Setup::default() }).await;
        let hall = stage.hall(1, 3, |_| {}).await;
        let mina = stage.buyer("mina");
        let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
        let faults = json!({ "faults": [
            { "endpoint": "capture", "status": status, "done": true },
            { "endpoint": "retrieve", "status": 503 }, { "endpoint": "retrieve", "status": 503 },
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
        stage.age_holds().await;
        let taken = stage.buyer("leo").hold(&hall.event, "k", &["A-1"]).await;
        assert_eq!(taken["userErrors"][0]["code"], "SEATS_UNAVAILABLE", "the seats are protected past any deadline");
        let seen = mina.booking(&pending["booking"]["id"]).await;
        if seen["payment"]["status"] == "UNKNOWN" {
            assert!(seen["payment"]["unknownSince"].is_string());
        }
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
async fn forged_stale_and_odd_webhooks_change_nothing() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let booking = mina.checkout(&hold, "c", "pm_card_visa").await["booking"].clone();
    stage.rest().await;
    let before = mina.booking(&booking["id"]).await;
    let url = format!("{}/webhooks/payments", stage.servers[0].url);
    let client = reqwest::Client::new();
    let sign = |secret: &str, at: i64, body: &str| {
        use hmac::{Hmac, KeyInit, Mac};
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
        mac.update(format!("{at}.{body}").as_bytes());
        format!("t={at},v1={}", hex::encode(mac.finalize().into_bytes()))
    };
    let now = stage.number("SELECT extract(epoch FROM clock_timestamp())::bigint").await;
    let payload = |id: &str, object: Value| {
        json!({ "id": id, "type": "payment_intent.canceled", "data": { "object": object } }).to_string()
    };
    let about = json!({ "id": "pi_sim_00000001", "object": "payment_intent", "status": "canceled", "amount": 1, "metadata": { "operation_id": booking["payment"]["operationId"] } });
    let body = payload("evt_x", about.clone());
    let send =
        |signature: String, body: String| client.post(&url).header("Stripe-Signature", signature).body(body).send();
    for (signature, body, status) in [
        (String::new(), body.clone(), 400),
        (sign("wrong", now, &body), body.clone(), 400),
        (sign("whsec_simulator", now - 310, &body), body.clone(), 400),
        (sign("whsec_simulator", now, &body), body[..body.len() - 2].to_owned(), 400),
        (sign("whsec_simulator", now, "{"), "{".to_owned(), 400),
        (sign("whsec_simulator", now, "{}"), "{}".to_owned(), 400),
        (String::new(), "x".repeat(300_000), 413),
        (sign("whsec_simulator", now, &body), body.clone(), 200),
        (sign("whsec_simulator", now, &body), body.clone(), 200),
    ] {
        assert_eq!(send(signature, body).await.unwrap().status(), status);
    }
    let unknown =
        payload("evt_y", json!({ "id": "pi_unknown", "object": "payment_intent", "new_field": { "deep": [1, 2] } }));
    assert_eq!(send(sign("whsec_simulator", now, &unknown), unknown).await.unwrap().status(), 200);
    eventually("the report was looked at", || async {
        (stage
            .number("SELECT count(*) FROM webhook_inbox WHERE provider_event_id = 'evt_x' AND processed_at IS NOT NULL")
            .await
            == 1)
            .then_some(())
    })
    .await;
    assert_eq!(
        stage.number("SELECT count(*) FROM webhook_inbox WHERE provider_event_id = 'evt_y'").await,
        1,
        "kept, not dropped"
    );
    assert_eq!(mina.booking(&booking["id"]).await, before, "a report is a reason to look, never a fact");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reconciliation_repairs_what_it_finds_and_nothing_the_second_time() {
    let stage = Stage::with(Setup { workers: false, checkout_wait_ms: 3_000, ..Setup::default() }).await;
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
    let issuer = parterre::booking::Issuer;
    eventually("tickets are issued", || async {
        (parterre::outbox::consume(&stage.db, &issuer).await.unwrap() == parterre::outbox::Progress::Idle).then_some(())
    })
    .await;
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
