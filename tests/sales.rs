//! How events sell, as their organizers see it.

use crate::support::{Api, Stage, eventually};
use serde_json::{Value, json};

const SALES: &str = "query($id: ID) { event(id: $id) { sales { capacity sold held blocked gross { amount currency } refunded { amount }
    bySection { sectionId tierId name capacity sold gross { amount } } byHour { hour sold gross { amount } } asOf } } }";

async fn sales(who: &Api, event: &str) -> Value {
    who.data(SALES, json!({ "id": event })).await["event"]["sales"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_organizer_sees_what_is_sold_by_section_tier_and_hour_and_others_see_nothing() {
    let stage = Stage::new().await;
    let hall = stage
        .hall(1, 10, |event| {
            event["inventoryMode"] = json!("MIXED");
            event["tiers"] = json!([{ "name": "Floor", "price": "10.00", "capacity": 5 }]);
            event["cancellation"] = json!({ "refundPercent": "50" });
        })
        .await;
    let acme = &hall.organizer;
    let empty = sales(acme, &hall.event).await;
    assert_eq!((&empty["capacity"], &empty["sold"], &empty["byHour"]), (&json!(15), &json!(0), &json!([])));
    for other in [stage.stranger(), stage.buyer("mina"), stage.organizer("Globex")] {
        assert_eq!(sales(&other, &hall.event).await, Value::Null);
    }
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let buy = async |buyer: &Api, key: &str, seats: &[&str], admissions: i32| {
        let mut input = json!({ "eventId": hall.event, "idempotencyKey": key, "seatIds": seats });
        if admissions > 0 {
            input["admissions"] = json!([{ "tierId": hall.tiers[0].1, "quantity": admissions }]);
        }
        let hold = buyer.must("holdSeats", input, "hold { id }").await["hold"]["id"].clone();
        buyer.checkout(&hold, key, "pm_card_visa").await["booking"]["id"].clone()
    };
    buy(&mina, "a", &["A-1", "A-2"], 3).await;
    let cancelled = buy(&leo, "b", &["A-5"], 0).await;
    leo.must("cancel", json!({ "bookingId": cancelled, "idempotencyKey": "x" }), "__typename").await;
    leo.hold(&hall.event, "c", &["A-6"]).await;
    acme.must("blockSeats", json!({ "eventId": hall.event, "seatIds": ["A-10"], "blocked": true }), "__typename").await;
    let told = eventually("all of it is counted", || async {
        let told = sales(acme, &hall.event).await;
        (told["refunded"]["amount"] == "12.50" && told["blocked"] == 1 && told["held"] == 1).then_some(told)
    })
    .await;
    assert_eq!((&told["capacity"], &told["sold"]), (&json!(15), &json!(5)));
    assert_eq!(told["gross"], json!({ "amount": "105.00", "currency": "EUR" }), "the cancelled one paid too");
    let parts = told["bySection"].as_array().unwrap();
    assert_eq!(parts.len(), 2);
    assert!(parts[0]["sectionId"].is_string() && parts[0]["tierId"].is_null());
    assert_eq!(
        (&parts[0]["name"], &parts[0]["sold"], &parts[0]["gross"]["amount"]),
        (&json!("Main"), &json!(2), &json!("50.00"))
    );
    assert_eq!(
        (&parts[1]["name"], &parts[1]["sold"], &parts[1]["gross"]["amount"]),
        (&json!("Floor"), &json!(3), &json!("30.00"))
    );
    assert_eq!(parts[1]["tierId"], json!(hall.tiers[0].1));
    // Two hours, should one begin just now.
    let hours = told["byHour"].as_array().unwrap();
    assert_eq!(hours.iter().map(|hour| hour["sold"].as_i64().unwrap()).sum::<i64>(), 6);
    // Looking on counts what is marked.
    stage.rest().await;
    eventually("all marks are counted", || async {
        sales(acme, &hall.event).await;
        (stage.number("SELECT count(*) FROM event_sales WHERE marked > counted").await == 0).then_some(())
    })
    .await;
    stage.finish().await;
}
