//! People who join a waiting room, each once, before its sale opens, over HTTP. Anchor: Redis, asked for as many sorted-set
//! insertions by as many connections, each waiting for its answer.

use super::Options;
use super::client::{Answer, mutation};
use super::load::{Asks, Pace, load};
use super::report::{Report, rate};
use super::world::{ROWS, World};
use crate::config::Config;
use anyhow::{Context as _, ensure};
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;

/// People in the queue at the end.
const PEOPLE: usize = 100_000;
const CONNECTIONS: u32 = 64;

struct Crowd {
    config: Config,
    event: String,
    people: u64,
}

impl Asks for Crowd {
    fn request(&self, n: u64) -> Option<Vec<u8>> {
        if n >= self.people {
            return None;
        }
        let query = "mutation($input: JoinWaitingRoomInput!) { joinWaitingRoom(input: $input) { waitingRoom { status position } userErrors { code } } }";
        Some(mutation(&self.config, format!("waits-{n}"), query, &json!({ "eventId": self.event })))
    }

    fn is_right(&self, _: u64, answer: &Answer<'_>) -> bool {
        answer.contains("\"userErrors\":[]") && answer.contains("\"WAITING\"")
    }
}

pub(super) async fn run(options: &Options) -> anyhow::Result<Vec<Report>> {
    let world = World::new().await?;
    let hall = world.arena(options.share(ROWS)).await?;
    let opens = (crate::clock::now() + chrono::Duration::days(1)).to_rfc3339();
    let rules = json!({ "waitingRoom": { "admitPerMinute": 600 }, "onSaleAt": opens });
    let event = world.event_in(hall, rules).await?;
    let people = u64::try_from(options.share(PEOPLE))?;
    let asks = Arc::new(Crowd { config: world.config(), event: event.event, people });
    let mut report = Report::new("join", "joins/s");
    let before = world.redis_insertions(CONNECTIONS, people).await?;
    let seen = load(world.server, (CONNECTIONS, Pace::Closed), Duration::from_mins(10), asks).await?;
    ensure!(seen.wrong == 0, "{} answers were wrong", seen.wrong);
    let after = world.redis_insertions(CONNECTIONS, people).await?;
    report.rounds.push(rate(seen.latency.count(), seen.took));
    // Whichever was better: it has to be compared with at its best.
    report.anchor = Some(("Redis, ZADD", before.max(after)));
    report.notes.push(format!("{people} people; {:.0} MB of memory of the server", world.memory_mb()));
    report.latency = Some(seen.latency);
    let mut reports = vec![report];
    world.audit(&mut reports).await?;
    world.end().await?;
    Ok(reports)
}

impl World {
    /// Insertions a second into a sorted set, as `redis-benchmark` measures them.
    async fn redis_insertions(&self, connections: u32, count: u64) -> anyhow::Result<f64> {
        let output = tokio::process::Command::new("redis-benchmark")
            .args(["-u", self.redis_url(), "-c", &connections.to_string(), "-n", &count.to_string(), "-r", "100000000"])
            .args(["--csv", "ZADD", "bench", "__rand_int__", "buyer-__rand_int__"])
            .output()
            .await
            .context("redis-benchmark can't be started; it comes with Redis")?;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // "test","rps",…: the figure follows the command's own text.
        let line = said.lines().last().unwrap_or_default();
        let figure = line.split("\",\"").nth(1).and_then(|figure| figure.trim_matches('"').parse().ok());
        figure.with_context(|| said.clone())
    }
}
