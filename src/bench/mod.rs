//! Measurements of the server as it is served: another process of this binary with the settings of `serve`, limits off
//! and organizations that create themselves apart, and an outbox kept for three minutes in `mixed`, on a private PostgreSQL
//! with durable commits and a private Redis. Each figure stands beside its anchor, measured in the same run on the same
//! machine. Every scenario ends at rest, with a check of the invariants that gives nothing any grace, the provider's
//! ledger and the maps among them; that search documents are new enough (I10) is left to the tests.

mod browse;
mod client;
mod fanout;
mod holds;
mod idle;
mod join;
mod load;
mod mixed;
mod page;
mod pgbench;
mod report;
mod search;
mod world;

use clap::{Args, ValueEnum};
use report::Report;
use std::time::Duration;

/// What is measured, and how long.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// What to measure; everything if nothing is named
    #[arg(value_enum)]
    pub scenarios: Vec<Scenario>,
    /// End with one line of JSON for each scenario
    #[arg(long)]
    pub json: bool,
    /// Rounds of each measurement
    #[arg(long, default_value_t = 3)]
    pub rounds: usize,
    /// Seconds of each round
    #[arg(long, default_value_t = 10)]
    pub seconds: u64,
    /// Connections of the crowd of `holds`, `hot` and `hot-one`
    #[arg(long, default_value_t = 256)]
    pub connections: u32,
    /// Watchers of `fanout`
    #[arg(long, default_value_t = 10_000)]
    pub watchers: usize,
    /// Share of its data that a scenario is measured with, in hundredths
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u8).range(1..=100))]
    pub percent: u8,
}

/// Something that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Scenario {
    /// What a request goes through before it is executed, joins, and an idle server, one client after the other
    Idle,
    /// Two-seat holds of distinct buyers over many events; anchor: pgbench, one hold a transaction
    Holds,
    /// Everyone wants the same twenty seats, and an unrelated event beside it
    Hot,
    /// Everyone wants one seat
    HotOne,
    /// The HTTP map, with and without a known version, and `seatMap` by persisted GET; anchor: nginx with a file
    Browse,
    /// Many watchers of one map on which seats change
    Fanout,
    /// Holds, payments, expiry, readers and watchers at once
    Mixed,
    /// Texts with typos, filters and sorts over 100,000 and 1,000,000 events; anchor: PostgreSQL's full text and trigrams
    Search,
    /// People who join a waiting room; anchor: Redis
    Join,
    /// Holds, browse, fanout, search and join at 1 %, 10 % and 100 % of their data
    Grow,
    /// An arena of 50,000 seats on the page, in Chromium
    Page,
}

impl Options {
    fn round(&self) -> Duration {
        Duration::from_secs(self.seconds.max(1))
    }
}

/// Measures, and tells.
pub async fn run(options: Options) -> anyhow::Result<()> {
    let mut scenarios = options.scenarios.clone();
    if scenarios.is_empty() {
        scenarios = Scenario::value_variants().to_vec();
    }
    let mut reports: Vec<Report> = Vec::new();
    let mut failed = None;
    for scenario in scenarios {
        let measured = match scenario {
            Scenario::Grow => grow(&options).await,
            scenario => measure(scenario, &options).await,
        };
        match measured {
            Ok(measured) => reports.extend(measured),
            Err(error) => {
                failed = Some(error.context(format!("{scenario:?}")));
                break;
            }
        }
    }
    // Also of what was measured before something failed.
    if options.json {
        for report in &reports {
            report.tell_json();
        }
    }
    failed.map_or(Ok(()), Err)?;
    anyhow::ensure!(reports.iter().all(Report::is_clean), "an invariant is broken");
    Ok(())
}

/// One scenario, told as soon as it is over.
async fn measure(scenario: Scenario, options: &Options) -> anyhow::Result<Vec<Report>> {
    let mut reports = match scenario {
        Scenario::Idle => {
            Box::pin(idle::run()).await?;
            Vec::new()
        }
        Scenario::Holds => holds::uniform(options).await?,
        Scenario::Hot => holds::hot(options, "hot", 20).await?,
        Scenario::HotOne => holds::hot(options, "hot-one", 1).await?,
        Scenario::Browse => browse::run(options).await?,
        Scenario::Fanout => fanout::run(options).await?,
        Scenario::Mixed => mixed::run(options).await?,
        Scenario::Search => search::run(options).await?,
        Scenario::Join => join::run(options).await?,
        Scenario::Page => page::run(options).await?,
        Scenario::Grow => Vec::new(),
    };
    for report in &mut reports {
        if options.percent < 100 {
            report.scenario = format!("{}-{}%", report.scenario, options.percent);
        }
        report.tell();
    }
    Ok(reports)
}

/// How the cost of a scenario grows with its data.
async fn grow(options: &Options) -> anyhow::Result<Vec<Report>> {
    let mut reports = Vec::new();
    for scenario in [Scenario::Holds, Scenario::Browse, Scenario::Fanout, Scenario::Search, Scenario::Join] {
        // Search is measured at a tenth whenever it is measured in full.
        let percents: &[u8] = if scenario == Scenario::Search { &[1, 100] } else { &[1, 10, 100] };
        for &percent in percents {
            reports.extend(Box::pin(measure(scenario, &Options { percent, ..options.clone() })).await?);
        }
    }
    Ok(reports)
}
