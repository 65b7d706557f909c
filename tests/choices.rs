//! What people pick, and what they are offered instead.

use crate::support::{Api, Stage};
use serde_json::{Value, json};

/// Asks for seats of row A by their numbers, and for what else there is.
async fn pick(buyer: &Api, event: &str, key: &str, seats: &[u32]) -> Value {
    let seats: Vec<String> = seats.iter().map(|seat| format!("A-{seat}")).collect();
    let query = "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id }
        userErrors { code message ... on SeatsUnavailableError { conflicts { seatId status } alternativeSeatIds } } } }";
    let input = json!({ "eventId": event, "idempotencyKey": key, "seatIds": seats });
    buyer.data(query, json!({ "input": input })).await["holdSeats"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn taken_seats_come_with_the_nearest_that_are_like_them() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 8, |_| {}).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    assert!(pick(&mina, &hall.event, "k", &[3, 4]).await["hold"]["id"].is_string());
    let error = pick(&leo, &hall.event, "k", &[4, 5]).await["userErrors"][0].clone();
    assert_eq!(error["code"], "SEATS_UNAVAILABLE");
    assert_eq!(error["conflicts"], json!([{ "seatId": "A-4", "status": "HELD" }]));
    // Another server's map may be a moment behind; this one has seen the hold that it made.
    assert_eq!(error["alternativeSeatIds"], json!(["A-5", "A-6"]), "{error}");
    assert!(pick(&leo, &hall.event, "k2", &[5, 6]).await["hold"]["id"].is_string());
    let nothing = pick(&stage.buyer("ada"), &hall.event, "k", &[4, 5, 6]).await["userErrors"][0].clone();
    assert_eq!(nothing["alternativeSeatIds"], Value::Null, "no three are left side by side: {nothing}");
    let club = stage.club(1, |_| {}).await;
    let query = "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { userErrors { code ... on SeatsUnavailableError { alternativeSeatIds } } } }";
    let admissions = json!([{ "tierId": club.tiers[0].1, "quantity": 2 }]);
    let input = json!({ "eventId": club.event, "idempotencyKey": "k", "admissions": admissions });
    let told = mina.data(query, json!({ "input": input })).await["holdSeats"]["userErrors"][0].clone();
    assert_eq!(told, json!({ "code": "SOLD_OUT", "alternativeSeatIds": null }));
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pick_that_leaves_one_seat_alone_is_refused_unless_there_is_no_other() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 8, |event| event["forbidSingleSeats"] = json!(true)).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let error = pick(&mina, &hall.event, "k", &[2, 3]).await["userErrors"][0].clone();
    assert_eq!(error["code"], "SINGLE_SEAT_LEFT", "{error}");
    assert_eq!(error["conflicts"], json!([{ "seatId": "A-1", "status": "AVAILABLE" }]));
    assert!(error["message"].as_str().unwrap().contains("single seat"), "{error}");
    let instead: Vec<u32> = error["alternativeSeatIds"]
        .as_array()
        .unwrap()
        .iter()
        .map(|id| id.as_str().unwrap().trim_start_matches("A-").parse().unwrap())
        .collect();
    assert_eq!(instead.len(), 2);
    // The key was not used up; what was offered can be had: now 1 to 3, 4 and 5, 6 to 8 are apart.
    assert_eq!(instead, [4, 5]);
    assert!(pick(&mina, &hall.event, "k", &instead).await["hold"]["id"].is_string());
    assert_eq!(
        pick(&leo, &hall.event, "a", &[1, 2]).await["userErrors"][0]["code"],
        Value::Null,
        "no pair of 3 leaves none alone"
    );
    // Six to eight: two of them leave one alone, all three do not, and one at the side leaves two.
    assert!(pick(&leo, &hall.event, "b", &[6]).await["hold"]["id"].is_string());
    // Many at once, in one batch: each is judged by what those before it took.
    let row = stage.hall(1, 8, |event| event["forbidSingleSeats"] = json!(true)).await;
    let all: Vec<Value> = futures_util::future::join_all((0..4).map(|n| {
        let buyer = stage.buyer(&format!("buyer-{n}"));
        let event = row.event.clone();
        async move { pick(&buyer, &event, "k", &[2 * n + 1, 2 * n + 2]).await }
    }))
    .await;
    assert!(all.iter().all(|one| one["hold"]["id"].is_string()), "pairs that fill the row: {all:?}");
    let free = stage.hall(1, 8, |_| {}).await;
    assert!(pick(&mina, &free.event, "k", &[2, 3]).await["hold"]["id"].is_string(), "others do not mind");
    stage.finish().await;
}

/// The last seat can't be named and chosen at once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_seat_that_is_named_is_not_chosen_by_the_server_too() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 3, |_| {}).await;
    pick(&stage.buyer("ada"), &hall.event, "k", &[1, 2]).await;
    let ask =
        json!({ "eventId": hall.event, "idempotencyKey": "k", "seatIds": ["A-3"], "bestAvailable": { "quantity": 1 } });
    assert_eq!(stage.buyer("mina").refused("holdSeats", ask).await.0, "SOLD_OUT");
    assert!(pick(&stage.buyer("mina"), &hall.event, "k", &[3]).await["hold"]["id"].is_string());
    stage.finish().await;
}
