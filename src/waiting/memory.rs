//! The queues of a process that serves alone.

use super::queue::{ADMITTED_MAX, Admitted, Clock, Gate, KEPT, Place, Queue, QueueError};
use super::rules::{CLAIMED_WITHIN, TOKEN_LIFE};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use parterre_entity::EventId;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use uuid::Uuid;

/// Queues in this process.
#[derive(Debug, Default)]
pub struct MemoryQueue {
    clock: Clock,
    lines: Mutex<HashMap<EventId, Line>>,
}

#[derive(Debug, Default)]
struct Line {
    /// Ascending arrivals, in microseconds, each once.
    waiting: VecDeque<(i64, Arc<str>)>,
    arrivals: HashMap<Arc<str>, i64>,
    last_arrival: i64,
    inside: HashMap<Arc<str>, Stay>,
    opened_at: Option<i64>,
    /// Up to when admissions have been used up, in microseconds.
    credit_at: f64,
    total: u64,
    used_at: i64,
}

#[derive(Debug)]
struct Stay {
    admission: String,
    until: i64,
    at_most_until: i64,
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

fn float(micros: i64) -> f64 {
    // Exact up to the year 2255.
    micros.to_string().parse().unwrap_or(f64::MAX)
}

impl MemoryQueue {
    /// By a clock.
    #[must_use]
    pub fn new(clock: Clock) -> Self {
        Self { clock, lines: Mutex::default() }
    }

    fn lines(&self) -> MutexGuard<'_, HashMap<EventId, Line>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_micros(&self) -> i64 {
        self.clock.now().timestamp_micros()
    }
}

impl Line {
    fn place(&mut self, buyer: &str, now: i64) -> Place {
        if let Some(stay) = self.inside.get_mut(buyer) {
            if stay.until > now {
                stay.until = (now + micros(TOKEN_LIFE)).min(stay.at_most_until);
                return Place::Admitted { admission: stay.admission.clone(), until_ms: stay.until / 1_000 };
            }
            self.inside.remove(buyer);
        }
        match self.rank(buyer) {
            Some(rank) => Place::Waiting { ahead: u64::try_from(rank).unwrap_or(u64::MAX) },
            None => Place::Absent,
        }
    }

    fn rank(&self, buyer: &str) -> Option<usize> {
        let arrival = self.arrivals.get(buyer)?;
        self.waiting.binary_search_by_key(arrival, |(arrival, _)| *arrival).ok()
    }

    fn finish(&mut self, buyer: &str, now: i64) -> Option<String> {
        self.inside.remove(buyer).filter(|stay| stay.until > now).map(|stay| stay.admission)
    }
}

#[async_trait]
impl Queue for MemoryQueue {
    async fn join(&self, event: EventId, buyer: &str) -> Result<Place, QueueError> {
        let now = self.now_micros();
        let mut lines = self.lines();
        let line = lines.entry(event).or_default();
        line.used_at = now;
        let place = line.place(buyer, now);
        if place != Place::Absent {
            return Ok(place);
        }
        line.last_arrival = now.max(line.last_arrival + 1);
        let name: Arc<str> = buyer.into();
        line.waiting.push_back((line.last_arrival, Arc::clone(&name)));
        line.arrivals.insert(name, line.last_arrival);
        Ok(Place::Waiting { ahead: u64::try_from(line.waiting.len() - 1).unwrap_or(u64::MAX) })
    }

    async fn find(&self, event: EventId, buyer: &str) -> Result<Place, QueueError> {
        let now = self.now_micros();
        Ok(self.lines().get_mut(&event).map_or(Place::Absent, |line| line.place(buyer, now)))
    }

    async fn leave(&self, event: EventId, buyer: &str) -> Result<Option<String>, QueueError> {
        let now = self.now_micros();
        let mut lines = self.lines();
        let Some(line) = lines.get_mut(&event) else { return Ok(None) };
        if let Some(rank) = line.rank(buyer) {
            line.waiting.remove(rank);
            line.arrivals.remove(buyer);
        }
        Ok(line.finish(buyer, now))
    }

    async fn finish(&self, event: EventId, buyer: &str) -> Result<Option<String>, QueueError> {
        let now = self.now_micros();
        Ok(self.lines().get_mut(&event).and_then(|line| line.finish(buyer, now)))
    }

    async fn admit(&self, event: EventId, gate: &Gate) -> Result<Option<Admitted>, QueueError> {
        let now = self.now_micros();
        let mut lines = self.lines();
        lines.retain(|_, line| now - line.used_at < micros(KEPT));
        let line = lines.entry(event).or_default();
        line.used_at = now;
        line.inside.retain(|_, stay| stay.until > now);
        let Some(opened_at) = line.opened_at else { return Ok(None) };
        let each = gate.allowance.micros_each();
        let start = opened_at.max(gate.opens_at_ms * 1_000);
        let mut buyers = Vec::new();
        if now >= start {
            let mut credit =
                line.credit_at.max(gate.allowance.burst().mul_add(-each, float(now))).max(float(start) - each);
            let inside_max = usize::try_from(gate.allowance.inside_max()).unwrap_or(usize::MAX);
            while buyers.len() < ADMITTED_MAX && line.inside.len() < inside_max && credit + each <= float(now) {
                let Some((_, buyer)) = line.waiting.pop_front() else { break };
                line.arrivals.remove(&buyer);
                let at_most_until = now + micros(gate.stay);
                let until = (now + micros(CLAIMED_WITHIN)).min(at_most_until);
                let stay = Stay { admission: Uuid::now_v7().simple().to_string(), until, at_most_until };
                buyers.push(buyer.to_string());
                line.inside.insert(buyer, stay);
                credit += each;
            }
            line.credit_at = credit;
        }
        let count = |len: usize| u64::try_from(len).unwrap_or(u64::MAX);
        line.total += count(buyers.len());
        let oldest = line.waiting.front().map_or(0, |(arrival, _)| now.saturating_sub(*arrival));
        Ok(Some(Admitted {
            buyers,
            total: line.total,
            waiting: count(line.waiting.len()),
            inside: count(line.inside.len()),
            oldest: Duration::from_micros(u64::try_from(oldest).unwrap_or(0)),
        }))
    }

    async fn open(&self, event: EventId, quiet: Duration) -> Result<(), QueueError> {
        let at = self.now_micros() + micros(quiet);
        self.lines().entry(event).or_default().opened_at.get_or_insert(at);
        Ok(())
    }

    async fn clear(&self, event: EventId, before: DateTime<Utc>) -> Result<(), QueueError> {
        let before = before.timestamp_micros();
        if let Some(line) = self.lines().get_mut(&event) {
            line.waiting.retain(|(arrival, _)| *arrival > before);
            line.arrivals.retain(|_, arrival| *arrival > before);
        }
        Ok(())
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }
}
