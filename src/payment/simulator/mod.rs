//! A payment provider to develop and test against: a small HTTP server that speaks the same subset of Stripe's API, with
//! its ways of failing. Its ledger is the oracle of what was really captured and refunded.
//!
//! Invariant: it shares no state and no code with the adapter but the wire. What a payment method does is in `behaviour`.

mod api;
mod behaviour;
mod ledger;
mod webhooks;

pub use ledger::{Book, Ledger, LedgerPayment};

use crate::config::Secret;
use axum::Router;
use axum::routing::{get, post};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// Settings of a simulator.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where webhooks go, if anywhere.
    pub webhook_url: Option<String>,
    /// What signs them.
    pub webhook_secret: Secret,
    /// Where the ledger is kept; in memory only without it.
    pub file: Option<PathBuf>,
    /// Where people reach it, for redirects.
    pub public_url: String,
}

/// A running simulator.
#[derive(Clone, Debug)]
pub struct Simulator {
    settings: Arc<Settings>,
    book: Arc<Mutex<Book>>,
    client: reqwest::Client,
}

impl Simulator {
    /// One with the ledger of its file, or an empty one.
    #[must_use]
    pub fn new(settings: Settings) -> Self {
        let book = settings.file.as_deref().and_then(Book::load).unwrap_or_default();
        Self { settings: Arc::new(settings), book: Arc::new(Mutex::new(book)), client: reqwest::Client::new() }
    }

    /// Serves until the token is cancelled.
    pub async fn serve(self, listener: TcpListener, shutdown: CancellationToken) -> std::io::Result<()> {
        let app = Router::new()
            .route("/v1/payment_intents", post(api::create).get(api::list))
            .route("/v1/payment_intents/{id}", get(api::retrieve))
            .route("/v1/payment_intents/{id}/capture", post(api::capture))
            .route("/v1/payment_intents/{id}/cancel", post(api::cancel))
            .route("/v1/refunds", post(api::refund).get(api::list_refunds))
            .route("/actions/{id}", get(api::complete_action).post(api::complete_action))
            .route("/ledger", get(api::ledger))
            .route("/faults", post(api::faults))
            .with_state(self);
        axum::serve(listener, app).with_graceful_shutdown(async move { shutdown.cancelled().await }).await
    }

    /// What was captured and refunded, for those in the same process.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        self.book().ledger()
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the book and keeps it.
    fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let mut book = self.book();
        let result = change(&mut book);
        if let Some(file) = &self.settings.file {
            book.save(file);
        }
        result
    }
}
