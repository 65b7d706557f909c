//! The whole story, as a buyer and an organizer live it.

use crate::support::{Socket, Stage, eventually};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const MAP: &str = "subscription($event: ID!) { seatMapChanged(eventId: $event) { __typename
    ... on SeatMapSnapshot { version sections { id statuses seats { seatId status } } }
    ... on SeatMapDelta { fromVersion version changes { seatId status } } } }";

/// A subscriber's map, moved on by its messages, whose versions must chain.
struct Watcher {
    socket: Socket,
    version: String,
    seats: BTreeMap<String, String>,
}

impl Watcher {
    async fn start(stage: &Stage, event: &str) -> Self {
        let mut socket = Socket::open(&stage.stranger()).await;
        socket.subscribe(MAP, json!({ "event": event })).await;
        let first = socket.next().await["seatMapChanged"].clone();
        assert_eq!(first["__typename"], "SeatMapSnapshot");
        let mut seats = BTreeMap::new();
        for section in first["sections"].as_array().unwrap() {
            for seat in section["seats"].as_array().unwrap() {
                seats.insert(text(&seat["seatId"]), text(&seat["status"]));
            }
        }
        Self { socket, version: text(&first["version"]), seats }
    }

    /// Applies deltas until a seat shows a status.
    async fn until(&mut self, seat: &str, status: &str) {
        while self.seats.get(seat).map(String::as_str) != Some(status) {
            let delta = self.socket.next().await["seatMapChanged"].clone();
            assert_eq!(delta["__typename"], "SeatMapDelta");
            assert_eq!(text(&delta["fromVersion"]), self.version, "deltas chain");
            self.version = text(&delta["version"]);
            for change in delta["changes"].as_array().unwrap() {
                self.seats.insert(text(&change["seatId"]), text(&change["status"]));
            }
        }
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn find_look_hold_pay_get_tickets_cancel_while_the_map_changes() {
    let stage = Stage::new().await;
    let hall = stage.hall(3, 10, |_| {}).await;
    let mina = stage.buyer("mina");

    let found = eventually("the event is found", || async {
        let query = "{ searchEvents(query: \"aida dresdn\") { totalCount nodes { id title saleStatus venue { city } } facets { field buckets { value count } } } }";
        let answer = mina.ask(query, json!({})).await;
        let search = answer["data"]["searchEvents"].clone();
        (search["totalCount"] == 1).then_some(search)
    })
    .await;
    assert_eq!(found["nodes"][0]["id"], hall.event.as_str());
    assert_eq!(found["nodes"][0]["saleStatus"], "ON_SALE");

    let map = mina
        .data(
            "query($id: ID!) { seatMap(eventId: $id) { availableCount sections { statuses geometryUrl } } }",
            json!({ "id": hall.event }),
        )
        .await;
    assert_eq!(map["seatMap"]["availableCount"], 30);
    assert_eq!(map["seatMap"]["sections"][0]["statuses"], "A".repeat(30));
    let geometry = format!("{}{}", mina.url, text(&map["seatMap"]["sections"][0]["geometryUrl"]));
    let geometry: Value = reqwest::get(geometry).await.unwrap().json().await.unwrap();
    assert_eq!(geometry["sections"][0]["seats"].as_array().unwrap().len(), 30);

    let mut watcher = Watcher::start(&stage, &hall.event).await;
    let held = mina.hold(&hall.event, "k1", &["A-2", "A-1"]).await;
    assert_eq!(held["userErrors"], json!([]));
    assert_eq!(held["hold"]["status"], "ACTIVE");
    assert_eq!(held["hold"]["total"]["amount"], "50.00");
    watcher.until("A-1", "HELD").await;

    let mut own = Socket::open(&mina).await;
    let paid = mina.checkout(&held["hold"]["id"], "c1", "pm_card_visa").await;
    assert_eq!(paid["userErrors"], json!([]));
    assert_eq!(paid["booking"]["status"], "CONFIRMED");
    watcher.until("A-2", "SOLD").await;
    let booking = &paid["booking"]["id"];
    own.subscribe(
        "subscription($id: ID!) { bookingUpdated(id: $id) { status tickets { id } } }",
        json!({ "id": booking }),
    )
    .await;
    let first = own.next().await;
    assert_eq!(first["bookingUpdated"]["status"], "CONFIRMED", "the present state comes first");

    let with_tickets = eventually("tickets are issued", || async {
        let booking = mina.booking(booking).await;
        (booking["tickets"].as_array().unwrap().len() == 2).then_some(booking)
    })
    .await;
    let ticket = &with_tickets["tickets"][0];
    assert_eq!(ticket["status"], "ISSUED");
    assert_eq!(scan(&text(&ticket["qrSvg"])), text(&ticket["code"]), "the QR code says the ticket's code");

    let cancelled = mina
        .must("cancel", json!({ "bookingId": booking, "idempotencyKey": "x1" }), "replayed booking { status }")
        .await;
    assert!(["CANCELLED", "REFUNDED"].contains(&text(&cancelled["booking"]["status"]).as_str()));
    watcher.until("A-1", "AVAILABLE").await;
    let refunded = eventually("the money is back", || async {
        let booking = mina.booking(booking).await;
        (booking["status"] == "REFUNDED").then_some(booking)
    })
    .await;
    assert_eq!(refunded["refunds"][0]["status"], "SUCCEEDED");
    assert_eq!(refunded["refunds"][0]["amount"]["amount"], "50.00");
    assert!(refunded["tickets"].as_array().unwrap().iter().all(|ticket| ticket["status"] == "REVOKED"));
    loop {
        let update = own.next().await;
        if update["bookingUpdated"]["status"] == "REFUNDED" {
            break;
        }
    }
    let again = mina
        .must("cancel", json!({ "bookingId": booking, "idempotencyKey": "x2" }), "replayed booking { status }")
        .await;
    assert_eq!((again["replayed"].as_bool(), text(&again["booking"]["status"])), (Some(true), "REFUNDED".to_owned()));

    let statuses = mina
        .data(
            "query($id: ID!) { seatMap(eventId: $id) { sections { seats { seatId status } } } }",
            json!({ "id": hall.event }),
        )
        .await;
    for seat in statuses["seatMap"]["sections"][0]["seats"].as_array().unwrap() {
        assert_eq!(watcher.seats[&text(&seat["seatId"])], text(&seat["status"]), "the watcher's map is the server's");
    }
    let sold = stage.number("SELECT count(*) FROM event_seat WHERE status <> 'AVAILABLE'").await;
    assert_eq!(sold, 0);
    stage.finish().await;
}

/// Draws a QR code's SVG path of unit squares and reads it.
fn scan(svg: &str) -> String {
    let size: usize = svg.split("viewBox=\"0 0 ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    let path = svg.rsplit(" d=\"").next().unwrap().split('"').next().unwrap();
    let mut dark = vec![false; size * size];
    for module in path.split('M').skip(1) {
        let numbers: Vec<usize> = module.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        dark[numbers[1] * size + numbers[0]] = true;
    }
    let scale = 8;
    let grey = |x: usize, y: usize| if dark[(y / scale) * size + x / scale] { 0 } else { 255 };
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(size * scale, size * scale, grey);
    let grids = image.detect_grids();
    grids[0].decode().unwrap().1
}
