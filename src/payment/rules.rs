//! The state machines of a payment and of a refund, every pair spelled out, and the arithmetic of refunds. Pure.

use parterre_entity::{PaymentState, RefundState};

/// What may happen to a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PaymentEvent {
    /// It is sent, or sent again under the same operation id.
    Send,
    /// The buyer has to do something.
    AskBuyer,
    /// Money is reserved.
    Authorize,
    /// The provider declined.
    Decline,
    /// Collecting begins, the seats being protected.
    Capture,
    /// Money is collected.
    Collect,
    /// It ends without money having moved.
    Fail,
    /// The reservation is to be given back.
    Void,
    /// The reservation is given back.
    Voided,
    /// The answer is not known.
    Lose,
    /// Amount or currency do not match.
    Review,
    /// A person wants it looked at again.
    Reconsider,
}

/// A step that a payment or refund in this state can't take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{from} can't {event}")]
pub struct InvalidTransition {
    /// Where it stands.
    pub from: &'static str,
    /// What was to happen.
    pub event: &'static str,
}

impl PaymentEvent {
    const fn name(self) -> &'static str {
        match self {
            Self::Send => "be sent",
            Self::AskBuyer => "ask the buyer",
            Self::Authorize => "be authorized",
            Self::Decline => "be declined",
            Self::Capture => "be captured",
            Self::Collect => "be collected",
            Self::Fail => "fail",
            Self::Void => "be voided",
            Self::Voided => "have been voided",
            Self::Lose => "be lost",
            Self::Review => "be reviewed",
            Self::Reconsider => "be reconsidered",
        }
    }
}

/// The payment's state machine. `Collect` is accepted in every state: money that moved is a fact.
#[expect(clippy::too_many_lines, reason = "every pair is spelled out")]
pub const fn next(from: PaymentState, event: PaymentEvent) -> Result<PaymentState, InvalidTransition> {
    use PaymentEvent as E;
    use PaymentState as S;
    match (from, event) {
        (_, E::Collect) => Ok(S::Captured),
        (S::Created | S::Authorizing, E::Send) => Ok(S::Authorizing),
        (S::Unknown, E::Send) => Ok(S::Unknown),
        (S::Authorizing | S::RequiresAction | S::Unknown, E::AskBuyer) => Ok(S::RequiresAction),
        (S::Authorizing | S::RequiresAction | S::Unknown, E::Authorize) => Ok(S::Authorized),
        (S::Authorizing | S::RequiresAction | S::Unknown, E::Decline) => Ok(S::Declined),
        (S::Authorized | S::Capturing | S::Unknown, E::Capture) => Ok(S::Capturing),
        (S::Created | S::Authorizing | S::RequiresAction | S::Capturing | S::Unknown | S::NeedsReview, E::Fail) => {
            Ok(S::Failed)
        }
        (
            S::Authorizing
            | S::RequiresAction
            | S::Authorized
            | S::Voiding
            | S::Voided
            | S::Declined
            | S::Failed
            | S::Unknown
            | S::NeedsReview,
            E::Void,
        ) => Ok(S::Voiding),
        (S::Voiding | S::Voided | S::Unknown | S::RequiresAction | S::Authorizing, E::Voided) => Ok(S::Voided),
        (S::Authorizing | S::RequiresAction | S::Capturing | S::Voiding | S::Unknown, E::Lose)
        | (S::NeedsReview, E::Reconsider) => Ok(S::Unknown),
        (
            S::Authorizing
            | S::RequiresAction
            | S::Authorized
            | S::Capturing
            | S::Captured
            | S::Declined
            | S::Failed
            | S::Voiding
            | S::Voided
            | S::Unknown
            | S::NeedsReview,
            E::Review,
        ) => Ok(S::NeedsReview),
        (
            S::RequiresAction
            | S::Authorized
            | S::Capturing
            | S::Captured
            | S::Declined
            | S::Failed
            | S::Voiding
            | S::Voided
            | S::NeedsReview,
            E::Send,
        )
        | (
            S::Created
            | S::Authorized
            | S::Capturing
            | S::Captured
            | S::Declined
            | S::Failed
            | S::Voiding
            | S::Voided
            | S::NeedsReview,
            E::AskBuyer | E::Authorize | E::Decline,
        )
        | (
            S::Created
            | S::Authorizing
            | S::RequiresAction
            | S::Captured
            | S::Declined
            | S::Failed
            | S::Voiding
            | S::Voided
            | S::NeedsReview,
            E::Capture,
        )
        | (S::Authorized | S::Captured | S::Declined | S::Failed | S::Voiding | S::Voided, E::Fail)
        | (S::Created | S::Capturing | S::Captured, E::Void)
        | (
            S::Created | S::Authorized | S::Capturing | S::Captured | S::Declined | S::Failed | S::NeedsReview,
            E::Voided,
        )
        | (S::Created | S::Authorized | S::Captured | S::Declined | S::Failed | S::Voided | S::NeedsReview, E::Lose)
        | (S::Created, E::Review)
        | (
            S::Created
            | S::Authorizing
            | S::RequiresAction
            | S::Authorized
            | S::Capturing
            | S::Captured
            | S::Declined
            | S::Failed
            | S::Voiding
            | S::Voided
            | S::Unknown,
            E::Reconsider,
        ) => Err(InvalidTransition { from: from.as_str(), event: event.name() }),
    }
}

/// What may happen to a refund.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundEvent {
    /// It is sent, or sent again under the same operation id.
    Send,
    /// The provider says the money is back.
    Succeed,
    /// The provider could not, perhaps after it looked done.
    Fail,
}

/// The refund's state machine. A failed refund is final: another one follows it.
pub const fn next_refund(from: RefundState, event: RefundEvent) -> Result<RefundState, InvalidTransition> {
    use RefundEvent as E;
    use RefundState as S;
    match (from, event) {
        (S::Requested | S::Pending, E::Send) => Ok(S::Pending),
        (S::Requested | S::Pending | S::Succeeded, E::Succeed) => Ok(S::Succeeded),
        (S::Requested | S::Pending | S::Succeeded | S::Failed, E::Fail) => Ok(S::Failed),
        (S::Succeeded | S::Failed, E::Send) | (S::Failed, E::Succeed) => Err(InvalidTransition {
            from: from.as_str(),
            event: match event {
                E::Send => "be sent",
                E::Succeed => "succeed",
                E::Fail => "fail",
            },
        }),
    }
}

/// A share of an amount in millionths, rounded half to even in minor units.
#[must_use]
pub fn share(amount_minor: i64, ppm: i32) -> i64 {
    let product = i128::from(amount_minor) * i128::from(ppm);
    let (whole, rest) = (product.div_euclid(1_000_000), product.rem_euclid(1_000_000));
    let up = match rest.cmp(&500_000) {
        std::cmp::Ordering::Less => 0,
        std::cmp::Ordering::Greater => 1,
        std::cmp::Ordering::Equal => whole & 1,
    };
    i64::try_from(whole + up).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::many_single_char_names, reason = "a table is read by its columns")]
    fn every_pair_of_a_payment_is_decided() {
        use PaymentEvent as E;
        use PaymentState as S;
        let events = [
            E::Send,
            E::AskBuyer,
            E::Authorize,
            E::Decline,
            E::Capture,
            E::Fail,
            E::Void,
            E::Voided,
            E::Lose,
            E::Review,
            E::Reconsider,
        ];
        let table: [(S, [Option<S>; 11]); 12] = {
            let (r, a, d, c, f, v, vd, u, n) = (
                Some(S::RequiresAction),
                Some(S::Authorized),
                Some(S::Declined),
                Some(S::Capturing),
                Some(S::Failed),
                Some(S::Voiding),
                Some(S::Voided),
                Some(S::Unknown),
                Some(S::NeedsReview),
            );
            let s = Some(S::Authorizing);
            [
                (S::Created, [s, None, None, None, None, f, None, None, None, None, None]),
                (S::Authorizing, [s, r, a, d, None, f, v, vd, u, n, None]),
                (S::RequiresAction, [None, r, a, d, None, f, v, vd, u, n, None]),
                (S::Authorized, [None, None, None, None, c, None, v, None, None, n, None]),
                (S::Capturing, [None, None, None, None, c, f, None, None, u, n, None]),
                (S::Captured, [None, None, None, None, None, None, None, None, None, n, None]),
                (S::Declined, [None, None, None, None, None, None, v, None, None, n, None]),
                (S::Failed, [None, None, None, None, None, None, v, None, None, n, None]),
                (S::Voiding, [None, None, None, None, None, None, v, vd, u, n, None]),
                (S::Voided, [None, None, None, None, None, None, v, vd, None, n, None]),
                (S::Unknown, [u, r, a, d, c, f, v, vd, u, n, None]),
                (S::NeedsReview, [None, None, None, None, None, f, v, None, None, n, u]),
            ]
        };
        assert_eq!(table.map(|(state, _)| state).as_slice(), S::ALL);
        for (state, expected) in table {
            assert_eq!(events.map(|event| next(state, event).ok()), expected, "{state}");
            assert_eq!(next(state, E::Collect), Ok(S::Captured), "money that moved is a fact, {state}");
        }
    }

    #[test]
    fn every_pair_of_a_refund_is_decided() {
        use RefundState as S;
        let events = [RefundEvent::Send, RefundEvent::Succeed, RefundEvent::Fail];
        let table = [
            (S::Requested, [Some(S::Pending), Some(S::Succeeded), Some(S::Failed)]),
            (S::Pending, [Some(S::Pending), Some(S::Succeeded), Some(S::Failed)]),
            (S::Succeeded, [None, Some(S::Succeeded), Some(S::Failed)]),
            (S::Failed, [None, None, Some(S::Failed)]),
        ];
        assert_eq!(table.map(|(state, _)| state).as_slice(), S::ALL);
        for (state, expected) in table {
            assert_eq!(events.map(|event| next_refund(state, event).ok()), expected, "{state}");
        }
    }

    #[test]
    fn shares_are_rounded_half_to_even() {
        assert_eq!(share(10_000, 333_000), 3_330);
        assert_eq!(share(1, 500_000), 0);
        assert_eq!(share(3, 500_000), 2);
        assert_eq!(share(5, 500_000), 2);
        assert_eq!(share(1, 500_001), 1);
        assert_eq!(share(i64::MAX, 1_000_000), i64::MAX);
        assert_eq!(share(999, 0), 0);
    }
}
