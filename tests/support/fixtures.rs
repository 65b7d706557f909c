//! Halls and events, made through the API like anybody's.

use super::{Api, Stage};
use chrono::{Duration, Utc};
use serde_json::{Value, json};

/// A published event in a hall of rows.
#[derive(Clone, Debug)]
pub struct Hall {
    pub event: String,
    pub venue: String,
    pub layout: Option<String>,
    pub organizer: Api,
    /// Tier ids by name.
    pub tiers: Vec<(String, String)>,
}

/// A time so many seconds from now, as text.
#[expect(clippy::disallowed_methods, reason = "tests live in the present")]
pub fn in_seconds(seconds: i64) -> String {
    (Utc::now() + Duration::seconds(seconds)).to_rfc3339()
}

/// Sections of rows A, B, … with seats 1, 2, …, all of the zone "Stalls".
pub fn rows(rows: usize, seats: usize) -> Value {
    let row = |r: usize| {
        let seats: Vec<Value> = (1..=seats).map(|n| json!({ "number": n.to_string(), "zone": "Stalls" })).collect();
        let name = if r < 26 { char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"[r]).to_string() } else { format!("R{r}") };
        json!({ "name": name, "seats": seats })
    };
    json!([{ "name": "Main", "rows": (0..rows).map(row).collect::<Vec<_>>() }])
}

impl Stage {
    pub async fn venue(&self, organizer: &Api) -> String {
        let input = json!({ "name": "Opera", "city": "Dresden", "countryCode": "DE", "timeZone": "Europe/Berlin", "latitude": 51.05, "longitude": 13.73 });
        organizer.must("createVenue", input, "venue { id }").await["venue"]["id"].as_str().unwrap().to_owned()
    }

    /// A hall with rows of seats, published; `change` may alter the event's input.
    pub async fn hall(&self, row_count: usize, seats: usize, change: impl FnOnce(&mut Value)) -> Hall {
        self.event(Some(rows(row_count, seats)), change).await
    }

    /// A club with one tier.
    pub async fn club(&self, capacity: i32, change: impl FnOnce(&mut Value)) -> Hall {
        self.event(None, |input| {
            input["inventoryMode"] = json!("GENERAL_ADMISSION");
            input["tiers"] = json!([{ "name": "Floor", "price": "20.00", "capacity": capacity }]);
            change(input);
        })
        .await
    }

    pub async fn event(&self, sections: Option<Value>, change: impl FnOnce(&mut Value)) -> Hall {
        let organizer = self.organizer("ACME");
        let venue = self.venue(&organizer).await;
        let layout = match sections {
            Some(sections) => {
                let input = json!({ "venueId": venue, "name": "Hall", "sections": sections });
                let made = organizer.must("createLayout", input, "layout { id }").await;
                Some(made["layout"]["id"].as_str().unwrap().to_owned())
            }
            None => None,
        };
        let mut input = event_input(&venue, layout.as_deref());
        change(&mut input);
        let made = organizer.must("createEvent", input, "event { id version }").await;
        let event = made["event"]["id"].as_str().unwrap().to_owned();
        let publish = json!({ "eventId": event, "expectedVersion": made["event"]["version"] });
        organizer.must("publishEvent", publish, "event { saleStatus }").await;
        let read =
            organizer.data("query($id: ID) { event(id: $id) { tiers { id name } } }", json!({ "id": event })).await;
        let tier = |tier: &Value| (tier["name"].as_str().unwrap().to_owned(), tier["id"].as_str().unwrap().to_owned());
        let tiers = read["event"]["tiers"].as_array().unwrap().iter().map(tier).collect();
        Hall { event, venue, layout, organizer, tiers }
    }
}

pub fn event_input(venue: &str, layout: Option<&str>) -> Value {
    let mut input = json!({
        "venueId": venue, "title": "Aida", "category": "Opera", "currency": "EUR", "inventoryMode": "ASSIGNED",
        "startsAt": in_seconds(86_400 * 30), "onSaleAt": in_seconds(-3_600), "offSaleAt": in_seconds(86_400 * 29),
    });
    if let Some(layout) = layout {
        input["layoutId"] = json!(layout);
        input["zonePrices"] = json!([{ "zone": "Stalls", "price": "25.00" }]);
    }
    input
}
