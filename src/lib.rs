//! Parterre: a box office behind one GraphQL API. The rooms and who may call whom are drawn in `docs/ARCHITECTURE.md`.

pub mod audit;
pub mod bus;
pub mod catalogue;
pub mod clock;
pub mod config;
pub mod db;
pub mod input;
pub mod inventory;
pub mod outbox;
pub mod payment;
