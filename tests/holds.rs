//! Holds under races: on two servers, with real locks. Each race has a control that shows that it is one.

use crate::support::fixtures::in_seconds;
use crate::support::{Api, Setup, Stage, eventually};
use parterre::inventory::{Answer, HoldRequest};
use parterre_entity::{EventId, HoldId};
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rand::{Rng as _, SeedableRng as _};
use sea_orm::ConnectionTrait;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

pub fn two_servers() -> Setup {
    Setup { servers: 2, redis: true, ..Setup::default() }
}

/// A seed that is printed, so that a failure can be had again.
#[expect(clippy::disallowed_methods, reason = "a failure is had again with the seed it printed")]
pub fn seed() -> u64 {
    let given = std::env::var("PARTERRE_SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = given.unwrap_or_else(|| rand::rng().random());
    eprintln!("seed: {seed}");
    seed
}

fn code(payload: &Value) -> &str {
    payload["userErrors"][0]["code"].as_str().unwrap_or("none")
}

fn seats_of(hold: &Value) -> Vec<String> {
    let items = hold["items"].as_array().unwrap();
    items.iter().map(|item| item["seat"]["seatId"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_buyers_on_overlapping_groups_of_one_row_on_two_servers() {
    let stage = Stage::with(two_servers()).await;
    let hall = stage.hall(1, 30, |_| {}).await;
    let mut random = StdRng::seed_from_u64(seed());
    let wishes: Vec<(Api, Vec<String>)> = (0..200)
        .map(|n| {
            let (start, size) = (random.random_range(1..=27), random.random_range(1..=3));
            let mut seats: Vec<String> = (start..start + size).map(|seat| format!("A-{seat}")).collect();
            seats.shuffle(&mut random);
            (stage.buyer_at(n % 2, &format!("buyer-{n}")), seats)
        })
        .collect();
    let asked = wishes.iter().map(|(api, seats)| {
        let seats: Vec<&str> = seats.iter().map(String::as_str).collect();
        let event = hall.event.clone();
        async move { api.hold(&event, "k", &seats).await }
    });
    let answers = futures_util::future::join_all(asked).await;
    let mut owners: BTreeMap<String, usize> = BTreeMap::new();
    for (n, (answer, (_, wish))) in answers.iter().zip(&wishes).enumerate() {
        if answer["hold"].is_null() {
            assert_eq!(code(answer), "SEATS_UNAVAILABLE", "{answer}");
            continue;
        }
        let (got, wanted): (BTreeSet<String>, BTreeSet<String>) =
            (seats_of(&answer["hold"]).into_iter().collect(), wish.iter().cloned().collect());
        assert_eq!(got, wanted, "a group is whole");
        for seat in got {
            assert_eq!(owners.insert(seat.clone(), n), None, "{seat} has two owners");
        }
    }
    assert!(owners.len() >= 10, "most seats found somebody");
    stage.finish().await;
}

/// The control: the same race on servers whose check of the seat's state is switched off sells seats twice, and the
/// auditor says so.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_check_the_same_race_sells_seats_twice() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 4, |_| {}).await;
    let mut processes = Vec::new();
    for _ in 0..2 {
        let data = stage.folder.join(uuid::Uuid::now_v7().to_string());
        let careless = || {
            let mut command = crate::process::command(&stage, "serve");
            command.env("PARTERRE_SKIP", "seat_check").env("PARTERRE_DATA", &data);
            command
        };
        processes.push(crate::process::start_with(careless).await);
    }
    let asked = (0..40).map(|n| {
        let api = Api::new(&processes[n % 2].url, stage.buyer(&format!("buyer-{n}")).token);
        let event = hall.event.clone();
        async move { api.hold(&event, "k", &[&format!("A-{}", n % 4 + 1)]).await["hold"].is_object() }
    });
    let held = futures_util::future::join_all(asked).await.into_iter().filter(|held| *held).count();
    assert!(held > 4, "four seats were given to {held} people");
    let violations =
        parterre::auditor::check(&stage.db, chrono::Duration::zero(), parterre::db::Pace::Full).await.unwrap();
    assert!(violations.iter().any(|violation| violation.invariant.starts_with("I1")), "{violations:?}");
    stage.discard().await;
}

async fn fifty_times(stage: &Stage, input: Value) {
    let asked = (0..50).map(|n| {
        let (api, input) = (stage.buyer_at(n % 2, "mina"), input.clone());
        async move { api.mutate("holdSeats", input, "replayed hold { id expiresAt items { seat { seatId } } }").await }
    });
    let answers = futures_util::future::join_all(asked).await;
    let holds: BTreeSet<String> = answers.iter().map(|answer| answer["hold"].to_string()).collect();
    assert_eq!(holds.len(), 1, "one hold, one deadline: {holds:?}");
    assert_eq!(answers.iter().filter(|answer| answer["replayed"] == false).count(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_same_request_fifty_times_in_parallel_is_one_hold() {
    let stage = Stage::with(two_servers()).await;
    let hall = stage
        .hall(2, 10, |input| {
            input["inventoryMode"] = json!("MIXED");
            input["tiers"] = json!([{ "name": "Floor", "price": "10", "capacity": 50 }]);
            input["maxSeatsPerBuyer"] = json!(20);
        })
        .await;
    let tier = &hall.tiers[0].1;
    fifty_times(&stage, json!({ "eventId": hall.event, "idempotencyKey": "seats", "seatIds": ["A-1", "A-2"] })).await;
    fifty_times(
        &stage,
        json!({ "eventId": hall.event, "idempotencyKey": "tiers", "admissions": [{ "tierId": tier, "quantity": 3 }] }),
    )
    .await;
    fifty_times(&stage, json!({ "eventId": hall.event, "idempotencyKey": "best", "bestAvailable": { "quantity": 2 } }))
        .await;
    let mina = stage.buyer("mina");
    let turned = mina.hold(&hall.event, "seats", &["A-2", "A-1"]).await;
    assert_eq!(turned["replayed"], true, "seats in another order are the same request");
    let other = mina.hold(&hall.event, "seats", &["A-1", "A-3"]).await;
    assert_eq!(code(&other), "IDEMPOTENCY_KEY_REUSED");
    let leo = stage.buyer("leo").hold(&hall.event, "seats", &["B-1"]).await;
    assert_eq!(code(&leo), "none", "another buyer's key is another key");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_poisoned_request_in_a_batch_fails_alone() {
    let stage = Stage::new().await;
    let hall = stage.hall(8, 33, |_| {}).await;
    let (_, event) = parterre_schema::parse_node_id(&hall.event).unwrap();
    let inventory = stage.servers[0].app.services.inventory.clone();
    let asked = (0..256).map(|n| {
        // A NUL byte in a text is an error of the database: no API lets one in.
        let buyer = if n == 100 { "\0".to_owned() } else { format!("buyer-{n}") };
        let request = HoldRequest {
            hold: HoldId::new(),
            event: EventId(event),
            buyer,
            key: "k".into(),
            fingerprint: "f".into(),
            seats: vec![n],
            tiers: Vec::new(),
            best: None,
            layout: None,
        };
        let inventory = inventory.clone();
        async move { inventory.hold(request).await }
    });
    let answers = futures_util::future::join_all(asked).await;
    let held = answers.iter().filter(|answer| matches!(answer, Ok(Answer::Held { .. }))).count();
    assert_eq!(held, 255);
    assert!(answers[100].is_err());
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_late_clean_up_of_an_old_hold_changes_nothing_of_the_new_one() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let first = mina.hold(&hall.event, "k", &["A-1"]).await["hold"].clone();
    stage.age_holds().await;
    let read = mina.data("query($id: ID!) { hold(id: $id) { status } }", json!({ "id": first["id"] })).await;
    assert_eq!(read["hold"]["status"], "EXPIRED", "whether or not a worker has come by");
    let second = leo.hold(&hall.event, "k", &["A-1"]).await["hold"].clone();
    assert_eq!(second["status"], "ACTIVE", "claimed the moment the deadline passed");
    let (_, id) = parterre_schema::parse_node_id(first["id"].as_str().unwrap()).unwrap();
    let seat = "SELECT count(*) FROM event_seat WHERE status = 'HELD' AND hold_id IS NOT NULL AND held_until > clock_timestamp()";
    let paid = mina.checkout(&first["id"], "c", "pm_card_visa").await;
    assert_eq!(code(&paid), "HOLD_EXPIRED");
    assert_eq!(stage.number(seat).await, 1);
    assert!(stage.servers[0].app.services.inventory.expire(HoldId(id)).await.unwrap());
    assert_eq!(stage.number(seat).await, 1);
    let released = mina.must("releaseHold", json!({ "holdId": first["id"] }), "hold { status }").await;
    assert_eq!(released["hold"]["status"], "EXPIRED");
    assert_eq!(stage.number(seat).await, 1);
    let again = leo.must("releaseHold", json!({ "holdId": second["id"] }), "hold { status }").await;
    assert_eq!(again["hold"]["status"], "RELEASED");
    assert_eq!(stage.number("SELECT count(*) FROM event_seat WHERE status = 'AVAILABLE'").await, 5);
    stage.finish().await;
}

async fn somebody_waits_for_a_lock(stage: &Stage) {
    eventually("somebody waits for the lock", || async {
        (stage
            .number(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'",
            )
            .await
            > 0)
        .then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_had_after_the_deadline_judges_by_the_fresh_clock_and_the_fresh_row() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 5, |input| input["holdSeconds"] = json!(60)).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    assert_eq!(code(&mina.hold(&hall.event, "k", &["A-1"]).await), "none");
    // Somebody has the row; meanwhile the deadline passes. A clock read before the wait would still say HELD.
    let blocker = stage.db.begin("blocker").await.unwrap();
    blocker
        .execute_unprepared(
            "UPDATE event_seat SET held_until = clock_timestamp() + interval '300 milliseconds' WHERE seat_no = 0;
             UPDATE hold SET deadline = (SELECT held_until FROM event_seat WHERE seat_no = 0)",
        )
        .await
        .unwrap();
    let event = hall.event.clone();
    let waiting = tokio::spawn(async move { leo.hold(&event, "k", &["A-1"]).await });
    somebody_waits_for_a_lock(&stage).await;
    blocker.execute_unprepared("SELECT pg_sleep(0.4)").await.unwrap();
    blocker.commit().await.unwrap();
    assert_eq!(code(&waiting.await.unwrap()), "none", "the deadline passed while it waited");

    // A seat that another transaction gives away while we wait is seen as taken.
    let blocker = stage.db.begin("blocker").await.unwrap();
    blocker.execute_unprepared("UPDATE event_seat SET status = 'BLOCKED' WHERE seat_no = 1").await.unwrap();
    let (event, ada) = (hall.event.clone(), stage.buyer("ada"));
    let waiting = tokio::spawn(async move { ada.hold(&event, "k", &["A-2"]).await });
    somebody_waits_for_a_lock(&stage).await;
    blocker.commit().await.unwrap();
    let refused = waiting.await.unwrap();
    assert_eq!(code(&refused), "SEATS_UNAVAILABLE");
    assert_eq!(refused["userErrors"][0]["conflicts"][0]["status"], "BLOCKED");
    stage.execute("UPDATE event_seat SET status = 'AVAILABLE' WHERE seat_no = 1").await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn overdue_admissions_are_given_back_by_claims_while_they_end_in_other_ways() {
    let stage = Stage::with(two_servers()).await;
    let hall = stage.club(80, |input| input["maxSeatsPerBuyer"] = json!(2)).await;
    let tier = hall.tiers[0].1.clone();
    let admit = |api: Api, key: String| {
        let input =
            json!({ "eventId": hall.event, "idempotencyKey": key, "admissions": [{ "tierId": tier, "quantity": 2 }] });
        async move { (api.mutate("holdSeats", input, "hold { id }").await, api) }
    };
    for round in 0..4 {
        let firsts = futures_util::future::join_all(
            (0..20).map(|n| admit(stage.buyer_at(n % 2, &format!("r{round}-{n}")), "k".into())),
        )
        .await;
        // Some are being paid while the rest runs out: their conversion races with the claims.
        let paying = firsts.iter().take(5).map(|(payload, api)| {
            let (id, api) = (payload["hold"]["id"].clone(), api.clone());
            tokio::spawn(async move { api.checkout(&id, "slow", "pm_sim_slow_60").await })
        });
        let paying: Vec<_> = paying.collect();
        stage.age_holds().await;
        let releases = firsts.iter().map(|(payload, api)| {
            let (id, api) = (payload["hold"]["id"].clone(), api.clone());
            async move {
                if id.is_string() {
                    api.mutate("releaseHold", json!({ "holdId": id }), "__typename").await;
                    api.checkout(&id, "c", "pm_card_visa").await;
                }
            }
        });
        let seconds = (0..20).map(|n| admit(stage.buyer_at(n % 2, &format!("s{round}-{n}")), "k".into()));
        let ((), claimed) = tokio::join!(
            async { drop(futures_util::future::join_all(releases).await) },
            futures_util::future::join_all(seconds)
        );
        let held = claimed.iter().filter(|(payload, _)| payload["hold"]["id"].is_string()).count();
        assert!(held > 0, "what ran out can be had again");
        for task in paying {
            task.await.unwrap();
        }
        stage.rest().await;
        stage.age_holds().await;
        eventually("everything that was not paid has run out", || async {
            (stage.number("SELECT (capacity - available - sold)::bigint FROM event_tier").await == 0).then_some(())
        })
        .await;
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_left_and_two_requests_of_two() {
    let stage = Stage::with(two_servers()).await;
    let hall = stage.club(2, |_| {}).await;
    let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "admissions": [{ "tierId": hall.tiers[0].1, "quantity": 2 }] });
    let (mina, leo) = (stage.buyer_at(0, "mina"), stage.buyer_at(1, "leo"));
    let (one, two) = tokio::join!(
        mina.mutate("holdSeats", input.clone(), "hold { id }"),
        leo.mutate("holdSeats", input, "hold { id }")
    );
    let mut codes = [code(&one), code(&two)];
    codes.sort_unstable();
    assert_eq!(codes, ["SOLD_OUT", "none"]);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_buyers_limit_holds_under_parallel_requests_on_two_servers() {
    let stage = Stage::with(two_servers()).await;
    let hall = stage.hall(1, 30, |input| input["maxSeatsPerBuyer"] = json!(5)).await;
    let asked =
        (0..15).map(|n| {
            let (api, event) = (stage.buyer_at(n % 2, "mina"), hall.event.clone());
            async move {
                api.hold(&event, &format!("k{n}"), &[&format!("A-{}", 2 * n + 1), &format!("A-{}", 2 * n + 2)]).await
            }
        });
    let answers = futures_util::future::join_all(asked).await;
    let held = answers.iter().filter(|answer| answer["hold"].is_object()).count();
    assert_eq!(held, 2, "two of two make four, a third would make six");
    for refused in answers.iter().filter(|answer| answer["hold"].is_null()) {
        assert_eq!((code(refused), &refused["userErrors"][0]["limit"]), ("LIMIT_EXCEEDED", &json!(5)));
    }
    stage.finish().await;
}

/// The sale is stopped while batches are in flight: some were held before, none is after.
async fn nothing_slips_through(step: &str) {
    let stage = Stage::with(Setup { workers: false, ..two_servers() }).await;
    let hall = stage.hall(4, 50, |_| {}).await;
    let version = hall
        .organizer
        .data("query($id: ID) { event(id: $id) { version } }", json!({ "id": hall.event }))
        .await["event"]["version"]
        .clone();
    // Each shopper goes on until the sale is refused, so that requests are in flight on both servers at the step.
    let shoppers = (0..8).map(|shopper| {
        let (api, event) = (stage.buyer_at(shopper % 2, &format!("buyer-{shopper}")), hall.event.clone());
        tokio::spawn(async move {
            for n in 0..25 {
                let row = ["A", "B", "C", "D"][shopper / 2];
                let seat = format!("{row}-{}", shopper % 2 * 25 + n + 1);
                let answer = api.hold(&event, &format!("k{n}"), &[&seat]).await;
                if answer["hold"].is_null() {
                    return code(&answer).to_owned();
                }
                api.mutate("releaseHold", json!({ "holdId": answer["hold"]["id"] }), "__typename").await;
            }
            "never refused".to_owned()
        })
    });
    let shoppers: Vec<_> = shoppers.collect();
    eventually("some are held", || async { (stage.number("SELECT count(*) FROM hold").await > 8).then_some(()) }).await;
    let input = json!({ "eventId": hall.event, "expectedVersion": version });
    hall.organizer.must(step, input, "event { saleStatus }").await;
    let at_step = stage.number("SELECT count(*) FROM hold").await;
    for shopper in shoppers {
        assert_eq!(shopper.await.unwrap(), "SALE_NOT_OPEN");
    }
    assert_eq!(stage.number("SELECT count(*) FROM hold").await, at_step, "no hold after {step} committed");
    assert!(at_step < 200, "the sale was stopped in the middle");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_slips_through_after_a_pause() {
    nothing_slips_through("pauseSales").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_slips_through_after_a_cancellation() {
    nothing_slips_through("cancelEvent").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn best_available_for_many_at_once_gives_everybody_a_group_of_neighbours() {
    let stage = Stage::with(two_servers()).await;
    let hall = stage.hall(5, 12, |_| {}).await;
    let asked = (0..40).map(|n| {
        let api = stage.buyer_at(n % 2, &format!("buyer-{n}"));
        let input = json!({ "eventId": hall.event, "idempotencyKey": "k", "bestAvailable": { "quantity": 2 } });
        async move { api.mutate("holdSeats", input, "hold { items { seat { seatId row number } } }").await }
    });
    let answers = futures_util::future::join_all(asked).await;
    let mut taken = BTreeSet::new();
    let mut held = 0;
    for answer in &answers {
        let Some(items) = answer["hold"]["items"].as_array() else {
            assert_eq!(code(answer), "SOLD_OUT");
            continue;
        };
        held += 1;
        let at = |item: &Value| {
            (item["seat"]["row"].to_string(), item["seat"]["number"].as_str().unwrap().parse::<i32>().unwrap())
        };
        let (first, second) = (at(&items[0]), at(&items[1]));
        assert_eq!((&first.0, first.1 + 1), (&second.0, second.1), "side by side");
        assert!(taken.insert(first) && taken.insert(second), "nobody shares a seat");
    }
    assert!(held >= 25, "a pair in the middle of twelve leaves five on each side: {held}");
    let pairs_left = "SELECT count(*) FROM event_seat AS a JOIN event_seat AS b ON b.seat_no = a.seat_no + 1
        WHERE a.seat_no % 12 < 11 AND a.status = 'AVAILABLE' AND b.status = 'AVAILABLE'";
    assert_eq!(stage.number(pairs_left).await, 0, "nobody was refused while two neighbours were left");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_names_the_seats_and_when_they_may_be_free() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let first = mina.hold(&hall.event, "k", &["A-2"]).await["hold"].clone();
    let refused = leo.hold(&hall.event, "k", &["A-1", "A-2"]).await;
    let conflicts = &refused["userErrors"][0]["conflicts"];
    assert_eq!(conflicts.as_array().unwrap().len(), 1);
    assert_eq!((conflicts[0]["seatId"].as_str(), conflicts[0]["status"].as_str()), (Some("A-2"), Some("HELD")));
    assert_eq!(conflicts[0]["availableAgainAt"], first["expiresAt"]);
    assert_eq!(
        stage.number("SELECT count(*) FROM event_seat WHERE status = 'HELD'").await,
        1,
        "nothing of the group was held"
    );
    let same_key = leo.hold(&hall.event, "k", &["A-3"]).await;
    assert_eq!(code(&same_key), "none", "a refusal is not remembered");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_deadline_never_moves_and_a_replay_outlives_the_sale() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let mina = stage.buyer("mina");
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"].clone();
    let first = hold["expiresAt"].clone();
    for n in 0..20 {
        let declined = mina.checkout(&hold["id"], &format!("c{n}"), "pm_card_chargeDeclined").await;
        assert_eq!(code(&declined), "PAYMENT_DECLINED");
        assert_eq!(mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["expiresAt"], first);
    }
    let read = hall.organizer.data("query($id: ID) { event(id: $id) { version } }", json!({ "id": hall.event })).await;
    let closed = json!({ "eventId": hall.event, "expectedVersion": read["event"]["version"], "onSaleAt": in_seconds(-7_200), "offSaleAt": in_seconds(-3_600) });
    hall.organizer.must("updateEvent", closed, "event { saleStatus }").await;
    let replayed = mina.hold(&hall.event, "k", &["A-1"]).await;
    assert_eq!((&replayed["replayed"], &replayed["hold"]["expiresAt"]), (&json!(true), &first));
    assert_eq!(code(&mina.hold(&hall.event, "k2", &["A-2"]).await), "SALE_NOT_OPEN");
    stage.finish().await;
}

/// Two sections of one event are held at once by two buyers, one of them behind a lock: the other does not wait for it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn buyers_of_different_seats_do_not_wait_for_each_others_locks() {
    let stage = Stage::with(two_servers()).await;
    let hall = stage.hall(2, 5, |_| {}).await;
    let blocker = stage.db.begin("blocker").await.unwrap();
    blocker.execute_unprepared("SELECT FROM event_seat WHERE seat_no = 0 FOR UPDATE").await.unwrap();
    let (mina, leo) = (stage.buyer_at(0, "mina"), stage.buyer_at(1, "leo"));
    let event = hall.event.clone();
    let waiting = tokio::spawn(async move { mina.hold(&event, "k", &["A-1"]).await });
    assert_eq!(code(&leo.hold(&hall.event, "k", &["B-1"]).await), "none");
    assert!(!waiting.is_finished(), "the first still waits for its own lock");
    blocker.commit().await.unwrap();
    assert_eq!(code(&waiting.await.unwrap()), "none");
    stage.finish().await;
}
