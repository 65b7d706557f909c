//! The edge beside GraphQL itself: caches, other pages, persisted queries, ids of requests, limits of the second stage.

use crate::support::{Api, Setup, Stage, eventually};
use parterre::config::Limits;
use reqwest::header::HeaderMap;
use reqwest::{Client, Method, Response};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

fn header<'a>(headers: &'a HeaderMap, name: &str) -> &'a str {
    headers.get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn persisted_queries_are_asked_for_by_hash_and_kept_by_caches() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let url = format!("{}/graphql", stage.servers[0].url);
    let query = "query($id: ID) { event(id: $id) { title } }";
    let hash = hex::encode(Sha256::digest(query));
    let extensions = |hash: &str| json!({ "persistedQuery": { "version": 1, "sha256Hash": hash } }).to_string();
    let variables = json!({ "id": hall.event }).to_string();
    let client = Client::new();
    let get = |extra: Vec<(&'static str, String)>, known: Option<String>, token: Option<String>| {
        let mut request = client.get(&url).query(&[("variables", &variables)]).query(&extra);
        if let Some(known) = known {
            request = request.header("if-none-match", known);
        }
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        async move { request.send().await.unwrap() }
    };
    let unknown = get(vec![("extensions", extensions(&hash))], None, None).await;
    assert_eq!(header(unknown.headers(), "cache-control"), "no-store");
    let unknown: Value = unknown.json().await.unwrap();
    assert_eq!(unknown["errors"][0]["message"], "PersistedQueryNotFound");
    assert_eq!(unknown["errors"][0]["extensions"]["code"], "PERSISTED_QUERY_NOT_FOUND");
    let wrong = get(vec![("extensions", extensions(&"0".repeat(64))), ("query", query.to_owned())], None, None).await;
    assert_eq!(wrong.status(), 400);
    let registered = get(vec![("extensions", extensions(&hash)), ("query", query.to_owned())], None, None).await;
    assert_eq!(registered.status(), 200);
    let by_hash = get(vec![("extensions", extensions(&hash))], None, None).await;
    assert_eq!(header(by_hash.headers(), "cache-control"), "public, max-age=60, stale-while-revalidate=120");
    assert!(header(by_hash.headers(), "vary").contains("Authorization"));
    let tag = header(by_hash.headers(), "etag").to_owned();
    assert_eq!(by_hash.json::<Value>().await.unwrap()["data"]["event"]["title"], "Aida");
    let same = get(vec![("extensions", extensions(&hash))], Some(format!("W/{tag}, \"x\"")), None).await;
    assert_eq!(same.status(), 304);
    assert_eq!(header(same.headers(), "etag"), tag);
    assert_eq!(same.text().await.unwrap(), "");
    let own = get(vec![("extensions", extensions(&hash))], None, stage.buyer("mina").token).await;
    assert_eq!(header(own.headers(), "cache-control"), "private, no-cache");
    let mutation = "mutation { releaseHold(input: { holdId: \"x\" }) { __typename } }";
    let hash = hex::encode(Sha256::digest(mutation));
    let body = json!({ "query": mutation, "extensions": { "persistedQuery": { "version": 1, "sha256Hash": hash } } });
    client.post(&url).json(&body).send().await.unwrap();
    assert_eq!(get(vec![("extensions", extensions(&hash))], None, None).await.status(), 405);
    for bad in [json!({ "persistedQuery": { "version": 2, "sha256Hash": hash } }), json!({ "persistedQuery": 1 })] {
        assert_eq!(get(vec![("extensions", bad.to_string())], None, None).await.status(), 400, "{bad}");
    }
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_on_the_list_may_call_and_read_and_no_others() {
    let stage = Stage::new().await;
    let listed = vec!["https://shop.example.com".to_owned()];
    let server = stage.beside(|config| config.allowed_origins = listed).await;
    let client = Client::new();
    let preflight = async |origin: &str, path: &str| {
        let request = client.request(Method::OPTIONS, format!("{}{path}", server.url)).header("origin", origin);
        let request = request.header("access-control-request-method", "POST");
        request.header("access-control-request-headers", "authorization,content-type").send().await.unwrap()
    };
    for path in ["/graphql", "/graphql/stream"] {
        let allowed = preflight("https://shop.example.com", path).await;
        assert_eq!(allowed.status(), 200, "{path}");
        assert_eq!(header(allowed.headers(), "access-control-allow-origin"), "https://shop.example.com");
        assert!(header(allowed.headers(), "access-control-allow-headers").contains("authorization"));
        assert_eq!(header(allowed.headers(), "access-control-max-age"), "600");
        let refused = preflight("https://evil.example.com", path).await;
        assert_eq!(header(refused.headers(), "access-control-allow-origin"), "");
    }
    let ask = async |origin: &str| {
        let request = client.post(format!("{}/graphql", server.url)).header("origin", origin);
        request.json(&json!({ "query": "{ __typename }" })).send().await.unwrap()
    };
    let answer = ask("https://shop.example.com").await;
    assert_eq!(answer.status(), 200);
    assert_eq!(header(answer.headers(), "access-control-allow-origin"), "https://shop.example.com");
    assert!(header(answer.headers(), "access-control-expose-headers").contains("retry-after"));
    assert!(header(answer.headers(), "vary").contains("origin"));
    let refused = ask("https://evil.example.com").await;
    assert_eq!(refused.status(), 403);
    assert_eq!(refused.json::<Value>().await.unwrap()["errors"][0]["extensions"]["code"], "FORBIDDEN");
    server.end().await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_of_seats_costs_as_many_as_there_are() {
    let stage = Stage::new().await;
    let hall = stage.hall(100, 100, |_| {}).await;
    let ask = async |fields: &str| {
        let query = format!("query($event: ID!) {{ seatMap(eventId: $event) {{ sections {{ {fields} }} }} }}");
        stage.stranger().ask(&query, json!({ "event": hall.event })).await
    };
    let statuses = ask("statuses").await;
    assert!(statuses["extensions"]["cost"]["requested"].as_u64().unwrap() < 10, "{}", statuses["extensions"]);
    let few = ask("seats { seatId status }").await;
    assert_eq!(few["extensions"]["cost"]["requested"], 10_000 * 2 + 3);
    assert_eq!(few["data"]["seatMap"]["sections"][0]["seats"].as_array().unwrap().len(), 10_000);
    let many = ask("seats { seatId status label row number x }").await;
    assert_eq!(many["errors"][0]["extensions"]["code"], "QUERY_TOO_COMPLEX", "{many}");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_map_is_served_packed_and_cacheable_and_changes_its_tag_with_its_version() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 6, |_| {}).await;
    let draft = draft_of(&hall.organizer, &hall.venue, hall.layout.as_deref()).await;
    let client = Client::new();
    let url = |event: &str| format!("{}/events/{event}/seat-map", stage.servers[0].url);
    let get = async |query: &str, headers: &[(&str, &str)]| -> Response {
        let request = client.get(format!("{}{query}", url(&hall.event)));
        headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send().await.unwrap()
    };
    let first = get("", &[]).await;
    let tag = header(first.headers(), "etag").to_owned();
    assert_eq!(header(first.headers(), "cache-control"), "public, max-age=1, stale-while-revalidate=2");
    assert!(header(first.headers(), "vary").contains("Accept-Encoding"));
    let map: Value = first.json().await.unwrap();
    assert_eq!(map["sections"][0]["statuses"], "AAAAAA");
    let geometry: Value = reqwest::get(format!("{}{}", stage.servers[0].url, map["geometryUrl"].as_str().unwrap()))
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    assert_eq!(geometry["sections"][0]["name"], map["sections"][0]["name"]);
    let same = get("", &[("if-none-match", &tag)]).await;
    assert_eq!((same.status().as_u16(), header(same.headers(), "etag")), (304, tag.as_str()));
    for encoding in ["br", "zstd", "gzip"] {
        let encoded = get("", &[("accept-encoding", encoding)]).await;
        assert_eq!(header(encoded.headers(), "content-encoding"), encoding);
        assert_ne!(header(encoded.headers(), "etag"), tag, "other bytes, another tag");
        let known = get("", &[("accept-encoding", encoding), ("if-none-match", &tag)]).await;
        assert_eq!(known.status(), 304, "the same version all the same");
    }
    stage.buyer("mina").hold(&hall.event, "k", &["A-2"]).await;
    let after = eventually("the map has moved", || async {
        let after = get("", &[("if-none-match", &tag)]).await;
        (after.status() == 200).then_some(after)
    })
    .await;
    assert_eq!(after.json::<Value>().await.unwrap()["sections"][0]["statuses"], "AHAAAA");
    let bits = get("?format=bits", &[]).await;
    assert!(header(bits.headers(), "x-seat-map-version").contains('@'));
    assert_eq!(bits.bytes().await.unwrap().as_ref(), [0b0000_0100, 0]);
    assert_eq!(get("?format=xml", &[]).await.status(), 400);
    for unknown in [draft.as_str(), hall.venue.as_str(), "nonsense"] {
        assert_eq!(client.get(url(unknown)).send().await.unwrap().status(), 404, "{unknown}");
    }
    stage.finish().await;
}

async fn draft_of(organizer: &Api, venue: &str, layout: Option<&str>) -> String {
    let input = crate::support::fixtures::event_input(venue, layout);
    organizer.must("createEvent", input, "event { id }").await["event"]["id"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_has_an_id_that_its_caller_can_choose_and_finds_in_the_answer() {
    let stage = Stage::new().await;
    let client = Client::new();
    let ask = async |id: Option<&str>| -> Response {
        let mut request = client.get(format!("{}/healthz", stage.servers[0].url));
        if let Some(id) = id {
            request = request.header("x-request-id", id);
        }
        request.send().await.unwrap()
    };
    assert_eq!(header(ask(Some("shop-17")).await.headers(), "x-request-id"), "shop-17");
    assert_eq!(header(ask(None).await.headers(), "x-request-id").len(), 32);
    assert_ne!(header(ask(Some("a b")).await.headers(), "x-request-id"), "a b");
    stage.finish().await;
}

async fn answer_to(api: &Api, query: &str, variables: Value) -> (u16, Option<u64>, Value) {
    let request = Client::new().post(format!("{}/graphql", api.url)).bearer_auth(api.token.as_ref().unwrap());
    let answer = request.json(&json!({ "query": query, "variables": variables })).send().await.unwrap();
    let retry = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().parse().unwrap());
    (answer.status().as_u16(), retry, answer.json().await.unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_holds_and_releases_all_the_time_or_tries_card_after_card_has_to_wait() {
    for redis in [false, true] {
        let stage = Stage::with(Setup { redis, limits: Limits::On, ..Setup::default() }).await;
        let hall = stage.hall(1, 10, |_| {}).await;
        let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
        let hold = "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id } userErrors { code } } }";
        let mut held = Value::Null;
        let mut limited = None;
        for n in 0..30 {
            let input = json!({ "eventId": hall.event, "idempotencyKey": n.to_string(), "seatIds": ["A-1"] });
            let (status, retry, answer) = answer_to(&mina, hold, json!({ "input": input })).await;
            if status == 429 {
                limited = Some((retry, answer));
                break;
            }
            held = answer["data"]["holdSeats"]["hold"]["id"].clone();
            assert!(held.is_string(), "{answer}");
            mina.must("releaseHold", json!({ "holdId": held }), "__typename").await;
        }
        let (retry, answer) = limited.expect("churn is limited");
        assert!(retry.unwrap() >= 1);
        assert_eq!(answer["errors"][0]["extensions"]["code"], "RATE_LIMITED", "{answer}");
        assert!(answer["errors"][0]["extensions"]["retryAfterMs"].as_u64().unwrap() <= 2_000);
        // Releasing is never refused, and others go on.
        mina.must("releaseHold", json!({ "holdId": held }), "__typename").await;
        let held = leo.hold(&hall.event, "k", &["A-2"]).await["hold"]["id"].clone();
        let checkout = "mutation($input: CheckoutInput!) { checkout(input: $input) { userErrors { code } } }";
        let mut limited = None;
        for n in 0..20 {
            let method = "pm_card_chargeDeclined";
            let input = json!({ "holdId": held, "idempotencyKey": n.to_string(), "paymentMethod": method });
            let (status, _, answer) = answer_to(&leo, checkout, json!({ "input": input })).await;
            if status == 429 {
                limited = Some(n);
                break;
            }
            assert_eq!(answer["data"]["checkout"]["userErrors"][0]["code"], "PAYMENT_DECLINED", "{answer}");
        }
        assert!((5..15).contains(&limited.expect("card testing is limited")), "{limited:?}");
        stage.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_buyer_has_so_many_holds_over_all_events_and_a_lost_reply_is_found_all_the_same() {
    for redis in [false, true] {
        let stage = Stage::with(Setup { redis, limits: Limits::On, ..Setup::default() }).await;
        let mut halls = Vec::new();
        for _ in 0..11 {
            halls.push(stage.club(10, |_| {}).await);
        }
        let mina = stage.buyer("mina");
        let input = |n: usize| {
            let tier = &halls[n].tiers[0].1;
            json!({ "eventId": halls[n].event, "idempotencyKey": "k", "admissions": [{ "tierId": tier, "quantity": 1 }] })
        };
        let mut holds = Vec::new();
        for n in 0..10 {
            holds.push(mina.must("holdSeats", input(n), "hold { id }").await["hold"]["id"].clone());
        }
        let refused = mina.mutate("holdSeats", input(10), "hold { id }").await;
        assert_eq!(refused["userErrors"][0]["code"], "LIMIT_EXCEEDED", "{refused}");
        assert_eq!(refused["userErrors"][0]["limit"], 10);
        mina.checkout(&holds[9], "c", "pm_card_visa").await;
        let after = mina.mutate("holdSeats", input(10), "hold { id }").await;
        assert_eq!(after["userErrors"], json!([]), "what is paid is no hold any more: {after}");
        mina.must("releaseHold", json!({ "holdId": after["hold"]["id"] }), "__typename").await;
        let replayed = mina.must("holdSeats", input(3), "replayed hold { id }").await;
        assert_eq!((&replayed["replayed"], &replayed["hold"]["id"]), (&json!(true), &holds[3]));
        mina.must("releaseHold", json!({ "holdId": holds[0] }), "__typename").await;
        eventually("a buyer's own bucket has filled up", || async {
            let held = mina.try_ask(
                "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id } } }",
                json!({ "input": input(10) }),
            );
            held.await.unwrap()["data"]["holdSeats"]["hold"]["id"].is_string().then_some(())
        })
        .await;
        stage.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_account_has_so_many_event_streams_open() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 3, |_| {}).await;
    let token = stage.buyer("mina").token.unwrap();
    let client = Client::new();
    let query = "subscription($event: ID!) { seatMapChanged(eventId: $event) { __typename } }";
    let open = async || {
        let request = client.post(format!("{}/graphql/stream", stage.servers[0].url)).bearer_auth(&token);
        let request = request.header("accept", "text/event-stream");
        let body = json!({ "query": query, "variables": { "event": hall.event } });
        request.json(&body).send().await.unwrap()
    };
    let mut streams = Vec::new();
    for _ in 0..50 {
        let stream = open().await;
        assert_eq!(stream.status(), 200);
        streams.push(stream);
    }
    let refused = open().await;
    assert_eq!(refused.status(), 429);
    assert_eq!(refused.headers()["retry-after"], "5");
    drop(streams);
    eventually("closed ones do not count", || async { (open().await.status() == 200).then_some(()) }).await;
    stage.finish().await;
}

/// What a shared cache may keep, and for how long, depends on what was asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cache_may_keep_an_answer_as_long_as_what_is_in_it_is_fresh() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 4, |_| {}).await;
    let ask = async |query: &str, token: Option<String>| {
        let mut request = Client::new().get(format!("{}/graphql", stage.servers[0].url)).query(&[("query", query)]);
        if let Some(token) = token {
            request = request.bearer_auth(token);
        }
        let answer = request.send().await.unwrap();
        let tags = answer.headers().get("surrogate-key").map(|tags| tags.to_str().unwrap().to_owned());
        (header(answer.headers(), "cache-control").to_owned(), tags.unwrap_or_default())
    };
    let id = &hall.event;
    let public = |seconds: u32| format!("public, max-age={seconds}, stale-while-revalidate={}", 2 * seconds);
    let copy = format!("{{ event(id: \"{id}\") {{ id title venue {{ id name }} }} }}");
    assert_eq!(ask(&copy, None).await, (public(60), format!("{id} {}", hall.venue)));
    assert_eq!(ask("{ searchEvents { totalCount } }", None).await.0, public(5));
    assert_eq!(ask(&format!("{{ event(id: \"{id}\") {{ saleStatus }} }}"), None).await.0, public(5));
    let literal = format!("{{ event(id: \"{id}\") {{ title }} }}");
    assert_eq!(ask(&literal, None).await, (public(60), id.clone()), "named by the question");
    let by_slug = "{ event(slug: \"aida\") { title } }";
    assert_eq!(ask(by_slug, None).await, (public(5), String::new()), "no purge would reach it");
    assert_eq!(ask("{ nodes(ids: [\"evt_0\"]) { id } }", None).await.0, public(5));
    let map = format!("{{ event(id: \"{id}\") {{ title }} seatMap(eventId: \"{id}\") {{ version }} }}");
    assert_eq!(ask(&map, None).await.0, public(1));
    let mina = stage.buyer("mina");
    assert_eq!(ask(&copy, mina.token.clone()).await, ("private, no-cache".to_owned(), String::new()));
    assert_eq!(ask("{ holds { nodes { id } } }", mina.token).await.0, "private, no-cache");
    assert_eq!(ask("{ holds { nodes { id } } }", None).await.0, "no-store", "an error is nobody's to keep");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_cache_is_told_what_is_out_of_date_until_it_has_heard() {
    type Told = Arc<(Mutex<Vec<Value>>, AtomicBool)>;
    let told = Told::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/purge", listener.local_addr().unwrap());
    let hear = async |axum::extract::State(told): axum::extract::State<Told>, body: axum::Json<Value>| {
        told.0.lock().unwrap().push(body.0);
        // The first time it is not itself.
        let well = told.1.swap(true, Ordering::Relaxed);
        if well { axum::http::StatusCode::OK } else { axum::http::StatusCode::INTERNAL_SERVER_ERROR }
    };
    let cache = axum::Router::new().route("/purge", axum::routing::post(hear)).with_state(told.clone());
    tokio::spawn(async move { axum::serve(listener, cache).await.unwrap() });
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 4, |_| {}).await;
    let purger = parterre::http::Purger::new(&url).unwrap();
    let pass = async || parterre::outbox::consume(&stage.db, &purger).await;
    eventually("the cache has failed", || async { pass().await.is_err().then_some(()) }).await;
    let until_idle = async || {
        let idle = async || pass().await.unwrap() == parterre::outbox::Progress::Idle;
        eventually("all is told", || async { idle().await.then_some(()) }).await;
    };
    until_idle().await;
    let tags = |told: &Value| told["tags"].as_array().unwrap().clone();
    {
        let told = told.0.lock().unwrap();
        assert_eq!(told[0], told[1], "told again");
        assert!(told.iter().any(|told| tags(told).contains(&json!(hall.event))));
        assert!(told.iter().any(|told| tags(told).contains(&json!(hall.venue))));
    }
    told.0.lock().unwrap().clear();
    stage.buyer("mina").hold(&hall.event, "k", &["A-1"]).await;
    until_idle().await;
    assert_eq!(*told.0.lock().unwrap(), Vec::<Value>::new(), "seats are not copy");
    let input = json!({ "eventId": hall.event, "expectedVersion": "2", "title": "Aida again" });
    hall.organizer.must("updateEvent", input, "event { id }").await;
    until_idle().await;
    assert_eq!(*told.0.lock().unwrap(), [json!({ "tags": [hall.event] })]);
    stage.finish().await;
}
