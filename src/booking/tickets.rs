//! Tickets: issued by a consumer of the outbox once a booking is confirmed, revoked in the transaction that cancels it.
//!
//! Invariant: issuing locks the booking and does nothing unless it is CONFIRMED, so that a cancellation that overtakes
//! it leaves no valid ticket.

use super::rules::{TicketEvent, next_ticket};
use super::timeline::{Entry, note_all};
use crate::config::Secret;
use crate::db::Transaction;
use crate::outbox::{self, Change, Consumer, Row, Topic};
use crate::sql;
use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use fast_qr::convert::{Builder, svg::SvgBuilder};
use fast_qr::{ECL, QRBuilder};
use hmac::{Hmac, KeyInit, Mac};
use parterre_entity::{BookingId, BookingState, EventId, TicketId, TicketState, TimelineKind, booking};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use sha2::Sha256;
use std::collections::BTreeSet;
use subtle::ConstantTimeEq;
use uuid::Uuid;

/// Issues tickets of confirmed bookings.
#[derive(Clone, Copy, Debug, Default)]
pub struct Issuer;

#[async_trait]
impl Consumer for Issuer {
    fn name(&self) -> &'static str {
        "tickets"
    }

    fn topics(&self) -> &'static [Topic] {
        &[Topic::Booking]
    }

    async fn write(&self, transaction: &Transaction, rows: &[Row]) -> Result<(), DbErr> {
        let confirmed = |row: &&Row| row.topic == "booking" && row.says("to", "CONFIRMED");
        let bookings = rows.iter().filter(confirmed).filter_map(|row| row.subject.map(BookingId)).collect();
        issue(transaction, bookings).await.map(drop)
    }
}

/// Issues what is missing of bookings' tickets, in a few statements however many they are: while this transaction lasts,
/// nobody reads what commits after it, and nobody cancels one of these bookings. Returns those that got some.
pub(super) async fn issue(tx: &Transaction, bookings: Vec<BookingId>) -> Result<Vec<BookingId>, DbErr> {
    #[derive(FromQueryResult)]
    struct Item {
        booking_id: Uuid,
        event_id: EventId,
        item_no: i16,
        seat_no: Option<i32>,
        tier_no: Option<i16>,
        quantity: i32,
    }
    if bookings.is_empty() {
        return Ok(Vec::new());
    }
    // In one order, whoever locks several.
    let bookings: BTreeSet<Uuid> = bookings.into_iter().map(|booking| booking.0).collect();
    let items = Item::find_by_statement(sql!(
        "SELECT booking.id AS booking_id, booking.event_id, item_no, seat_no, tier_no, quantity
         FROM unnest($1::uuid[]) AS wanted (id)
         CROSS JOIN LATERAL (SELECT id, event_id, hold_id FROM booking
                             WHERE booking.id = wanted.id AND status = $2 FOR NO KEY UPDATE) AS booking
         JOIN hold_item AS item ON item.hold_id = booking.hold_id ORDER BY booking.id, item_no",
        bookings.into_iter().collect::<Vec<_>>(),
        BookingState::Confirmed.as_str()
    ))
    .all(&**tx)
    .await?;
    let mut of: Vec<Uuid> = Vec::with_capacity(items.len());
    let (mut events, mut item_nos, mut admission_nos) = (Vec::new(), Vec::new(), Vec::new());
    let (mut seats, mut tiers) = (Vec::new(), Vec::new());
    for item in items {
        for admission in 0..item.quantity {
            of.push(item.booking_id);
            events.push(item.event_id.0);
            item_nos.push(item.item_no);
            admission_nos.push(i16::try_from(admission).map_err(|error| DbErr::Custom(error.to_string()))?);
            // Arrays can't carry NULL here.
            seats.push(item.seat_no.unwrap_or(-1));
            tiers.push(item.tier_no.unwrap_or(-1));
        }
    }
    let ids: Vec<Uuid> = of.iter().map(|_| TicketId::new().0).collect();
    let issued = Changed::find_by_statement(sql!(
        "WITH issued AS (
             INSERT INTO ticket (id, booking_id, event_id, item_no, admission_no, seat_no, tier_no, status)
             SELECT id, booking_id, event_id, item_no, admission_no, nullif(seat_no, -1), nullif(tier_no, -1::smallint), $8
             FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::smallint[], $5::smallint[], $6::integer[], $7::smallint[])
                 AS new (id, booking_id, event_id, item_no, admission_no, seat_no, tier_no)
             ON CONFLICT DO NOTHING RETURNING booking_id, event_id)
         SELECT booking_id, event_id, count(*) AS tickets FROM issued GROUP BY booking_id, event_id ORDER BY booking_id",
        ids,
        of,
        events,
        item_nos,
        admission_nos,
        seats,
        tiers,
        TicketState::Issued.as_str()
    ))
    .all(&**tx)
    .await?;
    tell(tx, &issued, (TicketState::Issued, "confirmed")).await?;
    Ok(issued.into_iter().map(|issued| issued.booking_id).collect())
}

/// Revokes a locked booking's tickets.
pub(super) async fn revoke(tx: &Transaction, row: &booking::Model, cause: &'static str) -> Result<(), DbErr> {
    let (from, to) = (TicketState::Issued, next_ticket(TicketState::Issued, TicketEvent::Revoke));
    let revoked = tx
        .execute_raw(sql!(
            "UPDATE ticket SET status = $2 WHERE booking_id = $1 AND status = $3",
            row.id,
            to.as_str(),
            from.as_str()
        ))
        .await?
        .rows_affected();
    if revoked == 0 {
        return Ok(());
    }
    let tickets = i64::try_from(revoked).unwrap_or(i64::MAX);
    tell(tx, &[Changed { booking_id: row.id, event_id: row.event_id, tickets }], (to, cause)).await
}

/// How many of a booking's tickets changed.
#[derive(FromQueryResult)]
struct Changed {
    booking_id: BookingId,
    event_id: EventId,
    tickets: i64,
}

async fn tell(tx: &Transaction, bookings: &[Changed], (to, cause): (TicketState, &'static str)) -> Result<(), DbErr> {
    let change = |changed: &Changed| Change {
        topic: Topic::Ticket,
        event: Some(changed.event_id),
        subject: Some(changed.booking_id.0),
        payload: serde_json::json!({ "to": to.as_str(), "count": changed.tickets }),
    };
    outbox::append(&**tx, &bookings.iter().map(change).collect::<Vec<_>>()).await?;
    let entry = |changed: &Changed| {
        let detail = Some(format!("{} tickets", changed.tickets));
        (changed.booking_id, Entry { kind: TimelineKind::Ticket, from: None, to: to.as_str(), cause, detail })
    };
    note_all(&**tx, &bookings.iter().map(entry).collect::<Vec<_>>()).await
}

/// Bytes of the signature in a ticket code: 96 bits that nobody can guess.
const SIGNATURE_BYTES: usize = 12;

/// The code a ticket is admitted by: its id and a signature, unguessable and checkable without the database.
#[must_use]
pub fn code(secret: &Secret, ticket: TicketId) -> String {
    let mut bytes = ticket.0.as_bytes().to_vec();
    bytes.extend(signature(secret, ticket));
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The ticket of a code, if we signed it.
#[must_use]
pub fn read_code(secret: &Secret, code: &str) -> Option<TicketId> {
    let bytes = URL_SAFE_NO_PAD.decode(code).ok()?;
    let (id, signed) = bytes.split_at_checked(16)?;
    let ticket = TicketId(Uuid::from_slice(id).ok()?);
    bool::from(signature(secret, ticket).ct_eq(signed)).then_some(ticket)
}

fn signature(secret: &Secret, ticket: TicketId) -> Vec<u8> {
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else { return Vec::new() };
    mac.update(b"ticket");
    mac.update(ticket.0.as_bytes());
    mac.finalize().into_bytes().into_iter().take(SIGNATURE_BYTES).collect()
}

/// A code as a QR code, an SVG document. Empty if the code is too long to be one, which no ticket's is.
#[must_use]
pub fn qr_svg(code: &str) -> String {
    QRBuilder::new(code).ecl(ECL::M).build().map(|qr| SvgBuilder::default().margin(4).to_str(&qr)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_read_back_and_a_changed_one_is_not() {
        let (secret, ticket) = (Secret::new("one"), TicketId::new());
        let code = code(&secret, ticket);
        assert_eq!(read_code(&secret, &code), Some(ticket));
        assert_eq!(read_code(&Secret::new("two"), &code), None);
        assert_eq!(read_code(&secret, &super::code(&secret, TicketId::new())[..10]), None);
        let mut forged = URL_SAFE_NO_PAD.decode(&code).unwrap();
        *forged.last_mut().unwrap() ^= 1;
        assert_eq!(read_code(&secret, &URL_SAFE_NO_PAD.encode(forged)), None);
        assert_eq!(read_code(&secret, ""), None);
    }
}
