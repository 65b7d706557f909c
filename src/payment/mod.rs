//! Money: what we ask of a payment provider and what it said.
//!
//! Invariants: no provider call while a transaction is open; every call names an operation id that never changes
//! meaning; an answer that is not definite leaves everything as it is until a retrieve is read. This room does not know
//! of seats: what a settled payment means for them is the booking's matter.

pub mod currency;
mod gate;
mod lease;
mod provider;
mod rules;
pub mod simulator;
mod store;
mod stripe;
mod watch;

pub use lease::{Lease, Leased};
pub use provider::{
    CallError, Handle, Intent, NextAction, Order, PaymentProvider, ProviderRefund, RefundOrder, RefundStanding,
    Standing,
};
pub use rules::{InvalidTransition, PaymentEvent, RefundEvent, next, next_refund, share};
pub use store::{
    NewPayment, NewRefund, PaymentChanges, RefundChanges, about_to_call, create, create_refund, due, due_refunds,
    key_is_old, lock, lock_refund, look_again, note_missed, note_missed_refund, postpone, postpone_refund, rest,
    set_give_back, step, step_refund, still_at_it, wake_stranded,
};
pub use stripe::{CALL_TIMEOUT, Stripe};
pub use watch::{Watched, watch};
