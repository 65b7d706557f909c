//! Random sequences of what people do, against a small model in memory; the invariants after every step.

use crate::support::{Api, Setup, Stage, eventually, invariants};
use parterre_entity::HoldId;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const SEATS: usize = 6;
const LIMIT: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Active,
    Overdue,
    Over,
    Sold,
}

#[derive(Clone, Debug)]
struct Held {
    id: Value,
    buyer: usize,
    seats: BTreeSet<usize>,
    state: State,
    booking: Value,
}

/// Who has what, as it should be.
#[derive(Default)]
struct Model {
    holds: Vec<Held>,
}

impl Model {
    fn owner(&self, seat: usize) -> Option<&Held> {
        self.holds.iter().find(|held| matches!(held.state, State::Active | State::Sold) && held.seats.contains(&seat))
    }

    fn has(&self, buyer: usize) -> usize {
        let live = |held: &&Held| held.buyer == buyer && matches!(held.state, State::Active | State::Sold);
        self.holds.iter().filter(live).map(|held| held.seats.len()).sum()
    }

    fn letters(&self) -> String {
        let letter = |seat| match self.owner(seat) {
            Some(Held { state: State::Sold, .. }) => 'S',
            Some(_) => 'H',
            None => 'A',
        };
        (0..SEATS).map(letter).collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_sequences_keep_every_promise() {
    let seed = crate::holds::seed();
    let mut random = StdRng::seed_from_u64(seed);
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, SEATS, |input| input["maxSeatsPerBuyer"] = json!(LIMIT)).await;
    let buyers: Vec<Api> = (0..3).map(|n| stage.buyer(&format!("buyer-{n}"))).collect();
    let mut model = Model::default();
    let mut done: BTreeMap<&str, usize> = BTreeMap::new();
    for step in 0..120 {
        let what = *["hold", "hold", "hold", "release", "overdue", "expire", "pay", "pay", "decline", "cancel"]
            .choose(&mut random)
            .unwrap();
        *done.entry(what).or_default() += 1;
        let chosen = (0..model.holds.len()).collect::<Vec<_>>().choose(&mut random).copied();
        match (what, chosen) {
            ("hold", _) => hold(&mut model, &mut random, (&buyers, &hall.event), step).await,
            (_, None) => {}
            ("overdue", Some(index)) => overdue(&stage, &mut model.holds[index]).await,
            ("expire", Some(index)) => {
                let held = &mut model.holds[index];
                let (_, id) = parterre_schema::parse_node_id(held.id.as_str().unwrap()).unwrap();
                let ended = stage.servers[0].app.services.inventory.expire(HoldId(id)).await.unwrap();
                assert_eq!(ended, held.state == State::Overdue, "step {step}: {held:?}");
                if held.state == State::Overdue {
                    held.state = State::Over;
                }
            }
            ("release", Some(index)) => {
                let held = &mut model.holds[index];
                let payload =
                    buyers[held.buyer].mutate("releaseHold", json!({ "holdId": held.id }), "hold { status }").await;
                let expected = match held.state {
                    State::Active => Some("RELEASED"),
                    State::Overdue => Some("EXPIRED"),
                    State::Over => payload["hold"]["status"].as_str(),
                    State::Sold => None,
                };
                assert_eq!(payload["hold"]["status"].as_str(), expected, "step {step}: {held:?}");
                if held.state != State::Sold {
                    held.state = State::Over;
                }
            }
            ("pay" | "decline", Some(index)) => pay(&mut model.holds[index], (&buyers, what), step).await,
            ("cancel", Some(index)) => {
                let held = &mut model.holds[index];
                let input = json!({ "bookingId": held.booking, "idempotencyKey": format!("x{step}") });
                if held.booking.is_string() {
                    let payload = buyers[held.buyer].mutate("cancel", input, "replayed booking { status }").await;
                    assert_eq!(payload["userErrors"], json!([]), "step {step}: {held:?}");
                    assert_eq!(payload["replayed"], held.state != State::Sold);
                    held.state = State::Over;
                }
            }
            (other, Some(_)) => unreachable!("{other}"),
        }
        while stage.servers[0].app.services.bookings.drive_due().await.unwrap() > 0 {
            tokio::task::yield_now().await;
        }
        let map = buyers[0]
            .data("query($id: ID!) { seatMap(eventId: $id) { sections { statuses } } }", json!({ "id": hall.event }))
            .await;
        assert_eq!(map["seatMap"]["sections"][0]["statuses"], model.letters(), "seed {seed}, step {step}: {what}");
        stage.issue_tickets().await;
        stage.rest().await;
        invariants::check(&stage).await;
    }
    eprintln!("{done:?}");
    stage.finish().await;
}

async fn hold(model: &mut Model, random: &mut StdRng, (buyers, event): (&[Api], &str), step: usize) {
    let buyer = random.random_range(0..buyers.len());
    let first = random.random_range(0..SEATS);
    let seats: BTreeSet<usize> = (first..(first + random.random_range(1..=3)).min(SEATS)).collect();
    let names: Vec<String> = seats.iter().map(|seat| format!("A-{}", seat + 1)).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let payload = buyers[buyer].hold(event, &format!("k{step}"), &names).await;
    let expected = if model.has(buyer) + seats.len() > LIMIT {
        Some("LIMIT_EXCEEDED")
    } else if seats.iter().any(|seat| model.owner(*seat).is_some()) {
        Some("SEATS_UNAVAILABLE")
    } else {
        None
    };
    assert_eq!(payload["userErrors"][0]["code"].as_str(), expected, "step {step}: {payload}");
    if expected.is_none() {
        let id = payload["hold"]["id"].clone();
        model.holds.push(Held { id, buyer, seats, state: State::Active, booking: Value::Null });
    }
}

async fn overdue(stage: &Stage, held: &mut Held) {
    if held.state == State::Active {
        let (_, id) = parterre_schema::parse_node_id(held.id.as_str().unwrap()).unwrap();
        // The database's clock can't be moved, so the row is. The counter moves with it, or the map could not know.
        stage
            .execute(&format!(
                "UPDATE hold SET deadline = clock_timestamp() - interval '1 second' WHERE id = '{id}';
                 UPDATE event_seat SET held_until = (SELECT deadline FROM hold WHERE id = '{id}') WHERE hold_id = '{id}';
                 UPDATE event_counter SET version = version + 1"
            ))
            .await;
        held.state = State::Overdue;
        // The map compares its counters with the database at most every 1.5 seconds.
        let (_, event) = parterre_schema::parse_node_id(&event_of(stage).await).unwrap();
        let maps = &stage.servers[0].app.services.seat_maps;
        let seat = i32::try_from(*held.seats.first().unwrap()).unwrap();
        eventually("the map has noticed", || async {
            let map = maps.of(parterre_entity::EventId(event)).await.unwrap().unwrap();
            (map.letter(seat) == Some('A')).then_some(())
        })
        .await;
    }
}

async fn event_of(stage: &Stage) -> String {
    use sea_orm::ConnectionTrait as _;
    let row =
        stage.db.pool().query_one_raw(parterre::sql!("SELECT 'evt_' || replace(id::text, '-', '') FROM event")).await;
    row.unwrap().unwrap().try_get_by_index(0).unwrap()
}

async fn pay(held: &mut Held, (buyers, what): (&[Api], &str), step: usize) {
    let method = if what == "pay" { "pm_card_visa" } else { "pm_card_chargeDeclined" };
    let payload = buyers[held.buyer].checkout(&held.id, &format!("c{step}"), method).await;
    let (code, status) = (payload["userErrors"][0]["code"].as_str(), payload["booking"]["status"].as_str());
    if held.booking.is_string() {
        assert_eq!(
            (code, payload["replayed"].as_bool()),
            (None, Some(true)),
            "step {step}: a booking answers under any key"
        );
        return;
    }
    match (held.state, what) {
        (State::Active, "pay") => {
            assert_eq!((code, status), (None, Some("CONFIRMED")), "step {step}");
            held.state = State::Sold;
            held.booking = payload["booking"]["id"].clone();
        }
        (State::Active, _) => assert_eq!((code, status), (Some("PAYMENT_DECLINED"), Some("FAILED")), "step {step}"),
        (State::Overdue, _) => assert_eq!(code, Some("HOLD_EXPIRED"), "step {step}"),
        (State::Over | State::Sold, _) => {
            assert!(matches!(code, Some("HOLD_NOT_ACTIVE" | "HOLD_EXPIRED")), "step {step}: {code:?}");
        }
    }
}
