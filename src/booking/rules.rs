//! What becomes of a booking, and what a fact about its money means. Pure: time is an argument.

use crate::payment::{Intent, Standing};
use chrono::{DateTime, Utc};
use parterre_entity::{BookingFailure, BookingState, HoldState, PaymentState, RefundReason, TicketState};

/// What may happen to a booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookingEvent {
    /// It is paid and has its seats.
    Confirm,
    /// Nothing was paid.
    Fail,
    /// Money came in, and the seats are gone.
    LoseSeats,
    /// It is being undone.
    StartCancel,
    /// Its seats are released.
    FinishCancel,
    /// The provider says that the money is back.
    Refund,
    /// A refund that looked done was not.
    RefundFails,
}

/// A step that a booking in this state can't take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a booking that is {from} can't {event:?}")]
pub struct InvalidTransition {
    /// Where it stands.
    pub from: BookingState,
    /// What was to happen.
    pub event: BookingEvent,
}

/// The booking's state machine, every pair spelled out.
pub const fn next(from: BookingState, event: BookingEvent) -> Result<BookingState, InvalidTransition> {
    use BookingEvent as E;
    use BookingState as S;
    match (from, event) {
        (S::PaymentPending | S::Failed, E::Confirm) => Ok(S::Confirmed),
        (S::PaymentPending, E::Fail) => Ok(S::Failed),
        (S::PaymentPending | S::Failed, E::LoseSeats) | (S::Refunded, E::RefundFails) => Ok(S::RefundRequired),
        (S::Confirmed, E::StartCancel) => Ok(S::Cancelling),
        (S::Cancelling, E::FinishCancel) => Ok(S::Cancelled),
        (S::Cancelled | S::RefundRequired, E::Refund) => Ok(S::Refunded),
        (S::Confirmed | S::Cancelling | S::Cancelled | S::RefundRequired | S::Refunded, E::Confirm | E::LoseSeats)
        | (S::Confirmed | S::Failed | S::Cancelling | S::Cancelled | S::RefundRequired | S::Refunded, E::Fail)
        | (
            S::PaymentPending | S::Failed | S::Cancelling | S::Cancelled | S::RefundRequired | S::Refunded,
            E::StartCancel,
        )
        | (
            S::PaymentPending | S::Confirmed | S::Failed | S::Cancelled | S::RefundRequired | S::Refunded,
            E::FinishCancel,
        )
        | (S::PaymentPending | S::Confirmed | S::Failed | S::Cancelling | S::Refunded, E::Refund)
        | (
            S::PaymentPending | S::Confirmed | S::Failed | S::Cancelling | S::Cancelled | S::RefundRequired,
            E::RefundFails,
        ) => Err(InvalidTransition { from, event }),
    }
}

/// What may happen to a ticket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TicketEvent {
    /// Its booking is cancelled.
    Revoke,
}

/// The ticket's state machine: revoked is final, and revoking twice is revoking once.
#[must_use]
pub const fn next_ticket(from: TicketState, event: TicketEvent) -> TicketState {
    match (from, event) {
        (TicketState::Issued | TicketState::Revoked, TicketEvent::Revoke) => TicketState::Revoked,
    }
}

/// Everything a settlement rests on, all of it locked.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// Where the hold stands by its row.
    pub hold: HoldState,
    /// The hold's deadline.
    pub deadline: DateTime<Utc>,
    /// Where the booking stands.
    pub booking: BookingState,
    /// Where its payment stands.
    pub payment: PaymentState,
    /// Whether the event is called off.
    pub event_cancelled: bool,
    /// Whether a person decided that whatever money moved goes back.
    pub give_back: bool,
    /// Whether another booking of the hold is unresolved, confirmed or cancelled.
    pub other_booking: bool,
    /// What the booking costs, in minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    pub currency: &'a str,
}

/// What a fact about a payment means for its booking.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// Nothing new.
    Nothing,
    /// The provider is still at it.
    Wait,
    /// The buyer has to act.
    AskBuyer,
    /// Take the seats over, then capture.
    Convert,
    /// The seats are taken over already: capture.
    Capture,
    /// Paid: sell the seats.
    Confirm,
    /// Paid too late: try exactly the seats of the hold, else give the money back.
    ConfirmLate,
    /// Paid, but to no purpose.
    GiveBack(RefundReason),
    /// The reservation is to be given back; the booking fails if it was waiting.
    Void(BookingFailure),
    /// Nothing is reserved any more; the booking fails if it was waiting.
    Fail(BookingFailure),
    /// Collecting failed for good: the seats that were taken over go back.
    FailCapture,
    /// Amount or currency do not match: a person decides.
    Review,
}

/// Decides what a provider's object means now.
#[must_use]
pub fn settle(view: &View<'_>, intent: &Intent, now: DateTime<Utc>) -> Settlement {
    let moved = matches!(intent.standing, Standing::Authorized | Standing::Captured);
    if view.give_back {
        return given_up(view, intent.standing, now);
    }
    if moved && (intent.amount_minor != view.amount_minor || intent.currency != view.currency) {
        return Settlement::Review;
    }
    if view.payment == PaymentState::NeedsReview {
        return Settlement::Nothing;
    }
    match intent.standing {
        Standing::Captured => captured(view),
        Standing::Authorized => match (view.booking, view.hold) {
            (BookingState::PaymentPending, HoldState::Converted) => Settlement::Capture,
            (BookingState::PaymentPending, _) => match obstacle(view, now) {
                None => Settlement::Convert,
                Some(failure) => Settlement::Void(failure),
            },
            _ => Settlement::Void(BookingFailure::Abandoned),
        },
        // An old answer: the seats were taken over since, so the buyer has acted.
        Standing::WaitsForBuyer
            if view.hold == HoldState::Converted && view.booking == BookingState::PaymentPending =>
        {
            Settlement::Nothing
        }
        Standing::WaitsForBuyer => match (view.booking, obstacle(view, now)) {
            (BookingState::PaymentPending, None) => Settlement::AskBuyer,
            (BookingState::PaymentPending, Some(BookingFailure::HoldExpired)) => {
                Settlement::Void(BookingFailure::Abandoned)
            }
            (_, Some(failure)) => Settlement::Void(failure),
            (_, None) => Settlement::Void(BookingFailure::Abandoned),
        },
        // Money that was collected is not being processed any more: an old answer.
        Standing::Processing if view.payment == PaymentState::Captured => Settlement::Nothing,
        Standing::Processing => Settlement::Wait,
        Standing::Declined | Standing::Cancelled => uncollected(view, intent.standing, now),
    }
}

/// What is left to do after a person decided to give everything back: the payment is being voided.
fn given_up(view: &View<'_>, standing: Standing, now: DateTime<Utc>) -> Settlement {
    let undecided = matches!(view.booking, BookingState::PaymentPending | BookingState::Failed);
    match standing {
        Standing::Captured if undecided => Settlement::GiveBack(RefundReason::Other),
        Standing::Captured => Settlement::Nothing,
        Standing::Authorized | Standing::WaitsForBuyer | Standing::Processing => Settlement::Wait,
        Standing::Declined | Standing::Cancelled => match uncollected(view, standing, now) {
            Settlement::Fail(_) => Settlement::Fail(BookingFailure::AmountMismatch),
            other => other,
        },
    }
}

fn captured(view: &View<'_>) -> Settlement {
    match (view.booking, view.hold) {
        (BookingState::PaymentPending, HoldState::Converted) if view.event_cancelled => {
            Settlement::GiveBack(RefundReason::EventCancelled)
        }
        (BookingState::PaymentPending, HoldState::Converted) => Settlement::Confirm,
        (BookingState::PaymentPending | BookingState::Failed, _) if view.other_booking => {
            Settlement::GiveBack(RefundReason::DuplicateCharge)
        }
        (BookingState::PaymentPending | BookingState::Failed, _) if view.event_cancelled => {
            Settlement::GiveBack(RefundReason::EventCancelled)
        }
        // Another booking had the hold's seats, and gave them up since.
        (BookingState::Failed, HoldState::Converted) => Settlement::GiveBack(RefundReason::DuplicateCharge),
        (BookingState::PaymentPending | BookingState::Failed, _) => Settlement::ConfirmLate,
        (
            BookingState::Confirmed
            | BookingState::Cancelling
            | BookingState::Cancelled
            | BookingState::RefundRequired
            | BookingState::Refunded,
            _,
        ) => Settlement::Nothing,
    }
}

fn uncollected(view: &View<'_>, standing: Standing, now: DateTime<Utc>) -> Settlement {
    match (view.booking, view.hold) {
        (BookingState::PaymentPending, HoldState::Converted) => Settlement::FailCapture,
        (BookingState::PaymentPending, _) if standing == Standing::Declined => {
            Settlement::Fail(BookingFailure::Declined)
        }
        (BookingState::PaymentPending, _) => Settlement::Fail(obstacle(view, now).unwrap_or(BookingFailure::Abandoned)),
        // The booking does not wait for it any more: only the payment's row has to learn of it.
        _ => Settlement::Fail(BookingFailure::Abandoned),
    }
}

/// Why the hold can't be taken over, if it can't.
#[must_use]
pub fn obstacle(view: &View<'_>, now: DateTime<Utc>) -> Option<BookingFailure> {
    match view.hold {
        _ if view.event_cancelled => Some(BookingFailure::EventCancelled),
        HoldState::Active if view.deadline <= now => Some(BookingFailure::HoldExpired),
        HoldState::Active => None,
        HoldState::Expired => Some(BookingFailure::HoldExpired),
        HoldState::Released | HoldState::Converted => Some(BookingFailure::HoldReleased),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_decided() {
        use BookingEvent as E;
        use BookingState as S;
        let events = [E::Confirm, E::Fail, E::LoseSeats, E::StartCancel, E::FinishCancel, E::Refund, E::RefundFails];
        let table = [
            (S::PaymentPending, [Some(S::Confirmed), Some(S::Failed), Some(S::RefundRequired), None, None, None, None]),
            (S::Confirmed, [None, None, None, Some(S::Cancelling), None, None, None]),
            (S::Failed, [Some(S::Confirmed), None, Some(S::RefundRequired), None, None, None, None]),
            (S::Cancelling, [None, None, None, None, Some(S::Cancelled), None, None]),
            (S::Cancelled, [None, None, None, None, None, Some(S::Refunded), None]),
            (S::RefundRequired, [None, None, None, None, None, Some(S::Refunded), None]),
            (S::Refunded, [None, None, None, None, None, None, Some(S::RefundRequired)]),
        ];
        assert_eq!(table.map(|(state, _)| state).as_slice(), S::ALL);
        for (state, expected) in table {
            assert_eq!(events.map(|event| next(state, event).ok()), expected, "{state}");
        }
    }

    #[test]
    fn a_ticket_is_revoked_for_good() {
        for state in TicketState::ALL {
            assert_eq!(next_ticket(*state, TicketEvent::Revoke), TicketState::Revoked);
        }
    }

    fn at(seconds: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(seconds, 0).unwrap()
    }

    fn view(hold: HoldState, booking: BookingState) -> View<'static> {
        View {
            hold,
            deadline: at(100),
            booking,
            payment: PaymentState::Authorizing,
            event_cancelled: false,
            give_back: false,
            other_booking: false,
            amount_minor: 5_000,
            currency: "EUR",
        }
    }

    fn intent(standing: Standing) -> Intent {
        Intent {
            provider_id: "pi".into(),
            operation_id: None,
            standing,
            amount_minor: 5_000,
            currency: "EUR".into(),
            decline_code: None,
            next_action: None,
            capture_before: None,
        }
    }

    #[test]
    fn an_authorization_takes_the_seats_over_only_in_time() {
        let active = view(HoldState::Active, BookingState::PaymentPending);
        let authorized = intent(Standing::Authorized);
        assert_eq!(settle(&active, &authorized, at(99)), Settlement::Convert);
        assert_eq!(settle(&active, &authorized, at(100)), Settlement::Void(BookingFailure::HoldExpired));
        let called_off = View { event_cancelled: true, ..active };
        assert_eq!(settle(&called_off, &authorized, at(1)), Settlement::Void(BookingFailure::EventCancelled));
        let released = view(HoldState::Released, BookingState::PaymentPending);
        assert_eq!(settle(&released, &authorized, at(1)), Settlement::Void(BookingFailure::HoldReleased));
        let converted = view(HoldState::Converted, BookingState::PaymentPending);
        assert_eq!(settle(&converted, &authorized, at(500)), Settlement::Capture, "the deadline no longer matters");
        let failed = view(HoldState::Expired, BookingState::Failed);
        assert_eq!(settle(&failed, &authorized, at(1)), Settlement::Void(BookingFailure::Abandoned));
    }

    #[test]
    fn what_a_person_gave_up_goes_back_whatever_it_is() {
        let wrong = |standing| Intent { amount_minor: 1, ..intent(standing) };
        let pending = View { give_back: true, ..view(HoldState::Active, BookingState::PaymentPending) };
        let converted = View { hold: HoldState::Converted, ..pending };
        assert_eq!(settle(&pending, &wrong(Standing::Captured), at(1)), Settlement::GiveBack(RefundReason::Other));
        assert_eq!(settle(&pending, &intent(Standing::Captured), at(1)), Settlement::GiveBack(RefundReason::Other));
        assert_eq!(settle(&pending, &wrong(Standing::Authorized), at(1)), Settlement::Wait, "it is being voided");
        let mismatch = Settlement::Fail(BookingFailure::AmountMismatch);
        assert_eq!(settle(&pending, &wrong(Standing::Cancelled), at(1)), mismatch);
        assert_eq!(settle(&converted, &wrong(Standing::Cancelled), at(1)), Settlement::FailCapture);
        let refunded = View { booking: BookingState::Refunded, ..pending };
        assert_eq!(settle(&refunded, &wrong(Standing::Captured), at(1)), Settlement::Nothing);
    }

    #[test]
    fn money_that_moved_is_confirmed_repaired_or_given_back_in_every_state() {
        let captured = intent(Standing::Captured);
        let decide = |view: View<'static>| settle(&view, &captured, at(500));
        assert_eq!(decide(view(HoldState::Converted, BookingState::PaymentPending)), Settlement::Confirm);
        for hold in [HoldState::Active, HoldState::Released, HoldState::Expired] {
            assert_eq!(decide(view(hold, BookingState::PaymentPending)), Settlement::ConfirmLate);
            assert_eq!(decide(view(hold, BookingState::Failed)), Settlement::ConfirmLate);
        }
        let had_another = decide(view(HoldState::Converted, BookingState::Failed));
        assert_eq!(had_another, Settlement::GiveBack(RefundReason::DuplicateCharge));
        let twice = View { other_booking: true, ..view(HoldState::Converted, BookingState::Failed) };
        assert_eq!(decide(twice), Settlement::GiveBack(RefundReason::DuplicateCharge));
        let called_off = View { event_cancelled: true, ..view(HoldState::Converted, BookingState::PaymentPending) };
        assert_eq!(decide(called_off), Settlement::GiveBack(RefundReason::EventCancelled));
        for booking in [BookingState::Confirmed, BookingState::Cancelled, BookingState::Refunded] {
            assert_eq!(decide(view(HoldState::Converted, booking)), Settlement::Nothing);
        }
        let wrong = Intent { amount_minor: 4_999, ..captured.clone() };
        assert_eq!(
            settle(&view(HoldState::Converted, BookingState::PaymentPending), &wrong, at(1)),
            Settlement::Review
        );
    }

    #[test]
    fn a_decline_leaves_the_hold_alone_and_a_failed_capture_gives_the_seats_back() {
        let declined = intent(Standing::Declined);
        let active = view(HoldState::Active, BookingState::PaymentPending);
        assert_eq!(settle(&active, &declined, at(1)), Settlement::Fail(BookingFailure::Declined));
        let converted = view(HoldState::Converted, BookingState::PaymentPending);
        assert_eq!(settle(&converted, &declined, at(1)), Settlement::FailCapture);
        assert_eq!(settle(&converted, &intent(Standing::Cancelled), at(1)), Settlement::FailCapture);
        assert_eq!(settle(&converted, &intent(Standing::Processing), at(1)), Settlement::Wait);
        let old_answer = intent(Standing::WaitsForBuyer);
        assert_eq!(settle(&converted, &old_answer, at(1)), Settlement::Nothing, "the buyer has acted since");
        assert_eq!(settle(&active, &old_answer, at(1)), Settlement::AskBuyer);
        assert_eq!(settle(&active, &old_answer, at(100)), Settlement::Void(BookingFailure::Abandoned));
    }
}
