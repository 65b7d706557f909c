//! Tickets: issued by a consumer of the outbox once a booking is confirmed, revoked in the transaction that cancels it.
//!
//! Invariant: issuing locks the booking and does nothing unless it is CONFIRMED, so that a cancellation that overtakes
//! it leaves no valid ticket.

use super::rules::{TicketEvent, next_ticket};
use super::store;
use super::timeline::{Entry, note};
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
use parterre_entity::{BookingId, BookingState, TicketId, TicketState, TimelineKind, booking};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use sha2::Sha256;
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
        let mut bookings: Vec<Uuid> = rows.iter().filter(confirmed).filter_map(|row| row.subject).collect();
        bookings.sort_unstable();
        bookings.dedup();
        for id in bookings {
            issue(transaction, BookingId(id)).await?;
        }
        Ok(())
    }
}

/// Issues what is missing of a booking's tickets. Returns how many were issued.
pub(super) async fn issue(tx: &Transaction, id: BookingId) -> Result<usize, DbErr> {
    #[derive(FromQueryResult)]
    struct Item {
        item_no: i16,
        seat_no: Option<i32>,
        tier_no: Option<i16>,
        quantity: i32,
    }
    let row = store::lock(tx, id).await?;
    if row.status != BookingState::Confirmed {
        return Ok(0);
    }
    let items = Item::find_by_statement(sql!(
        "SELECT item_no, seat_no, tier_no, quantity FROM hold_item WHERE hold_id = $1 ORDER BY item_no",
        row.hold_id
    ))
    .all(&**tx)
    .await?;
    let mut issued = 0;
    for item in items {
        for admission in 0..item.quantity {
            issued += tx
                .execute_raw(sql!(
                    "INSERT INTO ticket (id, booking_id, event_id, item_no, admission_no, seat_no, tier_no, status)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, 'ISSUED') ON CONFLICT DO NOTHING",
                    TicketId::new(),
                    id,
                    row.event_id,
                    item.item_no,
                    i16::try_from(admission).map_err(|error| DbErr::Custom(error.to_string()))?,
                    item.seat_no,
                    item.tier_no
                ))
                .await?
                .rows_affected();
        }
    }
    let issued = usize::try_from(issued).unwrap_or(usize::MAX);
    if issued > 0 {
        tell(tx, &row, (TicketState::Issued, "confirmed", issued)).await?;
    }
    Ok(issued)
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
    let revoked = usize::try_from(revoked).unwrap_or(usize::MAX);
    if revoked > 0 {
        tell(tx, row, (to, cause, revoked)).await?;
    }
    Ok(())
}

async fn tell(
    tx: &Transaction,
    row: &booking::Model,
    (to, cause, count): (TicketState, &'static str, usize),
) -> Result<(), DbErr> {
    let change = Change {
        topic: Topic::Ticket,
        event: Some(row.event_id),
        subject: Some(row.id.0),
        payload: serde_json::json!({ "to": to.as_str(), "count": count }),
    };
    outbox::append(&**tx, &[change]).await?;
    let entry = Entry {
        kind: TimelineKind::Ticket,
        from: None,
        to: to.as_str(),
        cause,
        detail: Some(format!("{count} tickets")),
    };
    note(&**tx, row.id, entry).await
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
