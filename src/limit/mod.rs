//! How often one may ask: a bucket for each peer address and for each account, shared by all servers through Redis, or
//! kept in the process without it.
//!
//! Invariants: one round trip a request at the most; without Redis, or while it is away, each process counts alone, and
//! nobody is refused for that. The rate is GCRA: so many a second on the average, and so many at once after a rest.

mod redis;

use self::redis::RedisBuckets;
use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use std::net::{IpAddr, Ipv6Addr};
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

/// What a bucket is of, and its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// On the average.
    pub per_second: NonZeroU32,
    /// At once, after a rest.
    pub burst: NonZeroU32,
}

/// Rates of a server.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    /// Of one peer address; of one /64 of IPv6.
    pub address: Rate,
    /// Of one account.
    pub account: Rate,
}

/// Whose bucket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bucket {
    /// A peer's.
    Address(IpAddr),
    /// A token's subject's.
    Account(String),
}

impl Bucket {
    fn key(&self) -> String {
        match self {
            Self::Address(IpAddr::V4(address)) => format!("address:{address}"),
            // A household has a /64 of its own.
            Self::Address(IpAddr::V6(address)) => match address.to_ipv4_mapped() {
                Some(address) => format!("address:{address}"),
                None => format!("address:{}", Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
            },
            Self::Account(account) => format!("account:{account}"),
        }
    }
}

/// Who is asking too often, and for how long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooOften {
    /// Until then the next request would be refused too.
    pub retry_after: Duration,
}

/// Counts requests.
#[derive(Clone)]
pub struct Limiter {
    rates: Rates,
    addresses: Arc<DefaultKeyedRateLimiter<String>>,
    accounts: Arc<DefaultKeyedRateLimiter<String>>,
    redis: Option<RedisBuckets>,
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
        let keyed =
            |rate: Rate| Arc::new(RateLimiter::keyed(Quota::per_second(rate.per_second).allow_burst(rate.burst)));
        Self { rates, addresses: keyed(rates.address), accounts: keyed(rates.account), redis: None }
    }

    /// In all processes of a Redis, which may be away.
    pub fn shared(rates: Rates, url: &str, namespace: &str) -> Result<Self, ::redis::RedisError> {
        Ok(Self { redis: Some(RedisBuckets::new(url, namespace)?), ..Self::new(rates) })
    }

    /// Takes one request out of each bucket, or says which rate is used up.
    pub async fn take(&self, buckets: &[Bucket]) -> Result<(), TooOften> {
        if let Some(redis) = &self.redis {
            let asked: Vec<(String, Rate)> = buckets.iter().map(|bucket| (bucket.key(), self.rate(bucket))).collect();
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
            let limiter = match bucket {
                Bucket::Address(_) => &self.addresses,
                Bucket::Account(_) => &self.accounts,
            };
            if let Err(until) = limiter.check_key(&bucket.key()) {
                return Err(TooOften { retry_after: until.wait_time_from(clock.now()) });
            }
        }
        Ok(())
    }

    const fn rate(&self, bucket: &Bucket) -> Rate {
        match bucket {
            Bucket::Address(_) => self.rates.address,
            Bucket::Account(_) => self.rates.account,
        }
    }

    /// Forgets those who have not asked for long.
    pub fn tidy(&self) {
        self.addresses.retain_recent();
        self.accounts.retain_recent();
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
