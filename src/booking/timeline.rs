//! What happened to a booking and its money, told in the transaction in which it happened.

use crate::sql;
use parterre_entity::{BookingId, TimelineKind};
use sea_orm::{ConnectionTrait, DbErr};

/// One transition.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Of which state machine.
    pub kind: TimelineKind,
    /// From where.
    pub from: Option<&'static str>,
    /// To where.
    pub to: &'static str,
    /// What caused it, in a word.
    pub cause: &'static str,
    /// More, for people.
    pub detail: Option<String>,
}

/// Writes it down.
pub async fn note(tx: &impl ConnectionTrait, booking: BookingId, entry: Entry) -> Result<(), DbErr> {
    tx.execute_raw(sql!(
        "INSERT INTO timeline (booking_id, kind, from_state, to_state, cause, detail) VALUES ($1, $2, $3, $4, $5, $6)",
        booking,
        entry.kind.as_str(),
        entry.from.map(str::to_owned),
        entry.to,
        entry.cause,
        entry.detail
    ))
    .await
    .map(drop)
}
