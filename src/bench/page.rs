//! The page in a real browser: how long until an arena is there, and whether it can be moved about smoothly.

use super::Options;
use super::report::Report;
use super::world::{ROWS, World};
use anyhow::{Context as _, ensure};
use serde_json::Value;
use std::path::Path;
use tokio::process::Command;

pub(super) async fn run(options: &Options) -> anyhow::Result<Vec<Report>> {
    let clients = Path::new("tests/clients");
    ensure!(clients.exists(), "the page is measured from a checkout: go to its root");
    let installed =
        Command::new("npm").args(["ci", "--silent", "--no-fund", "--no-audit"]).current_dir(clients).status().await;
    ensure!(
        installed.context("npm is needed; it comes with Node")?.success(),
        "npm ci failed in {}",
        clients.display()
    );
    let world = World::new().await?;
    let arena = world.arena(ROWS).await?;
    let mut paint = Report::new("page", "ms, until an arena of 50,000 seats is painted");
    let mut longest: Vec<f64> = Vec::new();
    for _ in 0..options.rounds {
        let measured = Command::new("node")
            .arg("paint.mjs")
            .env("URL", format!("http://{}/?event={}", world.server, arena.event))
            .current_dir(clients)
            .output()
            .await?;
        ensure!(measured.status.success(), "{}", String::from_utf8_lossy(&measured.stderr));
        let seen: Value = serde_json::from_slice(&measured.stdout)?;
        let of = |name: &str| seen.get(name).and_then(Value::as_f64).with_context(|| seen.to_string());
        paint.rounds.push(of("painted_ms")?);
        longest.push(of("longest_ms")?);
    }
    let most = longest.iter().copied().fold(0.0, f64::max);
    paint.notes.push(format!(
        "the longest task while zooming and panning: {most:.0} ms (a task of under 50 ms counts as none)"
    ));
    let mut reports = vec![paint];
    world.audit(&mut reports).await?;
    world.end().await?;
    Ok(reports)
}
