//! The one function that settles a payment, whoever reports: a reply, a webhook, a reconciliation.
//!
//! It acts on the provider's object as retrieved, under the locks of event, quota, hold, booking and payment, and can be
//! run any number of times.

use super::refunds;
use super::rules::{self, BookingEvent, Settlement, View};
use super::store::{self, BookingError, Why, step};
use super::timeline::{Entry, note};
use super::webhooks;
use crate::bus::SeatsDelta;
use crate::db::{self, Db, Transaction};
use crate::inventory::{self, Bump, HoldEvent, Items, LockedHold, Shift};
use crate::payment::{self, Intent, NewRefund, PaymentChanges, PaymentEvent};
use crate::sql;
use chrono::{DateTime, Utc};
use parterre_entity::{
    BookingFailure, BookingId, EventState, HoldId, HoldState, PaymentId, PaymentState, PaymentStep, RefundReason,
    TimelineKind, booking, payment as payment_row,
};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use std::sync::Arc;

/// What a settlement did.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) booking: BookingId,
    pub(super) deltas: Vec<Arc<SeatsDelta>>,
}

/// Everything locked.
pub(super) struct Locked {
    pub(super) hold: LockedHold,
    booking: booking::Model,
    pub(super) payment: payment_row::Model,
    event_cancelled: bool,
    other_booking: bool,
}

/// Who reported what a settlement rests on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reporter<'a> {
    /// In a word, for the timeline.
    pub(super) cause: &'static str,
    /// The saved webhook, which is done with in the settlement's own commit.
    pub(super) webhook: Option<&'a str>,
}

impl From<&'static str> for Reporter<'_> {
    fn from(cause: &'static str) -> Self {
        Self { cause, webhook: None }
    }
}

/// Settles a payment by the provider's object.
pub(super) async fn settle(
    db: &Db,
    payment: PaymentId,
    intent: &Intent,
    reporter: Reporter<'_>,
) -> Result<Settled, BookingError> {
    let tx = db.begin("payment_settle").await?;
    let locked = lock_all(&tx, payment).await?;
    let now = db::clock(&*tx).await?;
    let view = View {
        hold: locked.hold.status,
        deadline: locked.hold.deadline,
        booking: locked.booking.status,
        payment: locked.payment.status,
        event_cancelled: locked.event_cancelled,
        give_back: locked.payment.give_back,
        other_booking: locked.other_booking,
        amount_minor: locked.payment.amount_minor,
        currency: &locked.payment.currency,
    };
    let settlement = rules::settle(&view, intent, now);
    let bump = apply(&tx, &locked, settlement, (intent, reporter.cause, now)).await?;
    let booking = locked.booking.id;
    if let Some(webhook) = reporter.webhook {
        webhooks::done_with(&tx, webhook).await?;
    }
    let deltas = inventory::bump(&tx, bump).await?;
    tx.commit().await?;
    Ok(Settled { booking, deltas })
}

/// Locks a payment and all it rests on, in the order that holds everywhere.
pub(super) async fn lock_all(tx: &Transaction, payment: PaymentId) -> Result<Locked, DbErr> {
    #[derive(FromQueryResult)]
    struct Path {
        booking_id: BookingId,
        hold_id: HoldId,
        event_id: parterre_entity::EventId,
        buyer: String,
    }
    let path = Path::find_by_statement(sql!(
        "SELECT booking.id AS booking_id, booking.hold_id, booking.event_id, booking.buyer
         FROM payment JOIN booking ON booking.id = payment.booking_id WHERE payment.id = $1",
        payment
    ))
    .one(&**tx)
    .await?
    .ok_or_else(|| DbErr::RecordNotFound(format!("payment {payment}")))?;
    let terms = store::lock_event(tx, path.event_id).await?;
    inventory::lock_quota(tx, path.event_id, &path.buyer).await?;
    let missing = |what: &str| DbErr::RecordNotFound(what.to_owned());
    let hold = inventory::lock(tx, path.hold_id).await?.ok_or_else(|| missing("hold"))?;
    let booking = store::lock(tx, path.booking_id).await?;
    let payment = payment::lock(tx, payment).await?.ok_or_else(|| missing("payment"))?;
    let others = db::Single::<i64>::find_by_statement(sql!(
        "SELECT count(*) AS value FROM booking WHERE hold_id = $1 AND id <> $2
           AND status IN ('PAYMENT_PENDING', 'CONFIRMED', 'CANCELLING', 'CANCELLED')",
        hold.id,
        booking.id
    ))
    .one(&**tx)
    .await?;
    Ok(Locked {
        hold,
        booking,
        payment,
        event_cancelled: terms.state == EventState::Cancelled,
        other_booking: others.is_some_and(|row| row.value > 0),
    })
}

/// Seconds until a payment that the provider is still at is looked at again.
const WAIT_SECONDS: f64 = 2.0;

/// Seconds until a payment that waits for its buyer is looked at again, should no webhook tell: rarer as it grows older,
/// and in any case when the hold ends.
fn ask_again_seconds(locked: &Locked, now: DateTime<Utc>) -> f64 {
    let seconds = |time: chrono::Duration| i32::try_from(time.num_milliseconds()).map_or(f64::MAX, f64::from) / 1_000.0;
    let growing = (seconds(now - locked.payment.created_at) / 4.0).clamp(WAIT_SECONDS, 30.0);
    growing.min(seconds(locked.hold.deadline - now).max(WAIT_SECONDS))
}

async fn apply(
    tx: &Transaction,
    locked: &Locked,
    settlement: Settlement,
    (intent, cause, now): (&Intent, &'static str, DateTime<Utc>),
) -> Result<Bump, DbErr> {
    let items = Items { event: locked.hold.event_id, hold: locked.hold.id, booking: Some(locked.booking.id) };
    // A decline may come without the provider's id of what it declined.
    let provider_id = Some(intent.provider_id.clone()).filter(|id| !id.is_empty());
    let collected = intent.standing == payment::Standing::Captured;
    let captured = collected.then(|| (intent.amount_minor, intent.currency.clone()));
    let known = PaymentChanges { provider_id, captured, ..PaymentChanges::default() };
    match settlement {
        Settlement::Nothing => {
            let open = !matches!(locked.payment.status, PaymentState::Captured | PaymentState::NeedsReview);
            if collected && open {
                move_payment(tx, locked, PaymentEvent::Collect, (known, cause)).await?;
            } else if is_terminal(locked.payment.status) {
                payment::rest(tx, locked.payment.id).await?;
            }
            Ok(Bump::default())
        }
        Settlement::Wait => {
            let again = PaymentChanges { check_in_seconds: Some(WAIT_SECONDS), ..known };
            payment::look_again(tx, locked.payment.id, again).await?;
            Ok(Bump::default())
        }
        Settlement::AskBuyer => {
            let next_action = intent.next_action.as_ref().and_then(|action| serde_json::to_value(action).ok());
            let changes =
                PaymentChanges { check_in_seconds: Some(ask_again_seconds(locked, now)), next_action, ..known };
            move_payment(tx, locked, PaymentEvent::AskBuyer, (changes, cause)).await?;
            Ok(Bump::default())
        }
        Settlement::Convert => convert(tx, locked, items, (known, intent, cause)).await,
        Settlement::Capture => {
            let again = PaymentChanges { check_in_seconds: Some(0.0), ..known };
            move_payment(tx, locked, PaymentEvent::Capture, (again, cause)).await?;
            Ok(Bump::default())
        }
        Settlement::Confirm => confirm(tx, locked, items, (intent, known, cause)).await,
        Settlement::ConfirmLate => confirm_late(tx, locked, items, (intent, known, cause)).await,
        Settlement::GiveBack(reason) => {
            move_payment(tx, locked, PaymentEvent::Collect, (known, cause)).await?;
            give_back(tx, locked, items, (intent, reason, cause)).await
        }
        Settlement::Void(failure) => {
            // A void that is under way, its answer not known, keeps its key and how old that is.
            let begun = locked.payment.unknown_step == Some(PaymentStep::Void);
            let now = PaymentChanges { check_in_seconds: Some(0.0), new_step: !begun, ..known };
            let voiding = locked.payment.status == PaymentState::Voiding;
            let voidable = payment::next(locked.payment.status, PaymentEvent::Void).is_ok();
            if voidable && !voiding {
                move_payment(tx, locked, PaymentEvent::Void, (now, cause)).await?;
            }
            // A booking whose money can't be given back any more is left to what the money does.
            if voidable || voiding {
                fail_booking(tx, locked, (failure, cause)).await?;
            }
            Ok(Bump::default())
        }
        Settlement::Fail(failure) => {
            end_payment(tx, locked, (intent, known, cause)).await?;
            fail_booking(tx, locked, (failure, cause)).await?;
            Ok(Bump::default())
        }
        Settlement::FailCapture => {
            let changes = PaymentChanges { decline_code: intent.decline_code.clone(), ..known };
            let event =
                if locked.payment.status == PaymentState::Voiding { PaymentEvent::Voided } else { PaymentEvent::Fail };
            move_payment(tx, locked, event, (changes, cause)).await?;
            let failure =
                if locked.payment.give_back { BookingFailure::AmountMismatch } else { BookingFailure::CaptureFailed };
            step(tx, &locked.booking, BookingEvent::Fail, Why::failed(cause, failure)).await?;
            inventory::step(tx, &locked.hold, HoldEvent::Release).await?;
            let returned = inventory::shift(tx, &[items], Shift::Return).await?;
            returned.map_err(|error| DbErr::Custom(format!("a pending booking lost a seat: {error}")))
        }
        Settlement::Review => {
            tracing::error!(payment.id = %locked.payment.id, "amount or currency at the provider do not match, a person has to decide");
            move_payment(tx, locked, PaymentEvent::Review, (known, cause)).await?;
            Ok(Bump::default())
        }
    }
}

/// Sells the seats that were taken over.
async fn confirm(
    tx: &Transaction,
    locked: &Locked,
    items: Items,
    (intent, known, cause): (&Intent, PaymentChanges, &'static str),
) -> Result<Bump, DbErr> {
    move_payment(tx, locked, PaymentEvent::Collect, (known, cause)).await?;
    if let Ok(bump) = inventory::shift(tx, &[items], Shift::Sell).await? {
        step(tx, &locked.booking, BookingEvent::Confirm, cause.into()).await?;
        return Ok(bump);
    }
    // A confirmation that can't be, for whatever reason, is no loop: the money goes back, and people are told.
    tracing::error!(booking.id = %locked.booking.id, "a paid booking does not have its seats");
    give_back(tx, locked, items, (intent, RefundReason::SeatsLost, cause)).await
}

/// Takes the seats over: from here on the hold's deadline no longer matters. Not all there: the reservation is voided.
async fn convert(
    tx: &Transaction,
    locked: &Locked,
    items: Items,
    (known, intent, cause): (PaymentChanges, &Intent, &'static str),
) -> Result<Bump, DbErr> {
    tx.execute_unprepared("SAVEPOINT convert").await?;
    let shifted = match inventory::shift(tx, &[items], Shift::Convert).await {
        // The last line: a unique index says that a seat has an owner. Then this hold is not valid.
        Err(error) if db::constraint(&error) == Some("hold_item_one_owner") => {
            tracing::error!(hold.id = %items.hold, "a hold was about to take a seat that has an owner");
            tx.execute_unprepared("ROLLBACK TO SAVEPOINT convert").await?;
            Err(inventory::NotAllHeld)
        }
        result => result?,
    };
    if let Ok(bump) = shifted {
        inventory::step(tx, &locked.hold, HoldEvent::Convert).await?;
        let authorized = PaymentChanges { capture_before: intent.capture_before, ..known };
        move_payment(tx, locked, PaymentEvent::Authorize, (authorized, cause)).await?;
        let capture = PaymentChanges { check_in_seconds: Some(0.0), new_step: true, ..PaymentChanges::default() };
        move_payment_reread(tx, locked.payment.id, PaymentEvent::Capture, (capture, cause)).await?;
        Ok(bump)
    } else {
        move_payment(tx, locked, PaymentEvent::Authorize, (known, cause)).await?;
        let void = PaymentChanges { check_in_seconds: Some(0.0), new_step: true, ..PaymentChanges::default() };
        move_payment_reread(tx, locked.payment.id, PaymentEvent::Void, (void, cause)).await?;
        fail_booking(tx, locked, (BookingFailure::HoldExpired, cause)).await?;
        Ok(Bump::default())
    }
}

/// Money without an authorization in time: exactly the hold's seats if they are free, else the money goes back.
async fn confirm_late(
    tx: &Transaction,
    locked: &Locked,
    items: Items,
    (intent, known, cause): (&Intent, PaymentChanges, &'static str),
) -> Result<Bump, DbErr> {
    move_payment(tx, locked, PaymentEvent::Collect, (known, cause)).await?;
    tx.execute_unprepared("SAVEPOINT late").await?;
    let sold = match inventory::sell_late(tx, items, &locked.hold.buyer).await {
        // The last line: a unique index says that a seat has an owner.
        Err(error) if db::constraint(&error) == Some("hold_item_one_owner") => {
            tracing::error!(hold.id = %items.hold, "late money was about to take a seat that has an owner");
            Err(inventory::Gone)
        }
        result => result?,
    };
    let Ok(bump) = sold else {
        // Also what it reclaimed to see whether it fits.
        tx.execute_unprepared("ROLLBACK TO SAVEPOINT late").await?;
        return give_back(tx, locked, items, (intent, RefundReason::SeatsLost, cause)).await;
    };
    let event = if locked.hold.status == HoldState::Active { HoldEvent::Convert } else { HoldEvent::ConfirmLate };
    inventory::step(tx, &locked.hold, event).await?;
    step(tx, &locked.booking, BookingEvent::Confirm, "late_payment".into()).await?;
    Ok(bump)
}

/// Saves a refund of everything that was collected and says so. Seats that were taken over go back.
async fn give_back(
    tx: &Transaction,
    locked: &Locked,
    items: Items,
    (intent, reason, cause): (&Intent, RefundReason, &'static str),
) -> Result<Bump, DbErr> {
    step(tx, &locked.booking, BookingEvent::LoseSeats, cause.into()).await?;
    let refund = NewRefund {
        payment: locked.payment.id,
        booking: locked.booking.id,
        event: locked.booking.event_id,
        amount_minor: intent.amount_minor,
        currency: intent.currency.clone(),
        reason,
        stray_of: None,
    };
    if !refunds::request(tx, refund, cause).await? {
        tracing::error!(payment.id = %locked.payment.id, "a payment without seats has been refunded already");
    }
    if locked.hold.status == HoldState::Converted && !locked.other_booking {
        // Nothing moves if the hold's items are not pending: then they were never this booking's, or went back before.
        if let Ok(bump) = inventory::shift(tx, &[items], Shift::Return).await? {
            inventory::step(tx, &locked.hold, HoldEvent::Release).await?;
            return Ok(bump);
        }
    }
    Ok(Bump::default())
}

async fn fail_booking(
    tx: &Transaction,
    locked: &Locked,
    (failure, cause): (BookingFailure, &'static str),
) -> Result<(), DbErr> {
    if locked.booking.status == parterre_entity::BookingState::PaymentPending {
        step(tx, &locked.booking, BookingEvent::Fail, Why::failed(cause, failure)).await?;
    }
    Ok(())
}

/// Ends a payment whose money never moved: declined, or nothing reserved any more.
async fn end_payment(
    tx: &Transaction,
    locked: &Locked,
    (intent, known, cause): (&Intent, PaymentChanges, &'static str),
) -> Result<(), DbErr> {
    let declined = intent.standing == payment::Standing::Declined && locked.payment.status != PaymentState::Voiding;
    let event = if declined { PaymentEvent::Decline } else { PaymentEvent::Voided };
    let changes = PaymentChanges { decline_code: intent.decline_code.clone(), ..known };
    if is_terminal(locked.payment.status) {
        payment::rest(tx, locked.payment.id).await
    } else if payment::next(locked.payment.status, event).is_ok() {
        move_payment(tx, locked, event, (changes, cause)).await
    } else {
        Ok(())
    }
}

/// Whether a payment in this state is at rest, unless money moves after all.
const fn is_terminal(state: PaymentState) -> bool {
    matches!(
        state,
        PaymentState::Captured
            | PaymentState::Declined
            | PaymentState::Failed
            | PaymentState::Voided
            | PaymentState::NeedsReview
    )
}

async fn move_payment(
    tx: &Transaction,
    locked: &Locked,
    event: PaymentEvent,
    (changes, cause): (PaymentChanges, &'static str),
) -> Result<(), DbErr> {
    move_row(tx, &locked.payment, event, (changes, cause)).await
}

/// A second step in one transaction: the row is read again.
async fn move_payment_reread(
    tx: &Transaction,
    payment: PaymentId,
    event: PaymentEvent,
    what: (PaymentChanges, &'static str),
) -> Result<(), DbErr> {
    let row = payment::lock(tx, payment).await?.ok_or_else(|| DbErr::RecordNotFound("payment".to_owned()))?;
    move_row(tx, &row, event, what).await
}

/// Moves a locked payment, tells its booking's readers and its timeline.
pub(super) async fn move_row(
    tx: &Transaction,
    row: &payment_row::Model,
    event: PaymentEvent,
    (changes, cause): (PaymentChanges, &'static str),
) -> Result<(), DbErr> {
    let detail = changes.decline_code.clone();
    let to = payment::step(tx, row, event, changes).await?;
    if to == row.status {
        return Ok(());
    }
    store::tell_money(tx, (row.booking_id, row.event_id), serde_json::json!({ "payment": to.as_str() })).await?;
    let entry = Entry { kind: TimelineKind::Payment, from: Some(row.status.as_str()), to: to.as_str(), cause, detail };
    note(&**tx, row.booking_id, entry).await
}
