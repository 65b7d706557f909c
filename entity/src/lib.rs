//! The tables as SeaORM entities, one file a table, with typed ids and the enums of every state column.
//!
//! Invariant: no queries and no rules here. The DDL, with a comment on each column, is the migration crate's.

pub mod ids;
pub mod states;

pub mod audit;
pub mod booking;
pub mod event;
pub mod event_performer;
pub mod event_tier;
pub mod event_zone;
pub mod hold;
pub mod hold_item;
pub mod layout;
pub mod layout_seat;
pub mod organization;
pub mod payment;
pub mod performer;
pub mod refund;
pub mod ticket;
pub mod timeline;
pub mod venue;

pub use ids::*;
pub use states::*;
