//! The transaction that turns a hold into a booking, and the small steps of a booking's row.

use super::rules::{BookingEvent, next};
use super::timeline::{Entry, note};
use super::{CheckoutRefusal, CheckoutRequest};
use crate::bus::SeatsDelta;
use crate::db::{self, CommitError, Db, Transaction};
use crate::inventory::{self, Bump, HoldEvent, Items, LockedHold, Shift};
use crate::outbox::{self, Change, Topic};
use crate::payment::{self, NewPayment};
use crate::sql;
use chrono::{DateTime, Utc};
use parterre_entity::{
    BookingFailure, BookingId, BookingState, EventId, EventState, HoldId, HoldState, PaymentId, TimelineKind, booking,
};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QuerySelect};
use std::sync::Arc;

/// What checkout found or made.
#[derive(Debug)]
pub(super) struct CheckedOut {
    pub(super) booking: BookingId,
    pub(super) payment: Option<PaymentId>,
    pub(super) replayed: bool,
    pub(super) deltas: Vec<Arc<SeatsDelta>>,
}

/// Why a booking's transaction did not commit.
#[derive(Debug, thiserror::Error)]
pub enum BookingError {
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl db::MayRepeat for BookingError {
    fn may_repeat(&self) -> bool {
        match self {
            Self::Database(error) | Self::Commit(CommitError::RolledBack(error)) => db::may_repeat(error),
            Self::Commit(CommitError::Unknown(_)) => false,
        }
    }
}

/// An event's row, locked so that it can't be called off meanwhile.
#[derive(Clone, Debug, FromQueryResult)]
pub(super) struct EventTerms {
    pub(super) state: EventState,
    pub(super) starts_at: DateTime<Utc>,
    pub(super) cancel_until_seconds_before: Option<i32>,
    pub(super) refund_ppm: i32,
    pub(super) resell: bool,
}

pub(super) async fn lock_event(tx: &Transaction, event: EventId) -> Result<EventTerms, DbErr> {
    db::share_gates(tx, vec![event.0]).await?;
    EventTerms::find_by_statement(sql!(
        "SELECT state, starts_at, cancel_until_seconds_before, refund_ppm, resell FROM event WHERE id = $1 FOR SHARE",
        event
    ))
    .one(&**tx)
    .await?
    .ok_or_else(|| DbErr::RecordNotFound(format!("event {event}")))
}

/// The result of an earlier call with this key: its fingerprint and what it made.
pub(super) async fn known_key(
    tx: &Transaction,
    (event, buyer): (EventId, &str),
    (operation, key): (&'static str, &str),
) -> Result<Option<(String, BookingId)>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        fingerprint: String,
        result_id: BookingId,
    }
    let row = Row::find_by_statement(sql!(
        "SELECT fingerprint, result_id FROM idempotency
         WHERE event_id = $1 AND buyer = $2 AND operation = $3 AND key = $4 FOR NO KEY UPDATE",
        event,
        buyer,
        operation,
        key
    ))
    .one(&**tx)
    .await?;
    Ok(row.map(|row| (row.fingerprint, row.result_id)))
}

pub(super) async fn remember_key(
    tx: &Transaction,
    (event, buyer): (EventId, &str),
    (operation, key, fingerprint): (&'static str, &str, &str),
    result: BookingId,
) -> Result<(), DbErr> {
    tx.execute_raw(sql!(
        "INSERT INTO idempotency (event_id, buyer, operation, key, fingerprint, result_id) VALUES ($1, $2, $3, $4, $5, $6)",
        event,
        buyer,
        operation,
        key,
        fingerprint,
        result
    ))
    .await
    .map(drop)
}

/// Turns a hold into a booking that waits for its payment; a free one is confirmed in this commit. A hold that has a
/// booking already answers with it. While the provider is down, nothing that costs is begun.
pub(super) async fn checkout(
    db: &Db,
    request: &CheckoutRequest,
    provider_up: bool,
) -> Result<Result<CheckedOut, CheckoutRefusal>, BookingError> {
    let Some(event) = event_of_hold(db, request).await? else { return Ok(Err(CheckoutRefusal::HoldNotFound)) };
    let tx = db.begin("checkout").await?;
    let terms = lock_event(&tx, event).await?;
    let scope = (event, request.buyer.as_str());
    let key = known_key(&tx, scope, ("checkout", &request.key)).await?;
    let hold = inventory::lock(&tx, request.hold).await?.ok_or_else(|| DbErr::RecordNotFound("hold".to_owned()))?;
    let now = db::clock(&*tx).await?;

    if let Some(known) = standing_booking(&tx, hold.id).await? {
        tx.rollback().await?;
        return Ok(Ok(CheckedOut { booking: known, payment: None, replayed: true, deltas: Vec::new() }));
    }
    match key {
        Some((fingerprint, known)) if fingerprint == request.fingerprint => {
            tx.rollback().await?;
            return Ok(Ok(CheckedOut { booking: known, payment: None, replayed: true, deltas: Vec::new() }));
        }
        Some(_) => return Ok(Err(CheckoutRefusal::KeyReused)),
        None => {}
    }
    if let Some(refusal) = refuse(&hold, &terms, now) {
        return Ok(Err(refusal));
    }
    if payment::currency::to_provider(&hold.currency, hold.total_minor).is_none() {
        return Ok(Err(CheckoutRefusal::AmountNotPayable));
    }
    if hold.total_minor > 0 && !provider_up {
        return Ok(Err(CheckoutRefusal::ProviderDown));
    }
    let booking = insert(&tx, request, &hold, (&terms, now)).await?;
    remember_key(&tx, scope, ("checkout", &request.key, &request.fingerprint), booking).await?;
    let (payment, bump) = if hold.total_minor == 0 {
        match confirm_free(&tx, &hold, booking).await? {
            Ok(bump) => (None, bump),
            // Its deadline passed after we looked, and somebody else has a seat of it.
            Err(inventory::NotAllHeld) => return Ok(Err(CheckoutRefusal::HoldExpired)),
        }
    } else {
        let new = NewPayment {
            booking,
            event,
            amount_minor: hold.total_minor,
            currency: hold.currency.clone(),
            payment_method: request.payment_method.clone(),
            return_url: request.return_url.clone(),
        };
        (Some(payment::create(&tx, new).await?), Bump::default())
    };
    let deltas = inventory::bump(&tx, bump).await?;
    tx.commit().await?;
    Ok(Ok(CheckedOut { booking, payment, replayed: false, deltas }))
}

async fn event_of_hold(db: &Db, request: &CheckoutRequest) -> Result<Option<EventId>, DbErr> {
    let row = db::Single::<EventId>::find_by_statement(sql!(
        "SELECT event_id AS value FROM hold WHERE id = $1 AND buyer = $2",
        request.hold,
        request.buyer.clone()
    ))
    .one(db.pool())
    .await?;
    Ok(row.map(|row| row.value))
}

/// The hold's booking that has not failed, newest first: it answers under any key and card.
async fn standing_booking(tx: &Transaction, hold: HoldId) -> Result<Option<BookingId>, DbErr> {
    let row = db::Single::<BookingId>::find_by_statement(sql!(
        "SELECT id AS value FROM booking WHERE hold_id = $1 AND status <> 'FAILED' ORDER BY id DESC LIMIT 1",
        hold
    ))
    .one(&**tx)
    .await?;
    Ok(row.map(|row| row.value))
}

fn refuse(hold: &LockedHold, terms: &EventTerms, now: DateTime<Utc>) -> Option<CheckoutRefusal> {
    match hold.status_at(now) {
        HoldState::Active if terms.state == EventState::Cancelled => Some(CheckoutRefusal::EventCancelled),
        HoldState::Active => None,
        HoldState::Expired => Some(CheckoutRefusal::HoldExpired),
        HoldState::Released | HoldState::Converted => Some(CheckoutRefusal::HoldNotActive),
    }
}

async fn insert(
    tx: &Transaction,
    request: &CheckoutRequest,
    hold: &LockedHold,
    (terms, now): (&EventTerms, DateTime<Utc>),
) -> Result<BookingId, DbErr> {
    let id = BookingId::new();
    let seconds = i64::from(terms.cancel_until_seconds_before.unwrap_or(0));
    tx.execute_raw(sql!(
        "INSERT INTO booking (id, code, hold_id, event_id, buyer, status, total_minor, currency, cancel_until, refund_ppm,
                              resell, contact_email, locale, created_at)
         VALUES ($1, $2, $3, $4, $5, 'PAYMENT_PENDING', $6, $7, $8, $9, $10, $11, $12, $13)",
        id,
        booking_code(),
        hold.id,
        hold.event_id,
        hold.buyer.clone(),
        hold.total_minor,
        hold.currency.clone(),
        terms.starts_at - chrono::Duration::seconds(seconds),
        terms.refund_ppm,
        terms.resell,
        request.contact_email.clone(),
        request.locale.clone(),
        now
    ))
    .await?;
    let to = BookingState::PaymentPending;
    tell(tx, (id, hold.event_id), to).await?;
    note(
        &**tx,
        id,
        Entry { kind: TimelineKind::Booking, from: None, to: to.as_str(), cause: "checkout", detail: None },
    )
    .await?;
    Ok(id)
}

/// Eight letters and digits that can't be mistaken for each other. 40 bits of chance; a clash fails the unique index.
fn booking_code() -> String {
    const LETTERS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    (0..8).filter_map(|_| LETTERS.get(rand::random_range(0..LETTERS.len()))).map(|byte| char::from(*byte)).collect()
}

async fn confirm_free(
    tx: &Transaction,
    hold: &LockedHold,
    booking: BookingId,
) -> Result<Result<Bump, inventory::NotAllHeld>, DbErr> {
    let items = Items { event: hold.event_id, hold: hold.id, booking: Some(booking) };
    let converted = match inventory::shift(tx, &[items], Shift::Convert).await? {
        Ok(converted) => converted,
        Err(gone) => return Ok(Err(gone)),
    };
    inventory::step(tx, hold, HoldEvent::Convert).await?;
    let sold = match inventory::shift(tx, &[items], Shift::Sell).await? {
        Ok(sold) => sold,
        Err(gone) => return Ok(Err(gone)),
    };
    let row = lock(tx, booking).await?;
    step(tx, &row, BookingEvent::Confirm, "free".into()).await?;
    Ok(Ok(converted.then(sold)))
}

pub(super) async fn lock(tx: &Transaction, id: BookingId) -> Result<booking::Model, DbErr> {
    booking::Entity::find_by_id(id)
        .lock(sea_orm::sea_query::LockType::NoKeyUpdate)
        .one(&**tx)
        .await?
        .ok_or_else(|| DbErr::RecordNotFound(format!("booking {id}")))
}

/// Why a booking moves.
#[derive(Clone, Debug)]
pub(super) struct Why {
    cause: &'static str,
    failure: Option<BookingFailure>,
    detail: Option<String>,
}

impl From<&'static str> for Why {
    fn from(cause: &'static str) -> Self {
        Self { cause, failure: None, detail: None }
    }
}

impl Why {
    /// It fails, for this reason.
    pub(super) const fn failed(cause: &'static str, failure: BookingFailure) -> Self {
        Self { cause, failure: Some(failure), detail: None }
    }

    /// With something for people to read.
    pub(super) const fn told(cause: &'static str, detail: Option<String>) -> Self {
        Self { cause, failure: None, detail }
    }
}

/// Moves a locked booking and tells everyone: the outbox, and its own timeline.
pub(super) async fn step(
    tx: &Transaction,
    row: &booking::Model,
    event: BookingEvent,
    why: Why,
) -> Result<BookingState, DbErr> {
    let to = next(row.status, event).map_err(|error| DbErr::Custom(format!("booking {}: {error}", row.id)))?;
    let written = tx
        .execute_raw(sql!(
            "UPDATE booking SET status = $2, version = version + 1, failure = $4,
                confirmed_at = CASE WHEN $2 = 'CONFIRMED' THEN clock_timestamp() ELSE confirmed_at END,
                cancelled_at = CASE WHEN $2 = 'CANCELLING' THEN clock_timestamp() ELSE cancelled_at END
             WHERE id = $1 AND status = $3",
            row.id,
            to.as_str(),
            row.status.as_str(),
            why.failure.map(|failure| failure.as_str().to_owned())
        ))
        .await?
        .rows_affected();
    if written != 1 {
        return Err(DbErr::Custom(format!("booking {} moved while it was locked", row.id)));
    }
    tell(tx, (row.id, row.event_id), to).await?;
    let entry = Entry {
        kind: TimelineKind::Booking,
        from: Some(row.status.as_str()),
        to: to.as_str(),
        cause: why.cause,
        detail: why.detail.or_else(|| why.failure.map(|failure| failure.as_str().to_owned())),
    };
    note(&**tx, row.id, entry).await?;
    Ok(to)
}

async fn tell(tx: &Transaction, (id, event): (BookingId, EventId), to: BookingState) -> Result<(), DbErr> {
    let change = Change {
        topic: Topic::Booking,
        event: Some(event),
        subject: Some(id.0),
        payload: serde_json::json!({ "to": to.as_str() }),
    };
    outbox::append(&**tx, &[change]).await
}

/// Tells that something of a booking changed that is not its own state: its payment or a refund.
pub(super) async fn tell_money(
    tx: &Transaction,
    row: (BookingId, EventId),
    what: serde_json::Value,
) -> Result<(), DbErr> {
    let change = Change { topic: Topic::Booking, event: Some(row.1), subject: Some(row.0.0), payload: what };
    outbox::append(&**tx, &[change]).await
}
