//! Measurements over real HTTP against a server in this process, on a private PostgreSQL with durable commits.

use crate::app::App;
use crate::auth::{Person, Tokens, issue};
use crate::config::{Limits, Secret};
use crate::dev::{Cluster, Durability, Redis, default_config};
use crate::graphql::guard::Documents;
use crate::payment::simulator::{Settings, Simulator};
use crate::waiting::{Clock, MemoryQueue, Queue, RedisQueue};
use crate::{db, http, workers};
use anyhow::Context as _;
use parterre_entity::EventId;
use sea_orm::ConnectionTrait as _;
use serde_json::{Value, json};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Holds measured.
const HOLDS: usize = 1_000;
/// Holds measured before and beside unknown payments.
const BESIDE: usize = 4_000;
/// Maps measured.
const MAPS: usize = 200;
/// Checkouts measured.
const CHECKOUTS: usize = 300;
/// Payments that are not known while holds are measured again.
const UNKNOWN: i32 = 10_000;

/// People who join a waiting room.
const JOINS: usize = 100_000;
/// How often what every request goes through is measured.
const REPEATS: u32 = 20_000;

/// Everything that is measured.
pub async fn run() -> anyhow::Result<()> {
    before_execution().await?;
    joins().await?;
    Box::pin(idle()).await
}

/// What every request goes through before it is executed: its token and its document, both seen before.
#[expect(clippy::print_stdout, reason = "the command's own answer")]
async fn before_execution() -> anyhow::Result<()> {
    let config = default_config();
    let tokens = Tokens::new(&config)?;
    let token = issue(&config, &Person::buyer("mina"), Duration::from_hours(1))?;
    let documents = Documents::new(false);
    let query = "query($id: ID!) { event(id: $id) { title startsAt venue { name city } priceZones { name price { amount currency } } } seatMap(eventId: $id) { version sections { name statuses } } }";
    let variables = json!({ "id": "evt_1" });
    tokens.read(&token).await?;
    let started = Instant::now();
    for _ in 0..REPEATS {
        tokens.read(&token).await?;
    }
    println!(
        "a token that was seen before                       {:>8.2} µs",
        1_000.0 * millis(started.elapsed() / REPEATS)
    );
    documents.accept(query, None, Some(&variables))?;
    let started = Instant::now();
    for _ in 0..REPEATS {
        documents.accept(query, None, Some(&variables))?;
    }
    println!(
        "guard of a document that was seen before           {:>8.2} µs",
        1_000.0 * millis(started.elapsed() / REPEATS)
    );
    Ok(())
}

/// People who join one waiting room, 256 at a time, through the queue.
#[expect(clippy::print_stdout, reason = "the command's own answer")]
async fn joins() -> anyhow::Result<()> {
    let redis = Redis::start().await?;
    let queues: [(&str, Arc<dyn Queue>); 2] = [
        ("in memory", Arc::new(MemoryQueue::new(Clock::default()))),
        ("in Redis", Arc::new(RedisQueue::new(&redis.url, "bench", Clock::default())?)),
    ];
    for (kind, queue) in queues {
        let event = EventId::new();
        // Until it answers.
        while queue.find(event, "nobody").await.is_err() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let started = Instant::now();
        let joins = (0..256).map(|lane| {
            let queue = Arc::clone(&queue);
            tokio::spawn(async move {
                for n in (lane..JOINS).step_by(256) {
                    queue.join(event, &format!("buyer-{n}")).await?;
                }
                Ok::<_, crate::waiting::QueueError>(())
            })
        });
        for join in futures_util::future::join_all(joins).await {
            join??;
        }
        let each = started.elapsed() / u32::try_from(JOINS)?;
        println!("joins of a waiting room {kind:<10}                 {:>8.0} a second", 1_000.0 / millis(each));
    }
    redis.stop().await;
    Ok(())
}

/// One client after the other on an idle server with an event of 50,000 seats.
#[expect(clippy::print_stdout, reason = "the command's own answer")]
async fn idle() -> anyhow::Result<()> {
    let folder = Path::new(".parterre/bench");
    Cluster::of(folder)?.remove()?;
    std::fs::remove_dir_all(folder)?;
    let cluster = Cluster::start(folder, Durability::Durable)?;
    cluster.create_database("bench")?;
    let shutdown = CancellationToken::new();
    let metrics = crate::telemetry::recorder()?;
    let mut config = default_config();
    config.database_url = cluster.url("bench");
    config.create_organizations = true;
    config.limits = Limits::Off;
    config.data = folder.join("data");
    let provider = TcpListener::bind("127.0.0.1:0").await?;
    let simulated = format!("http://{}", provider.local_addr()?);
    let simulator = Simulator::new(Settings {
        webhook_url: None,
        webhook_secret: Secret::new("whsec_simulator"),
        file: None,
        public_url: simulated.clone(),
    });
    tokio::spawn(simulator.clone().serve(provider, shutdown.clone()));
    config.stripe_api_base = simulated.clone();
    let database = db::Db::connect(&config.database_url, 2).await?;
    parterre_migration::up(database.pool()).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}/graphql", listener.local_addr()?);
    let app = App::build(config, shutdown.clone()).await?;
    workers::start(&app);
    workers::start_indexer(&app);
    let server = tokio::spawn(http::serve(app.clone(), listener));
    let client = Client { http: reqwest::Client::new(), url, app: app.clone() };

    let started = Instant::now();
    let event = client.arena().await?;
    println!("an event of 50,000 seats, created and published   {:>8.1} ms", millis(started.elapsed()));
    let (mut holds, ids) = client.holds(&event, 0..HOLDS).await?;
    let mut maps = Vec::with_capacity(MAPS);
    for _ in 0..MAPS {
        let query = "query($id: ID!) { seatMap(eventId: $id) { sections { statuses } } }";
        let asked = Instant::now();
        client.ask(&Person::buyer("reader"), query, json!({ "id": event })).await?;
        maps.push(asked.elapsed());
    }
    tell("holdSeats of two seats, seen by the client", &mut holds);
    tell("seatMap statuses of 50,000 seats, warm", &mut maps);
    println!("the server's own histogram of holds, cumulative:");
    for line in metrics.render().lines().filter(|line| line.starts_with("parterre_hold_seconds_bucket")) {
        println!("  {line}");
    }
    let mut checkouts = client.checkouts(&ids).await?;
    tell("checkout to CONFIRMED, instant provider", &mut checkouts);
    let (mut quiet, _) = client.holds(&event, HOLDS..HOLDS + BESIDE).await?;
    lose_payments(&database, &simulated, &event).await?;
    let (mut busy, _) = client.holds(&event, HOLDS + BESIDE..HOLDS + 2 * BESIDE).await?;
    let calls = simulator.ledger().calls;
    let looks: u64 = ["retrieve", "list"].iter().filter_map(|call| calls.get(*call)).sum();
    tell("holdSeats again, nothing else going on", &mut quiet);
    tell(&format!("holdSeats beside {UNKNOWN} unknown payments"), &mut busy);
    println!("looks at the provider meanwhile                   {looks:>8}");
    println!(
        "its p95, in hundredths of the one before                  {:>8.0}",
        100.0 * quantile(&mut busy, 0.95) / quantile(&mut quiet, 0.95)
    );
    drop(client);
    crate::shutdown::end(app, server).await;
    cluster.stop()?;
    Ok(())
}

/// Saves payments whose outcome is not known and stays so. Of one half the provider is still at the one payment that all
/// of them name; the other half it never got, and their holds are over: they are looked for in its list, in vain.
async fn lose_payments(database: &db::Db, simulated: &str, event: &str) -> anyhow::Result<()> {
    let order = [("amount", "5000"), ("currency", "eur"), ("payment_method", "pm_sim_collects_at_once_86400000")];
    let made = reqwest::Client::new().post(format!("{simulated}/v1/payment_intents")).form(&order).send().await?;
    let made: Value = made.json().await?;
    let provider_id = made.get("id").and_then(Value::as_str).context("the simulator made no payment")?.to_owned();
    let (_, event) = parterre_schema::parse_node_id(event).context("an event id")?;
    let statement = crate::sql!(
        "WITH new AS (SELECT gen_random_uuid() AS hold, gen_random_uuid() AS booking, n FROM generate_series(1, $1) AS n),
         holds AS (INSERT INTO hold (id, event_id, buyer, status, deadline, total_minor, currency, created_at)
             SELECT hold, $2, 'lost-' || n, CASE n % 2 WHEN 0 THEN 'CONVERTED' ELSE 'EXPIRED' END, clock_timestamp(), 5000, 'EUR',
                 clock_timestamp() FROM new),
         bookings AS (INSERT INTO booking (id, code, hold_id, event_id, buyer, status, total_minor, currency, cancel_until,
                 refund_ppm, resell, failure, created_at)
             SELECT booking, 'L' || n, hold, $2, 'lost-' || n, CASE n % 2 WHEN 0 THEN 'PAYMENT_PENDING' ELSE 'FAILED' END, 5000,
                 'EUR', clock_timestamp(), 0, true, CASE n % 2 WHEN 1 THEN 'HOLD_EXPIRED' END, clock_timestamp() FROM new)
         INSERT INTO payment (id, booking_id, event_id, operation_id, status, unknown_step, amount_minor, currency,
             payment_method, provider_id, first_sent_at, attempts, unknown_since, next_check_at, created_at)
         SELECT gen_random_uuid(), booking, $2, 'lost-' || n, 'UNKNOWN', CASE n % 2 WHEN 0 THEN 'CAPTURE' ELSE 'AUTHORIZE' END,
             5000, 'EUR', 'pm_card_visa', CASE n % 2 WHEN 0 THEN $3 END, clock_timestamp(), 1, clock_timestamp(), clock_timestamp(), clock_timestamp() FROM new",
        UNKNOWN,
        event,
        provider_id
    );
    database.pool().execute_raw(statement).await?;
    Ok(())
}

struct Client {
    http: reqwest::Client,
    url: String,
    app: App,
}

impl Client {
    async fn ask(&self, who: &Person, query: &str, variables: Value) -> anyhow::Result<Value> {
        let token = issue(&self.app.config, who, Duration::from_hours(1))?;
        let request =
            self.http.post(&self.url).bearer_auth(token).json(&json!({ "query": query, "variables": variables }));
        Ok(request.send().await?.json().await?)
    }

    /// Holds of two neighbours each, one after the other: how long each took, and its id.
    async fn holds(&self, event: &str, numbers: Range<usize>) -> anyhow::Result<(Vec<Duration>, Vec<Value>)> {
        let (mut times, mut ids) = (Vec::with_capacity(numbers.len()), Vec::with_capacity(numbers.len()));
        for number in numbers {
            let (row, first) = (number / 100, number % 100 * 2 + 1);
            let seats = [format!("R{row}-{first}"), format!("R{row}-{}", first + 1)];
            let input = json!({ "eventId": event, "idempotencyKey": "k", "seatIds": seats });
            let query = "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id expiresAt } userErrors { code } } }";
            let asked = Instant::now();
            let answer = self.ask(&Person::buyer(format!("buyer-{number}")), query, json!({ "input": input })).await?;
            times.push(asked.elapsed());
            let id = answer.pointer("/data/holdSeats/hold/id").filter(|id| id.is_string());
            ids.push(id.cloned().with_context(|| answer.to_string())?);
        }
        Ok((times, ids))
    }

    /// Pays for the first holds, one after the other.
    async fn checkouts(&self, holds: &[Value]) -> anyhow::Result<Vec<Duration>> {
        let mut times = Vec::with_capacity(CHECKOUTS);
        for (number, hold) in holds.iter().take(CHECKOUTS).enumerate() {
            let input = json!({ "holdId": hold, "idempotencyKey": "c", "paymentMethod": "pm_card_visa" });
            let query = "mutation($input: CheckoutInput!) { checkout(input: $input) { booking { status } userErrors { code } } }";
            let asked = Instant::now();
            let answer = self.ask(&Person::buyer(format!("buyer-{number}")), query, json!({ "input": input })).await?;
            times.push(asked.elapsed());
            let confirmed = answer.pointer("/data/checkout/booking/status").is_some_and(|status| status == "CONFIRMED");
            anyhow::ensure!(confirmed, "{answer}");
        }
        Ok(times)
    }

    /// An event of 250 rows of 200 seats.
    async fn arena(&self) -> anyhow::Result<String> {
        let acme = Person::organizer("ACME");
        let make = async |name: &str, kind: &str, input: Value, fields: &str| {
            let query = format!(
                "mutation($input: {kind}!) {{ {name}(input: $input) {{ {fields} userErrors {{ code message }} }} }}"
            );
            let answer = self.ask(&acme, &query, json!({ "input": input })).await?;
            answer.pointer(&format!("/data/{name}")).cloned().with_context(|| answer.to_string())
        };
        let venue = json!({ "name": "Arena", "city": "Berlin", "countryCode": "DE", "timeZone": "Europe/Berlin" });
        let venue = make("createVenue", "CreateVenueInput", venue, "venue { id }").await?;
        let row = |row: usize| {
            let seats: Vec<Value> = (1..=200).map(|n| json!({ "number": n.to_string(), "zone": "All" })).collect();
            json!({ "name": format!("R{row}"), "seats": seats })
        };
        let sections = json!([{ "name": "Arena", "rows": (0..250).map(row).collect::<Vec<_>>() }]);
        let venue_id = venue.pointer("/venue/id").cloned().context("no venue")?;
        let layout = json!({ "venueId": venue_id, "name": "Arena", "sections": sections });
        let layout = make("createLayout", "CreateLayoutInput", layout, "layout { id }").await?;
        let at = |days: i64| (crate::clock::now() + chrono::Duration::days(days)).to_rfc3339();
        let event = json!({
            "venueId": venue_id, "layoutId": layout.pointer("/layout/id"), "title": "Measured", "currency": "EUR",
            "inventoryMode": "ASSIGNED", "zonePrices": [{ "zone": "All", "price": "25.00" }],
            "startsAt": at(30), "onSaleAt": at(-1), "offSaleAt": at(29),
        });
        let event = make("createEvent", "CreateEventInput", event, "event { id version }").await?;
        let publish =
            json!({ "eventId": event.pointer("/event/id"), "expectedVersion": event.pointer("/event/version") });
        make("publishEvent", "PublishEventInput", publish, "event { id }").await?;
        event.pointer("/event/id").and_then(Value::as_str).map(str::to_owned).context("no event")
    }
}

#[expect(clippy::print_stdout, reason = "the command's own answer")]
fn tell(what: &str, times: &mut [Duration]) {
    let (median, p95) = (quantile(times, 0.5), quantile(times, 0.95));
    println!("{what:<50} median {median:>5.2} ms, p95 {p95:>5.2} ms");
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1_000.0
}

/// The value below which a share of the times lies, in milliseconds.
fn quantile(times: &mut [Duration], share: f64) -> f64 {
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    let rank = f64::from(u32::try_from(last).unwrap_or(u32::MAX)) * share;
    let found = times.iter().zip(0_u32..).find(|(_, at)| f64::from(*at) >= rank);
    found.map_or(0.0, |(time, _)| millis(*time))
}
