//! Everything at once for a while: people who hold seats and let them run out, people who hold and pay, readers of maps,
//! and watchers. Each round is one sample, so that a long run shows what grows.

use super::Options;
use super::client::{Answer, Connection, Subscriber, get, mutation};
use super::holds::{hold, scattered};
use super::load::{Asks, Pace, load};
use super::report::{Latency, Report, rate};
use super::world::{Arena, ROWS, World};
use crate::config::Config;
use crate::db::Db;
use crate::sql;
use anyhow::{Context as _, ensure};
use sea_orm::FromQueryResult as _;
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

const EVENTS: usize = 20;
const HOLDS_A_SECOND: f64 = 500.0;
/// Seconds that a hold lives: enough to pay, and few enough to see holds run out.
const HOLD_SECONDS: u32 = 30;
/// Two calls of the provider each, which takes 80 a second as it is set up for everybody.
const PAID_A_SECOND: f64 = 30.0;
/// Tabs of those who pay: each waits for its payment.
const PAYERS: u32 = 32;
const READS_A_SECOND: f64 = 1_000.0;
const WATCHERS: usize = 500;
/// One of so many holds wants seats that many want.
const WANTED: u64 = 10;
/// Pairs that many want.
const WANTED_PAIRS: u64 = 5_000;
/// So short that a long run shows rows being removed.
const OUTBOX_KEPT_MINUTES: &str = "3";
/// While which maps are loaded and watchers come.
const WARM_UP: Duration = Duration::from_secs(5);
/// The shortest sample: with the usual three rounds, a minute.
const ROUND_MIN: Duration = Duration::from_secs(20);

/// Holds, scattered over all seats of all events, again from the start after the last; and some of seats that many want.
struct Buyers {
    config: Config,
    events: Vec<Arena>,
    from: AtomicU64,
    refused: AtomicU64,
}

impl Buyers {
    /// The next buyer, and their request.
    fn next(&self) -> Option<(String, Vec<u8>)> {
        let n = self.from.fetch_add(1, Ordering::Relaxed);
        let all = self.events.first()?.pairs() * u64::try_from(self.events.len()).ok()?;
        let nth = if n.is_multiple_of(WANTED) { n / WANTED % WANTED_PAIRS.min(all) } else { n % all };
        let (arena, seats) = scattered(&self.events, nth)?;
        let buyer = format!("buyer-{n}");
        let request = hold(&self.config, &arena.event, &buyer, &seats);
        Some((buyer, request))
    }
}

impl Asks for Buyers {
    fn request(&self, _: u64) -> Option<Vec<u8>> {
        self.next().map(|(_, request)| request)
    }

    fn is_right(&self, _: u64, answer: &Answer<'_>) -> bool {
        if answer.contains("SEATS_UNAVAILABLE") {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return true;
        }
        answer.contains("\"userErrors\":[]")
    }
}

pub(super) async fn run(options: &Options) -> anyhow::Result<Vec<Report>> {
    let world = World::with(&[("OUTBOX_KEPT_MINUTES", OUTBOX_KEPT_MINUTES)]).await?;
    let rules = json!({ "holdSeconds": HOLD_SECONDS });
    let events = world.events(&world.arena(options.share(ROWS)).await?, EVENTS, rules).await?;
    world.settle().await?;
    let stop = CancellationToken::new();
    let told = Arc::new(AtomicU64::new(0));
    let mut beside = watchers(&world, &events, options.share(WATCHERS), (&told, &stop))?;
    let buyers = Arc::new(Buyers {
        config: world.config(),
        events: events.clone(),
        from: AtomicU64::new(0),
        refused: AtomicU64::new(0),
    });
    let paid = Arc::new(Paid::default());
    for _ in 0..PAYERS {
        beside.spawn(pay(world.server, Arc::clone(&buyers), Arc::clone(&paid), stop.clone()));
    }

    let mut report = Report::new("mixed", "ms, p95 of holds");
    let mut latency = Latency::new();
    let lasting = options.round().max(ROUND_MIN);
    load(world.server, (64, Pace::Open(HOLDS_A_SECOND)), WARM_UP, Arc::clone(&buyers)).await?;
    paid.forget();
    told.store(0, Ordering::Relaxed);
    let begun = Instant::now();
    let mut processors = Processors::now();
    let (mut paid_before, mut taken_before, mut failed) = (0, 0, None);
    for round in 0..options.rounds {
        let holds = load(world.server, (64, Pace::Open(HOLDS_A_SECOND)), lasting, Arc::clone(&buyers));
        let reads = load(world.server, (32, Pace::Open(READS_A_SECOND)), lasting, Reads::of(&events));
        let seen = async {
            let (holds, reads) = tokio::try_join!(holds, reads)?;
            ensure!(holds.wrong == 0, "{} answers to holds were wrong", holds.wrong);
            ensure!(reads.wrong == 0, "{} maps were wrong", reads.wrong);
            if let Some(stopped) = beside.try_join_next() {
                stopped??;
            }
            Ok::<_, anyhow::Error>((holds, reads))
        };
        // What was seen until then is told all the same.
        let (holds, reads) = match seen.await {
            Ok(seen) => seen,
            Err(error) => {
                failed = Some(format!("round {round}: {error:#}"));
                break;
            }
        };
        report.rounds.push(holds.latency.ms(0.95));
        let before = std::mem::replace(&mut processors, Processors::now());
        report.notes.push(format!(
            "{:>5.0} s: holds p50 {:.1}, p95 {:.1}, p99 {:.1} ms; maps p95 {:.1} ms; {} paid, {} found their seats taken; {}; {}",
            begun.elapsed().as_secs_f64(),
            holds.latency.ms(0.5),
            holds.latency.ms(0.95),
            holds.latency.ms(0.99),
            reads.latency.ms(0.95),
            std::mem::replace(&mut paid_before, paid.count()).abs_diff(paid_before),
            std::mem::replace(&mut taken_before, buyers.refused.load(Ordering::Relaxed)).abs_diff(taken_before),
            processors.since(&before),
            world.size().await?
        ));
        latency.add(&holds.latency);
    }
    let took = begun.elapsed();
    stop.cancel();
    while let Some(ended) = beside.join_next().await {
        if let Err(error) = ended? {
            failed.get_or_insert_with(|| format!("{error:#}"));
        }
    }
    let checkouts = paid.answers.lock().unwrap_or_else(PoisonError::into_inner).clone();
    report.notes.push(format!(
        "{:.0} holds/s of {HOLDS_A_SECOND}, {} of all refused since taken; {:.1} checkouts/s of {PAID_A_SECOND}, from wanting to the answer p50 {:.1}, p95 {:.1} ms, {} of {} were told to wait, {} came after their hold; {:.0} holds expired; {:.0} messages/s to {} watchers",
        rate(latency.count(), took),
        buyers.refused.load(Ordering::Relaxed),
        rate(checkouts.count(), took),
        checkouts.ms(0.5),
        checkouts.ms(0.95),
        paid.pending.load(Ordering::Relaxed),
        checkouts.count(),
        paid.late.load(Ordering::Relaxed),
        world.metric("parterre_holds_expired_total").await?,
        rate(told.load(Ordering::Relaxed), took),
        options.share(WATCHERS)
    ));
    report.latency = Some(latency);
    let mut reports = vec![report];
    world.audit(&mut reports).await?;
    for report in &mut reports {
        report.broken.extend(failed.clone());
    }
    world.end().await?;
    Ok(reports)
}

/// What the machine's processors did since it started, in ticks: without it nobody can tell a slow server from a machine
/// that others use too.
struct Processors {
    idle: f64,
    stolen: f64,
    all: f64,
}

impl Processors {
    fn now() -> Self {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let first = text.lines().next().unwrap_or_default();
        // user, nice, system, idle, iowait, irq, softirq, steal
        let ticks: Vec<f64> = first.split_whitespace().skip(1).take(8).filter_map(|tick| tick.parse().ok()).collect();
        let tick = |at: usize| ticks.get(at).copied().unwrap_or(0.0);
        Self { idle: tick(3) + tick(4), stolen: tick(7), all: ticks.iter().sum() }
    }

    fn since(&self, before: &Self) -> String {
        let (all, stolen) = (self.all - before.all, self.stolen - before.stolen);
        let busy = all - stolen - (self.idle - before.idle);
        let share = |part: f64| 100.0 * part / all.max(1.0);
        format!("processors {:.0} % busy, {:.0} % taken by others", share(busy), share(stolen))
    }
}

/// What those saw who paid.
#[derive(Default)]
struct Paid {
    /// From when somebody wanted to hold and pay to the answer to their checkout.
    answers: Mutex<Latency>,
    /// Those that said that the payment takes longer.
    pending: AtomicU64,
    /// Those that came after their hold had run out.
    late: AtomicU64,
}

impl Paid {
    fn count(&self) -> u64 {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner).count()
    }

    fn forget(&self) {
        *self.answers.lock().unwrap_or_else(PoisonError::into_inner) = Latency::new();
        self.pending.store(0, Ordering::Relaxed);
        self.late.store(0, Ordering::Relaxed);
    }
}

/// Holds and pays by the clock.
async fn pay(
    server: std::net::SocketAddr,
    buyers: Arc<Buyers>,
    paid: Arc<Paid>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut connection = Connection::open(server).await?;
    let every = Duration::from_secs_f64(f64::from(PAYERS) / PAID_A_SECOND);
    let mut clock = tokio::time::interval(every);
    loop {
        let due = tokio::select! {
            () = stop.cancelled() => return Ok(()),
            due = clock.tick() => due,
        };
        let (buyer, request) = buyers.next().context("no seats")?;
        let answer = connection.send(&request).await?;
        if answer.contains("SEATS_UNAVAILABLE") {
            buyers.refused.fetch_add(1, Ordering::Relaxed);
            continue;
        }
        let answer: Value = serde_json::from_slice(answer.body)?;
        let hold = answer.pointer("/data/holdSeats/hold/id").and_then(Value::as_str);
        let hold = hold.with_context(|| answer.to_string())?;
        let query =
            "mutation($input: CheckoutInput!) { checkout(input: $input) { booking { status } userErrors { code } } }";
        let input = json!({ "holdId": hold, "idempotencyKey": "c", "paymentMethod": "pm_card_visa" });
        let request = mutation(&buyers.config, buyer, query, &input);
        let answer = connection.send(&request).await?;
        paid.answers.lock().unwrap_or_else(PoisonError::into_inner).note(due.elapsed());
        if answer.contains("\"HOLD_EXPIRED\"") {
            // A machine that stood still for as long as a hold lives.
            paid.late.fetch_add(1, Ordering::Relaxed);
        } else if answer.contains("\"PAYMENT_PENDING\"") {
            paid.pending.fetch_add(1, Ordering::Relaxed);
        } else {
            ensure!(answer.contains("\"CONFIRMED\""), "{}", answer.text());
        }
    }
}

/// Maps of all events, one after the other.
struct Reads {
    paths: Vec<Vec<u8>>,
}

impl Reads {
    fn of(events: &[Arena]) -> Arc<Self> {
        let path = |arena: &Arena| get(&format!("/events/{}/seat-map", arena.event), "Accept-Encoding: gzip\r\n");
        Arc::new(Self { paths: events.iter().map(path).collect() })
    }
}

impl Asks for Reads {
    fn request(&self, n: u64) -> Option<Vec<u8>> {
        self.paths.get(usize::try_from(n).ok()? % self.paths.len()).cloned()
    }

    fn is_right(&self, _: u64, answer: &Answer<'_>) -> bool {
        answer.status == 200
    }
}

/// So many who watch, spread over all events.
fn watchers(
    world: &World,
    events: &[Arena],
    count: usize,
    (told, stop): (&Arc<AtomicU64>, &CancellationToken),
) -> anyhow::Result<JoinSet<anyhow::Result<()>>> {
    let mut watchers = JoinSet::new();
    for n in 0..count {
        let event = events.get(n % events.len()).context("no event")?.event.clone();
        let from = IpAddr::V4(Ipv4Addr::new(127, 0, 1, u8::try_from(n / 250)? + 1));
        watchers.spawn(watch((from, world.server), event, Arc::clone(told), stop.clone()));
    }
    Ok(watchers)
}

/// Watches a map until the end, and counts messages.
async fn watch(
    (from, to): (IpAddr, std::net::SocketAddr),
    event: String,
    told: Arc<AtomicU64>,
    stop: CancellationToken,
) -> anyhow::Result<()> {
    let mut subscriber = Subscriber::open(from, to).await?;
    let subscribe = json!({ "id": "1", "type": "subscribe", "payload": {
        "query": "subscription($id: ID!) { seatMapChanged(eventId: $id) {
            __typename ... on SeatMapSnapshot { version } ... on SeatMapDelta { version changes { seatId status } } } }",
        "variables": { "id": event },
    }});
    subscriber.say(&subscribe.to_string()).await?;
    loop {
        tokio::select! {
            () = stop.cancelled() => return Ok(()),
            message = subscriber.next() => drop(message?),
        }
        told.fetch_add(1, Ordering::Relaxed);
    }
}

impl World {
    /// What grows: memory of the server, the database, its outbox, and the share of dead rows in what is written most.
    async fn size(&self) -> anyhow::Result<String> {
        let tables = tables(&self.db).await?;
        Ok(format!("{:.0} MB of memory, {tables}", self.memory_mb()))
    }
}

async fn tables(db: &Db) -> anyhow::Result<String> {
    #[derive(sea_orm::FromQueryResult)]
    struct Sizes {
        database_mb: f64,
        seats_mb: f64,
        holds_mb: f64,
        keys_mb: f64,
        outbox_mb: f64,
        outbox_rows: i64,
        dead: f64,
    }
    let sizes = Sizes::find_by_statement(sql!(
        "SELECT pg_database_size(current_database()) / 1e6::float8 AS database_mb,
                pg_total_relation_size('event_seat') / 1e6::float8 AS seats_mb,
                (pg_total_relation_size('hold') + pg_total_relation_size('hold_item')) / 1e6::float8 AS holds_mb,
                (pg_total_relation_size('idempotency') + pg_total_relation_size('event_quota')) / 1e6::float8 AS keys_mb,
                pg_total_relation_size('outbox') / 1e6::float8 AS outbox_mb,
                (SELECT count(*) FROM outbox) AS outbox_rows,
                coalesce((SELECT sum(n_dead_tup) / greatest(sum(n_live_tup), 1) FROM pg_stat_user_tables
                          WHERE relname IN ('event_seat', 'hold', 'hold_item', 'event_counter')), 0)::float8 AS dead"
    ))
    .one(db.pool())
    .await?
    .context("no sizes")?;
    Ok(format!(
        "database {:.0} MB, seats {:.0} MB, holds and their items {:.0} MB, keys and quotas {:.0} MB, outbox {:.0} MB of {} rows, {:.2} dead rows a live one",
        sizes.database_mb,
        sizes.seats_mb,
        sizes.holds_mb,
        sizes.keys_mb,
        sizes.outbox_mb,
        sizes.outbox_rows,
        sizes.dead
    ))
}
