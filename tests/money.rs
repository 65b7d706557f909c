//! Checkout, decline, expiry, cancellation and refunds, on the ordinary ways.

use crate::support::{Setup, Stage, eventually};
use serde_json::{Value, json};

fn code(payload: &Value) -> &str {
    payload["userErrors"][0]["code"].as_str().unwrap_or("none")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn declined_then_another_card_is_a_new_booking_and_a_new_operation() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let declined = mina.checkout(&hold, "c1", "pm_card_chargeDeclined").await;
    assert_eq!((code(&declined), declined["booking"]["status"].as_str()), ("PAYMENT_DECLINED", Some("FAILED")));
    assert_eq!(declined["userErrors"][0]["declineCode"], "generic_decline");
    assert_eq!(declined["userErrors"][0]["holdStillActive"], true);
    let again = mina.checkout(&hold, "c1", "pm_card_chargeDeclined").await;
    assert_eq!(
        (&again["replayed"], &again["booking"]["id"], code(&again)),
        (&json!(true), &declined["booking"]["id"], "PAYMENT_DECLINED")
    );
    assert_eq!(code(&mina.checkout(&hold, "c1", "pm_card_visa").await), "IDEMPOTENCY_KEY_REUSED");
    let paid = mina.checkout(&hold, "c2", "pm_card_visa").await;
    assert_eq!((code(&paid), paid["booking"]["status"].as_str()), ("none", Some("CONFIRMED")));
    assert_ne!(paid["booking"]["payment"]["operationId"], declined["booking"]["payment"]["operationId"]);
    let other_key = mina.checkout(&hold, "c3", "pm_card_chargeDeclined").await;
    assert_eq!(
        (&other_key["replayed"], &other_key["booking"]["id"]),
        (&json!(true), &paid["booking"]["id"]),
        "under any key and card"
    );
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_ran_out_or_was_released_is_not_paid() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    assert_eq!(code(&stage.buyer("leo").checkout(&hold, "c", "pm_card_visa").await), "NOT_FOUND", "somebody else's");
    stage.age_holds().await;
    assert_eq!(code(&mina.checkout(&hold, "c", "pm_card_visa").await), "HOLD_EXPIRED");
    let second = mina.hold(&hall.event, "k2", &["A-2"]).await["hold"]["id"].clone();
    mina.must("releaseHold", json!({ "holdId": second }), "hold { status }").await;
    assert_eq!(code(&mina.checkout(&second, "c2", "pm_card_visa").await), "HOLD_NOT_ACTIVE");
    assert_eq!(stage.simulator.ledger().payments.len(), 0, "nothing was sent");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_that_can_not_wait_for_one_call_is_not_sent() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |input| input["holdSeconds"] = json!(5)).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let failed = mina.checkout(&hold, "c", "pm_card_visa").await;
    assert_eq!((code(&failed), failed["booking"]["status"].as_str()), ("HOLD_EXPIRED", Some("FAILED")));
    assert_eq!(stage.simulator.ledger().payments.len(), 0);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_free_booking_never_talks_to_the_provider() {
    let stage = Stage::new().await;
    let hall = stage.club(10, |input| input["tiers"][0]["price"] = json!("0")).await;
    let mina = stage.buyer("mina");
    let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "admissions": [{ "tierId": hall.tiers[0].1, "quantity": 3 }] });
    let hold = mina.must("holdSeats", input, "hold { id total { amount } }").await["hold"].clone();
    assert_eq!(hold["total"]["amount"], "0.00");
    let paid = mina.checkout(&hold["id"], "c", "none").await;
    assert_eq!(paid["booking"]["status"], "CONFIRMED");
    assert_eq!(paid["booking"]["payment"], Value::Null);
    let booking = eventually("three tickets", || async {
        let booking = mina.booking(&paid["booking"]["id"]).await;
        (booking["tickets"].as_array().unwrap().len() == 3).then_some(booking)
    })
    .await;
    let cancelled = mina
        .must(
            "cancel",
            json!({ "bookingId": booking["id"], "idempotencyKey": "x" }),
            "booking { status refunds { status } }",
        )
        .await;
    assert_eq!(cancelled["booking"], json!({ "status": "CANCELLED", "refunds": [] }));
    let mut calls = stage.simulator.ledger().calls;
    // Reconciliation reads the provider's list, whatever is in it.
    calls.remove("list");
    assert_eq!(calls.len(), 0, "{calls:?}");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_tabs_check_out_one_hold_once() {
    let stage = Stage::with(crate::holds::two_servers()).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let hold = stage.buyer("mina").hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let tabs = (0..12).map(|n| {
        let (api, hold) = (stage.buyer_at(n % 2, "mina"), hold.clone());
        async move { api.checkout(&hold, &format!("tab-{n}"), "pm_card_visa").await }
    });
    let answers = futures_util::future::join_all(tabs).await;
    let bookings: std::collections::BTreeSet<String> =
        answers.iter().map(|answer| answer["booking"]["id"].to_string()).collect();
    assert_eq!(bookings.len(), 1);
    assert!(answers.iter().all(|answer| answer["booking"]["status"] == "CONFIRMED"));
    assert_eq!(stage.simulator.ledger().payments.len(), 1);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancelling_follows_the_terms_frozen_at_checkout() {
    let stage = Stage::new().await;
    let hall =
        stage.hall(1, 6, |input| input["cancellation"] = json!({ "refundPercent": "33.3", "resell": false })).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let paid = mina.checkout(&hold, "c", "pm_card_visa").await["booking"].clone();
    let read = hall.organizer.data("query($id: ID) { event(id: $id) { version } }", json!({ "id": hall.event })).await;
    let change = json!({ "eventId": hall.event, "expectedVersion": read["event"]["version"], "cancellation": { "allowedUntilSecondsBeforeStart": 86_400 * 60 } });
    hall.organizer.must("updateEvent", change, "event { cancellationPolicy { refundPercent resell } }").await;
    assert_eq!(
        mina.booking(&paid["id"]).await["cancellation"],
        json!({ "allowed": true, "refundNow": { "amount": "8.32" } }),
        "25.00 x 33.3 % = 8.325, half to even"
    );
    assert_eq!(
        leo.refused("cancel", json!({ "bookingId": paid["id"], "idempotencyKey": "x" })).await,
        ("NOT_FOUND".into(), "input.bookingId".into())
    );
    let stale = json!({ "bookingId": paid["id"], "idempotencyKey": "x", "expectedVersion": "1" });
    assert_eq!(mina.refused("cancel", stale).await.0, "STALE_VERSION");
    mina.must("cancel", json!({ "bookingId": paid["id"], "idempotencyKey": "x" }), "booking { status }").await;
    let done = eventually("the money is back", || async {
        let booking = mina.booking(&paid["id"]).await;
        (booking["status"] == "REFUNDED").then_some(booking)
    })
    .await;
    assert_eq!(done["refunds"][0]["amount"]["amount"], "8.32");
    assert_eq!(
        stage.number("SELECT count(*) FROM event_seat WHERE status = 'BLOCKED'").await,
        1,
        "not resold: off sale"
    );
    hall.organizer
        .must("blockSeats", json!({ "eventId": hall.event, "seatIds": ["A-1"], "blocked": false }), "event { id }")
        .await;
    let resold = leo.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let late = leo.checkout(&resold, "c", "pm_card_visa").await["booking"].clone();
    let (refused, _) = leo.refused("cancel", json!({ "bookingId": late["id"], "idempotencyKey": "x" })).await;
    assert_eq!(refused, "NOT_CANCELLABLE", "the new terms hold for the new booking");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn yen_have_no_decimals_euros_two_and_dinars_three_and_shares_of_them_add_up() {
    let stage = Stage::new().await;
    // Half to even a booking: 33.3 % of 3,002 are 999.666, of 12.50 are 4.1625, of 2.460 are 0.81918, and the provider
    // counts dinars in steps of 0.010.
    for (currency, price, (shown, provider), (back, back_provider)) in [
        ("JPY", "1501", ("3002", 3_002), ("1000", 1_000)),
        ("EUR", "6.25", ("12.50", 1_250), ("4.16", 416)),
        ("KWD", "1.230", ("2.460", 2_460), ("0.810", 810)),
    ] {
        let hall = stage
            .club(10, |input| {
                input["currency"] = json!(currency);
                input["cancellation"] = json!({ "refundPercent": "33.3" });
                input["tiers"][0]["price"] = json!(price);
            })
            .await;
        let mina = stage.buyer(&format!("mina-{currency}"));
        let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "admissions": [{ "tierId": hall.tiers[0].1, "quantity": 2 }] });
        let hold = mina.must("holdSeats", input, "hold { id total { amount } }").await["hold"].clone();
        assert_eq!(hold["total"]["amount"], shown);
        let booking = mina.checkout(&hold["id"], "c", "pm_card_visa").await["booking"].clone();
        assert_eq!(booking["status"], "CONFIRMED");
        mina.must("cancel", json!({ "bookingId": booking["id"], "idempotencyKey": "x" }), "booking { status }").await;
        let done = eventually("the share is back", || async {
            let booking = mina.booking(&booking["id"]).await;
            (booking["status"] == "REFUNDED").then_some(booking)
        })
        .await;
        assert_eq!(done["refunds"][0]["amount"]["amount"], back, "{currency}");
        let ledger = stage.simulator.ledger();
        let moved = |payment: &parterre::payment::simulator::LedgerPayment| (payment.captured, payment.refunded);
        assert!(ledger.payments.iter().any(|payment| moved(payment) == (provider, back_provider)), "{ledger:?}");
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_provider_is_pending_then_confirmed_and_a_lost_reply_too() {
    let stage = Stage::with(Setup { checkout_wait_ms: 200, ..Setup::default() }).await;
    let hall = stage.hall(1, 9, |_| {}).await;
    for (seat, method) in [
        ("A-1", "pm_sim_slow_800"),
        ("A-3", "pm_sim_lost_reply"),
        ("A-5", "pm_sim_500_then_ok"),
        ("A-7", "pm_sim_500_but_done"),
    ] {
        let mina = stage.buyer(method);
        let hold = mina.hold(&hall.event, "k", &[seat]).await["hold"]["id"].clone();
        let paid = mina.checkout(&hold, "c", method).await;
        assert_eq!(code(&paid), "none", "{method}: not known is not failed");
        assert!(["PAYMENT_PENDING", "CONFIRMED"].contains(&paid["booking"]["status"].as_str().unwrap()));
        let again = mina.checkout(&hold, "c", method).await;
        assert_eq!(again["booking"]["id"], paid["booking"]["id"]);
        let operation = |payload: &Value| payload["booking"]["payment"]["operationId"].clone();
        assert_eq!(operation(&again), operation(&paid), "a time-out is not a decline: the same operation");
        eventually(method, || async {
            (mina.booking(&paid["booking"]["id"]).await["status"] == "CONFIRMED").then_some(())
        })
        .await;
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refund_that_fails_after_it_looked_done_is_followed_by_another() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let paid = mina.checkout(&hold, "c", "pm_sim_refund_fails_later").await["booking"].clone();
    mina.must("cancel", json!({ "bookingId": paid["id"], "idempotencyKey": "x" }), "booking { status }").await;
    eventually("the refund looks done", || async {
        (mina.booking(&paid["id"]).await["status"] == "REFUNDED").then_some(())
    })
    .await;
    // The provider's clock passes the moment at which it turns out to have failed; our slow look comes due.
    let faults = format!("{}/faults", stage.config.stripe_api_base);
    reqwest::Client::new().post(faults).json(&json!({ "advance_seconds": 10 })).send().await.unwrap();
    let done = eventually("another refund succeeded", || async {
        // Again and again: a late webhook may put the look off by a day.
        stage.execute("UPDATE refund SET next_check_at = clock_timestamp() WHERE status = 'SUCCEEDED'").await;
        let booking = mina.booking(&paid["id"]).await;
        (booking["status"] == "REFUNDED" && booking["refunds"][1]["status"] == "SUCCEEDED").then_some(booking)
    })
    .await;
    assert_eq!((&done["refunds"][0]["status"], &done["refunds"][1]["status"]), (&json!("FAILED"), &json!("SUCCEEDED")));
    assert!(
        done["timeline"].as_array().unwrap().iter().any(|entry| entry["to"] == "REFUND_REQUIRED"),
        "the timeline tells it"
    );
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn money_that_comes_at_once_after_the_hold_is_over_gets_those_seats_or_goes_back() {
    let stage = Stage::with(Setup { checkout_wait_ms: 100, ..Setup::default() }).await;
    let hall = stage.hall(1, 9, |_| {}).await;
    let (mina, leo, ada) = (stage.buyer("mina"), stage.buyer("leo"), stage.buyer("ada"));
    let free = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let taken = leo.hold(&hall.event, "k", &["A-5", "A-6"]).await["hold"]["id"].clone();
    let pending = [(&mina, &free), (&leo, &taken)].map(|(buyer, hold)| async move {
        buyer.checkout(hold, "c", "pm_sim_collects_at_once_4000").await["booking"]["id"].clone()
    });
    let ids = futures_util::future::join_all(pending).await;
    stage.age_holds().await;
    assert_eq!(ada.hold(&hall.event, "k", &["A-6"]).await["userErrors"], json!([]), "somebody else takes a seat of it");
    eventually("those seats", || async { (mina.booking(&ids[0]).await["status"] == "CONFIRMED").then_some(()) }).await;
    let back = eventually("the money is back", || async {
        let booking = leo.booking(&ids[1]).await;
        (booking["status"] == "REFUNDED").then_some(booking)
    })
    .await;
    assert_eq!(back["refunds"][0]["reason"], "SEATS_LOST");
    assert_eq!(back["refunds"].as_array().unwrap().len(), 1);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_failed_capture_gives_the_seats_back() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let failed = mina.checkout(&hold, "c", "pm_sim_capture_fails").await;
    assert_eq!((code(&failed), failed["booking"]["status"].as_str()), ("PAYMENT_DECLINED", Some("FAILED")));
    assert_eq!(failed["userErrors"][0]["holdStillActive"], false);
    assert_eq!(stage.number("SELECT count(*) FROM event_seat WHERE status = 'AVAILABLE'").await, 5);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancellation_that_races_its_confirmation_and_another_has_one_end_and_one_refund() {
    let stage = Stage::with(Setup { checkout_wait_ms: 1, ..crate::holds::two_servers() }).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let booking = mina.checkout(&hold, "c", "pm_sim_slow_100").await["booking"]["id"].clone();
    let racing = (0..12).map(|n| {
        let (api, booking) = (stage.buyer_at(n % 2, "mina"), booking.clone());
        async move {
            let input = json!({ "bookingId": booking, "idempotencyKey": format!("x{n}") });
            eventually("cancelled, by this one or another", || async {
                let payload = api.mutate("cancel", input.clone(), "replayed booking { status }").await;
                match payload["userErrors"][0]["code"].as_str() {
                    None => Some(payload["replayed"] == false),
                    Some("NOT_CANCELLABLE") => None,
                    Some(other) => panic!("{other}: {payload}"),
                }
            })
            .await
        }
    });
    let first = futures_util::future::join_all(racing).await.into_iter().filter(|first| *first).count();
    assert_eq!(first, 1);
    let done = eventually("refunded", || async {
        let read = mina.booking(&booking).await;
        (read["status"] == "REFUNDED").then_some(read)
    })
    .await;
    assert_eq!(done["refunds"].as_array().unwrap().len(), 1);
    assert_eq!(stage.calls("refund"), 1);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn admissions_of_a_booking_cancelled_twice_come_back_once() {
    let stage = Stage::new().await;
    let hall = stage.club(10, |_| {}).await;
    let mina = stage.buyer("mina");
    let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "admissions": [{ "tierId": hall.tiers[0].1, "quantity": 3 }] });
    let hold = mina.must("holdSeats", input, "hold { id }").await["hold"]["id"].clone();
    let booking = mina.checkout(&hold, "c", "pm_card_visa").await["booking"]["id"].clone();
    assert_eq!(stage.number("SELECT available::bigint FROM event_tier").await, 7);
    for key in ["x", "x", "y"] {
        mina.must("cancel", json!({ "bookingId": booking, "idempotencyKey": key }), "booking { status }").await;
    }
    assert_eq!(stage.number("SELECT available::bigint FROM event_tier").await, 10);
    stage.finish().await;
}
