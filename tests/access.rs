//! Who may see and do what.

use crate::support::{Api, Setup, Socket, Stage};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use parterre::config::Limits;
use serde_json::{Value, json};

#[expect(clippy::disallowed_methods, reason = "tests live in the present")]
fn now() -> i64 {
    chrono::Utc::now().timestamp()
}

async fn code_with(stage: &Stage, token: Option<String>) -> Value {
    let answer = Api::new(&stage.servers[0].url, token).ask("{ bookings { nodes { id } } }", json!({})).await;
    answer["errors"][0]["extensions"]["code"].clone()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_whole_fresh_token_of_our_issuer_for_us_counts() {
    let stage = Stage::new().await;
    let secret = stage.config.jwt_secret.expose().as_bytes().to_vec();
    let sign = |claims: &Value, algorithm: Algorithm, secret: &[u8]| {
        encode(&Header::new(algorithm), claims, &EncodingKey::from_secret(secret).unwrap()).unwrap()
    };
    let good = json!({ "sub": "mina", "iss": "parterre", "aud": "parterre", "exp": now() + 60 });
    assert_eq!(code_with(&stage, Some(sign(&good, Algorithm::HS256, &secret))).await, Value::Null);
    let without = |claim: &str| {
        let mut claims = good.clone();
        claims.as_object_mut().unwrap().remove(claim);
        claims
    };
    let with = |claim: &str, value: Value| {
        let mut claims = good.clone();
        claims[claim] = value;
        claims
    };
    let bad = [
        without("sub"),
        without("iss"),
        without("aud"),
        without("exp"),
        with("iss", json!("someone")),
        with("aud", json!("someone")),
        with("exp", json!(now() - 10)),
        with("sub", json!("")),
        with("sub", json!("a\u{0}b")),
        with("sub", json!("x".repeat(10_000))),
    ];
    for claims in bad {
        assert_eq!(
            code_with(&stage, Some(sign(&claims, Algorithm::HS256, &secret))).await,
            "UNAUTHENTICATED",
            "{claims}"
        );
    }
    assert_eq!(code_with(&stage, Some(sign(&good, Algorithm::HS256, b"another secret"))).await, "UNAUTHENTICATED");
    assert_eq!(code_with(&stage, Some(sign(&good, Algorithm::HS512, &secret))).await, "UNAUTHENTICATED");
    let none = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJtaW5hIn0.";
    assert_eq!(code_with(&stage, Some(none.to_owned())).await, "UNAUTHENTICATED");
    assert_eq!(code_with(&stage, None).await, "UNAUTHENTICATED");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_another_buyers_looks_as_if_it_did_not_exist() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 5, |_| {}).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let booking = mina.checkout(&hold, "c", "pm_card_visa").await["booking"].clone();
    stage.rest().await;
    let full = mina
        .data("query($id: ID) { booking(id: $id) { payment { id } tickets { id } } }", json!({ "id": booking["id"] }))
        .await;
    let ids = [
        hold.clone(),
        booking["id"].clone(),
        full["booking"]["payment"]["id"].clone(),
        full["booking"]["tickets"][0]["id"].clone(),
    ];
    for id in &ids {
        let query = "query($id: ID!) { node(id: $id) { id __typename } }";
        assert_eq!(mina.data(query, json!({ "id": id })).await["node"]["id"], *id);
        for other in [&leo, &stage.stranger(), &stage.organizer("ACME")] {
            assert_eq!(other.data(query, json!({ "id": id })).await["node"], Value::Null, "{id}");
        }
    }
    let nodes = leo
        .data("query($ids: [ID!]!) { nodes(ids: $ids) { id } }", json!({ "ids": [ids[0], hall.event, "evt_nope"] }))
        .await;
    assert_eq!(nodes["nodes"], json!([null, { "id": hall.event }, null]));
    let query = "query($hold: ID!, $booking: ID, $code: String) { hold(id: $hold) { id } byId: booking(id: $booking) { id } byCode: booking(code: $code) { id } }";
    let variables = json!({ "hold": hold, "booking": booking["id"], "code": booking["code"] });
    assert_eq!(leo.data(query, variables.clone()).await, json!({ "hold": null, "byId": null, "byCode": null }));
    assert!(mina.data(query, variables).await.as_object().unwrap().values().all(Value::is_object));
    for (name, input) in [
        ("releaseHold", json!({ "holdId": hold })),
        ("checkout", json!({ "holdId": hold, "idempotencyKey": "c", "paymentMethod": "pm_card_visa" })),
        ("cancel", json!({ "bookingId": booking["id"], "idempotencyKey": "x" })),
    ] {
        assert_eq!(leo.refused(name, input).await.0, "NOT_FOUND", "{name}");
    }
    let mut socket = Socket::open(&leo).await;
    socket.subscribe("subscription($id: ID!) { bookingUpdated(id: $id) { id } }", json!({ "id": booking["id"] })).await;
    let refused = socket.message().await;
    let error = if refused["type"] == "error" { &refused["payload"][0] } else { &refused["payload"]["errors"][0] };
    assert_eq!(error["extensions"]["code"], "BAD_USER_INPUT", "{refused}");
    let lists = leo.data("{ bookings { nodes { id } } holds { nodes { id } } }", json!({})).await;
    assert_eq!(lists, json!({ "bookings": { "nodes": [] }, "holds": { "nodes": [] } }));
    let own = mina.data("{ bookings(status: [CONFIRMED]) { nodes { id } } holds(status: [CONVERTED]) { nodes { id status booking { id } } } none: holds(status: [ACTIVE]) { nodes { id } } }", json!({})).await;
    assert_eq!(own["bookings"]["nodes"][0]["id"], booking["id"]);
    assert_eq!(own["holds"]["nodes"][0]["booking"]["id"], booking["id"]);
    assert_eq!(own["none"]["nodes"], json!([]));
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn http_keeps_its_manners() {
    let stage = Stage::new().await;
    let url = format!("{}/graphql", stage.servers[0].url);
    let client = reqwest::Client::new();
    let get = |query: &str| client.get(&url).query(&[("query", query)]).send();
    let answer: Value = get("{ __typename }").await.unwrap().json().await.unwrap();
    assert_eq!(answer["data"], json!({ "__typename": "Query" }));
    assert_eq!(get("mutation { releaseHold(input: { holdId: \"x\" }) { __typename } }").await.unwrap().status(), 405);
    let post =
        |kind: &str, body: &str| client.post(&url).header("content-type", kind.to_owned()).body(body.to_owned()).send();
    assert_eq!(post("text/plain", "{\"query\":\"{ __typename }\"}").await.unwrap().status(), 415);
    assert_eq!(post("multipart/form-data; boundary=x", "--x--").await.unwrap().status(), 415);
    assert_eq!(post("application/json", "[]").await.unwrap().status(), 400);
    assert_eq!(post("application/json", " [\"{ __typename }\"]").await.unwrap().status(), 400);
    assert_eq!(post("application/json", "{").await.unwrap().status(), 400);
    assert_eq!(
        post("application/json", &format!("{{\"query\":\"{}\"}}", " ".repeat(300_000))).await.unwrap().status(),
        413
    );
    let typed = |accept: &str, query: &str| {
        client.post(&url).header("accept", accept.to_owned()).json(&json!({ "query": query })).send()
    };
    let modern = "application/graphql-response+json";
    for (query, code) in [
        ("{", "GRAPHQL_PARSE_FAILED"),
        ("{ nope }", "GRAPHQL_VALIDATION_FAILED"),
        (&"{ a ".repeat(200), "QUERY_TOO_COMPLEX"),
    ] {
        let refused = typed(modern, query).await.unwrap();
        assert_eq!(refused.status(), 400, "{query}");
        let body: Value = refused.json().await.unwrap();
        assert_eq!(body["errors"][0]["extensions"]["code"], code, "{body}");
        assert!(body.get("data").is_none());
        assert_eq!(typed("application/json", query).await.unwrap().status(), 200);
    }
    let answer = typed(modern, "{ a: __typename b: __typename }").await.unwrap().text().await.unwrap();
    assert!(answer.starts_with("{\"data\":{\"a\":\"Query\",\"b\":\"Query\"}"), "in the order asked for: {answer}");
    let answer: Value = serde_json::from_str(&answer).unwrap();
    assert_eq!(answer["extensions"]["cost"], json!({ "requested": 2, "allowed": 50_000 }));
    let sdl = reqwest::get(format!("{}/schema.graphql", stage.servers[0].url)).await.unwrap().text().await.unwrap();
    assert!(sdl.contains("type Mutation"));
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn migrations_run_up_and_down_and_up_again_and_together() {
    let stage = Stage::new().await;
    let empty = crate::support::fresh_database().await;
    let url = crate::support::url_of(&empty);
    let db = parterre::db::Db::connect(&url, 4).await.unwrap();
    parterre_migration::down(db.pool()).await.unwrap();
    let all = futures_util::future::join_all((0..4).map(|_| parterre_migration::up(db.pool()))).await;
    assert!(all.iter().all(Result::is_ok), "any number of processes may start at once: {all:?}");
    parterre_migration::up(db.pool()).await.unwrap();
    let tables = "SELECT count(*) FROM information_schema.columns AS c JOIN pg_class ON relname = c.table_name
        WHERE c.table_schema = 'public' AND obj_description(pg_class.oid) IS NULL AND relkind = 'r' AND relname <> 'seaql_migrations'";
    assert_eq!(stage.number(tables).await, 0, "every table says what it is");
    db.pool().clone().close().await.unwrap();
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_asks_too_often_waits_on_all_servers_and_nobody_else_does() {
    for redis in [false, true] {
        let setup = Setup { servers: 2, redis, limits: Limits::On, ..Setup::default() };
        let stage = Stage::with(setup).await;
        let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
        let client = reqwest::Client::new();
        let ask = |url: &str, token: &Option<String>| {
            let request = client.post(format!("{url}/graphql")).json(&json!({ "query": "{ __typename }" }));
            request.bearer_auth(token.as_ref().unwrap()).send()
        };
        // 20 a second and 80 at once, of one account.
        let mut refused = None;
        for _ in 0..130 {
            let answer = ask(&mina.url, &mina.token).await.unwrap();
            if answer.status() == 429 {
                refused = Some(answer);
                break;
            }
        }
        let refused = refused.expect("an account's rate is used up before an address's");
        assert!(refused.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
        let told: Value = refused.json().await.unwrap();
        assert_eq!(told["errors"][0]["extensions"]["code"], "RATE_LIMITED");
        let wait_ms = told["errors"][0]["extensions"]["retryAfterMs"].as_u64().unwrap();
        assert!((1..=60).contains(&wait_ms), "20 a second: {wait_ms}");
        assert_eq!(ask(&leo.url, &leo.token).await.unwrap().status(), 200, "somebody else at the same address");
        let elsewhere = (0..20).map(|_| ask(&stage.servers[1].url, &mina.token));
        let elsewhere = futures_util::future::join_all(elsewhere).await;
        let refused = elsewhere.iter().any(|answer| answer.as_ref().unwrap().status() == 429);
        assert_eq!(refused, redis, "with Redis all servers count together");
        crate::support::eventually("after a rest", || async {
            (ask(&mina.url, &mina.token).await.unwrap().status() == 200).then_some(())
        })
        .await;
        stage.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_introspection_the_schema_is_not_told_by_documents_nor_by_their_errors() {
    let stage = Stage::new().await;
    let server = stage.beside(|config| config.introspection = Some(false)).await;
    let closed = Api::new(&server.url, None);
    for query in
        ["{ __schema { queryType { name } } }", "{ ...F } fragment F on Query { __type(name: \"Venue\") { name } }"]
    {
        let answer = closed.ask(query, json!({})).await;
        assert_eq!(answer["errors"][0]["extensions"]["code"], "GRAPHQL_VALIDATION_FAILED", "{answer}");
        assert!(answer.get("data").is_none(), "{answer}");
    }
    let answer = closed.ask("{ venu(id: 1) { name } }", json!({})).await;
    assert!(!answer.to_string().contains("did you mean"), "{answer}");
    assert!(stage.stranger().ask("{ venu(id: 1) { name } }", json!({})).await.to_string().contains("did you mean"));
    assert_eq!(closed.data("{ __typename }", json!({})).await["__typename"], "Query");
    assert_eq!(reqwest::get(format!("{}/schema.graphql", server.url)).await.unwrap().status(), 200);
    server.end().await;
    stage.finish().await;
}
