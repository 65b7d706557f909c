//! How often one may ask: a bucket for each peer address, account, event and hold, and how many holds a buyer has at
//! once; shared by all servers through Redis, or kept in the process without it.
//!
//! Invariants: one round trip a question; without Redis, or while it is away, each process counts alone, and
//! nobody is refused for that. The rate is GCRA: so many a second on the average, and so many at once after a rest.

mod redis;

use self::redis::RedisBuckets;
use chrono::{DateTime, Utc};
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use parterre_entity::{EventId, HoldId};
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How fast a bucket fills, and how much it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// One more after so long.
    pub each: Duration,
    /// At once, after a rest.
    pub burst: NonZeroU32,
}

impl Rate {
    /// So many a second, and so many seconds' worth at once.
    #[must_use]
    pub fn per_second(count: NonZeroU32, seconds: NonZeroU32) -> Self {
        Self { each: Duration::from_secs(1) / count.get(), burst: count.saturating_mul(seconds) }
    }
}

/// Rates of a server.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Requests of one peer address; of one /64 of IPv6.
    pub address: Rate,
    /// Requests of one account.
    pub account: Rate,
    /// Operations of one account that read reports.
    pub reports: Rate,
    /// Holds asked for at one event, and as many checkouts.
    pub event: Rate,
    /// Holds asked for by one buyer: whoever holds and releases all the time runs out of them.
    pub buyer: Rate,
    /// Attempts to pay one hold.
    pub payment: Rate,
}

/// Whose bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// A peer's requests.
    Address(IpAddr),
    /// Requests of a token's subject.
    Account(String),
    /// An account's reports.
    Reports(String),
    /// Holds of an event.
    Event(EventId),
    /// Checkouts of an event: whoever holds seats already does not wait behind those who want some.
    Checkouts(EventId),
    /// Holds of a buyer.
    Buyer(String),
    /// A buyer's attempts to pay a hold.
    Payment(String, HoldId),
}

/// Whom an address stands for: a household has a /64 of IPv6 of its own.
#[must_use]
pub fn household(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        address @ IpAddr::V4(_) => address,
    }
}

impl Bucket {
    fn key(&self) -> String {
        match self {
            Self::Address(address) => format!("address:{}", household(*address)),
            Self::Account(account) => format!("account:{account}"),
            Self::Reports(account) => format!("reports:{account}"),
            Self::Event(event) => format!("event:{event}"),
            Self::Checkouts(event) => format!("checkouts:{event}"),
            Self::Buyer(buyer) => format!("buyer:{buyer}"),
            Self::Payment(buyer, hold) => format!("payment:{buyer}:{hold}"),
        }
    }
}

/// Who is asking too often, and for how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOften {
    /// Until then the next request would be refused too.
    pub retry_after: Duration,
}

impl TooOften {
    /// The same in whole milliseconds, at least one.
    #[must_use]
    pub fn retry_after_ms(&self) -> u64 {
        u64::try_from(self.retry_after.as_millis()).unwrap_or(u64::MAX).max(1)
    }
}

/// Counts requests and holds.
#[derive(Clone)]
pub struct Limiter {
    rates: Rates,
    here: Arc<Here>,
    redis: Option<RedisBuckets>,
}

/// What this process counts alone.
struct Here {
    buckets: [DefaultKeyedRateLimiter<String>; 6],
    /// Holds of each buyer by their deadlines.
    holds: Mutex<HashMap<String, HashMap<HoldId, DateTime<Utc>>>>,
}

impl Here {
    fn holds(&self) -> MutexGuard<'_, HashMap<String, HashMap<HoldId, DateTime<Utc>>>> {
        self.holds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Limiter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Limiter").field("rates", &self.rates).finish_non_exhaustive()
    }
}

impl Limiter {
    /// In this process.
    #[must_use]
    pub fn new(rates: Rates) -> Self {
        let keyed = |rate: Rate| {
            // A period of nothing is no rate: then there is no limit worth the name.
            let quota = Quota::with_period(rate.each).unwrap_or(Quota::per_second(NonZeroU32::MAX));
            RateLimiter::keyed(quota.allow_burst(rate.burst))
        };
        let Rates { address, account, reports, event, buyer, payment } = rates;
        let buckets = [address, account, reports, event, buyer, payment].map(keyed);
        Self { rates, here: Arc::new(Here { buckets, holds: Mutex::default() }), redis: None }
    }

    /// In all processes of a Redis, which may be away.
    pub fn shared(rates: Rates, url: &str, namespace: &str) -> Result<Self, ::redis::RedisError> {
        Ok(Self { redis: Some(RedisBuckets::new(url, namespace)?), ..Self::new(rates) })
    }

    /// Takes one request out of each bucket, or says which rate is used up.
    pub async fn take(&self, buckets: &[Bucket]) -> Result<(), TooOften> {
        if let Some(redis) = &self.redis {
            let asked: Vec<(String, Rate)> = buckets.iter().map(|bucket| (bucket.key(), self.of(bucket).0)).collect();
            if let Some(wait) = redis.take(&asked).await {
                return if wait.is_zero() { Ok(()) } else { Err(TooOften { retry_after: wait }) };
            }
        }
        self.take_here(buckets)
    }

    /// In this process alone.
    fn take_here(&self, buckets: &[Bucket]) -> Result<(), TooOften> {
        let clock = DefaultClock::default();
        for bucket in buckets {
            if let Err(until) = self.of(bucket).1.check_key(&bucket.key()) {
                return Err(TooOften { retry_after: until.wait_time_from(clock.now()) });
            }
        }
        Ok(())
    }

    fn of(&self, bucket: &Bucket) -> (Rate, &DefaultKeyedRateLimiter<String>) {
        let [address, account, reports, event, buyer, payment] = &self.here.buckets;
        match bucket {
            Bucket::Address(_) => (self.rates.address, address),
            Bucket::Account(_) => (self.rates.account, account),
            Bucket::Reports(_) => (self.rates.reports, reports),
            // Their keys differ.
            Bucket::Event(_) | Bucket::Checkouts(_) => (self.rates.event, event),
            Bucket::Buyer(_) => (self.rates.buyer, buyer),
            Bucket::Payment(..) => (self.rates.payment, payment),
        }
    }

    /// How many holds a buyer has at once over all events, approximately: what was said here, not what is in the database.
    pub async fn holds_of(&self, buyer: &str, now: DateTime<Utc>) -> usize {
        if let Some(redis) = &self.redis
            && let Some(count) = redis.holds_of(buyer, now).await
        {
            return count;
        }
        let mut holds = self.here.holds();
        let Some(own) = holds.get_mut(buyer) else { return 0 };
        own.retain(|_, deadline| *deadline > now);
        own.len()
    }

    /// A buyer has a hold until then.
    pub async fn held(&self, buyer: &str, hold: HoldId, deadline: DateTime<Utc>) {
        if let Some(redis) = &self.redis {
            redis.held(buyer, hold, deadline).await;
        }
        self.here.holds().entry(buyer.to_owned()).or_default().insert(hold, deadline);
    }

    /// A buyer has it no more.
    pub async fn let_go(&self, buyer: &str, hold: HoldId) {
        if let Some(redis) = &self.redis {
            redis.let_go(buyer, hold).await;
        }
        if let Some(own) = self.here.holds().get_mut(buyer) {
            own.remove(&hold);
        }
    }

    /// Forgets those who have not asked for long.
    pub fn tidy(&self, now: DateTime<Utc>) {
        self.here.buckets.iter().for_each(RateLimiter::retain_recent);
        self.here.holds().retain(|_, own| {
            own.retain(|_, deadline| *deadline > now);
            !own.is_empty()
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_household_is_one_peer_and_a_mapped_address_is_the_one_it_maps() {
        let key = |text: &str| Bucket::Address(text.parse().unwrap()).key();
        assert_eq!(key("2001:db8:1:2:3:4:5:6"), key("2001:db8:1:2:ffff::1"));
        assert_ne!(key("2001:db8:1:2::1"), key("2001:db8:1:3::1"));
        assert_eq!(key("::ffff:192.0.2.7"), key("192.0.2.7"));
    }
}
