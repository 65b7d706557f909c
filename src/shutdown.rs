//! Ending in order: not ready, sockets closed, writes finished, gone.

use crate::app::App;
use std::time::Duration;
use tokio::task::JoinHandle;

/// How long writes get to finish.
const DRAIN: Duration = Duration::from_secs(15);
/// How long connections get to close.
const CLOSE: Duration = Duration::from_secs(5);

/// Waits for SIGTERM or Ctrl-C.
pub async fn signal() {
    let interrupted = tokio::signal::ctrl_c();
    let terminated = async {
        match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => std::future::pending().await,
        }
    };
    tokio::select! {
        _ = interrupted => {}
        () = terminated => {}
    }
}

/// Ends a server: streams and sockets first, then running writes.
pub async fn end(app: App, server: JoinHandle<std::io::Result<()>>) {
    tracing::info!("shutting down");
    app.shutdown.cancel();
    if tokio::time::timeout(CLOSE, server).await.is_err() {
        tracing::warn!("some connections did not close in time");
    }
    app.drain(DRAIN).await;
}
