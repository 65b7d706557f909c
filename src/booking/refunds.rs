//! Money on its way back: looked for before it is sent, sent again under the same operation id, and followed by another
//! refund when it failed.

use super::Bookings;
use super::drive::pause_seconds;
use super::rules::BookingEvent;
use super::store::{self, BookingError, step, tell_money};
use super::timeline::{Entry, note};
use super::webhooks;
use crate::db::{self, Transaction, repeating};
use crate::payment::{
    self, CallError, Lease, Leased, NewRefund, ProviderRefund, RefundChanges, RefundEvent, RefundOrder, RefundStanding,
};
use crate::sql;
use parterre_entity::{BookingState, RefundId, RefundState, TimelineKind, payment as payment_row, refund};
use sea_orm::{DbErr, EntityTrait, FromQueryResult};

/// Saves a refund and tells of it. Returns whether there was anything to give back.
pub(super) async fn request(tx: &Transaction, new: NewRefund, cause: &'static str) -> Result<bool, DbErr> {
    let (booking, event) = (new.booking, new.event);
    let Some(id) = payment::create_refund(tx, new).await? else { return Ok(false) };
    let what = serde_json::json!({ "refund": RefundState::Requested.as_str(), "id": id });
    tell_money(tx, (booking, event), what).await?;
    let to = RefundState::Requested.as_str();
    note(&**tx, booking, Entry { kind: TimelineKind::Refund, from: None, to, cause, detail: None }).await?;
    Ok(true)
}

/// Moves a refund on, if it is due and nobody else is at it.
pub(super) async fn drive(bookings: &Bookings, id: RefundId) -> Result<(), BookingError> {
    let Some(lease) = Lease::take(&bookings.db, Leased::Refund(id)).await? else { return Ok(()) };
    let result = drive_leased(bookings, id).await;
    // The lease is given back whatever happens.
    let postponed =
        if result.is_err() { payment::postpone_refund(&bookings.db, id, ERROR_PAUSE_SECONDS).await } else { Ok(()) };
    lease.release().await?;
    postponed?;
    result
}

/// How long a refund rests after an error of our own.
const ERROR_PAUSE_SECONDS: f64 = 5.0;

/// How often a refund that succeeded is looked at again.
const LOOK_AGAIN_SECONDS: f64 = 86_400.0;
/// For how long.
const WATCHED: chrono::Duration = chrono::Duration::days(7);

/// A refund and the provider's id of the payment it is of, if that is known.
async fn read(bookings: &Bookings, id: RefundId) -> Result<(refund::Model, Option<String>), DbErr> {
    let row = refund::Entity::find_by_id(id).one(bookings.db.pool()).await?;
    let row = row.ok_or_else(|| DbErr::RecordNotFound(format!("refund {id}")))?;
    let paid = payment_row::Entity::find_by_id(row.payment_id).one(bookings.db.pool()).await?;
    let known = row.stray_of.clone().or_else(|| paid.and_then(|paid| paid.provider_id));
    Ok((row, known))
}

/// Looks at a refund because someone said that something happened to it.
pub(super) async fn look_at(bookings: &Bookings, id: RefundId, webhook: &str) -> Result<bool, BookingError> {
    let (row, known) = read(bookings, id).await?;
    let Some(provider_payment_id) = known else { return Ok(false) };
    match bookings.provider.find_refund(&provider_payment_id, &row.operation_id).await {
        Ok(Some(found)) => {
            settle(bookings, id, (&found, Some(webhook))).await?;
            bookings.wake.wake();
            Ok(true)
        }
        Ok(None) | Err(_) => Ok(false),
    }
}

async fn drive_leased(bookings: &Bookings, id: RefundId) -> Result<(), BookingError> {
    let (row, known) = read(bookings, id).await?;
    let Some(provider_payment_id) = known else {
        return Err(DbErr::Custom(format!("refund {id} is of a payment that the provider does not know")).into());
    };
    if row.first_sent_at.is_some() || row.status == RefundState::Succeeded {
        match bookings.provider.find_refund(&provider_payment_id, &row.operation_id).await {
            Ok(Some(found)) => return settle(bookings, id, (&found, None)).await,
            Ok(None) if row.status == RefundState::Succeeded => {
                return Ok(payment::postpone_refund(&bookings.db, id, LOOK_AGAIN_SECONDS).await?);
            }
            Ok(None) => {}
            Err(error) => return wait(bookings, id, &error).await,
        }
    }
    bookings.provider.turn().await;
    let Some(key_no) = repeating(|| prepare_send(bookings, id)).await? else { return Ok(()) };
    let order = RefundOrder {
        provider_payment_id,
        operation_id: row.operation_id,
        amount_minor: row.amount_minor,
        currency: row.currency,
        key_no,
    };
    match bookings.provider.refund(&order).await {
        Ok(found) => settle(bookings, id, (&found, None)).await,
        Err(error) => wait(bookings, id, &error).await,
    }
}

/// How long after a first look that found nothing the second one decides.
const SECOND_LOOK: chrono::Duration = chrono::Duration::hours(1);

/// Writes the call down before it is made. Returns which key to use: the next one if the present one is too old and the
/// provider did not list the refund twice, an hour apart; none if it is too early to say.
async fn prepare_send(bookings: &Bookings, id: RefundId) -> Result<Option<i16>, BookingError> {
    let tx = bookings.db.begin("refund_send").await?;
    let row = lock(&tx, id).await?;
    let now = db::clock(&*tx).await?;
    if !matches!(row.status, RefundState::Requested | RefundState::Pending) {
        tx.rollback().await?;
        return Ok(None);
    }
    let is_old = payment::key_is_old(row.key_used_at, now);
    if is_old && row.missed_at.is_none_or(|missed| missed + SECOND_LOOK > now) {
        payment::note_missed_refund(&tx, id).await?;
        let pause_seconds = i32::try_from(SECOND_LOOK.num_seconds()).map_or(3_600.0, f64::from);
        let later = RefundChanges { check_in_seconds: Some(pause_seconds), ..RefundChanges::default() };
        payment::step_refund(&tx, &row, RefundEvent::Send, later).await?;
        tx.commit().await?;
        return Ok(None);
    }
    let changes = RefundChanges {
        check_in_seconds: Some(pause_seconds(row.attempts + 1)),
        next_key: is_old,
        sent: true,
        ..RefundChanges::default()
    };
    let to = payment::step_refund(&tx, &row, RefundEvent::Send, changes).await?;
    tell(&tx, &row, (row.status, to), "refund").await?;
    tx.commit().await?;
    Ok(Some(row.key_no + i16::from(is_old)))
}

async fn wait(bookings: &Bookings, id: RefundId, error: &CallError) -> Result<(), BookingError> {
    tracing::warn!(refund.id = %id, %error, "the outcome of a refund is not known yet");
    let next_key = matches!(error, CallError::Stored(_));
    let tx = bookings.db.begin("refund_wait").await?;
    let row = lock(&tx, id).await?;
    if matches!(row.status, RefundState::Requested | RefundState::Pending) {
        let changes = RefundChanges {
            check_in_seconds: Some(pause_seconds(row.attempts + 1)),
            next_key,
            ..RefundChanges::default()
        };
        payment::step_refund(&tx, &row, RefundEvent::Send, changes).await?;
    }
    tx.commit().await.map_err(BookingError::from)
}

/// Settles a refund by the provider's object. A failed one is followed by another, under its own operation id.
async fn settle(
    bookings: &Bookings,
    id: RefundId,
    (found, webhook): (&ProviderRefund, Option<&str>),
) -> Result<(), BookingError> {
    let booking_id = repeating(|| async {
        let tx = bookings.db.begin("refund_settle").await?;
        let unlocked = refund::Entity::find_by_id(id).one(&*tx).await?;
        let unlocked = unlocked.ok_or_else(|| DbErr::RecordNotFound(format!("refund {id}")))?;
        let booking = store::lock(&tx, unlocked.booking_id).await?;
        let paid = payment::lock(&tx, unlocked.payment_id).await?;
        let row = lock(&tx, id).await?;
        let event = match found.standing {
            RefundStanding::Pending => RefundEvent::Send,
            RefundStanding::Succeeded => RefundEvent::Succeed,
            RefundStanding::Failed => RefundEvent::Fail,
        };
        let again = match found.standing {
            RefundStanding::Pending => Some(pause_seconds(row.attempts + 1)),
            // A refund may fail after it looked done: it is looked at again for some days.
            RefundStanding::Succeeded if row.created_at > crate::clock::now() - WATCHED => Some(LOOK_AGAIN_SECONDS),
            RefundStanding::Succeeded | RefundStanding::Failed => None,
        };
        if let Some(webhook) = webhook {
            webhooks::done_with(&tx, webhook).await?;
        }
        if payment::next_refund(row.status, event).is_err() {
            tx.commit().await?;
            payment::postpone_refund(&bookings.db, id, LOOK_AGAIN_SECONDS).await?;
            return Ok::<_, BookingError>(booking.id);
        }
        let changes = RefundChanges {
            provider_id: Some(found.provider_id.clone()),
            check_in_seconds: again,
            ..RefundChanges::default()
        };
        let to = payment::step_refund(&tx, &row, event, changes).await?;
        tell(&tx, &row, (row.status, to), "refund").await?;
        match to {
            // A second payment's money is not the booking's.
            _ if row.stray_of.is_some() && to != RefundState::Failed => {}
            RefundState::Succeeded if row.status != RefundState::Succeeded => {
                let open = open_refunds(&tx, &row).await?;
                if open == 0 && matches!(booking.status, BookingState::Cancelled | BookingState::RefundRequired) {
                    step(&tx, &booking, BookingEvent::Refund, "refund".into()).await?;
                }
            }
            RefundState::Failed if row.status != RefundState::Failed => {
                if booking.status == BookingState::Refunded && row.stray_of.is_none() {
                    step(&tx, &booking, BookingEvent::RefundFails, "refund_failed".into()).await?;
                }
                if let Some(paid) = paid {
                    let next = NewRefund {
                        payment: paid.id,
                        booking: booking.id,
                        event: booking.event_id,
                        amount_minor: row.amount_minor,
                        currency: row.currency.clone(),
                        reason: row.reason,
                        stray_of: row.stray_of.clone(),
                    };
                    request(&tx, next, "refund_failed").await?;
                }
            }
            _ => {}
        }
        tx.commit().await?;
        Ok(booking.id)
    })
    .await?;
    bookings.announce(booking_id);
    Ok(())
}

async fn open_refunds(tx: &Transaction, row: &refund::Model) -> Result<i64, DbErr> {
    let open = crate::db::Single::<i64>::find_by_statement(sql!(
        "SELECT count(*) AS value FROM refund WHERE booking_id = $1 AND status IN ('REQUESTED', 'PENDING') AND stray_of IS NULL",
        row.booking_id
    ));
    Ok(open.one(&**tx).await?.map_or(0, |row| row.value))
}

async fn lock(tx: &Transaction, id: RefundId) -> Result<refund::Model, DbErr> {
    payment::lock_refund(tx, id).await?.ok_or_else(|| DbErr::RecordNotFound(format!("refund {id}")))
}

async fn tell(
    tx: &Transaction,
    row: &refund::Model,
    (from, to): (RefundState, RefundState),
    cause: &'static str,
) -> Result<(), DbErr> {
    if from == to {
        return Ok(());
    }
    let what = serde_json::json!({ "refund": to.as_str(), "id": row.id });
    tell_money(tx, (row.booking_id, row.event_id), what).await?;
    let entry = Entry { kind: TimelineKind::Refund, from: Some(from.as_str()), to: to.as_str(), cause, detail: None };
    note(&**tx, row.booking_id, entry).await
}
