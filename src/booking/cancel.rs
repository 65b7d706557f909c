//! Cancelling a booking under its frozen terms: tickets revoked, a refund saved, seats back on sale or withdrawn, in one
//! transaction. When the money is back is the refund's matter.

use super::refunds;
use super::rules::BookingEvent;
use super::store::{self, BookingError, Why, known_key, lock_event, remember_key, step};
use super::tickets;
use super::{CancelRefusal, CancelRequest};
use crate::bus::SeatsDelta;
use crate::db::{self, Db, Transaction};
use crate::inventory::{self, Bump, Items, Shift};
use crate::payment::{self, NewRefund};
use crate::sql;
use chrono::{DateTime, Utc};
use parterre_entity::{BookingId, BookingState, EventId, EventState, PaymentState, RefundReason, booking};
use sea_orm::FromQueryResult;
use std::sync::Arc;

/// What cancel found or did.
#[derive(Debug)]
pub(super) struct Cancelled {
    pub(super) booking: BookingId,
    pub(super) replayed: bool,
    pub(super) deltas: Vec<Arc<SeatsDelta>>,
}

/// What a cancellation now would give back, in minor units, or that it is not allowed. Of an event that was called off it
/// is everything, whatever the terms.
#[must_use]
pub fn refund_now(row: &booking::Model, event: EventState, now: DateTime<Utc>) -> Option<i64> {
    if row.status == BookingState::Confirmed && event == EventState::Cancelled {
        return Some(row.total_minor);
    }
    let allowed = row.status == BookingState::Confirmed && now < row.cancel_until;
    allowed.then(|| payment::currency::round_down(&row.currency, payment::share(row.total_minor, row.refund_ppm)))
}

pub(super) async fn cancel(db: &Db, request: &CancelRequest) -> Result<Result<Cancelled, CancelRefusal>, BookingError> {
    #[derive(FromQueryResult)]
    struct Path {
        hold_id: parterre_entity::HoldId,
        event_id: EventId,
    }
    let path = Path::find_by_statement(sql!(
        "SELECT hold_id, event_id FROM booking WHERE id = $1 AND buyer = $2",
        request.booking,
        request.buyer.clone()
    ))
    .one(db.pool())
    .await?;
    let Some(path) = path else { return Ok(Err(CancelRefusal::NotFound)) };
    let tx = db.begin("booking_cancel").await?;
    let event = lock_event(&tx, path.event_id).await?;
    let scope = (path.event_id, request.buyer.as_str());
    match known_key(&tx, scope, ("cancel", &request.key)).await? {
        Some((fingerprint, booking)) if fingerprint == request.fingerprint => {
            return Ok(Ok(Cancelled { booking, replayed: true, deltas: Vec::new() }));
        }
        Some(_) => return Ok(Err(CancelRefusal::KeyReused)),
        None => {}
    }
    inventory::lock(&tx, path.hold_id).await?;
    let row = store::lock(&tx, request.booking).await?;
    match row.status {
        BookingState::Confirmed => {}
        BookingState::Cancelling | BookingState::Cancelled | BookingState::Refunded => {
            return Ok(Ok(Cancelled { booking: row.id, replayed: true, deltas: Vec::new() }));
        }
        BookingState::PaymentPending => return Ok(Err(CancelRefusal::NotSettled)),
        BookingState::Failed | BookingState::RefundRequired => return Ok(Err(CancelRefusal::NothingToCancel)),
    }
    if request.expected_version.is_some_and(|expected| expected != row.version) {
        return Ok(Err(CancelRefusal::Stale { current: row.version }));
    }
    let now = db::clock(&*tx).await?;
    let Some(amount_minor) = refund_now(&row, event.state, now) else {
        return Ok(Err(CancelRefusal::TooLate { until: row.cancel_until }));
    };
    remember_key(&tx, scope, ("cancel", &request.key, &request.fingerprint), row.id).await?;
    let terms = if event.state == EventState::Cancelled {
        // The buyer was faster than the job that undoes every booking of it.
        Terms::of_cancelled_event(&row)
    } else {
        Terms {
            amount_minor,
            reason: RefundReason::BuyerCancelled,
            resell: row.resell,
            cause: "buyer",
            detail: request.reason.clone(),
        }
    };
    let bump = undo(&tx, &row, terms).await?;
    let deltas = inventory::bump(&tx, bump).await?;
    tx.commit().await?;
    Ok(Ok(Cancelled { booking: row.id, replayed: false, deltas }))
}

/// How a confirmed booking is undone.
pub(super) struct Terms {
    pub(super) amount_minor: i64,
    pub(super) reason: RefundReason,
    pub(super) resell: bool,
    pub(super) cause: &'static str,
    pub(super) detail: Option<String>,
}

impl Terms {
    /// Everything goes back.
    pub(super) fn of_cancelled_event(row: &booking::Model) -> Self {
        Self {
            amount_minor: row.total_minor,
            reason: RefundReason::EventCancelled,
            resell: true,
            cause: "event_cancelled",
            detail: Some("the event was cancelled by its organizer".to_owned()),
        }
    }
}

/// Undoes a locked, confirmed booking, and returns what readers see of it. Its event and hold are locked too.
pub(super) async fn undo(tx: &Transaction, row: &booking::Model, terms: Terms) -> Result<Bump, BookingError> {
    step(tx, row, BookingEvent::StartCancel, Why::told(terms.cause, terms.detail)).await?;
    tickets::revoke(tx, row, terms.cause).await?;
    if terms.amount_minor > 0 {
        save_refund(tx, row, (terms.amount_minor, terms.reason, terms.cause)).await?;
    }
    let items = Items { event: row.event_id, hold: row.hold_id, booking: Some(row.id) };
    let shift = if terms.resell { Shift::Resell } else { Shift::Withdraw };
    let shifted = inventory::shift(tx, &[items], shift).await?;
    let bump = shifted.map_err(|error| sea_orm::DbErr::Custom(format!("a confirmed booking lost a seat: {error}")))?;
    let cancelling = store::lock(tx, row.id).await?;
    step(tx, &cancelling, BookingEvent::FinishCancel, terms.cause.into()).await?;
    Ok(bump)
}

async fn save_refund(
    tx: &Transaction,
    row: &booking::Model,
    (amount_minor, reason, cause): (i64, RefundReason, &'static str),
) -> Result<(), BookingError> {
    let paid = db::Single::<parterre_entity::PaymentId>::find_by_statement(sql!(
        "SELECT id AS value FROM payment WHERE booking_id = $1",
        row.id
    ))
    .one(&**tx)
    .await?;
    let missing = || sea_orm::DbErr::Custom(format!("booking {} is confirmed and has no captured payment", row.id));
    let paid = payment::lock(tx, paid.ok_or_else(missing)?.value).await?.ok_or_else(missing)?;
    if paid.status != PaymentState::Captured {
        return Err(missing().into());
    }
    let new = NewRefund {
        payment: paid.id,
        booking: row.id,
        event: row.event_id,
        amount_minor,
        currency: row.currency.clone(),
        reason,
        stray_of: None,
    };
    if refunds::request(tx, new, cause).await? {
        return Ok(());
    }
    Err(sea_orm::DbErr::Custom(format!("booking {}: more would be given back than was paid", row.id)).into())
}
