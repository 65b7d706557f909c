//! Holds: over many events, each seat wanted once; and on a few seats that everybody wants.

use super::client::{Answer, mutation};
use super::load::{Asks, Pace, Seen, load, load_apart};
use super::report::{Latency, Report, rate};
use super::world::{Arena, ROWS, World};
use super::{Options, pgbench};
use crate::config::Config;
use anyhow::ensure;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Events that are on sale at once.
const EVENTS: usize = 20;

/// A request for seats, of a buyer who never asked before.
pub(super) fn hold(config: &Config, event: &str, buyer: &str, seats: &[String]) -> Vec<u8> {
    let query =
        "mutation($input: HoldSeatsInput!) { holdSeats(input: $input) { hold { id expiresAt } userErrors { code } } }";
    mutation(config, buyer, query, &json!({ "eventId": event, "idempotencyKey": "k", "seatIds": seats }))
}

/// Every pair of seats of every event once, in an order that jumps about.
struct Uniform {
    config: Config,
    events: Vec<Arena>,
    from: AtomicU64,
    /// The first of the pairs that are not asked for.
    until: u64,
}

impl Uniform {
    fn new(world: &World, events: Vec<Arena>, until: u64) -> Arc<Self> {
        Arc::new(Self { config: world.config(), events, from: AtomicU64::new(0), until })
    }
}

/// A step without a divisor in common with any number of pairs.
pub(super) const STEP: u64 = 7_919;

/// The n-th of all pairs of all events, in an order that jumps about and meets each once; none after the last.
pub(super) fn scattered(events: &[Arena], n: u64) -> Option<(&Arena, [String; 2])> {
    let pairs = events.first()?.pairs();
    let all = pairs * u64::try_from(events.len()).ok()?;
    let at = (n < all).then_some(n * STEP % all)?;
    let arena = events.get(usize::try_from(at / pairs).ok()?)?;
    Some((arena, arena.pair(at % pairs)))
}

impl Asks for Uniform {
    fn request(&self, _: u64) -> Option<Vec<u8>> {
        let n = self.from.fetch_add(1, Ordering::Relaxed);
        let (arena, seats) = if n < self.until { scattered(&self.events, n)? } else { return None };
        Some(hold(&self.config, &arena.event, &format!("buyer-{n}"), &seats))
    }

    fn is_right(&self, _: u64, answer: &Answer<'_>) -> bool {
        answer.contains("\"userErrors\":[]")
    }
}

/// The same few seats for everybody.
struct Wanted {
    config: Config,
    event: String,
    seats: usize,
    from: AtomicU64,
}

impl Asks for Wanted {
    fn request(&self, _: u64) -> Option<Vec<u8>> {
        let n = self.from.fetch_add(1, Ordering::Relaxed);
        let count = if self.seats > 1 { 2 } else { 1 };
        let first = usize::try_from(n).ok()? * 2 % self.seats + 1;
        let seats: Vec<String> = (first..first + count).map(|number| format!("S0-R0-{number}")).collect();
        Some(hold(&self.config, &self.event, &format!("wants-{n}"), &seats))
    }

    fn is_right(&self, _: u64, answer: &Answer<'_>) -> bool {
        // Most are told that somebody was faster, and that is an answer too.
        answer.contains("\"userErrors\":[]") || answer.contains("SEATS_UNAVAILABLE")
    }
}

/// A tenth of what a small catalogue has, and three seconds of a large one.
fn warm_up(options: &Options) -> Duration {
    Duration::from_millis(30 * u64::from(options.percent))
}

fn check(report: &Report, seen: &Seen) -> anyhow::Result<()> {
    ensure!(seen.wrong == 0, "{}: {} answers were wrong", report.scenario, seen.wrong);
    ensure!(seen.latency.count() > 0, "{}: there was nothing left to ask for", report.scenario);
    Ok(())
}

pub(super) async fn uniform(options: &Options) -> anyhow::Result<Vec<Report>> {
    let world = World::new().await?;
    let seats = options.share(EVENTS * ROWS);
    let count = seats.div_ceil(ROWS);
    let hall = world.arena(seats / count).await?;
    let events = world.events(&hall, count, json!({})).await?;
    world.load_maps(&events).await?;
    world.settle().await?;
    // The last quarter of the pairs is the anchor's.
    let pairs = hall.pairs() * u64::try_from(count)?;
    let asks = Uniform::new(&world, events.clone(), pairs / 4 * 3);
    let mut anchor = pgbench::Anchor::new(&world, &events, pairs / 8);
    let closed = (options.connections, Pace::Closed);
    load(world.server, closed, warm_up(options), Arc::clone(&asks)).await?;
    let before = anchor.run(options.seconds).await?;
    let mut report = Report::new("holds", "holds/s");
    let (wal, updates) = (world.wal_bytes().await?, world.hot_updates("event_seat").await?);
    let (mut latency, mut memory) = (Latency::new(), 0.0_f64);
    for round in 0..options.rounds {
        let seen = load(world.server, closed, options.round(), Arc::clone(&asks)).await?;
        // A small catalogue is sold out in less than a round.
        if round > 0 && options.percent < 100 && seen.latency.count() == 0 {
            break;
        }
        check(&report, &seen)?;
        memory = memory.max(world.memory_mb());
        report.rounds.push(rate(seen.latency.count(), seen.took));
        latency.add(&seen.latency);
    }
    let each = (world.wal_bytes().await? - wal) / f64::from(u32::try_from(latency.count())?);
    report.latency = Some(latency);
    let (hot, all) = world.hot_updates("event_seat").await?;
    let share = |part: i64, all: i64| {
        100.0 * f64::from(i32::try_from(part).unwrap_or(0)) / f64::from(i32::try_from(all.max(1)).unwrap_or(1))
    };
    report.notes.push(format!(
        "{each:.0} bytes of WAL a hold; {:.1} % of updates of seats are HOT; {memory:.0} MB of memory with {count} maps of {} seats",
        share(hot - updates.0, all - updates.1),
        hall.rows * 200
    ));
    // What is asked for from here on is more seldom than what was: it begins at rest, and what that takes is told.
    let ended = Instant::now();
    world.rest().await?;
    report.notes.push(format!("{:.1} s until the outbox was told to everybody", ended.elapsed().as_secs_f64()));

    let mut reports = Vec::new();
    // What a small catalogue has left would not last.
    let mut open = vec![("holds-half", report.median() / 2.0), ("holds-2000", 2_000.0)];
    if options.percent < 100 {
        open.clear();
    }
    for (name, pace) in open {
        let mut open = Report::new(name, "ms, p95");
        let seen =
            load(world.server, (options.connections, Pace::Open(pace)), options.round(), Arc::clone(&asks)).await?;
        check(&open, &seen)?;
        open.rounds.push(seen.latency.ms(0.95));
        open.notes.push(format!("{pace:.0} holds/s asked for"));
        open.latency = Some(seen.latency);
        reports.push(open);
    }
    let after = anchor.run(options.seconds).await?;
    // Whichever was better: it has to be beaten at its best.
    report.anchor = Some(("pgbench, 16 clients", before.max(after)));
    report.notes.push(format!("pgbench {before:.0} before, {after:.0} after"));
    reports.insert(0, report);
    world.audit(&mut reports).await?;
    world.end().await?;
    Ok(reports)
}

pub(super) async fn hot(options: &Options, name: &str, seats: usize) -> anyhow::Result<Vec<Report>> {
    let world = World::new().await?;
    let arena = world.arena(ROWS).await?;
    let quiet = Uniform::new(&world, world.events(&arena, 1, json!({})).await?, u64::MAX);
    world.settle().await?;
    let unrelated = (8, Pace::Open(100.0));
    load(world.server, unrelated, Duration::from_secs(3), Arc::clone(&quiet)).await?;
    let asks = Arc::new(Wanted { config: world.config(), event: arena.event, seats, from: AtomicU64::new(0) });
    let mut report = Report::new(name, "decisions/s");
    let (mut alone, mut beside, mut latency) = (Vec::new(), Vec::new(), Latency::new());
    for _ in 0..options.rounds {
        let others = load_apart(world.server, unrelated, options.round(), Arc::clone(&quiet)).await?;
        check(&report, &others)?;
        alone.push(format!("{:.1}", others.latency.ms(0.95)));
        let crowd = load(world.server, (options.connections, Pace::Closed), options.round(), Arc::clone(&asks));
        let others = load_apart(world.server, unrelated, options.round(), Arc::clone(&quiet));
        let (crowd, others) = tokio::try_join!(crowd, others)?;
        check(&report, &crowd)?;
        check(&report, &others)?;
        report.rounds.push(rate(crowd.latency.count(), crowd.took));
        beside.push(format!("{:.1}", others.latency.ms(0.95)));
        latency.add(&crowd.latency);
    }
    report.latency = Some(latency);
    report.notes.push(format!(
        "an unrelated event at 100 holds/s, round by round: p95 {} ms alone, {} ms beside the crowd",
        alone.join(", "),
        beside.join(", ")
    ));
    let mut reports = vec![report];
    world.audit(&mut reports).await?;
    world.end().await?;
    Ok(reports)
}
