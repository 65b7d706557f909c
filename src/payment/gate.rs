//! What stands before every call of the provider: its turn under the account's rate, and a breaker that stops calling a
//! provider that is down.

use failsafe::backoff::{Exponential, exponential};
use failsafe::failure_policy::{ConsecutiveFailures, consecutive_failures};
use failsafe::{Instrument, StateMachine};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// Calls in a row without a usable answer, after which the provider counts as down.
const FAILURES_MAX: u32 = 5;
/// How long it is left alone then, doubled each time it is still down.
const REST_MIN: Duration = Duration::from_secs(1);
const REST_MAX: Duration = Duration::from_secs(20);

type Breaker = StateMachine<ConsecutiveFailures<Exponential>, Log>;

/// What a call does. Each kind has its own breaker: a provider that can be read and takes no money is down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Looks.
    Read,
    /// Moves money.
    Write,
}

/// One for all calls of a process.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    read_breaker: Breaker,
    write_breaker: Breaker,
    reads: Arc<DefaultDirectRateLimiter>,
    writes: Arc<DefaultDirectRateLimiter>,
}

impl Gate {
    /// The provider counts reads and writes apart, each up to so many a second.
    pub(super) fn new(calls_per_second: NonZeroU32) -> Self {
        let limiter = || Arc::new(RateLimiter::direct(Quota::per_second(calls_per_second)));
        let breaker = || StateMachine::new(consecutive_failures(FAILURES_MAX, exponential(REST_MIN, REST_MAX)), Log);
        Self { read_breaker: breaker(), write_breaker: breaker(), reads: limiter(), writes: limiter() }
    }

    /// Whether the provider answers, as far as we know. After a rest, calls are let through to find out.
    pub(super) fn is_open(&self) -> bool {
        self.read_breaker.is_call_permitted() && self.write_breaker.is_call_permitted()
    }

    /// Waits for one's turn to read.
    pub(super) async fn read_turn(&self) {
        self.reads.until_ready().await;
    }

    /// Waits for one's turn to write.
    pub(super) async fn write_turn(&self) {
        self.writes.until_ready().await;
    }

    /// Counts how a call ended: whether the provider answered at all, whatever it said.
    pub(super) fn note(&self, kind: Kind, answered: bool) {
        let breaker = match kind {
            Kind::Read => &self.read_breaker,
            Kind::Write => &self.write_breaker,
        };
        if answered {
            breaker.on_success();
        } else {
            breaker.on_error();
        }
    }
}

/// Tells people when the breaker moves.
#[derive(Clone, Copy, Debug)]
struct Log;

impl Instrument for Log {
    fn on_call_rejected(&self) {}

    fn on_open(&self) {
        metrics::gauge!("parterre_payment_provider_up").set(0.0);
        tracing::error!("the payment provider does not answer, checkouts are refused until it does");
    }

    fn on_half_open(&self) {
        tracing::info!("trying the payment provider again");
    }

    fn on_closed(&self) {
        metrics::gauge!("parterre_payment_provider_up").set(1.0);
        tracing::info!("the payment provider answers");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_of_failures_closes_the_gate_and_one_answer_of_the_same_kind_in_between_does_not() {
        let gate = Gate::new(NonZeroU32::MIN);
        for _ in 1..FAILURES_MAX {
            gate.note(Kind::Write, false);
        }
        gate.note(Kind::Write, true);
        for _ in 1..FAILURES_MAX {
            gate.note(Kind::Write, false);
            gate.note(Kind::Read, true);
            assert!(gate.is_open());
        }
        gate.note(Kind::Write, false);
        assert!(!gate.is_open());
    }
}
