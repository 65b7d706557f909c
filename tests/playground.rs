//! The playground's operations, run as a newcomer would: one tab after the other.

use crate::support::{Socket, Stage, eventually};
use serde_json::{Value, json};

fn operation(name: &str) -> (String, Value) {
    let text = std::fs::read_to_string(format!("playground/operations/{name}.graphql")).unwrap();
    let variables = text.lines().find_map(|line| line.strip_prefix("# variables: ")).map_or("{}", |text| text);
    (text.clone(), serde_json::from_str(variables).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_tabs_work_one_after_the_other() {
    let stage = Stage::new().await;
    let hall = stage.hall(3, 10, |_| {}).await;
    let mina = stage.buyer("mina");
    let mut names: Vec<String> = std::fs::read_dir("playground/operations")
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(names.len(), 8, "a new operation needs a step here: {names:?}");
    let run = async |name: &str, change: &dyn Fn(&mut Value)| {
        let (text, mut variables) = operation(name);
        change(&mut variables);
        mina.data(&text, variables).await
    };
    eventually("it is found", || async {
        let found = run("01-find-events", &|v| v["query"] = json!("aida")).await;
        (found["searchEvents"]["nodes"][0]["id"] == hall.event.as_str()).then_some(())
    })
    .await;
    let map = run("02-look-at-the-map", &|v| v["eventId"] = json!(hall.event)).await;
    assert_eq!(map["seatMap"]["availableCount"], 30);
    let (watch, _) = operation("03-watch-the-map");
    let mut socket = Socket::open(&mina).await;
    socket.subscribe(&watch, json!({ "eventId": hall.event })).await;
    assert_eq!(socket.next().await["seatMapChanged"]["__typename"], "SeatMapSnapshot");
    let held = run("04-hold-seats", &|v| v["input"]["eventId"] = json!(hall.event)).await;
    let hold = held["holdSeats"]["hold"]["id"].clone();
    assert_eq!(held["holdSeats"]["hold"]["items"].as_array().unwrap().len(), 2);
    assert_eq!(socket.next().await["seatMapChanged"]["changes"].as_array().unwrap().len(), 2);
    let paid = run("05-pay", &|v| v["input"]["holdId"] = hold.clone()).await;
    assert_eq!(paid["checkout"]["booking"]["status"], "CONFIRMED");
    let mine = run("06-my-bookings", &|_| {}).await;
    assert_eq!(mine["bookings"]["nodes"][0]["id"], paid["checkout"]["booking"]["id"]);
    let cancelled = run("07-cancel", &|v| v["input"]["bookingId"] = paid["checkout"]["booking"]["id"].clone()).await;
    assert_eq!(cancelled["cancel"]["userErrors"], json!([]));
    let (text, variables) = operation("08-create-a-venue");
    let made = stage.organizer("ACME").data(&text, variables).await;
    assert_eq!(made["createVenue"]["venue"]["city"], "Leipzig");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn graphiql_is_served_whole_and_names_no_other_host() {
    let stage = Stage::new().await;
    let page = reqwest::get(format!("{}/graphiql", stage.stranger().url)).await.unwrap().text().await.unwrap();
    assert!(page.contains("04-hold-seats") || page.contains("mutation HoldSeats"), "the tabs are filled");
    let files: Vec<&str> = page.split(['"', '\'']).filter(|text| text.starts_with("/playground/")).collect();
    assert!(!files.is_empty());
    for file in files {
        let status = reqwest::get(format!("{}{file}", stage.stranger().url)).await.unwrap().status();
        assert!(status.is_success(), "{file}: {status}");
    }
    let outside = page.match_indices("src=\"http").count() + page.match_indices("href=\"http").count();
    assert_eq!(outside, 0, "nothing is loaded from elsewhere");
    stage.finish().await;
}
