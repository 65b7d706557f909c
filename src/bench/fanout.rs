//! Many who watch one map, on which forty seats change a second.

use super::Options;
use super::client::{Connection, Subscriber};
use super::holds::hold;
use super::report::{Latency, Report};
use super::world::{Arena, ROWS, World};
use anyhow::{Context as _, ensure};
use serde_json::json;
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Holds of two seats a second.
const HOLDS_A_SECOND: u32 = 20;
/// Watchers of one address: fewer than it may have.
const OF_ONE_ADDRESS: usize = 400;
/// How long after the last hold a watcher may be told of it.
const TOLD_WITHIN: Duration = Duration::from_secs(30);
/// Watchers that connect at once.
const AT_ONCE: usize = 50;

/// When each seat's hold was due, and for each message that was seen already, the earliest of its seats and how many
/// they are.
#[derive(Default)]
struct Clock {
    due: Mutex<HashMap<String, Instant>>,
    known: Mutex<HashMap<u64, Option<(Instant, usize)>>>,
    hasher: RandomState,
}

impl Clock {
    /// Since when a message was on its way: since its first hold was due, which is before it was committed; and the seats
    /// that it tells of.
    fn of(&self, message: &[u8]) -> Option<(Instant, usize)> {
        let key = self.hasher.hash_one(message);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        *known.entry(key).or_insert_with(|| {
            let text = String::from_utf8_lossy(message);
            let due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
            let seats = text.split("\"seatId\":\"").skip(1).filter_map(|rest| rest.split('"').next());
            let seats: Vec<Instant> = seats.filter_map(|seat| due.get(seat).copied()).collect();
            Some((seats.iter().min().copied()?, seats.len()))
        })
    }
}

pub(super) async fn run(options: &Options) -> anyhow::Result<Vec<Report>> {
    let watching = options.share(options.watchers);
    let world = World::new().await?;
    let arena = world.arena(ROWS).await?;
    let clock = Arc::<Clock>::default();
    // The map is loaded and told of before anybody is counted.
    let subscribe = json!({ "id": "1", "type": "subscribe", "payload": {
        "query": "subscription($id: ID!, $sections: [ID!]) { seatMapChanged(eventId: $id, sectionIds: $sections) {
            __typename ... on SeatMapSnapshot { version sections { name } }
            ... on SeatMapDelta { fromVersion version asOf changes { seatId status } } } }",
        "variables": { "id": arena.event },
    }})
    .to_string();
    let mut first = Subscriber::open(IpAddr::V4(Ipv4Addr::LOCALHOST), world.server).await?;
    first.say(&subscribe).await?;
    first.next().await?;
    let before_mb = world.memory_mb();

    let (ready, told, seats) =
        (Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default(), Arc::<AtomicUsize>::default());
    let latency = Arc::new(Mutex::new(Latency::new()));
    let stop = tokio_util::sync::CancellationToken::new();
    let gate = Arc::new(tokio::sync::Semaphore::new(AT_ONCE));
    let mut watchers = Vec::with_capacity(watching);
    for n in 0..watching {
        let (clock, ready, told, seats) = (clock.clone(), ready.clone(), told.clone(), seats.clone());
        let (latency, stop, gate) = (latency.clone(), stop.clone(), gate.clone());
        let (subscribe, server) = (subscribe.clone(), world.server);
        let from = u32::from(Ipv4Addr::new(127, 1, 0, 1)) + u32::try_from(n / OF_ONE_ADDRESS)?;
        watchers.push(tokio::spawn(async move {
            let permit = gate.acquire().await?;
            let mut subscriber = Subscriber::open(IpAddr::V4(from.into()), server).await?;
            subscriber.say(&subscribe).await?;
            subscriber.next().await?;
            ready.fetch_add(1, Ordering::Relaxed);
            drop(permit);
            let mut own = Latency::new();
            loop {
                let message = tokio::select! {
                    () = stop.cancelled() => break,
                    message = subscriber.next() => message?,
                };
                if let Some((since, of)) = clock.of(message) {
                    own.note(since.elapsed());
                    told.fetch_add(1, Ordering::Relaxed);
                    seats.fetch_add(of, Ordering::Relaxed);
                }
            }
            latency.lock().unwrap_or_else(PoisonError::into_inner).add(&own);
            Ok::<_, anyhow::Error>(())
        }));
    }
    let begun = Instant::now();
    while ready.load(Ordering::Relaxed) < watching {
        ensure!(begun.elapsed() < Duration::from_mins(3), "only {} watch", ready.load(Ordering::Relaxed));
        if let Some(broken) = watchers.iter().position(tokio::task::JoinHandle::is_finished) {
            watchers.swap_remove(broken).await?.context("a watcher could not begin")?;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    let connected = begun.elapsed();
    tokio::time::sleep(Duration::from_secs(2)).await;

    let lasting = options.round() * u32::try_from(options.rounds)?;
    let started = Instant::now();
    let holds = HOLDS_A_SECOND * u32::try_from(lasting.as_secs())?;
    change(&world, &arena, &clock, holds).await?;
    // However late: every watcher is told of every seat, or it is counted as missing.
    let wanted = watching * 2 * usize::try_from(holds)?;
    let over = Instant::now();
    while seats.load(Ordering::Relaxed) < wanted && over.elapsed() < TOLD_WITHIN {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let took = started.elapsed();
    let busy_mb = world.memory_mb();
    stop.cancel();
    for watcher in watchers {
        watcher.await??;
    }
    let latency = latency.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let mut report = Report::new("fanout", "ms, p99 from asking for a hold to a watcher");
    report.rounds.push(latency.ms(0.99));
    report.notes.push(format!(
        "{watching} watchers, connected in {:.1} s; {before_mb:.0} MB of memory of the server with one, {busy_mb:.0} MB with all",
        connected.as_secs_f64()
    ));
    let missing = wanted.saturating_sub(seats.load(Ordering::Relaxed));
    ensure!(missing == 0, "watchers were not told of {missing} changes of seats out of {wanted}");
    let messages = told.load(Ordering::Relaxed);
    let per_second = f64::from(u32::try_from(messages)?) / took.as_secs_f64();
    let resyncs = world.metric("parterre_seatmap_resyncs_total").await?;
    report
        .notes
        .push(format!("{holds} holds, {messages} messages, {per_second:.0} a second; {resyncs:.0} fell behind"));
    report.latency = Some(latency);
    let mut reports = vec![report];
    world.audit(&mut reports).await?;
    world.end().await?;
    Ok(reports)
}

/// Holds two seats, so many times, by the clock.
async fn change(world: &World, arena: &Arena, clock: &Clock, holds: u32) -> anyhow::Result<()> {
    let mut connection = Connection::open(world.server).await?;
    let started = Instant::now();
    for n in 0..holds {
        let due = started + Duration::from_secs(1) / HOLDS_A_SECOND * n;
        tokio::time::sleep_until(due.into()).await;
        let seats = arena.pair(n.into());
        {
            let mut asked = clock.due.lock().unwrap_or_else(PoisonError::into_inner);
            asked.extend(seats.iter().map(|seat| (seat.clone(), due)));
        }
        let answer = connection.send(&hold(&world.config(), &arena.event, &format!("buyer-{n}"), &seats)).await?;
        ensure!(answer.contains("\"userErrors\":[]"), "{}", answer.text());
    }
    Ok(())
}
