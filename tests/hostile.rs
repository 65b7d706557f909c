//! Documents and bodies that mean harm: each is answered, at little cost, and the process lives.

use crate::process::start;
use crate::support::{Setup, Stage, eventually};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// CPU time that a process has used.
fn cpu(process: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn asking(query: &str) -> String {
    json!({ "query": query }).to_string()
}

/// Bodies by name.
fn bodies() -> Vec<(&'static str, String)> {
    let doubling: String =
        (0..31).map(|n| format!("fragment f{n} on Query {{ ...f{} ...f{} }} ", n + 1, n + 1)).collect();
    let chain: String = (0..7_500).map(|n| format!("fragment f{n} on Query{{...f{}}}", n + 1)).collect();
    let fitting: String = (0..2_000).map(|n| format!("fragment f{n} on Query{{...f{}}}", n + 1)).collect();
    let aliases: String = (0..5_000).map(|n| format!("a{n}:__typename ")).collect();
    let many = "@skip(if:false)".repeat(10_000);
    let short = "@a".repeat(10_000);
    vec![
        ("doubling fragments", asking(&format!("{{ ...f0 }} {doubling} fragment f31 on Query {{ __typename }}"))),
        ("a circle", asking("{ ...a } fragment a on Query { ...b } fragment b on Query { ...a }")),
        ("a long chain", asking(&format!("{{ ...f0 }} {chain} fragment f7500 on Query {{ __typename }}"))),
        ("a chain that fits", asking(&format!("{{ ...f0 }} {fitting} fragment f2000 on Query {{ __typename }}"))),
        ("directives on a field", asking(&format!("{{ __typename {many} }}"))),
        ("directives on an operation", asking(&format!("query {short} {{ __typename }}"))),
        ("directives on a fragment", asking(&format!("{{ ...f {short} }} fragment f on Query {short} {{ __typename }}"))),
        ("arguments that conflict", asking(&format!("{{ __typename({}) {} }}", "a:1,".repeat(9_000), "__typename ".repeat(2_000)))),
        ("one search after the other", asking(&format!("{{ {} }}", "searchEvents(first:1){totalCount} ".repeat(1_500)))),
        ("a chain that nobody uses", asking(&format!("{{ __typename }} {fitting} fragment f2000 on Query {{ __typename }}"))),
        ("aliases", asking(&format!("{{ {aliases} }}"))),
        ("brackets", asking(&format!("{{ node(id: {}) {{ id }} }}", "[".repeat(10_000)))),
        ("braces", asking(&"{".repeat(10_000))),
        ("objects", asking(&format!("{{ node(id: {}) {{ id }} }}", "{a:".repeat(10_000)))),
        (
            "variables 500 deep",
            format!("{{\"query\":\"{{ __typename }}\",\"variables\":{}{}}}", "{\"a\":".repeat(500), "}".repeat(500)),
        ),
        ("ten megabytes", asking(&" ".repeat(10_000_000))),
        ("a lone surrogate", "{\"query\":\"{ event(slug: \\\"\\ud800\\\") { id } }\"}".to_owned()),
        ("not UTF-8 in spirit", "{\"query\":\"\\udc00\"}".to_owned()),
        ("32 bits and more", asking("{ bookings(first: 99999999999) { nodes { id } } }")),
        ("64 bits and more", asking("{ bookings(first: 99999999999999999999999999) { nodes { id } } }")),
        (
            "a variable of 64 bits and more",
            "{\"query\":\"query($n: Int) { bookings(first: $n) { nodes { id } } }\",\"variables\":{\"n\":99999999999999999999}}"
                .to_owned(),
        ),
    ]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_documents_cost_little_and_the_process_lives() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let process = start(&stage).await;
    let id = process.child.id().unwrap();
    let client = reqwest::Client::new();
    let token = stage.buyer("mina").token.unwrap();
    let (mut dearest, mut slowest) = ((Duration::ZERO, ""), Duration::ZERO);
    for (name, body) in bodies() {
        let before = cpu(id);
        let request = client.post(format!("{}/graphql", process.url)).bearer_auth(&token).body(body);
        let sending = tokio::spawn(request.header("content-type", "application/json").send());
        let beside = Instant::now();
        assert!(reqwest::get(format!("{}/healthz", process.url)).await.unwrap().status().is_success(), "{name}");
        slowest = slowest.max(beside.elapsed());
        // One that is turned away before it has said everything may find the connection closed.
        if let Ok(answer) = sending.await.unwrap() {
            let status = answer.status();
            let told: Value = answer.json().await.unwrap();
            assert!(status.is_client_error() || told["errors"][0]["extensions"]["code"].is_string(), "{name}: {told}");
            assert!(!status.is_server_error(), "{name}: {told}");
            assert_ne!(told["errors"][0]["extensions"]["code"], "INTERNAL", "{name}: {told}");
        }
        let cost = cpu(id).saturating_sub(before);
        if cost > dearest.0 {
            dearest = (cost, name);
        }
        // This is a debug build beside other tests; a release takes a tenth.
        assert!(cost < Duration::from_secs(1), "{name} cost {cost:?}");
    }
    eprintln!("dearest: {dearest:?}; slowest health check beside: {slowest:?}");
    let alive = client.post(format!("{}/graphql", process.url)).json(&json!({ "query": "{ __typename }" })).send();
    assert!(alive.await.unwrap().status().is_success());
    drop(process);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_nul_in_any_text_is_refused_or_finds_nothing() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 4, |_| {}).await;
    let mina = stage.buyer("mina");
    for query in [
        "query($t: String) { event(slug: $t) { id } }",
        "query($t: String) { booking(code: $t) { id } }",
        "query($t: String) { searchEvents(query: $t) { totalCount } }",
        "query($t: String) { searchEvents(after: $t) { totalCount } }",
        "query($t: String) { searchEvents(filter: { city: [$t] }) { totalCount } }",
        "query($t: String) { bookings(after: $t) { nodes { id } } }",
        "query($t: ID!) { node(id: $t) { id } }",
        "query($t: ID!) { hold(id: $t) { id } }",
        "query($t: ID!) { seatMap(eventId: $t) { version } }",
    ] {
        let answer = mina.ask(query, json!({ "t": "a\u{0}b" })).await;
        let code = &answer["errors"][0]["extensions"]["code"];
        assert!(code.is_null() || code == "BAD_USER_INPUT" || code == "GRAPHQL_VALIDATION_FAILED", "{query}: {answer}");
    }
    let nul = "a\u{0}b";
    for (name, input) in [
        ("holdSeats", json!({ "eventId": hall.event, "idempotencyKey": nul, "seatIds": ["A-1"] })),
        ("holdSeats", json!({ "eventId": hall.event, "idempotencyKey": "k", "seatIds": [nul] })),
        ("holdSeats", json!({ "eventId": nul, "idempotencyKey": "k", "seatIds": ["A-1"] })),
        ("releaseHold", json!({ "holdId": nul })),
        ("checkout", json!({ "holdId": nul, "idempotencyKey": "k", "paymentMethod": "pm_card_visa" })),
        ("cancel", json!({ "bookingId": nul, "idempotencyKey": "k" })),
    ] {
        let (code, _) = mina.refused(name, input).await;
        assert!(["INVALID_INPUT", "NOT_FOUND"].contains(&code.as_str()), "{name}: {code}");
    }
    let hold = eventually("a hold", || async {
        mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].as_str().map(str::to_owned)
    })
    .await;
    for field in ["idempotencyKey", "paymentMethod", "returnUrl", "contactEmail", "locale"] {
        let mut input = json!({ "holdId": hold, "idempotencyKey": "c", "paymentMethod": "pm_card_visa" });
        input[field] = json!("https://a@b.example\u{0}");
        assert_eq!(mina.refused("checkout", input).await.0, "INVALID_INPUT", "{field}");
    }
    for (name, input) in [
        ("createVenue", json!({ "name": nul, "city": "Dresden", "countryCode": "DE", "timeZone": "Europe/Berlin" })),
        ("createVenue", json!({ "name": "Opera", "city": nul, "countryCode": "DE", "timeZone": "Europe/Berlin" })),
        ("createVenue", json!({ "name": "Opera", "city": "Dresden", "countryCode": nul, "timeZone": "Europe/Berlin" })),
        ("createVenue", json!({ "name": "Opera", "city": "Dresden", "countryCode": "DE", "timeZone": nul })),
        ("createPerformer", json!({ "name": nul })),
    ] {
        assert_eq!(hall.organizer.refused(name, input.clone()).await.0, "INVALID_INPUT", "{name}: {input}");
    }
    stage.finish().await;
}
