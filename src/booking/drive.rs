//! Moves payments and refunds on by asking the provider. No transaction is open while a call is under way; what a call
//! brought is settled in `settle.rs`.
//!
//! Invariants: a lease limits who calls, never whose fact counts; before every send the hold is read again with a fresh
//! clock; after an answer that is not definite, the provider's object is looked at before anything is sent again.

use super::refunds;
use super::rules::{View, obstacle};
use super::settle::{Reporter, Settled, move_row, settle};
use super::store::{self, BookingError, Why, lock_event, step};
use super::{Bookings, rules::BookingEvent};
use crate::chaos;
use crate::db::{self, Transaction, repeating};
use crate::inventory;
use crate::payment::{
    self, CALL_TIMEOUT, CallError, Handle, Intent, Lease, Leased, Order, PaymentChanges, PaymentEvent,
};
use chrono::{DateTime, Duration, Utc};
use parterre_entity::{
    BookingFailure, BookingState, EventState, PaymentId, PaymentState, PaymentStep, payment as payment_row,
};
use sea_orm::{DbErr, EntityTrait};
use std::sync::Arc;

/// From the first create of a payment to the last: no hold is longer than a day.
const CREATED_WITHIN: Duration = Duration::hours(26);

/// Steps a payment takes in one go: send, capture, and what may come between.
const STEPS_MAX: usize = 6;

impl Bookings {
    /// Moves a payment on as far as it goes, if it is due and nobody else is at it.
    pub async fn drive(&self, payment: PaymentId) -> Result<(), BookingError> {
        let Some(lease) = Lease::take(&self.db, Leased::Payment(payment)).await? else { return Ok(()) };
        let result = self.drive_leased(payment).await;
        // The lease is given back whatever happens: a payment that nobody may touch is worse than one tried too soon.
        let postponed = if result.is_err() { payment::postpone(&self.db, payment).await } else { Ok(()) };
        lease.release().await?;
        postponed?;
        result
    }

    async fn drive_leased(&self, id: PaymentId) -> Result<(), BookingError> {
        for step in 0..STEPS_MAX {
            let row = payment_row::Entity::find_by_id(id).one(self.db.pool()).await?;
            let row = row.ok_or_else(|| DbErr::RecordNotFound(format!("payment {id}")))?;
            // That it is due at first was judged with the lease, by the database's clock.
            let is_due = match row.next_check_at {
                Some(due) => step == 0 || due <= db::clock(self.db.pool()).await? + Duration::seconds(1),
                None => false,
            };
            if !is_due {
                return Ok(());
            }
            let goes_on = match (row.status, row.unknown_step) {
                (PaymentState::Created | PaymentState::Authorizing, _)
                | (PaymentState::Unknown, Some(PaymentStep::Authorize) | None) => self.authorize(&row).await?,
                (PaymentState::RequiresAction, _) => self.look(&row).await?,
                (PaymentState::Capturing, _) | (PaymentState::Unknown, Some(PaymentStep::Capture)) => {
                    self.capture(&row).await?
                }
                (PaymentState::Voiding, _) | (PaymentState::Unknown, Some(PaymentStep::Void)) => {
                    self.void(&row).await?
                }
                (
                    PaymentState::Authorized
                    | PaymentState::Captured
                    | PaymentState::Declined
                    | PaymentState::Failed
                    | PaymentState::Voided
                    | PaymentState::NeedsReview,
                    _,
                ) => self.look(&row).await?,
            };
            if !goes_on {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Reserves the money, unless the hold can't wait for the answer any more.
    async fn authorize(&self, row: &payment_row::Model) -> Result<bool, BookingError> {
        if row.first_sent_at.is_some() {
            match self.find(row).await {
                Ok(Some(intent)) => return self.settle(row, &intent, "lookup").await.map(|()| true),
                Ok(None) => {}
                Err(error) => return self.keep_unknown(row, PaymentStep::Authorize, &error).await.map(|()| false),
            }
        }
        self.provider.turn().await;
        let Some((code, key_no)) = repeating(|| self.prepare_send(row.id)).await? else { return Ok(false) };
        let order = Order {
            operation_id: row.operation_id.clone(),
            booking_code: code,
            amount_minor: row.amount_minor,
            currency: row.currency.clone(),
            payment_method: row.payment_method.clone(),
            return_url: row.return_url.clone(),
            key_no,
        };
        chaos::point("before_authorize");
        let answer = self.provider.authorize(&order).await;
        chaos::point("after_authorize");
        match answer {
            Ok(intent) => self.settle(row, &intent, "authorize").await.map(|()| true),
            Err(CallError::Declined { code, provider_id }) => {
                let intent = uncollected(row, provider_id, code);
                self.settle(row, &intent, "authorize").await.map(|()| false)
            }
            Err(error) => self.keep_unknown(row, PaymentStep::Authorize, &error).await.map(|()| false),
        }
    }

    /// In a transaction of its own: is the hold still good for one call, and the key for one more? Then the call is
    /// written down before it is made; returns the booking's code and which key to use. Else the booking fails; a
    /// payment the provider may know of is looked for and voided.
    async fn prepare_send(&self, id: PaymentId) -> Result<Option<(String, i16)>, BookingError> {
        let found = payment_row::Entity::find_by_id(id).one(self.db.pool()).await?;
        let row = found.ok_or_else(|| DbErr::RecordNotFound(format!("payment {id}")))?;
        let tx = self.db.begin("payment_send").await?;
        let terms = lock_event(&tx, row.event_id).await?;
        let booking = parterre_entity::booking::Entity::find_by_id(row.booking_id).one(&*tx).await?;
        let hold_id =
            booking.map(|booking| booking.hold_id).ok_or_else(|| DbErr::RecordNotFound("booking".to_owned()))?;
        let hold = inventory::lock(&tx, hold_id).await?.ok_or_else(|| DbErr::RecordNotFound("hold".to_owned()))?;
        let booking = store::lock(&tx, row.booking_id).await?;
        let payment = payment::lock(&tx, id).await?.ok_or_else(|| DbErr::RecordNotFound("payment".to_owned()))?;
        let now = db::clock(&*tx).await?;
        let view = View {
            hold: hold.status,
            deadline: hold.deadline,
            booking: booking.status,
            payment: payment.status,
            event_cancelled: terms.state == EventState::Cancelled,
            give_back: payment.give_back,
            other_booking: false,
            amount_minor: payment.amount_minor,
            currency: &payment.currency,
        };
        let call = Duration::from_std(CALL_TIMEOUT).unwrap_or(Duration::seconds(10));
        let obstacle = match booking.status {
            BookingState::PaymentPending if view.give_back || payment::key_is_old(payment.key_used_at, now) => {
                Some(BookingFailure::Abandoned)
            }
            BookingState::PaymentPending => obstacle(&view, now + call),
            _ => Some(BookingFailure::Abandoned),
        };
        let sendable = matches!(
            (payment.status, payment.unknown_step),
            (PaymentState::Created | PaymentState::Authorizing, _)
                | (PaymentState::Unknown, Some(PaymentStep::Authorize))
        );
        if !sendable {
            tx.rollback().await?;
            return Ok(None);
        }
        match obstacle {
            None => {
                move_row(
                    &tx,
                    &payment,
                    PaymentEvent::Send,
                    (PaymentChanges { check_in_seconds: Some(1.0), ..PaymentChanges::default() }, "send"),
                )
                .await?;
                let key_no = payment::about_to_call(&tx, id).await?;
                tx.commit().await?;
                Ok(Some((booking.code, key_no)))
            }
            Some(failure) => {
                close_unsent(&tx, &payment, now).await?;
                if booking.status == BookingState::PaymentPending {
                    step(&tx, &booking, BookingEvent::Fail, Why::failed("not_sent", failure)).await?;
                }
                tx.commit().await?;
                self.announce(row.booking_id);
                Ok(None)
            }
        }
    }

    /// Collects the money. After an attempt whose outcome is not known, the object is read first.
    async fn capture(&self, row: &payment_row::Model) -> Result<bool, BookingError> {
        if row.attempts > 0 {
            match self.find(row).await {
                Ok(Some(intent)) if intent.standing != payment::Standing::Authorized || !is_as_asked(row, &intent) => {
                    return self.settle(row, &intent, "lookup").await.map(|()| false);
                }
                Ok(Some(_)) => {}
                Ok(None) => return self.keep_unknown(row, PaymentStep::Capture, &not_listed()).await.map(|()| false),
                Err(error) => return self.keep_unknown(row, PaymentStep::Capture, &error).await.map(|()| false),
            }
        }
        let Some(provider_id) = row.provider_id.clone() else {
            return self.keep_unknown(row, PaymentStep::Capture, &not_listed()).await.map(|()| false);
        };
        self.provider.turn().await;
        let key_no = self.count_call(row.id).await?;
        let handle = Handle { provider_id, operation_id: row.operation_id.clone(), key_no };
        chaos::point("before_capture");
        let answer = self.provider.capture(&handle).await;
        chaos::point("after_capture");
        match answer {
            // The answer to a key that was used before is old: the object as it stands is what counts.
            Ok(_) if row.attempts > 0 => match self.find(row).await {
                Ok(Some(intent)) => self.settle(row, &intent, "capture").await.map(|()| false),
                Ok(None) => self.keep_unknown(row, PaymentStep::Capture, &not_listed()).await.map(|()| false),
                Err(error) => self.keep_unknown(row, PaymentStep::Capture, &error).await.map(|()| false),
            },
            Ok(intent) => self.settle(row, &intent, "capture").await.map(|()| false),
            Err(CallError::Declined { code, provider_id }) => {
                let intent = uncollected(row, provider_id, code);
                self.settle(row, &intent, "capture").await.map(|()| false)
            }
            Err(error) => self.keep_unknown(row, PaymentStep::Capture, &error).await.map(|()| false),
        }
    }

    /// Gives the reservation back.
    async fn void(&self, row: &payment_row::Model) -> Result<bool, BookingError> {
        let intent = match self.find(row).await {
            Ok(Some(intent)) => intent,
            Ok(None) => return self.keep_unknown(row, PaymentStep::Void, &not_listed()).await.map(|()| false),
            Err(error) => return self.keep_unknown(row, PaymentStep::Void, &error).await.map(|()| false),
        };
        let open = [payment::Standing::Authorized, payment::Standing::WaitsForBuyer, payment::Standing::Declined];
        if !open.contains(&intent.standing) {
            return self.settle(row, &intent, "lookup").await.map(|()| false);
        }
        self.provider.turn().await;
        let key_no = self.count_call(row.id).await?;
        let handle = Handle { provider_id: intent.provider_id, operation_id: row.operation_id.clone(), key_no };
        match self.provider.void(&handle).await {
            Ok(intent) => self.settle(row, &intent, "void").await.map(|()| false),
            Err(error) => self.keep_unknown(row, PaymentStep::Void, &error).await.map(|()| false),
        }
    }

    /// Looks at a payment that waits for its buyer, or that should be at rest.
    async fn look(&self, row: &payment_row::Model) -> Result<bool, BookingError> {
        if let Ok(Some(intent)) = self.find(row).await {
            self.settle(row, &intent, "lookup").await.map(|()| true)
        } else {
            payment::postpone(&self.db, row.id).await?;
            Ok(false)
        }
    }

    /// Looks at a payment because someone said that something happened to it. Reads, settles, sends nothing.
    pub(super) async fn look_at(&self, payment: PaymentId, reporter: Reporter<'_>) -> Result<bool, BookingError> {
        let row = payment_row::Entity::find_by_id(payment).one(self.db.pool()).await?;
        let row = row.ok_or_else(|| DbErr::RecordNotFound(format!("payment {payment}")))?;
        match self.find(&row).await {
            Ok(Some(intent)) => {
                self.settle(&row, &intent, reporter).await?;
                self.wake.wake();
                Ok(true)
            }
            Ok(None) | Err(_) => Ok(false),
        }
    }

    /// The provider's object: by its id, or else by the list over its time of creation, matched by our id.
    async fn find(&self, row: &payment_row::Model) -> Result<Option<Intent>, CallError> {
        if let Some(id) = &row.provider_id {
            self.provider.retrieve(id).await.map(Some)
        } else {
            let from = row.first_sent_at.unwrap_or(row.created_at) - Duration::minutes(5);
            self.provider.find(&row.operation_id, (from, from + CREATED_WITHIN)).await
        }
    }

    async fn settle<'a>(
        &self,
        row: &payment_row::Model,
        intent: &Intent,
        reporter: impl Into<Reporter<'a>>,
    ) -> Result<(), BookingError> {
        let reporter = reporter.into();
        if intent.standing == payment::Standing::Processing && reporter.webhook.is_none() {
            // Nothing to settle, so nothing is locked: many may be open for long.
            return Ok(payment::still_at_it(&self.db, row.id, &intent.provider_id).await?);
        }
        let Settled { booking, deltas } = repeating(|| settle(&self.db, row.id, intent, reporter)).await?;
        chaos::point(if reporter.cause == "capture" { "after_confirm" } else { "after_settle" });
        self.inventory.publish(deltas);
        self.announce(booking);
        Ok(())
    }

    /// Writes down that a call is about to be made; returns which key to use.
    async fn count_call(&self, id: PaymentId) -> Result<i16, BookingError> {
        let tx = self.db.begin("payment_call").await?;
        let key_no = payment::about_to_call(&tx, id).await?;
        tx.commit().await?;
        Ok(key_no)
    }

    /// The outcome is not known: nothing moves, it is asked again with growing pauses.
    async fn keep_unknown(
        &self,
        row: &payment_row::Model,
        unknown: PaymentStep,
        error: &CallError,
    ) -> Result<(), BookingError> {
        tracing::warn!(payment.id = %row.id, step = unknown.as_str(), %error, "the outcome of a payment step is not known yet");
        metrics::counter!("parterre_payments_unknown_total").increment(1);
        repeating(|| async {
            let tx = self.db.begin("payment_unknown").await?;
            let locked =
                payment::lock(&tx, row.id).await?.ok_or_else(|| DbErr::RecordNotFound("payment".to_owned()))?;
            // Somebody else learned more meanwhile.
            let as_we_left_it = locked.status == row.status
                || (row.status == PaymentState::Created && locked.status == PaymentState::Authorizing);
            if payment::next(locked.status, PaymentEvent::Lose).is_err() || !as_we_left_it {
                return tx.rollback().await.map_err(BookingError::from);
            }
            let changes = PaymentChanges {
                unknown_step: Some(unknown),
                check_in_seconds: Some(pause_seconds(locked.attempts)),
                next_key: matches!(error, CallError::Stored(_)),
                ..PaymentChanges::default()
            };
            move_row(&tx, &locked, PaymentEvent::Lose, (changes, "no_answer")).await?;
            tx.commit().await.map_err(BookingError::from)
        })
        .await?;
        self.announce(row.booking_id);
        Ok(())
    }

    /// Starts driving everything that is due. Returns how much was started.
    pub async fn drive_due(&self) -> Result<usize, BookingError> {
        Ok(self.drive_known().await? + self.look_for_unknown(64).await?)
    }

    /// Starts driving so many payments whose outcome is not known. Returns how much was started: nothing while the
    /// provider is down.
    pub async fn look_for_unknown(&self, at_most: i64) -> Result<usize, BookingError> {
        if !self.provider.is_up() {
            return Ok(0);
        }
        let payments = payment::due(&self.db, true, at_most).await?;
        let count = payments.len();
        for payment in payments {
            self.start(move |bookings| async move { bookings.drive(payment).await }).await;
        }
        Ok(count)
    }

    /// Starts driving payments and refunds that are due and whose state is known, as much of it as there is room for.
    /// Returns how much was started: nothing while the provider is down.
    pub async fn drive_known(&self) -> Result<usize, BookingError> {
        if !self.provider.is_up() {
            return Ok(0);
        }
        let payments = payment::due(&self.db, false, 64).await?;
        let due_refunds = payment::due_refunds(&self.db, 64).await?;
        let count = payments.len() + due_refunds.len();
        for payment in payments {
            self.start(move |bookings| async move { bookings.drive(payment).await }).await;
        }
        for refund in due_refunds {
            self.start(move |bookings| async move { refunds::drive(&bookings, refund).await }).await;
        }
        Ok(count)
    }

    /// Runs a drive beside others; one slow call of the provider does not keep the rest waiting.
    async fn start<F>(&self, drive: impl FnOnce(Self) -> F)
    where
        F: Future<Output = Result<(), BookingError>> + Send + 'static,
    {
        let Ok(room) = Arc::clone(&self.room).acquire_owned().await else { return };
        let (driving, provider) = (drive(self.clone()), Arc::clone(&self.provider));
        self.tasks.spawn(async move {
            // It may have gone down while this one waited for room.
            if !provider.is_up() {
                return;
            }
            if let Err(error) = driving.await {
                tracing::warn!(%error, "a payment or refund could not be moved on, it is tried again later");
            }
            drop(room);
        });
    }
}

/// Ends a payment that must not be sent any more. One that may have been sent is only closed when the provider did not
/// list it twice, an hour apart; if it turns up later all the same, it is voided.
async fn close_unsent(tx: &Transaction, payment: &payment_row::Model, now: DateTime<Utc>) -> Result<(), DbErr> {
    let missed_twice = payment.missed_at.is_some_and(|missed| missed + Duration::hours(1) <= now);
    if payment.first_sent_at.is_none() || missed_twice {
        return move_row(tx, payment, PaymentEvent::Fail, (PaymentChanges::default(), "not_sent")).await;
    }
    payment::note_missed(tx, payment.id).await?;
    let changes = PaymentChanges {
        unknown_step: Some(PaymentStep::Authorize),
        check_in_seconds: Some(pause_seconds(payment.attempts).max(5.0)),
        ..PaymentChanges::default()
    };
    move_row(tx, payment, PaymentEvent::Lose, (changes, "not_listed")).await
}

/// 0.5, 1, 2 … seconds, five minutes at the most.
pub(super) fn pause_seconds(attempts: i32) -> f64 {
    (0.5 * 2_f64.powi(attempts.clamp(0, 12) - 1)).clamp(0.5, 300.0)
}

/// Whether amount and currency are those of the booking: else a person decides, and nothing is collected.
fn is_as_asked(row: &payment_row::Model, intent: &Intent) -> bool {
    intent.amount_minor == row.amount_minor && intent.currency == row.currency
}

fn not_listed() -> CallError {
    CallError::Unknown("the provider does not list it".to_owned())
}

/// A decline as the object it leaves behind.
fn uncollected(row: &payment_row::Model, provider_id: Option<String>, code: String) -> Intent {
    Intent {
        provider_id: provider_id.or_else(|| row.provider_id.clone()).unwrap_or_default(),
        operation_id: Some(row.operation_id.clone()),
        standing: payment::Standing::Declined,
        amount_minor: row.amount_minor,
        currency: row.currency.clone(),
        decline_code: Some(code),
        next_action: None,
        capture_before: None,
    }
}
