//! What the provider reports by itself: forged, in any order, any number of times, at any moment.

use crate::support::{Api, Setup, Stage, eventually};
use futures_util::{StreamExt, stream};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use std::time::Duration;

fn sign(secret: &str, at: i64, body: &str) -> String {
    use hmac::{Hmac, KeyInit, Mac};
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret.as_bytes()).unwrap();
    mac.update(format!("{at}.{body}").as_bytes());
    format!("t={at},v1={}", hex::encode(mac.finalize().into_bytes()))
}

async fn unix_now(stage: &Stage) -> i64 {
    stage.number("SELECT extract(epoch FROM clock_timestamp())::bigint").await
}

/// Every report there is about a payment and its refunds, twice each, in an order of chance.
fn reports(operation: &str, refunds: &[String], random: &mut StdRng) -> Vec<String> {
    let mut reports = Vec::new();
    let mut add = |id: String, kind: &str, object: Value| {
        let body = json!({ "id": id, "type": kind, "data": { "object": object } }).to_string();
        reports.extend([body.clone(), body]);
    };
    for (kind, status) in [
        ("payment_intent.amount_capturable_updated", "requires_capture"),
        ("payment_intent.succeeded", "succeeded"),
        ("payment_intent.payment_failed", "requires_payment_method"),
        ("payment_intent.canceled", "canceled"),
    ] {
        let object = json!({ "object": "payment_intent", "status": status, "metadata": { "operation_id": operation } });
        add(format!("evt-{operation}-{status}-{}", refunds.len()), kind, object);
    }
    for refund in refunds {
        let object = json!({ "object": "refund", "status": "succeeded", "metadata": { "operation_id": refund } });
        add(format!("evt-{refund}"), "refund.updated", object);
    }
    reports.shuffle(random);
    reports
}

async fn deliver(stage: &Stage, reports: Vec<String>) {
    let (url, now) = (format!("{}/webhooks/payments", stage.servers[0].url), unix_now(stage).await);
    let client = reqwest::Client::new();
    for body in reports {
        let signature = sign("whsec_simulator", now, &body);
        let sent = client.post(&url).header("Stripe-Signature", signature).body(body).send().await.unwrap();
        assert_eq!(sent.status(), 200);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_random_orders_beside_the_reply_and_a_reconciliation_end_in_the_same_state() {
    let seed = crate::holds::seed();
    let stage = Stage::with(Setup { checkout_wait_ms: 1, ..Setup::default() }).await;
    let hall = stage.hall(5, 10, |_| {}).await;
    let bookings = &stage.servers[0].app.services.bookings;
    let event = &hall.event;
    let one = async |n: u64| {
        let stage = &stage;
        let mut random = StdRng::seed_from_u64(seed.wrapping_add(n));
        let buyer = stage.buyer(&format!("buyer-{n}"));
        let seat = format!("{}-{}", ["A", "B", "C", "D", "E"][usize::try_from(n / 10).unwrap()], n % 10 + 1);
        let hold = buyer.hold(event, "k", &[&seat]).await["hold"]["id"].clone();
        let (method, expected) = [
            ("pm_sim_slow_40", "CONFIRMED"),
            ("pm_sim_lost_reply", "CONFIRMED"),
            ("pm_sim_slow_20", "REFUNDED"),
            ("pm_card_chargeDeclined", "FAILED"),
        ][usize::try_from(n % 4).unwrap()];
        let paid = buyer.checkout(&hold, "c", method).await["booking"].clone();
        let operation = paid["payment"]["operationId"].as_str().unwrap();
        let now = bookings.now().await.unwrap();
        let range = (now - chrono::Duration::hours(1), now + chrono::Duration::hours(1));
        let ((), reconciled) =
            tokio::join!(deliver(stage, reports(operation, &[], &mut random)), bookings.reconcile(range.0, range.1));
        reconciled.unwrap();
        if expected == "REFUNDED" {
            cancelled(stage, &buyer, &paid, &mut random).await;
        }
        eventually("the same end as without any report", || async {
            (buyer.booking(&paid["id"]).await["status"] == expected).then_some(())
        })
        .await;
    };
    stream::iter((0..50).map(one)).buffer_unordered(6).collect::<Vec<()>>().await;
    eventually("every report is done with", || async {
        (stage.number("SELECT count(*) FROM webhook_inbox WHERE processed_at IS NULL").await == 0).then_some(())
    })
    .await;
    let captures: u32 = stage.simulator.ledger().payments.iter().map(|payment| payment.captures).sum();
    assert_eq!(captures, 38, "one for each that did not decline");
    stage.finish().await;
}

/// Cancels a booking as soon as it is confirmed, while reports about its payment and its refund come in.
async fn cancelled(stage: &Stage, buyer: &Api, paid: &Value, random: &mut StdRng) {
    eventually("confirmed", || async { (buyer.booking(&paid["id"]).await["status"] == "CONFIRMED").then_some(()) })
        .await;
    buyer.must("cancel", json!({ "bookingId": paid["id"], "idempotencyKey": "x" }), "booking { status }").await;
    let (_, id) = parterre_schema::parse_node_id(paid["id"].as_str().unwrap()).unwrap();
    let refunds = stage.text(&format!("SELECT operation_id FROM refund WHERE booking_id = '{id}'")).await;
    tokio::time::sleep(Duration::from_millis(random.random_range(0..30))).await;
    deliver(stage, reports(paid["payment"]["operationId"].as_str().unwrap(), &[refunds], random)).await;
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
    let now = unix_now(&stage).await;
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

/// A payment whose create was done and whose reply was lost, on a stage whose workers are run by hand.
async fn lost_create(stage: &Stage, buyer: &Api, method: &str) -> (Value, String) {
    let hall = stage.hall(1, 3, |_| {}).await;
    let hold = buyer.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    stage.simulate(json!({ "faults": [{ "endpoint": "create", "dropped": true }] })).await;
    let booking = buyer.checkout(&hold, "c", method).await["booking"].clone();
    assert_eq!(booking["status"], "PAYMENT_PENDING");
    stage.nobody_drives().await;
    let operation = booking["payment"]["operationId"].as_str().unwrap().to_owned();
    (booking, operation)
}

fn about(id: &str, operation: &str) -> String {
    let object =
        json!({ "object": "payment_intent", "status": "succeeded", "metadata": { "operation_id": operation } });
    json!({ "id": id, "type": "payment_intent.succeeded", "data": { "object": object } }).to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_report_before_our_own_commit_is_kept_and_done_with_later() {
    let stage = Stage::with(Setup { workers: false, checkout_wait_ms: 300, ..Setup::default() }).await;
    let mina = stage.buyer("mina");
    let (booking, operation) = lost_create(&stage, &mina, "pm_card_visa").await;
    // As if our commit were not there yet.
    stage.execute("UPDATE payment SET operation_id = 'not yet ' || operation_id, next_check_at = clock_timestamp() + interval '1 hour'").await;
    deliver(&stage, vec![about("evt_early", &operation)]).await;
    let bookings = &stage.servers[0].app.services.bookings;
    assert_eq!(bookings.process_webhooks().await.unwrap(), 0);
    let kept = "SELECT count(*) FROM webhook_inbox WHERE processed_at IS NULL AND attempts = 1";
    assert_eq!(stage.number(kept).await, 1);
    stage.execute("UPDATE payment SET operation_id = replace(operation_id, 'not yet ', '')").await;
    stage.execute("UPDATE webhook_inbox SET next_look_at = clock_timestamp()").await;
    assert_eq!(bookings.process_webhooks().await.unwrap(), 1);
    stage
        .drive_until("confirmed", || async {
            (mina.booking(&booking["id"]).await["status"] == "CONFIRMED").then_some(())
        })
        .await;
    stage.issue_tickets().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn five_late_reports_at_once_make_one_refund_and_identical_confirmations_one_transition_and_one_message() {
    let stage = Stage::with(Setup { checkout_wait_ms: 50, ..crate::holds::two_servers() }).await;
    let (mina, leo, ada) = (stage.buyer("mina"), stage.buyer("leo"), stage.buyer("ada"));
    let hall = stage.hall(1, 9, |_| {}).await;
    let late = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let late = mina.checkout(&late, "c", "pm_sim_collects_at_once_3000").await["booking"].clone();
    stage.age_holds().await;
    assert_eq!(ada.hold(&hall.event, "k", &["A-1"]).await["userErrors"], json!([]));
    let operation = late["payment"]["operationId"].as_str().unwrap();
    let five =
        || (0..5).map(|n| deliver(&stage, vec![about(&format!("evt_{n}"), operation), about("evt_same", operation)]));
    futures_util::future::join_all(five()).await;
    let back = eventually("refunded", || async {
        let read = mina.booking(&late["id"]).await;
        (read["status"] == "REFUNDED").then_some(read)
    })
    .await;
    futures_util::future::join_all(five()).await;
    assert_eq!(back["refunds"].as_array().unwrap().len(), 1);
    assert_eq!(stage.calls("refund"), 1);

    let paid = leo.hold(&hall.event, "k", &["A-5"]).await["hold"]["id"].clone();
    let confirmed = leo.checkout(&paid, "c", "pm_sim_slow_60").await["booking"].clone();
    let operation = confirmed["payment"]["operationId"].as_str().unwrap();
    let three = (0..3).map(|n| deliver(&stage, vec![about(&format!("evt_c{n}"), operation)]));
    futures_util::future::join_all(three).await;
    eventually("confirmed, and told", || async {
        (stage.number("SELECT count(*) FROM notification WHERE kind = 'CONFIRMED' AND status = 'SENT'").await == 1)
            .then_some(())
    })
    .await;
    let told = "SELECT count(*) FROM outbox WHERE topic = 'booking' AND payload ->> 'to' = 'CONFIRMED'";
    assert_eq!(stage.number(told).await, 1, "one transition");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_payment_with_our_operation_id_backs_nothing_and_goes_back() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let booking = mina.checkout(&hold, "c", "pm_card_visa").await["booking"].clone();
    stage.issue_tickets().await;
    let operation = booking["payment"]["operationId"].as_str().unwrap();
    for method in ["pm_card_visa", "pm_sim_collects_at_once_0"] {
        let order = [
            ("amount", "2500"),
            ("currency", "eur"),
            ("payment_method", method),
            ("metadata[operation_id]", operation),
        ];
        let url = format!("{}/v1/payment_intents", stage.config.stripe_api_base);
        let request = reqwest::Client::new().post(url).header("Idempotency-Key", method).form(&order);
        assert!(request.send().await.unwrap().status().is_success());
    }
    let bookings = &stage.servers[0].app.services.bookings;
    let now = bookings.now().await.unwrap();
    let range = (now - chrono::Duration::hours(1), now + chrono::Duration::hours(1));
    let report = bookings.reconcile(range.0, range.1).await.unwrap();
    assert_eq!((report.repaired.len(), report.unexplained.len()), (2, 0), "{report:?}");
    let done = stage
        .drive_until("the second payment's money is back", || async {
            let read = mina.booking(&booking["id"]).await;
            (read["refunds"][0]["status"] == "SUCCEEDED").then_some(read)
        })
        .await;
    assert_eq!((&done["status"], &done["refunds"][0]["reason"]), (&json!("CONFIRMED"), &json!("DUPLICATE_CHARGE")));
    let again = bookings.reconcile(range.0, range.1).await.unwrap();
    assert_eq!((again.repaired.len(), again.unexplained.len()), (0, 0), "{again:?}");
    stage.finish().await;
}
