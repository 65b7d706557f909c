//! What happened to a booking and its money, told in the transaction in which it happened.

use crate::sql;
use parterre_entity::{BookingId, TimelineKind};
use sea_orm::{ConnectionTrait, DbErr};
use uuid::Uuid;

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
    note_all(tx, &[(booking, entry)]).await
}

/// Writes down what happened to several bookings, in order.
pub async fn note_all(tx: &impl ConnectionTrait, entries: &[(BookingId, Entry)]) -> Result<(), DbErr> {
    if entries.is_empty() {
        return Ok(());
    }
    let texts = |of: fn(&Entry) -> &str| entries.iter().map(|(_, entry)| of(entry).to_owned()).collect::<Vec<String>>();
    // Arrays can't carry NULL here, so nothing travels as an empty text.
    tx.execute_raw(sql!(
        "INSERT INTO timeline (booking_id, kind, from_state, to_state, cause, detail)
         SELECT booking_id, kind, nullif(from_state, ''), to_state, cause, nullif(detail, '')
         FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[]) WITH ORDINALITY
             AS new (booking_id, kind, from_state, to_state, cause, detail, n) ORDER BY n",
        entries.iter().map(|(booking, _)| booking.0).collect::<Vec<Uuid>>(),
        texts(|entry| entry.kind.as_str()),
        texts(|entry| entry.from.unwrap_or_default()),
        texts(|entry| entry.to),
        texts(|entry| entry.cause),
        texts(|entry| entry.detail.as_deref().unwrap_or_default())
    ))
    .await
    .map(drop)
}
