//! The schema's own list of what there is, walked: every mutation, every private field and every object, asked for by
//! those who may not. What is new in the schema fails here until somebody says whose it is.

use crate::support::fixtures::event_input;
use crate::support::{Api, Socket, Stage, eventually};
use async_graphql::parser::parse_schema;
use async_graphql::parser::types::{TypeKind, TypeSystemDefinition};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Fields of a type, or the types that implement an interface.
fn fields_of(wanted: &str) -> BTreeSet<String> {
    let document = parse_schema(parterre::graphql::sdl()).unwrap();
    let mut found = BTreeSet::new();
    for definition in &document.definitions {
        let TypeSystemDefinition::Type(definition) = definition else { continue };
        let TypeKind::Object(object) = &definition.node.kind else { continue };
        if definition.node.name.node == wanted {
            found.extend(object.fields.iter().map(|field| field.node.name.node.to_string()));
        }
        if object.implements.iter().any(|name| name.node == wanted) {
            found.insert(definition.node.name.node.to_string());
        }
    }
    found
}

/// Who may call a mutation, and what somebody who may not is told.
#[derive(Clone, Copy, PartialEq)]
enum Whose {
    /// Anybody's with a token: it is about oneself.
    Own,
    /// One buyer's: to another there is no such thing.
    Buyers,
    /// Any organization's: it makes something of its own.
    Organizers,
    /// One organization's.
    Organizations,
}

struct World {
    mina: Api,
    acme: Api,
    event: String,
    draft: String,
    venue: String,
    performer: String,
    layout: String,
    hold: Value,
    booking: Value,
    objects: BTreeMap<&'static str, Value>,
}

async fn world(stage: &Stage) -> World {
    let hall = stage.hall(1, 10, |_| {}).await;
    let (mina, acme) = (stage.buyer("mina"), hall.organizer.clone());
    let made = acme.must("createPerformer", json!({ "name": "Ada" }), "performer { id }").await;
    let performer = made["performer"]["id"].as_str().unwrap().to_owned();
    let layout = hall.layout.clone().unwrap();
    let draft = acme.must("createEvent", event_input(&hall.venue, Some(&layout)), "event { id }").await;
    let paid = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let booking = mina.checkout(&paid, "c", "pm_card_visa").await["booking"]["id"].clone();
    let hold = mina.hold(&hall.event, "k2", &["A-2"]).await["hold"]["id"].clone();
    let cancelled = mina.hold(&hall.event, "k3", &["A-3"]).await["hold"]["id"].clone();
    let cancelled = mina.checkout(&cancelled, "c3", "pm_card_visa").await["booking"]["id"].clone();
    mina.must("cancel", json!({ "bookingId": cancelled, "idempotencyKey": "x" }), "__typename").await;
    let query = "query($id: ID) { booking(id: $id) { payment { id } tickets { id } refunds { id } } }";
    let read = async |id: &Value| mina.data(query, json!({ "id": id })).await["booking"].clone();
    let full = eventually("tickets", || async {
        let full = read(&booking).await;
        full["tickets"][0]["id"].is_string().then_some(full)
    })
    .await;
    let refunded = read(&cancelled).await;
    let organizer =
        acme.data("query($id: ID) { event(id: $id) { organizer { id } } }", json!({ "id": hall.event })).await;
    let objects = BTreeMap::from([
        ("Hold", hold.clone()),
        ("Booking", booking.clone()),
        ("Payment", full["payment"]["id"].clone()),
        ("Ticket", full["tickets"][0]["id"].clone()),
        ("Refund", refunded["refunds"][0]["id"].clone()),
        ("Event", json!(hall.event)),
        ("Venue", json!(hall.venue)),
        ("Performer", json!(performer)),
        ("Layout", json!(layout)),
        ("Organizer", organizer["event"]["organizer"]["id"].clone()),
    ]);
    let draft = draft["event"]["id"].as_str().unwrap().to_owned();
    World { mina, acme, event: hall.event, draft, venue: hall.venue, performer, layout, hold, booking, objects }
}

impl World {
    /// Every mutation: whose it is, and an input that its owner could send.
    fn mutations(&self) -> Vec<(&'static str, Whose, Value)> {
        use Whose::{Buyers, Organizations, Organizers, Own};
        let event = json!({ "eventId": self.event, "expectedVersion": "1" });
        vec![
            ("joinWaitingRoom", Own, json!({ "eventId": self.event })),
            ("leaveWaitingRoom", Own, json!({ "eventId": self.event })),
            ("holdSeats", Own, json!({ "eventId": self.event, "idempotencyKey": "a", "seatIds": ["A-8"] })),
            ("releaseHold", Buyers, json!({ "holdId": self.hold })),
            (
                "checkout",
                Buyers,
                json!({ "holdId": self.hold, "idempotencyKey": "a", "paymentMethod": "pm_card_visa" }),
            ),
            ("cancel", Buyers, json!({ "bookingId": self.booking, "idempotencyKey": "a" })),
            (
                "createVenue",
                Organizers,
                json!({ "name": "N", "city": "C", "countryCode": "DE", "timeZone": "Europe/Berlin" }),
            ),
            ("createPerformer", Organizers, json!({ "name": "N" })),
            (
                "createLayout",
                Organizations,
                json!({ "venueId": self.venue, "name": "L", "sections": crate::support::fixtures::rows(1, 1) }),
            ),
            ("createEvent", Organizations, event_input(&self.venue, Some(&self.layout))),
            ("updateVenue", Organizations, json!({ "venueId": self.venue, "expectedVersion": "1", "name": "N" })),
            (
                "updatePerformer",
                Organizations,
                json!({ "performerId": self.performer, "expectedVersion": "1", "name": "N" }),
            ),
            ("updateEvent", Organizations, json!({ "eventId": self.event, "expectedVersion": "1", "title": "T" })),
            ("publishEvent", Organizations, json!({ "eventId": self.draft, "expectedVersion": "1" })),
            ("pauseSales", Organizations, event.clone()),
            ("resumeSales", Organizations, event.clone()),
            ("cancelEvent", Organizations, event),
            ("blockSeats", Organizations, json!({ "eventId": self.event, "seatIds": ["A-9"], "blocked": true })),
        ]
    }
}

/// What the tables say that a stranger must not have changed.
async fn written(stage: &Stage) -> String {
    stage
        .text(
            "SELECT jsonb_build_array(
                (SELECT jsonb_agg(to_jsonb(event) ORDER BY id) FROM event), (SELECT jsonb_agg(to_jsonb(venue) ORDER BY id) FROM venue),
                (SELECT jsonb_agg(to_jsonb(performer) ORDER BY id) FROM performer), (SELECT count(*) FROM layout),
                (SELECT jsonb_agg(to_jsonb(event_seat) ORDER BY event_id, seat_no) FROM event_seat),
                (SELECT jsonb_agg(to_jsonb(hold) ORDER BY id) FROM hold), (SELECT jsonb_agg(to_jsonb(booking) ORDER BY id) FROM booking))::text",
        )
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_mutation_is_refused_to_those_who_may_not() {
    let stage = Stage::new().await;
    let world = world(&stage).await;
    stage.rest().await;
    let mutations = world.mutations();
    let listed: BTreeSet<String> = mutations.iter().map(|(name, _, _)| (*name).to_owned()).collect();
    assert_eq!(listed, fields_of("Mutation"), "whose is it?");
    let (stranger, leo, globex) = (stage.stranger(), stage.buyer("leo"), stage.organizer("Globex"));
    // So that Globex is there before anything is compared.
    globex.must("createPerformer", json!({ "name": "Theirs" }), "__typename").await;
    let before = written(&stage).await;
    for (name, whose, input) in &mutations {
        let kind = format!("{}{}Input", name[..1].to_uppercase(), &name[1..]);
        let query = format!("mutation($input: {kind}!) {{ {name}(input: $input) {{ userErrors {{ code }} }} }}");
        let answer = stranger.ask(&query, json!({ "input": input })).await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "UNAUTHENTICATED", "{name}: {answer}");
        assert_eq!(answer["data"][name], Value::Null, "{name}");
        let told = async |who: &Api| who.refused(name, input.clone()).await.0;
        match whose {
            Whose::Own => {}
            Whose::Buyers => {
                assert_eq!(told(&leo).await, "NOT_FOUND", "{name}");
                assert_eq!(told(&globex).await, "NOT_FOUND", "{name}");
                assert_eq!(told(&world.acme).await, "NOT_FOUND", "{name}: the organizer is no buyer");
            }
            Whose::Organizers => assert_eq!(told(&leo).await, "FORBIDDEN", "{name}"),
            Whose::Organizations => {
                assert_eq!(told(&leo).await, "FORBIDDEN", "{name}");
                assert_eq!(told(&world.mina).await, "FORBIDDEN", "{name}");
                assert_eq!(told(&globex).await, "NOT_FOUND", "{name}");
            }
        }
    }
    assert_eq!(written(&stage).await, before, "nobody changed anything");
    // The inputs are right: whoever may can send them.
    let mut allowed = 0;
    for (name, whose, input) in mutations {
        let who = if matches!(whose, Whose::Own | Whose::Buyers) { &world.mina } else { &world.acme };
        let (code, _) = who.refused(name, input).await;
        assert!(
            ["none", "STALE_VERSION", "HOLD_NOT_ACTIVE", "SALE_NOT_OPEN", "INVALID_INPUT"].contains(&code.as_str()),
            "{name}: {code}"
        );
        allowed += usize::from(code == "none");
    }
    assert!(allowed > 10, "most went through: {allowed}");
    stage.finish().await;
}

/// Objects that belong to one buyer; all others are everybody's to read.
const OWNED: [&str; 5] = ["Booking", "Hold", "Payment", "Refund", "Ticket"];
/// Root fields that are about whoever asks.
const PRIVATE: [(&str, &str); 5] = [
    ("booking", "booking(id: \"x\") { id }"),
    ("bookings", "bookings { nodes { id } }"),
    ("hold", "hold(id: \"x\") { id }"),
    ("holds", "holds { nodes { id } }"),
    ("waitingRoom", "waitingRoom(eventId: \"x\") { status }"),
];
const PUBLIC: [&str; 9] =
    ["event", "layout", "node", "nodes", "organizer", "performer", "searchEvents", "seatMap", "venue"];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_object_and_every_private_field_is_its_owners_alone() {
    let stage = Stage::new().await;
    let world = world(&stage).await;
    let others = [stage.stranger(), stage.buyer("leo"), stage.organizer("Globex"), world.acme.clone()];
    let known: BTreeSet<String> = world.objects.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(known, fields_of("Node"), "whose is it?");
    let query = "query($id: ID!) { node(id: $id) { __typename id } nodes(ids: [$id]) { id } }";
    for (name, id) in &world.objects {
        let own = world.mina.data(query, json!({ "id": id })).await;
        assert_eq!(own["node"], json!({ "__typename": name, "id": id }));
        for other in &others {
            let seen = other.data(query, json!({ "id": id })).await;
            let expected = if OWNED.contains(name) { Value::Null } else { own["node"].clone() };
            assert_eq!(seen["node"], expected, "{name}");
            assert_eq!(seen["nodes"][0].is_null(), OWNED.contains(name), "{name}");
        }
    }
    for other in [&others[0], &others[1], &others[2]] {
        assert_eq!(other.data(query, json!({ "id": world.draft })).await["node"], Value::Null, "a draft");
    }
    let listed: BTreeSet<String> = PRIVATE.iter().map(|(name, _)| *name).chain(PUBLIC).map(str::to_owned).collect();
    assert_eq!(listed, fields_of("Query"), "is it private?");
    for (name, field) in PRIVATE {
        let answer = others[0].ask(&format!("{{ {field} }}"), json!({})).await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "UNAUTHENTICATED", "{name}: {answer}");
    }
    let streams = BTreeMap::from([
        ("bookingUpdated", ("bookingUpdated(id: $id) { id }", &world.booking, true)),
        ("seatMapChanged", ("seatMapChanged(eventId: $id) { __typename }", &world.objects["Event"], false)),
        ("waitingRoomUpdated", ("waitingRoomUpdated(eventId: $id) { status }", &world.objects["Event"], true)),
    ]);
    let listed: BTreeSet<String> = streams.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(listed, fields_of("Subscription"), "whose is it?");
    for (name, (field, id, private)) in streams {
        let mut socket = Socket::open(&others[0]).await;
        socket.subscribe(&format!("subscription($id: ID!) {{ {field} }}"), json!({ "id": id })).await;
        let told = socket.message().await;
        assert_eq!(told["type"] == "error", private, "{name}: {told}");
        if private {
            assert_eq!(told["payload"][0]["extensions"]["code"], "UNAUTHENTICATED", "{name}: {told}");
        }
    }
    stage.finish().await;
}
