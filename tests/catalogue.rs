//! What organizers do, what they must not, and what bad input gets.

use crate::support::fixtures::{event_input, rows};
use crate::support::{Api, Stage, eventually};
use serde_json::{Value, json};
use std::time::Instant;

async fn version(api: &Api, event: &str) -> Value {
    api.data("query($id: ID) { event(id: $id) { version } }", json!({ "id": event })).await["event"]["version"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_draft_is_its_organizations_own_on_every_path() {
    let stage = Stage::new().await;
    let acme = stage.organizer("ACME");
    let venue = stage.venue(&acme).await;
    let mut input = event_input(&venue, None);
    (input["inventoryMode"], input["tiers"]) =
        (json!("GENERAL_ADMISSION"), json!([{ "name": "Floor", "price": "1", "capacity": 5 }]));
    let draft =
        acme.must("createEvent", input, "event { id slug version organizer { id } tiers { id } }").await["event"]
            .clone();
    eventually("the draft is indexed", || async {
        (stage.servers[0].app.services.discovery.index()?.len() == 1).then_some(())
    })
    .await;
    let everywhere = "query($id: ID!, $slug: String!, $org: ID!) { byId: event(id: $id) { id } bySlug: event(slug: $slug) { id } node(id: $id) { id }
        seatMap(eventId: $id) { version } waitingRoom(eventId: $id) { status }
        organizer(id: $org) { events { nodes { id } } } searchEvents(filter: { saleStatus: [DRAFT] }) { totalCount } }";
    let variables = json!({ "id": draft["id"], "slug": draft["slug"], "org": draft["organizer"]["id"] });
    for other in [stage.buyer("mina"), stage.organizer("Others")] {
        let seen = other.data(everywhere, variables.clone()).await;
        for field in ["byId", "bySlug", "node", "seatMap", "waitingRoom"] {
            assert_eq!(seen[field], Value::Null, "{field}");
        }
        assert_eq!(seen["organizer"]["events"]["nodes"], json!([]));
        assert_eq!(seen["searchEvents"]["totalCount"], 0);
        let held = json!({ "eventId": draft["id"], "idempotencyKey": "k", "admissions": [{ "tierId": draft["tiers"][0]["id"], "quantity": 1 }] });
        assert_eq!(other.refused("holdSeats", held).await, ("NOT_FOUND".into(), "input.eventId".into()));
    }
    let own = acme.data(everywhere, variables).await;
    assert_eq!((&own["byId"]["id"], &own["node"]["id"]), (&draft["id"], &draft["id"]));
    assert_eq!(own["organizer"]["events"]["nodes"][0]["id"], draft["id"]);
    assert_eq!(own["searchEvents"]["totalCount"], 1);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_organizations_objects_are_not_found_and_buyers_are_forbidden() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let others = stage.organizer("Others");
    let act = hall.organizer.must("createPerformer", json!({ "name": "Björk" }), "performer { id version }").await["performer"].clone();
    let at = version(&hall.organizer, &hall.event).await;
    let event = json!({ "eventId": hall.event, "expectedVersion": at });
    let writes = [
        ("createLayout", json!({ "venueId": hall.venue, "name": "X", "sections": rows(1, 1) })),
        ("updateVenue", json!({ "venueId": hall.venue, "expectedVersion": "1", "name": "X" })),
        ("updatePerformer", json!({ "performerId": act["id"], "expectedVersion": "1", "name": "X" })),
        ("createEvent", event_input(&hall.venue, hall.layout.as_deref())),
        ("updateEvent", event.clone()),
        ("publishEvent", event.clone()),
        ("pauseSales", event.clone()),
        ("resumeSales", event.clone()),
        ("cancelEvent", event),
        ("blockSeats", json!({ "eventId": hall.event, "seatIds": ["A-1"], "blocked": true })),
    ];
    for (name, input) in writes {
        assert_eq!(others.refused(name, input.clone()).await.0, "NOT_FOUND", "{name}");
        assert_eq!(stage.buyer("mina").refused(name, input.clone()).await.0, "FORBIDDEN", "{name}");
        let kind = format!("{}{}Input", name[..1].to_uppercase(), &name[1..]);
        let query = format!("mutation($input: {kind}!) {{ {name}(input: $input) {{ __typename }} }}");
        let answer = stage.stranger().ask(&query, json!({ "input": input })).await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "UNAUTHENTICATED", "{name}: {answer}");
    }
    let billed = json!([act["id"]]);
    let venue = stage.venue(&others).await;
    let mut input = event_input(&venue, None);
    (input["inventoryMode"], input["tiers"], input["performerIds"]) =
        (json!("GENERAL_ADMISSION"), json!([{ "name": "F", "price": "1", "capacity": 5 }]), billed);
    let made = others.must("createEvent", input, "event { performers { name } }").await;
    assert_eq!(made["event"]["performers"][0]["name"], "Björk", "a performer is billed by all");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn edits_need_the_version_that_was_seen_and_leave_a_trail() {
    let stage = Stage::new().await;
    let hall = stage.club(10, |_| {}).await;
    let acme = &hall.organizer;
    let seen = version(acme, &hall.event).await;
    let edit = |version: &Value, change: Value| {
        let mut input = json!({ "eventId": hall.event, "expectedVersion": version });
        input.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        input
    };
    let fields =
        "event { version title description priceRange { max { amount } } tiers { id name capacity available } }";
    let changed = acme.must("updateEvent", edit(&seen, json!({ "title": "Norma", "tiers": [{ "name": "Floor", "price": "30", "capacity": 12 }, { "name": "Balcony", "price": "50", "capacity": 3 }] })), fields).await;
    assert_eq!(changed["event"]["tiers"][0]["id"], hall.tiers[0].1.as_str(), "a known tier stays itself");
    assert_eq!(changed["event"]["tiers"].as_array().unwrap().len(), 2);
    assert_eq!(changed["event"]["priceRange"]["max"]["amount"], "50.00");
    let stale = acme.mutate("updateEvent", edit(&seen, json!({ "title": "Tosca" })), "__typename").await;
    assert_eq!(
        (stale["userErrors"][0]["code"].as_str(), &stale["userErrors"][0]["currentVersion"]),
        (Some("STALE_VERSION"), &changed["event"]["version"])
    );
    let mina = stage.buyer("mina");
    let hold = json!({ "eventId": hall.event, "idempotencyKey": "k", "admissions": [{ "tierId": hall.tiers[0].1, "quantity": 4 }] });
    mina.must("holdSeats", hold, "hold { id }").await;
    let now = version(acme, &hall.event).await;
    assert_eq!(now, changed["event"]["version"], "a hold is no edit");
    let below = edit(&now, json!({ "tiers": [{ "name": "Floor", "price": "30", "capacity": 3 }] }));
    assert_eq!(acme.refused("updateEvent", below).await, ("INVALID_INPUT".into(), "input.tiers.0.capacity".into()));
    let dearer = edit(&now, json!({ "tiers": [{ "name": "Floor", "price": "35", "capacity": 13 }] }));
    let dearer =
        acme.must("updateEvent", dearer, "event { version tiers { available price { amount } } }").await["event"]
            .clone();
    assert_eq!(
        dearer["tiers"][0],
        json!({ "available": 9, "price": { "amount": "35.00" } }),
        "four are held, their price stays"
    );
    let now = dearer["version"].clone();
    let paused =
        acme.must("pauseSales", edit(&now, json!({ "reason": "checking" })), "event { saleStatus version }").await;
    assert_eq!(paused["event"]["saleStatus"], "PAUSED");
    assert_eq!(acme.refused("pauseSales", edit(&paused["event"]["version"], json!({}))).await.0, "INVALID_INPUT");
    acme.must("resumeSales", edit(&paused["event"]["version"], json!({})), "event { saleStatus }").await;
    let venue = acme
        .must(
            "updateVenue",
            json!({ "venueId": hall.venue, "expectedVersion": "1", "name": "New Opera" }),
            "venue { version name city }",
        )
        .await;
    assert_eq!(venue["venue"], json!({ "version": "2", "name": "New Opera", "city": "Dresden" }));
    let actions = stage.number("SELECT count(*) FROM audit WHERE actor = 'organizer@ACME'").await;
    assert_eq!(
        actions, 8,
        "createVenue, createEvent, publishEvent, updateEvent twice, pauseSales, resumeSales, updateVenue"
    );
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn blocked_seats_are_off_sale_and_come_back() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 4, |_| {}).await;
    let block = |seats: &[&str], blocked: bool| json!({ "eventId": hall.event, "seatIds": seats, "blocked": blocked });
    hall.organizer.must("blockSeats", block(&["A-1", "A-2"], true), "event { id }").await;
    hall.organizer.must("blockSeats", block(&["A-1"], true), "event { id }").await;
    let mina = stage.buyer("mina");
    assert_eq!(mina.hold(&hall.event, "k", &["A-1"]).await["userErrors"][0]["conflicts"][0]["status"], "BLOCKED");
    mina.hold(&hall.event, "k", &["A-3"]).await;
    let taken = hall.organizer.mutate("blockSeats", block(&["A-3", "A-4"], true), "__typename").await;
    assert_eq!(taken["userErrors"][0]["conflicts"][0]["seatId"], "A-3");
    assert_eq!(stage.number("SELECT count(*) FROM event_seat WHERE status = 'BLOCKED'").await, 2, "all or none");
    hall.organizer.must("blockSeats", block(&["A-1", "A-4"], false), "event { id }").await;
    assert_eq!(mina.hold(&hall.event, "k2", &["A-1"]).await["userErrors"], json!([]));
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_input_is_named_by_its_field_and_writes_nothing() {
    let stage = Stage::new().await;
    let hall = stage.hall(2, 3, |_| {}).await;
    let other = stage.hall(1, 3, |_| {}).await;
    let club = stage.club(10, |_| {}).await;
    let before = stage.number("SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM hold) + (SELECT count(*) FROM layout) + (SELECT count(*) FROM venue)").await;
    let mina = stage.buyer("mina");
    let long = "x".repeat(10_000);
    let hold = |change: Value| {
        let mut input = json!({ "eventId": hall.event, "idempotencyKey": "k" });
        input.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        input
    };
    let tier = &club.tiers[0].1;
    for (input, code, field) in [
        (hold(json!({})), "INVALID_INPUT", "input"),
        (hold(json!({ "seatIds": [] })), "INVALID_INPUT", "input"),
        (hold(json!({ "seatIds": ["A-1", "A-1"] })), "INVALID_INPUT", "input.seatIds.1"),
        (hold(json!({ "seatIds": ["A-1", "Z-99"] })), "INVALID_INPUT", "input.seatIds.1"),
        (hold(json!({ "seatIds": ["A-1", "A-1\u{0}"] })), "INVALID_INPUT", "input.seatIds.1"),
        (hold(json!({ "seatIds": [long] })), "INVALID_INPUT", "input.seatIds.0"),
        (
            hold(json!({ "admissions": [{ "tierId": tier, "quantity": 1 }] })),
            "INVALID_INPUT",
            "input.admissions.0.tierId",
        ),
        (hold(json!({ "bestAvailable": { "quantity": 0 } })), "INVALID_INPUT", "input.bestAvailable.quantity"),
        (
            hold(json!({ "bestAvailable": { "quantity": 2, "accessibleCount": 3 } })),
            "INVALID_INPUT",
            "input.bestAvailable.accessibleCount",
        ),
        (
            hold(json!({ "bestAvailable": { "quantity": 2, "sectionIds": ["sec_x"] } })),
            "INVALID_INPUT",
            "input.bestAvailable.sectionIds.0",
        ),
        (hold(json!({ "seatIds": ["A-1"], "idempotencyKey": "" })), "INVALID_INPUT", "input.idempotencyKey"),
        (hold(json!({ "seatIds": ["A-1"], "idempotencyKey": "a\u{0}b" })), "INVALID_INPUT", "input.idempotencyKey"),
        (hold(json!({ "seatIds": ["A-1"], "idempotencyKey": long })), "INVALID_INPUT", "input.idempotencyKey"),
        (hold(json!({ "seatIds": ["A-1"], "eventId": "evt_nope" })), "NOT_FOUND", "input.eventId"),
        (hold(json!({ "seatIds": ["A-1"], "eventId": "\u{0}" })), "NOT_FOUND", "input.eventId"),
        (hold(json!({ "seatIds": ["A-1"], "eventId": hall.venue })), "NOT_FOUND", "input.eventId"),
        (
            json!({ "eventId": club.event, "idempotencyKey": "k", "admissions": [{ "tierId": tier, "quantity": 0 }] }),
            "INVALID_INPUT",
            "input.admissions.0.quantity",
        ),
        (
            json!({ "eventId": club.event, "idempotencyKey": "k", "admissions": [{ "tierId": tier, "quantity": -1 }] }),
            "INVALID_INPUT",
            "input.admissions.0.quantity",
        ),
        (
            json!({ "eventId": club.event, "idempotencyKey": "k", "admissions": [{ "tierId": tier, "quantity": 2_147_483_647 }] }),
            "INVALID_INPUT",
            "input.admissions.0.quantity",
        ),
        (
            json!({ "eventId": club.event, "idempotencyKey": "k", "seatIds": ["A-1"] }),
            "INVALID_INPUT",
            "input.seatIds.0",
        ),
        (
            json!({ "eventId": other.event, "idempotencyKey": "k", "seatIds": ["B-1"] }),
            "INVALID_INPUT",
            "input.seatIds.0",
        ),
    ] {
        assert_eq!(mina.refused("holdSeats", input.clone()).await, (code.to_owned(), field.to_owned()), "{input}");
    }
    let acme = &hall.organizer;
    let event = |change: Value| {
        let mut input = event_input(&hall.venue, hall.layout.as_deref());
        input.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        input
    };
    for (change, field) in [
        (json!({ "title": "a\u{0}b" }), "input.title"),
        (json!({ "title": long }), "input.title"),
        (json!({ "title": "  " }), "input.title"),
        (json!({ "startsAt": "tomorrow" }), "input.startsAt"),
        (json!({ "startsAt": "+12026-01-01T00:00:00Z" }), "input.startsAt"),
        (json!({ "offSaleAt": "2020-01-01T00:00:00Z" }), "input.offSaleAt"),
        (json!({ "currency": "XXX" }), "input.currency"),
        (json!({ "currency": "eur" }), "input.currency"),
        (json!({ "zonePrices": [{ "zone": "Stalls", "price": "1.234" }] }), "input.zonePrices.0.price"),
        (json!({ "zonePrices": [{ "zone": "Stalls", "price": "-1" }] }), "input.zonePrices.0.price"),
        (json!({ "zonePrices": [{ "zone": "Stalls", "price": "99999999999999999999" }] }), "input.zonePrices.0.price"),
        (json!({ "zonePrices": [{ "zone": "Nowhere", "price": "1" }] }), "input.zonePrices.0.zone"),
        (json!({ "zonePrices": [] }), "input.zonePrices"),
        (json!({ "holdSeconds": 0 }), "input.holdSeconds"),
        (json!({ "holdSeconds": 86_401 }), "input.holdSeconds"),
        (json!({ "maxSeatsPerBuyer": -1 }), "input.maxSeatsPerBuyer"),
        (json!({ "tiers": [{ "name": "T", "price": "1", "capacity": 1 }] }), "input.tiers"),
        (json!({ "cancellation": { "refundPercent": "101" } }), "input.cancellation.refundPercent"),
        (json!({ "waitingRoom": { "admitPerMinute": 0 } }), "input.waitingRoom.admitPerMinute"),
    ] {
        assert_eq!(
            acme.refused("createEvent", event(change.clone())).await,
            ("INVALID_INPUT".to_owned(), field.to_owned()),
            "{change}"
        );
    }
    let venue = |change: Value| {
        let mut input = json!({ "name": "N", "city": "C", "countryCode": "DE", "timeZone": "Europe/Berlin" });
        input.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
        input
    };
    for (change, field) in [
        (json!({ "timeZone": "Mars/Olympus" }), "input.timeZone"),
        (json!({ "countryCode": "Germany" }), "input.countryCode"),
        (json!({ "latitude": 91.0, "longitude": 0.0 }), "input.latitude"),
        (json!({ "latitude": 1.0 }), "input.longitude"),
        (json!({ "city": "\u{0}" }), "input.city"),
    ] {
        assert_eq!(
            acme.refused("createVenue", venue(change.clone())).await,
            ("INVALID_INPUT".to_owned(), field.to_owned()),
            "{change}"
        );
    }
    let mut twice = rows(1, 2);
    twice[0]["rows"][0]["seats"][1]["number"] = json!("1");
    let mut empty = rows(1, 2);
    empty[0]["rows"][0]["seats"] = json!([]);
    for (sections, field) in
        [(twice, "input.sections.0.rows.0.seats.1.number"), (empty, "input.sections.0.rows.0.seats")]
    {
        let input = json!({ "venueId": hall.venue, "name": "L", "sections": sections });
        assert_eq!(acme.refused("createLayout", input).await, ("INVALID_INPUT".to_owned(), field.to_owned()));
    }
    let overflow =
        acme.ask("mutation { createEvent(input: { holdSeconds: 99999999999 }) { __typename } }", json!({})).await;
    assert_eq!(overflow["errors"][0]["extensions"]["code"], "GRAPHQL_VALIDATION_FAILED", "{overflow}");
    let after = stage.number("SELECT (SELECT count(*) FROM event) + (SELECT count(*) FROM hold) + (SELECT count(*) FROM layout) + (SELECT count(*) FROM venue)").await;
    assert_eq!(before, after, "nothing was written");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queries_with_bad_arguments_answer_null_or_bad_user_input() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let mina = stage.buyer("mina");
    let ids = ["", "evt_", "\u{0}", "evt_zz", "nonsense", hall.venue.as_str(), &"x".repeat(10_000)];
    for id in ids {
        let query = "query($id: ID!) { event(id: $id) { id } hold(id: $id) { id } booking(id: $id) { id } seatMap(eventId: $id) { version } organizer(id: $id) { id } layout(id: $id) { id } performer(id: $id) { id } waitingRoom(eventId: $id) { status } }";
        let data = mina.data(query, json!({ "id": id })).await;
        assert!(data.as_object().unwrap().values().all(Value::is_null), "{id}: {data}");
    }
    for query in [
        "{ event { id } }",
        "{ event(id: \"a\", slug: \"b\") { id } }",
        "{ bookings(first: 0) { nodes { id } } }",
        "{ bookings(first: 101) { nodes { id } } }",
        "{ bookings(after: \"?\") { nodes { id } } }",
        "{ searchEvents(sort: PRICE) { totalCount } }",
        "{ searchEvents(sort: DISTANCE) { totalCount } }",
        "{ searchEvents(filter: { priceMin: \"1\" }) { totalCount } }",
        "{ searchEvents(filter: { dateFrom: \"2026-02-30\" }) { totalCount } }",
        "{ searchEvents(after: \"zzz\") { totalCount } }",
    ] {
        let answer = mina.ask(query, json!({})).await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "BAD_USER_INPUT", "{query}: {answer}");
        assert!(answer["data"].as_object().unwrap().values().all(Value::is_null), "the failed field is null: {answer}");
    }
    let nulls = mina.data("query($n: Int) { bookings(first: $n) { nodes { id } } searchEvents(first: null, sort: null) { nodes { id } } }", json!({})).await;
    assert_eq!(nulls["bookings"]["nodes"], json!([]), "null is the default");
    let wrong = mina.ask("query($id: ID!) { a: event(id: $id) { title id } b: seatMap(eventId: $id, sectionIds: [\"sec_1\"]) { version } }", json!({ "id": hall.event })).await;
    assert_eq!(wrong["errors"][0]["path"], json!(["b"]));
    let keys: Vec<&String> = wrong["data"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["a", "b"]);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn real_seating_plans_are_imported_whole() {
    let stage = Stage::new().await;
    let acme = stage.organizer("ACME");
    let venue = stage.venue(&acme).await;
    for (file, seats, code) in [
        ("theatre", 1_057, Some("GUID_REPEATED")),
        ("hall", 1_115, Some("ROW_NAMED")),
        ("racetrack", 8_897, None),
        ("stadium", 39_616, None),
    ] {
        let plan = std::fs::read_to_string(format!("src/seed/data/{file}.plan.json")).unwrap();
        let input = json!({ "venueId": venue, "name": file, "pretixPlan": plan });
        let made = acme
            .must(
                "createLayout",
                input,
                "layout { id seatCount zones sectionNames geometryUrl } notes { code message path }",
            )
            .await;
        assert_eq!(made["layout"]["seatCount"], seats, "every seat is kept");
        let notes = made["notes"].as_array().unwrap();
        assert!(code.is_none_or(|code| notes.iter().any(|note| note["code"] == code)), "{file}: {notes:?}");
        let url = format!("{}{}", acme.url, made["layout"]["geometryUrl"].as_str().unwrap());
        let geometry: Value = reqwest::get(url).await.unwrap().json().await.unwrap();
        let all: Vec<&Value> = geometry["sections"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|section| section["seats"].as_array().unwrap())
            .collect();
        let ids: std::collections::HashSet<&str> = all.iter().map(|seat| seat["seatId"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), seats, "ids are unique");
        let neighbours = all.iter().filter(|seat| seat["next"].is_string()).count();
        assert!(neighbours * 10 > seats * 8, "{file}: most seats have a neighbour, {neighbours} of {seats}");
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn fifty_thousand_seats_are_created_in_chunks_of_under_a_second() {
    let stage = Stage::new().await;
    let acme = stage.organizer("ACME");
    let venue = stage.venue(&acme).await;
    let layout = acme
        .must(
            "createLayout",
            json!({ "venueId": venue, "name": "Arena", "sections": rows(250, 200) }),
            "layout { id seatCount }",
        )
        .await;
    assert_eq!(layout["layout"]["seatCount"], 50_000);
    let started = Instant::now();
    let input = event_input(&venue, layout["layout"]["id"].as_str());
    let event = acme.must("createEvent", input, "event { id version }").await["event"].clone();
    eprintln!("createEvent of 50,000 seats: {:?} (debug build)", started.elapsed());
    let map = acme
        .data(
            "query($id: ID!) { seatMap(eventId: $id) { availableCount sections { statuses } } }",
            json!({ "id": event["id"] }),
        )
        .await;
    assert_eq!(map["seatMap"]["availableCount"], 50_000);
    // A draft whose creation was cut off is finished by a worker, and publish refuses it until then.
    stage.execute("DELETE FROM event_seat WHERE seat_no >= 20000; DELETE FROM event_counter; UPDATE event SET seats_ready = false, created_at = created_at - interval '1 hour'").await;
    let publish = json!({ "eventId": event["id"], "expectedVersion": event["version"] });
    assert_eq!(acme.refused("publishEvent", publish.clone()).await.0, "INVALID_INPUT");
    assert_eq!(stage.servers[0].app.services.catalogue.finish_drafts().await.unwrap(), 1);
    assert_eq!(stage.number("SELECT count(*) FROM event_seat").await, 50_000);
    acme.must("publishEvent", publish, "event { saleStatus }").await;
    stage.finish().await;
}
