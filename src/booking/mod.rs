//! Bookings: a hold turned into something paid, with tickets; and undone.
//!
//! Invariants: a booking owns seats from its convert on, never before; nobody is charged for a seat that someone else
//! owns, and money without seats goes back; terms and prices are those of the hold and of checkout. Who owns a seat is
//! written by the inventory, what the provider said by the payment; this room joins them in one transaction.

mod calloff;
mod cancel;
mod drive;
mod read;
mod reconcile;
mod refunds;
mod review;
mod rules;
mod settle;
mod store;
mod strays;
mod tickets;
mod timeline;
mod webhooks;

pub use cancel::refund_now;
pub use read::{Booking, Page};
pub use reconcile::{ReconcileError, Report};
pub use review::{Decided, Decision, Review, ReviewError};
pub use rules::{BookingEvent, InvalidTransition, next};
pub use store::BookingError;
pub use tickets::{Issuer, code as ticket_code, qr_svg, read_code as read_ticket_code};

use crate::bus::{Bus, Hint};
use crate::db::{Db, repeating};
use crate::inventory::Inventory;
use crate::payment::PaymentProvider;
use crate::wake::Wake;
use chrono::{DateTime, Utc};
use parterre_entity::{BookingId, BookingState, HoldId, PaymentState};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;

/// A checked checkout.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is the contract's, documented there")]
pub struct CheckoutRequest {
    pub hold: HoldId,
    pub buyer: String,
    pub key: String,
    /// Of hold and payment method.
    pub fingerprint: String,
    pub payment_method: String,
    pub return_url: Option<String>,
    pub contact_email: Option<String>,
    pub locale: Option<String>,
}

/// Why there is no booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckoutRefusal {
    /// No such hold, or another buyer's.
    HoldNotFound,
    /// The key was used for another hold or card.
    KeyReused,
    /// The deadline has passed.
    HoldExpired,
    /// Released, or taken over.
    HoldNotActive,
    /// The event is called off.
    EventCancelled,
    /// The provider can't express the amount.
    AmountNotPayable,
    /// The provider is down. The hold stays.
    ProviderDown,
}

/// A checked cancellation.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is the contract's, documented there")]
pub struct CancelRequest {
    pub booking: BookingId,
    pub buyer: String,
    pub key: String,
    /// Of the booking.
    pub fingerprint: String,
    pub expected_version: Option<i64>,
    pub reason: Option<String>,
}

/// Why a booking was not cancelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelRefusal {
    /// No such booking, or another buyer's.
    NotFound,
    /// The key was used for another booking.
    KeyReused,
    /// Changed since.
    Stale {
        /// Now.
        current: i64,
    },
    /// Its payment is not settled yet.
    NotSettled,
    /// It failed, or its money is on its way back already.
    NothingToCancel,
    /// The terms do not allow it any more.
    TooLate {
        /// They did until then.
        until: DateTime<Utc>,
    },
}

/// Bookings: made, moved on, cancelled, read.
#[derive(Clone, Debug)]
pub struct Bookings {
    db: Db,
    bus: Arc<dyn Bus>,
    inventory: Arc<Inventory>,
    provider: Arc<dyn PaymentProvider>,
    tasks: TaskTracker,
    wake: Wake,
    checkout_wait: Duration,
    /// Wakes who issues tickets.
    confirmations: Wake,
    /// Drives at once.
    room: Arc<Semaphore>,
}

/// How many payments and refunds the worker of a process drives at once.
const DRIVES_MAX: usize = 32;

/// What bookings are built from.
#[derive(Debug)]
pub struct Parts {
    /// The database.
    pub db: Db,
    /// Hints to readers.
    pub bus: Arc<dyn Bus>,
    /// Who owns seats.
    pub inventory: Arc<Inventory>,
    /// Who moves money.
    pub provider: Arc<dyn PaymentProvider>,
    /// Where tasks that must not be dropped run.
    pub tasks: TaskTracker,
    /// Wakes the payment worker.
    pub wake: Wake,
    /// How long checkout waits for an outcome.
    pub checkout_wait: Duration,
}

impl Bookings {
    /// Over its parts.
    #[must_use]
    pub fn new(parts: Parts) -> Self {
        let Parts { db, bus, inventory, provider, tasks, wake, checkout_wait } = parts;
        let room = Arc::new(Semaphore::new(DRIVES_MAX));
        Self { db, bus, inventory, provider, tasks, wake, checkout_wait, confirmations: Wake::default(), room }
    }

    /// Pays a hold. Answers after a short wait with whatever state is true then. The flag: replayed.
    pub async fn checkout(
        &self,
        request: &CheckoutRequest,
    ) -> Result<Result<(BookingId, bool), CheckoutRefusal>, BookingError> {
        let started = Instant::now();
        let provider_up = self.provider.is_up();
        let made = match repeating(|| store::checkout(&self.db, request, provider_up)).await? {
            Ok(made) => made,
            Err(refusal) => return Ok(Err(refusal)),
        };
        self.inventory.publish(made.deltas);
        if !made.replayed {
            self.announce(made.booking);
        }
        let deadline = Instant::now() + self.checkout_wait;
        if let Some(payment) = made.payment {
            let bookings = self.clone();
            let driven = self.tasks.spawn(async move {
                if let Err(error) = bookings.drive(payment).await {
                    tracing::warn!(payment.id = %payment, %error, "a payment could not be moved on, the worker will try again");
                }
            });
            // The task goes on when the wait is over.
            drop(tokio::time::timeout_at(deadline, driven).await);
        }
        self.wait_for_outcome(made.booking, deadline).await?;
        metrics::histogram!("parterre_checkout_seconds").record(started.elapsed());
        Ok(Ok((made.booking, made.replayed)))
    }

    async fn wait_for_outcome(&self, id: BookingId, deadline: Instant) -> Result<(), BookingError> {
        loop {
            let booking = self.read(id).await?;
            let open = booking.as_ref().is_some_and(|booking| {
                let asks_buyer =
                    booking.payment.as_ref().is_some_and(|payment| payment.status == PaymentState::RequiresAction);
                booking.row.status == BookingState::PaymentPending && !asks_buyer
            });
            if !open || Instant::now() >= deadline {
                return Ok(());
            }
            let pause = Duration::from_millis(50).min(deadline.saturating_duration_since(Instant::now()));
            tokio::time::sleep(pause).await;
        }
    }

    /// Cancels a booking under its terms. The flag: replayed.
    pub async fn cancel(
        &self,
        request: &CancelRequest,
    ) -> Result<Result<(BookingId, bool), CancelRefusal>, BookingError> {
        match repeating(|| cancel::cancel(&self.db, request)).await? {
            Ok(done) => {
                self.inventory.publish(done.deltas);
                self.announce(done.booking);
                self.wake.wake();
                Ok(Ok((done.booking, done.replayed)))
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    /// Tells those who watch a booking that something of it changed.
    fn announce(&self, booking: BookingId) {
        self.confirmations.wake();
        self.bus.send(Hint::Booking(booking));
    }

    /// Changes whenever a booking may have been confirmed: wakes who issues tickets.
    #[must_use]
    pub const fn confirmations(&self) -> &Wake {
        &self.confirmations
    }

    /// Wakes whoever drives payments and refunds.
    #[must_use]
    pub const fn waker(&self) -> &Wake {
        &self.wake
    }
}
