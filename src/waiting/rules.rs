//! How fast people are let in, and what those who wait are told. Pure: time is an argument.

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

/// How long a token lasts unless it is renewed, and so how long a slot stays taken by somebody who went away.
pub const TOKEN_LIFE: Duration = Duration::from_secs(90);

/// How soon somebody who was let in must ask: longer than anybody in line rests between two polls. No token is out
/// before, so the slot of one who went away is free the sooner.
pub const CLAIMED_WITHIN: Duration = Duration::from_secs(40);

/// A hold that took longer than this was slow.
const SLOW: Duration = Duration::from_millis(500);
/// More than one in so many slow: the 95th percentile is over the bound.
const SLOW_ONE_IN: u64 = 20;
/// Fewer holds say nothing about a percentile.
const HOLDS_MIN: u64 = 20;
/// Fewer distinct seats say nothing about the map: a few hot ones are healthy.
const SEATS_MIN: usize = 20;
/// How far back slowness counts, in seconds.
const SLOW_WINDOW: u64 = 5;
/// How far back conflicts count, in seconds.
const CONFLICT_WINDOW: u64 = 10;

#[derive(Debug, Default)]
struct Second {
    number: u64,
    holds: u64,
    slow: u64,
    asked: HashSet<i32>,
    conflicts: HashSet<i32>,
}

/// How the last seconds of an event's holds went.
#[derive(Debug, Default)]
pub struct Pulse {
    seconds: VecDeque<Second>,
}

impl Pulse {
    /// Takes note of a hold request: how long it took, which seats it named, and which of them were in the way.
    pub fn note(&mut self, now: Duration, took: Duration, asked: &[i32], conflicts: &[i32]) {
        let number = now.as_secs();
        while self.seconds.front().is_some_and(|second| second.number + CONFLICT_WINDOW <= number) {
            self.seconds.pop_front();
        }
        if self.seconds.back().is_none_or(|second| second.number < number) {
            self.seconds.push_back(Second { number, ..Second::default() });
        }
        let Some(second) = self.seconds.back_mut() else { return };
        second.holds += 1;
        second.slow += u64::from(took > SLOW);
        second.asked.extend(asked);
        second.conflicts.extend(conflicts);
    }

    /// Whether holds are slow, or conflicts are all over the map.
    #[must_use]
    pub fn in_trouble(&self, now: Duration) -> bool {
        let last = |window: u64| self.seconds.iter().filter(move |second| second.number + window > now.as_secs());
        let (holds, slow) =
            last(SLOW_WINDOW).fold((0, 0), |(holds, slow), second| (holds + second.holds, slow + second.slow));
        if holds >= HOLDS_MIN && slow * SLOW_ONE_IN > holds {
            return true;
        }
        let asked: HashSet<i32> = last(CONFLICT_WINDOW).flat_map(|second| &second.asked).copied().collect();
        let conflicts: HashSet<i32> = last(CONFLICT_WINDOW).flat_map(|second| &second.conflicts).copied().collect();
        asked.len() >= SEATS_MIN && conflicts.len() * 2 > asked.len()
    }
}

/// How long trouble lasts before the rate is halved once more.
const HALVE_EVERY: Duration = Duration::from_secs(5);
/// How long the way back to the full rate takes at the most. Trouble is remembered for up to ten seconds before that.
const RECOVER_WITHIN: Duration = Duration::from_secs(18);
/// The least factor. Whoever applies it keeps a floor of its own.
const FACTOR_MIN: f64 = 1.0 / 64.0;

/// How much of the full rate is allowed.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    factor: f64,
    halved: Option<Duration>,
    stepped: Option<Duration>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { factor: 1.0, halved: None, stepped: None }
    }
}

impl Pace {
    /// Moves on: halves at the first sign of trouble and then every five seconds, else recovers steadily.
    pub fn step(&mut self, now: Duration, trouble: bool) -> f64 {
        let since = |then: Option<Duration>| then.map(|then| now.saturating_sub(then));
        if trouble {
            if since(self.halved).is_none_or(|since| since >= HALVE_EVERY) {
                self.factor = (self.factor / 2.0).max(FACTOR_MIN);
                self.halved = Some(now);
            }
        } else {
            let elapsed = since(self.stepped).unwrap_or_default();
            self.factor = (self.factor + elapsed.as_secs_f64() / RECOVER_WITHIN.as_secs_f64()).min(1.0);
        }
        self.stepped = Some(now);
        self.factor
    }
}

/// What an organizer and the inventory allow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// People a minute at the full rate.
    pub per_minute: u32,
    /// People who may be inside at once at the full rate: none when nothing is left.
    pub slots: u32,
    /// How much of both, 0 to 1.
    pub factor: f64,
}

impl Allowance {
    /// Microseconds between two admissions: never under one a second, or under the full rate if that is less.
    #[must_use]
    pub fn micros_each(&self) -> f64 {
        let full = f64::from(self.per_minute.max(1));
        60_000_000.0 / (full * self.factor).max(full.min(60.0))
    }

    /// How many may come at once after a rest: a second's worth.
    #[must_use]
    pub fn burst(&self) -> f64 {
        (1_000_000.0 / self.micros_each()).floor().max(1.0)
    }

    /// How many may be inside: at least one while anything is left.
    #[must_use]
    pub fn inside_max(&self) -> u32 {
        if self.slots == 0 {
            return 0;
        }
        let shrunk = (f64::from(self.slots) * self.factor).floor();
        format!("{shrunk:.0}").parse().unwrap_or(self.slots).max(1)
    }
}

/// Slots of an event with so much left: held and payment-pending count as left, they may come back.
#[must_use]
pub fn slots(per_remaining: f64, remaining: i64) -> u32 {
    let slots = per_remaining * f64::from(i32::try_from(remaining.max(0)).unwrap_or(i32::MAX));
    format!("{:.0}", slots.ceil()).parse().unwrap_or(u32::MAX)
}

/// How long one with so many ahead waits, if that can be said: nobody was let in of late, nobody knows.
#[must_use]
pub fn estimate(ahead: u64, opens_in: Duration, per_second: Option<f64>) -> Option<Duration> {
    let per_second = per_second.filter(|rate| *rate > 0.0)?;
    let ahead = f64::from(u32::try_from(ahead).unwrap_or(u32::MAX)) + 1.0;
    Duration::try_from_secs_f64(ahead / per_second).ok().and_then(|wait| opens_in.checked_add(wait))
}

/// When one who waits should ask again: often near the front, seldom far behind, never all at once.
#[must_use]
pub fn poll_after(ahead: u64, opens_in: Duration, chance: f64) -> Duration {
    let near = Duration::from_millis(ahead.saturating_mul(5)).clamp(Duration::from_secs(2), Duration::from_secs(15));
    let wait = near.max(opens_in.min(Duration::from_secs(15)));
    wait.mul_f64(1.0 + 0.25 * chance.clamp(0.0, 1.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    const QUICK: Duration = Duration::from_millis(5);

    #[test]
    fn one_hot_seat_is_healthy_and_conflicts_all_over_the_map_are_not() {
        let mut pulse = Pulse::default();
        for _ in 0..5_000 {
            pulse.note(at(100), QUICK, &[1], &[1]);
        }
        assert!(!pulse.in_trouble(at(100)));
        for seat in 0..40 {
            pulse.note(at(101), QUICK, &[seat], if seat % 4 == 0 { &[] } else { std::slice::from_ref(&seat) });
        }
        assert!(pulse.in_trouble(at(101)));
        assert!(pulse.in_trouble(at(110)));
        assert!(!pulse.in_trouble(at(111)), "ten seconds later it is forgotten");
    }

    #[test]
    fn half_of_the_seats_in_conflict_is_not_over_half() {
        let mut pulse = Pulse::default();
        for seat in 0..40 {
            pulse.note(at(5), QUICK, &[seat], if seat % 2 == 0 { &[] } else { std::slice::from_ref(&seat) });
        }
        assert!(!pulse.in_trouble(at(5)));
    }

    #[test]
    fn slow_holds_are_trouble_from_over_one_in_twenty_for_five_seconds() {
        let mut pulse = Pulse::default();
        for n in 0..100 {
            pulse.note(at(7), Duration::from_millis(if n < 5 { 600 } else { 5 }), &[], &[]);
        }
        assert!(!pulse.in_trouble(at(7)));
        pulse.note(at(7), Duration::from_millis(600), &[], &[]);
        assert!(pulse.in_trouble(at(7)));
        assert!(!pulse.in_trouble(at(12)));
    }

    #[test]
    fn the_rate_halves_at_once_and_every_five_seconds_and_recovers_within_thirty() {
        let (mut pace, mut now) = (Pace::default(), at(1_000));
        let tick = Duration::from_millis(100);
        assert!((pace.step(now, false) - 1.0).abs() < f64::EPSILON);
        let mut after = Vec::new();
        for n in 0..101 {
            let factor = pace.step(now, true);
            if n % 50 == 0 {
                after.push(factor);
            }
            now += tick;
        }
        assert_eq!(after, [0.5, 0.25, 0.125]);
        for _ in 0..1_000 {
            pace.step(now, true);
            now += tick;
        }
        assert!((pace.factor - FACTOR_MIN).abs() < f64::EPSILON, "it has a floor");
        let healthy_since = now;
        // The worst case: conflicts are remembered for their whole window.
        while now < healthy_since + at(CONFLICT_WINDOW) {
            pace.step(now, true);
            now += tick;
        }
        while pace.step(now, false) < 1.0 {
            now += tick;
        }
        assert!(now <= healthy_since + at(30), "{now:?} after {healthy_since:?}");
    }

    #[test]
    fn somebody_is_let_in_as_long_as_anything_is_left() {
        let least = |per_minute, slots| Allowance { per_minute, slots, factor: FACTOR_MIN };
        assert!((least(30_000, 9).micros_each() - 128_000.0).abs() < 1.0, "a 64th of 500 a second");
        assert!((least(120, 9).micros_each() - 1_000_000.0).abs() < 1.0, "one a second");
        assert!((least(6, 9).micros_each() - 10_000_000.0).abs() < 1.0, "six a minute, as the organizer said");
        assert_eq!(least(6, 9).inside_max(), 1);
        assert_eq!(least(6, 0).inside_max(), 0);
        assert_eq!(Allowance { per_minute: 60, slots: 9, factor: 0.5 }.inside_max(), 4);
    }

    #[test]
    fn slots_are_of_what_is_left_and_at_least_one_of_something() {
        assert_eq!(slots(1.5, 3), 5);
        assert_eq!(slots(0.01, 1), 1);
        assert_eq!(slots(1.5, 0), 0);
        assert_eq!(slots(1_000.0, i64::MAX), u32::MAX);
    }

    #[test]
    fn an_estimate_is_only_given_where_there_is_one() {
        assert_eq!(estimate(9, at(5), Some(2.0)), Some(at(10)));
        assert_eq!(estimate(9, at(5), Some(0.0)), None);
        assert_eq!(estimate(9, at(5), None), None);
    }
}
