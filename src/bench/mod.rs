//! Measurements of the server as it is served: another process of this binary with the settings of `serve`, limits off
//! apart, on a private PostgreSQL with durable commits and a private Redis. Each figure stands beside its anchor, measured
//! in the same run on the same machine, and every scenario ends with a check of the invariants.

mod browse;
mod client;
mod fanout;
mod holds;
mod idle;
mod load;
mod page;
mod pgbench;
mod report;
mod world;

use clap::{Args, ValueEnum};
use report::Report;
use std::time::Duration;

/// What is measured, and how long.
#[derive(Args, Debug)]
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
    /// Watchers of `fanout`
    #[arg(long, default_value_t = 10_000)]
    pub watchers: usize,
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
    for scenario in scenarios {
        let measured = match scenario {
            Scenario::Idle => {
                Box::pin(idle::run()).await?;
                Vec::new()
            }
            Scenario::Holds => holds::uniform(&options).await?,
            Scenario::Hot => holds::hot(&options, "hot", 20).await?,
            Scenario::HotOne => holds::hot(&options, "hot-one", 1).await?,
            Scenario::Browse => browse::run(&options).await?,
            Scenario::Fanout => fanout::run(&options).await?,
            Scenario::Page => page::run(&options).await?,
        };
        for report in &measured {
            report.tell();
        }
        reports.extend(measured);
    }
    if options.json {
        for report in &reports {
            report.tell_json();
        }
    }
    anyhow::ensure!(reports.iter().all(Report::is_clean), "an invariant is broken");
    Ok(())
}
