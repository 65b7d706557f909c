//! Parterre: a box office behind one GraphQL API. The rooms are drawn in `docs/ARCHITECTURE.md`; who may call whom is in
//! `tests/rooms.rs`.

pub mod app;
pub mod audit;
pub mod auditor;
pub mod auth;
pub mod bench;
pub mod booking;
pub mod bus;
pub mod catalogue;
pub mod chaos;
pub mod clock;
pub mod config;
pub mod db;
pub mod dev;
pub mod discovery;
pub mod doctor;
pub mod graphql;
pub mod http;
pub mod input;
pub mod inventory;
pub mod limit;
pub mod notification;
pub mod outbox;
pub mod payment;
pub mod sales;
pub mod seatmap;
pub mod seed;
pub mod shutdown;
pub mod telemetry;
pub mod waiting;
pub mod wake;
pub mod workers;

/// Chooses the one TLS implementation of the process. Call it first: two would panic at the first use.
pub fn install_crypto() {
    // An error means that it was chosen already.
    drop(rustls::crypto::ring::default_provider().install_default());
}
