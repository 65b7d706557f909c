//! x
use crate::app::App;
pub async fn run(_app: &App) -> anyhow::Result<()> { Ok(()) }
pub async fn theatre(_app: &App) -> anyhow::Result<String> { Ok(String::new()) }
