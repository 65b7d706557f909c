//! What was measured, as people and as programs read it.

use hdrhistogram::Histogram;
use serde_json::json;
use std::time::Duration;

/// One figure with its anchor.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) scenario: String,
    pub(super) unit: &'static str,
    /// One value a round.
    pub(super) rounds: Vec<f64>,
    /// What it is compared with: its name and its value, in the same unit.
    pub(super) anchor: Option<(&'static str, f64)>,
    pub(super) latency: Option<Latency>,
    /// More that was seen.
    pub(super) notes: Vec<String>,
    /// What the auditor found.
    pub(super) broken: Vec<String>,
}

/// How long things took, in microseconds.
#[derive(Clone, Debug)]
pub(super) struct Latency(Histogram<u64>);

impl Default for Latency {
    fn default() -> Self {
        Self::new()
    }
}

impl Latency {
    /// Nothing yet; up to ten minutes, to three digits.
    pub(super) fn new() -> Self {
        // These bounds are valid ones.
        Self(Histogram::new_with_bounds(1, 600_000_000, 3).unwrap_or_else(|_| unreachable!()))
    }

    pub(super) fn note(&mut self, took: Duration) {
        self.0.saturating_record(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn add(&mut self, other: &Self) {
        // Of the same bounds, so it fits.
        self.0.add(&other.0).ok();
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    /// Milliseconds below which a share lies.
    pub(super) fn ms(&self, share: f64) -> f64 {
        Duration::from_micros(self.0.value_at_quantile(share)).as_secs_f64() * 1_000.0
    }
}

impl Report {
    pub(super) fn new(scenario: impl Into<String>, unit: &'static str) -> Self {
        Self {
            scenario: scenario.into(),
            unit,
            rounds: Vec::new(),
            anchor: None,
            latency: None,
            notes: Vec::new(),
            broken: Vec::new(),
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.broken.is_empty()
    }

    fn sorted(&self) -> Vec<f64> {
        let mut sorted = self.rounds.clone();
        sorted.sort_by(f64::total_cmp);
        sorted
    }

    pub(super) fn median(&self) -> f64 {
        let sorted = self.sorted();
        sorted.get(sorted.len() / 2).copied().unwrap_or(0.0)
    }

    fn ratio(&self) -> Option<f64> {
        self.anchor.map(|(_, anchor)| self.median() / anchor)
    }

    #[expect(clippy::print_stdout, reason = "the command's own answer")]
    pub(super) fn tell(&self) {
        let sorted = self.sorted();
        let (least, most) = (sorted.first().copied().unwrap_or(0.0), sorted.last().copied().unwrap_or(0.0));
        println!("{:<24} {:>10.1} {} (min {least:.1}, max {most:.1})", self.scenario, self.median(), self.unit);
        if let (Some((name, anchor)), Some(ratio)) = (self.anchor, self.ratio()) {
            println!("{:<24} {anchor:>10.1} {}, ratio {ratio:.3}", format!("  {name}"), self.unit);
        }
        if let Some(latency) = &self.latency {
            let of = |share| latency.ms(share);
            println!(
                "{:<24} p50 {:.2} ms, p95 {:.2} ms, p99 {:.2} ms, of {}",
                "",
                of(0.5),
                of(0.95),
                of(0.99),
                latency.count()
            );
        }
        for note in &self.notes {
            println!("{:<24} {note}", "");
        }
        for broken in &self.broken {
            println!("{:<24} BROKEN: {broken}", "");
        }
    }

    #[expect(clippy::print_stdout, reason = "the command's own answer")]
    pub(super) fn tell_json(&self) {
        let of = |share| self.latency.as_ref().map(|latency| latency.ms(share));
        let line = json!({
            "scenario": self.scenario, "rounds": self.rounds, "value": self.median(), "unit": self.unit,
            "anchor": self.anchor.map(|(_, value)| value), "ratio": self.ratio(),
            "p50_ms": of(0.5), "p95_ms": of(0.95), "p99_ms": of(0.99),
            "invariants": if self.is_clean() { "clean" } else { "broken" },
        });
        println!("{line}");
    }
}

/// How often a second.
pub(super) fn rate(count: u64, took: Duration) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX)) / took.as_secs_f64()
}
