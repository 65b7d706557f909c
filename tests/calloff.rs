//! Calling an event off: whatever is in flight, no booking stays confirmed and every cent goes back.

use crate::process::{start, start_with};
use crate::support::fixtures::Hall;
use crate::support::{Api, Setup, Stage, eventually, eventually_within};
use futures_util::{StreamExt as _, stream};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use std::time::Duration;

async fn call_off(hall: &Hall) {
    let read = hall.organizer.data("query($id: ID) { event(id: $id) { version } }", json!({ "id": hall.event })).await;
    let off =
        json!({ "eventId": hall.event, "expectedVersion": read["event"]["version"], "reason": "the tenor is ill" });
    hall.organizer.must("cancelEvent", off, "event { saleStatus }").await;
}

/// Nothing is sold, nothing is in flight, and the provider has given back all it took.
async fn everything_is_back(stage: &Stage) {
    eventually_within(Duration::from_mins(2), "every booking is failed or refunded, every hold over", || async {
        let open = stage
            .number(
                "SELECT (SELECT count(*) FROM booking WHERE status NOT IN ('FAILED', 'REFUNDED'))
                      + (SELECT count(*) FROM hold WHERE status = 'ACTIVE')",
            )
            .await;
        (open == 0).then_some(())
    })
    .await;
    // A create that was sent and is not listed is only closed after a second look, an hour later.
    stage.execute(
        "UPDATE payment SET missed_at = missed_at - interval '1 hour', next_check_at = clock_timestamp() WHERE missed_at IS NOT NULL AND status = 'UNKNOWN'",
    )
    .await;
    stage.rest().await;
    for payment in stage.simulator.ledger().payments {
        assert_eq!(payment.captured, payment.refunded, "{payment:?}");
    }
    assert_eq!(stage.number("SELECT count(*) FROM event_seat WHERE status <> 'AVAILABLE'").await, 0);
    assert_eq!(stage.number("SELECT count(*) FROM ticket WHERE status = 'ISSUED'").await, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn holds_checkouts_conversions_and_captures_in_flight_all_end_without_seats_and_without_loss() {
    const METHODS: [&str; 8] = [
        "pm_card_visa",
        "pm_sim_slow_150",
        "pm_sim_lost_reply",
        "pm_sim_500_then_ok",
        "pm_sim_500_but_done",
        "pm_sim_requires_action",
        "pm_sim_collects_at_once_300",
        "pm_sim_capture_fails",
    ];
    let seed = crate::holds::seed();
    let mut random = StdRng::seed_from_u64(seed);
    let stage = Stage::with(Setup { checkout_wait_ms: 400, ..crate::holds::two_servers() }).await;
    for round in 0..3 {
        let hall = stage.hall(2, 15, |_| {}).await;
        let shoppers: Vec<_> = (0..24)
            .map(|n| {
                let api = stage.buyer_at(n % 2, &format!("buyer-{round}-{n}"));
                let (event, method) = (hall.event.clone(), *METHODS.choose(&mut random).unwrap());
                let seat = format!("{}-{}", ["A", "B"][n % 2], n / 2 + 1);
                let pause = Duration::from_millis(random.random_range(0..400));
                tokio::spawn(async move {
                    tokio::time::sleep(pause).await;
                    let held = api.hold(&event, "k", &[&seat]).await;
                    if held["hold"]["id"].is_string() {
                        api.checkout(&held["hold"]["id"], "c", method).await;
                    }
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(random.random_range(100..500))).await;
        call_off(&hall).await;
        for shopper in shoppers {
            shopper.await.unwrap();
        }
        everything_is_back(&stage).await;
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_job_goes_on_after_it_was_killed_again_and_again() {
    let mut random = StdRng::seed_from_u64(crate::holds::seed());
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(2, 20, |_| {}).await;
    let buyers: Vec<Api> = (0..30).map(|n| stage.buyer(&format!("buyer-{n}"))).collect();
    let mut bookings = Vec::new();
    for (n, buyer) in buyers.iter().enumerate() {
        let seat = format!("{}-{}", ["A", "B"][n % 2], n / 2 + 1);
        let hold = buyer.hold(&hall.event, "k", &[&seat]).await["hold"]["id"].clone();
        bookings.push(buyer.checkout(&hold, "c", "pm_card_visa").await["booking"]["id"].clone());
    }
    call_off(&hall).await;
    for _ in 0..3 {
        let mut process = start(&stage).await;
        tokio::time::sleep(Duration::from_millis(random.random_range(0..150))).await;
        process.child.kill().await.unwrap();
    }
    let _last = start_with(|| crate::process::command(&stage, "serve")).await;
    everything_is_back(&stage).await;
    for (buyer, booking) in buyers.iter().zip(&bookings) {
        let read = buyer.booking(booking).await;
        assert_eq!(read["refunds"].as_array().unwrap().len(), 1, "one refund, however often it began: {read}");
        let told = |entry: &Value| entry["to"] == "CANCELLING" && entry["cause"] == "event_cancelled";
        assert!(read["timeline"].as_array().unwrap().iter().any(told), "the booking says why: {read}");
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calling_an_event_off_refunds_everybody_in_full() {
    let stage = Stage::new().await;
    let hall = stage.hall(2, 10, |input| input["cancellation"] = json!({ "refundPercent": "0" })).await;
    let mut bookings = Vec::new();
    for n in 0..4 {
        let buyer = stage.buyer(&format!("buyer-{n}"));
        let hold = buyer.hold(&hall.event, "k", &[&format!("A-{}", n + 1)]).await["hold"]["id"].clone();
        bookings.push((buyer.clone(), buyer.checkout(&hold, "c", "pm_card_visa").await["booking"]["id"].clone()));
    }
    let held = stage.buyer("late").hold(&hall.event, "k", &["B-1"]).await["hold"]["id"].clone();
    call_off(&hall).await;
    let late = stage.buyer("late").checkout(&held, "c", "pm_card_visa").await;
    // The hold is released by the call-off's worker sooner or later.
    assert!(
        matches!(late["userErrors"][0]["code"].as_str().unwrap_or("none"), "SALE_NOT_OPEN" | "HOLD_NOT_ACTIVE"),
        "{late}"
    );
    for (buyer, id) in bookings {
        let done = eventually("the money is back", || async {
            let booking = buyer.booking(&id).await;
            (booking["status"] == "REFUNDED").then_some(booking)
        })
        .await;
        assert_eq!(done["refunds"][0]["amount"]["amount"], "25.00");
        assert_eq!(done["refunds"][0]["reason"], "EVENT_CANCELLED");
    }
    stage.finish().await;
}

/// Whoever cancels before the job comes gets what the job would have given, whatever the terms and however late.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_who_is_faster_than_the_job_gets_everything_back_too() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 10, |input| input["cancellation"] = json!({ "refundPercent": "0" })).await;
    let mut bookings = Vec::new();
    for (name, seat) in [("mina", "A-1"), ("leo", "A-4")] {
        let buyer = stage.buyer(name);
        let hold = buyer.hold(&hall.event, "k", &[seat]).await["hold"]["id"].clone();
        bookings.push((buyer.clone(), buyer.checkout(&hold, "c", "pm_card_visa").await["booking"]["id"].clone()));
    }
    stage.execute("UPDATE booking SET cancel_until = clock_timestamp() - interval '1 hour' WHERE buyer = 'leo'").await;
    call_off(&hall).await;
    for (buyer, id) in &bookings {
        let query =
            "query($id: ID) { booking(id: $id) { cancellation { allowed refundPercent refundNow { amount } } } }";
        eventually("it is told what there is to get", || async {
            let told = buyer.data(query, json!({ "id": id })).await["booking"]["cancellation"].clone();
            (told == json!({ "allowed": true, "refundPercent": "100", "refundNow": { "amount": "25.00" } }))
                .then_some(())
        })
        .await;
        buyer.must("cancel", json!({ "bookingId": id, "idempotencyKey": "x" }), "booking { status }").await;
        let done = stage
            .drive_until("the money is back", || async {
                let booking = buyer.booking(id).await;
                (booking["status"] == "REFUNDED").then_some(booking)
            })
            .await;
        assert_eq!(done["refunds"][0]["amount"]["amount"], "25.00");
        assert_eq!(done["refunds"][0]["reason"], "EVENT_CANCELLED");
    }
    assert_eq!(
        stage.servers[0].app.services.bookings.undo_cancelled_events().await.unwrap(),
        0,
        "nothing is left to do"
    );
    stage.issue_tickets().await;
    stage.finish().await;
}

/// However many can't be undone until a person has decided, those behind them are.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bookings_that_cannot_be_undone_yet_keep_nobody_else_from_their_money() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.club(200, |_| {}).await;
    let buy = async |n: usize| {
        let buyer = stage.buyer(&format!("buyer-{n}"));
        let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "admissions": [{ "tierId": hall.tiers[0].1, "quantity": 1 }] });
        let hold = buyer.must("holdSeats", input, "hold { id }").await["hold"]["id"].clone();
        buyer.checkout(&hold, "c", "pm_card_visa").await;
    };
    stream::iter((0..103).map(buy)).buffer_unordered(8).collect::<Vec<()>>().await;
    stage
        .execute(
            "UPDATE payment SET status = 'NEEDS_REVIEW'
             WHERE booking_id IN (SELECT id FROM booking ORDER BY id LIMIT 101)",
        )
        .await;
    call_off(&hall).await;
    stage.servers[0].app.services.bookings.undo_cancelled_events().await.unwrap();
    assert_eq!(stage.number("SELECT count(*) FROM booking WHERE status = 'CONFIRMED'").await, 101);
    // Their money was never in doubt but for what the test says.
    stage.execute("UPDATE payment SET status = 'CAPTURED' WHERE status = 'NEEDS_REVIEW'").await;
    while stage.servers[0].app.services.bookings.undo_cancelled_events().await.unwrap() > 0 {}
    stage
        .drive_until("the money is back", || async {
            (stage.number("SELECT count(*) FROM booking WHERE status <> 'REFUNDED'").await == 0).then_some(())
        })
        .await;
    stage.issue_tickets().await;
    stage.finish().await;
}
