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
use std::time::Duration;

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
}

impl Uniform {
    fn new(world: &World, events: Vec<Arena>) -> Arc<Self> {
        Arc::new(Self { config: world.config(), events, from: AtomicU64::new(0) })
    }
}

/// The n-th of all pairs of all events, in an order that jumps about and meets each once; none after the last.
pub(super) fn scattered(events: &[Arena], n: u64) -> Option<(&Arena, [String; 2])> {
    let pairs = events.first()?.pairs();
    let all = pairs * u64::try_from(events.len()).ok()?;
    // A step without a divisor in common with their number.
    let at = (n < all).then_some(n * 7_919 % all)?;
    let arena = events.get(usize::try_from(at / pairs).ok()?)?;
    Some((arena, arena.pair(at % pairs)))
}

impl Asks for Uniform {
    fn request(&self, _: u64) -> Option<Vec<u8>> {
        let n = self.from.fetch_add(1, Ordering::Relaxed);
        let (arena, seats) = scattered(&self.events, n)?;
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
    Ok(())
}

pub(super) async fn uniform(options: &Options) -> anyhow::Result<Vec<Report>> {
    let world = World::new().await?;
    let seats = options.share(EVENTS * ROWS);
    let count = seats.div_ceil(ROWS);
    let hall = world.arena(seats / count).await?;
    let events = world.events(&hall, count, json!({})).await?;
    // Events for the anchor, which meets the same tables and leaves the others alone.
    let for_anchor = world.events(&world.arena(ROWS).await?, pgbench::EVENTS, json!({})).await?;
    world.settle().await?;
    let asks = Uniform::new(&world, events);
    let closed = (options.connections, Pace::Closed);
    load(world.server, closed, warm_up(options), Arc::clone(&asks)).await?;
    let before = pgbench::holds(&world, &for_anchor, options.seconds).await?;
    let mut report = Report::new("holds", "holds/s");
    let wal = world.wal_bytes().await?;
    let mut latency = Latency::new();
    for _ in 0..options.rounds {
        let seen = load(world.server, closed, options.round(), Arc::clone(&asks)).await?;
        check(&report, &seen)?;
        report.rounds.push(rate(seen.latency.count(), seen.took));
        latency.add(&seen.latency);
    }
    let each = (world.wal_bytes().await? - wal) / f64::from(u32::try_from(latency.count().max(1))?);
    report.latency = Some(latency);
    let after = pgbench::holds(&world, &for_anchor, options.seconds).await?;
    // Whichever was better: it has to be beaten at its best.
    report.anchor = Some(("pgbench, 16 clients", before.max(after)));
    let hot = 100.0 * world.hot_updates("event_seat").await?;
    report.notes.push(format!(
        "pgbench {before:.0} before, {after:.0} after; {each:.0} bytes of WAL a hold; {hot:.1} % of updates of seats are HOT"
    ));
    report.notes.push(format!("{:.0} MB of memory with {count} maps of {} seats", world.memory_mb(), hall.rows * 200));

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
    report.broken = world.broken().await?;
    reports.insert(0, report);
    world.end().await?;
    Ok(reports)
}

pub(super) async fn hot(options: &Options, name: &str, seats: usize) -> anyhow::Result<Vec<Report>> {
    let world = World::new().await?;
    let arena = world.arena(ROWS).await?;
    let quiet = Uniform::new(&world, world.events(&arena, 1, json!({})).await?);
    world.settle().await?;
    let unrelated = (8, Pace::Open(100.0));
    load(world.server, unrelated, Duration::from_secs(3), Arc::clone(&quiet)).await?;
    let alone = load_apart(world.server, unrelated, options.round(), Arc::clone(&quiet)).await?;
    let asks = Arc::new(Wanted { config: world.config(), event: arena.event, seats, from: AtomicU64::new(0) });
    let mut report = Report::new(name, "decisions/s");
    let (mut beside, mut latency) = (Vec::new(), Latency::new());
    for _ in 0..options.rounds {
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
        "an unrelated event at 100 holds/s: p95 {:.1} ms alone, {} ms beside the crowd, round by round",
        alone.latency.ms(0.95),
        beside.join(", ")
    ));
    report.broken = world.broken().await?;
    world.end().await?;
    Ok(vec![report])
}
