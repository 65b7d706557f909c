//! Logs and metrics of the process, and the ids by which what belongs to one request is found in them.

use axum::Router;
use axum::routing::get;
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;
use tracing_subscriber::EnvFilter;

/// Buckets of every histogram of seconds, 0.5 ms to 10 s.
const SECONDS: [f64; 14] = [0.0005, 0.001, 0.002, 0.003, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

/// Measured times are put into their buckets so often; until then each is kept by itself, whether anybody asks or not.
const DRAINED_EVERY: Duration = Duration::from_secs(5);

/// Logs to standard error: JSON with `LOG_FORMAT=json`, filtered by `RUST_LOG`.
#[expect(
    clippy::disallowed_methods,
    reason = "logging starts before the settings are read, so that they can be complained of"
)]
pub fn init() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("warn,parterre=info"));
    let logs = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    if std::env::var("LOG_FORMAT").is_ok_and(|format| format == "json") {
        logs.json().init();
    } else {
        logs.init();
    }
}

/// Names a request in logs and answers.
#[derive(Clone, Debug)]
pub struct Ids {
    /// This request's.
    pub request: String,
    /// Of everything that is done for the same reason, here and elsewhere: `traceparent`'s, or a new one.
    pub trace: String,
}

tokio::task_local! {
    static IDS: Ids;
}

/// Runs a request under its ids: every line that it logs has them.
pub async fn under<T>(ids: Ids, request: impl Future<Output = T>) -> T {
    // Of the highest level, so that a filter on lines does not take their ids away.
    let span = tracing::error_span!(
        "request",
        request.id = ids.request,
        trace.id = ids.trace,
        account.id = tracing::field::Empty
    );
    IDS.scope(ids, request).instrument(span).await
}

/// Whoever asks is known now.
pub fn asked_by(account: &str) {
    tracing::Span::current().record("account.id", account);
}

/// The same request's work in a task of its own.
pub fn carry<T>(work: impl Future<Output = T>) -> impl Future<Output = T> {
    let (ids, span) = (IDS.try_with(Clone::clone).ok(), tracing::Span::current());
    async move {
        match ids {
            Some(ids) => IDS.scope(ids, work).await,
            None => work.await,
        }
    }
    .instrument(span)
}

/// The trace that is going on, or a new one.
#[must_use]
pub fn trace_id() -> String {
    IDS.try_with(|ids| ids.trace.clone()).unwrap_or_else(|_| uuid::Uuid::now_v7().simple().to_string())
}

/// Why metrics can't be served.
#[derive(Debug, thiserror::Error)]
#[error("metrics can't be collected: {0}")]
pub struct MetricsError(#[from] metrics_exporter_prometheus::BuildError);

/// Serves `/metrics` on a port of its own.
pub fn serve_metrics(listener: TcpListener, shutdown: &CancellationToken) -> Result<(), MetricsError> {
    let handle = recorder()?;
    let (shutdown, drained, ending) = (shutdown.clone(), handle.clone(), shutdown.clone());
    tokio::spawn(ending.run_until_cancelled_owned(async move {
        let mut clock = tokio::time::interval(DRAINED_EVERY);
        loop {
            clock.tick().await;
            drained.run_upkeep();
        }
    }));
    let app = Router::new()
        .route("/metrics", get(move || async move { handle.render() }))
        .route("/healthz", get(|| async { "ok" }));
    tokio::spawn(async move {
        let serving = axum::serve(listener, app).with_graceful_shutdown(async move { shutdown.cancelled().await });
        if let Err(error) = serving.await {
            tracing::error!(%error, "metrics are not served any more");
        }
    });
    Ok(())
}

/// Starts collecting metrics.
pub fn recorder() -> Result<PrometheusHandle, MetricsError> {
    Ok(PrometheusBuilder::new()
        .set_buckets_for_metric(metrics_exporter_prometheus::Matcher::Suffix("_seconds".to_owned()), &SECONDS)?
        .install_recorder()?)
}
