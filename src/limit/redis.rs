//! The buckets of all processes, in Redis: one script, which is all of a request's buckets in one round trip.

use super::Rate;
use chrono::{DateTime, Utc};
use parterre_entity::HoldId;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{AsyncCommands, RedisError, Script};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long Redis may take before a process counts alone.
const ANSWER_WITHIN: Duration = Duration::from_millis(50);

/// How long it is left alone when it does not answer.
const AWAY: Duration = Duration::from_secs(1);

/// GCRA by Redis's own clock, in microseconds. A key keeps when its bucket will be full again. Nothing is taken unless
/// every bucket has something. Returns how long to wait.
const TAKE: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local wait, full = 0, {}
for i, key in ipairs(KEYS) do
  local each, burst = tonumber(ARGV[2 * i - 1]), tonumber(ARGV[2 * i])
  local at = math.max(tonumber(redis.call('GET', key) or now), now) + each
  wait = math.max(wait, at - burst * each - now)
  full[i] = at
end
if wait <= 0 then
  for i, key in ipairs(KEYS) do
    redis.call('SET', key, string.format('%.0f', full[i]), 'PX', math.ceil((full[i] - now) / 1000) + 1)
  end
  return 0
end
return math.ceil(wait)
";

/// Buckets in Redis.
#[derive(Clone)]
pub(super) struct RedisBuckets {
    connection: ConnectionManager,
    prefix: String,
    script: Arc<Script>,
    /// Until when it is left alone, after it did not answer.
    away_until: Arc<Mutex<Option<Instant>>>,
}

impl RedisBuckets {
    /// Connects at the first use, and again by itself.
    pub(super) fn new(url: &str, namespace: &str) -> Result<Self, RedisError> {
        let settings = ConnectionManagerConfig::new().set_response_timeout(Some(ANSWER_WITHIN));
        Ok(Self {
            connection: ConnectionManager::new_lazy_with_config(redis::Client::open(url)?, settings)?,
            prefix: format!("parterre:{namespace}:"),
            script: Arc::new(Script::new(TAKE)),
            away_until: Arc::default(),
        })
    }

    /// How long to wait, zero if not at all; none if Redis does not say.
    pub(super) async fn take(&self, buckets: &[(String, Rate)]) -> Option<Duration> {
        let asked = async |mut connection: ConnectionManager| {
            let mut call = self.script.prepare_invoke();
            for (key, rate) in buckets {
                let micros = u64::try_from(rate.each.as_micros()).unwrap_or(u64::MAX).max(1);
                call.key(format!("{}rate:{key}", self.prefix)).arg(micros).arg(rate.burst.get());
            }
            call.invoke_async::<u64>(&mut connection).await
        };
        self.ask(asked).await.map(Duration::from_micros)
    }

    /// How many holds a buyer has; none if Redis does not say.
    pub(super) async fn holds_of(&self, buyer: &str, now: DateTime<Utc>) -> Option<usize> {
        let asked = async |mut connection: ConnectionManager| {
            let from = format!("({}", now.timestamp_millis());
            connection.zcount::<_, _, _, usize>(self.holds_key(buyer), from, "+inf").await
        };
        self.ask(asked).await
    }

    /// A buyer has a hold until then.
    pub(super) async fn held(&self, buyer: &str, hold: HoldId, deadline: DateTime<Utc>) {
        let key = self.holds_key(buyer);
        let asked = async |mut connection: ConnectionManager| {
            let mut both = redis::pipe();
            both.zadd(&key, hold.to_string(), deadline.timestamp_millis()).ignore();
            both.pexpire_at(&key, deadline.timestamp_millis()).arg("GT").ignore();
            // A key without an end has none that is later: it gets its first one so.
            both.cmd("PEXPIREAT").arg(&key).arg(deadline.timestamp_millis()).arg("NX").ignore();
            both.query_async::<()>(&mut connection).await
        };
        self.ask(asked).await;
    }

    /// A buyer has it no more.
    pub(super) async fn let_go(&self, buyer: &str, hold: HoldId) {
        let asked = async |mut connection: ConnectionManager| {
            connection.zrem::<_, _, ()>(self.holds_key(buyer), hold.to_string()).await
        };
        self.ask(asked).await;
    }

    fn holds_key(&self, buyer: &str) -> String {
        format!("{}holds:{buyer}", self.prefix)
    }

    /// Asks, unless Redis did not answer a moment ago.
    async fn ask<T>(&self, question: impl AsyncFnOnce(ConnectionManager) -> Result<T, RedisError>) -> Option<T> {
        if self.away().is_some_and(|until| Instant::now() < until) {
            return None;
        }
        let asked = question(self.connection.clone());
        if let Ok(Ok(answer)) = tokio::time::timeout(2 * ANSWER_WITHIN, asked).await {
            return Some(answer);
        }
        metrics::counter!("parterre_limiter_alone_total").increment(1);
        *self.away_until.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now() + AWAY);
        None
    }

    fn away(&self) -> Option<Instant> {
        *self.away_until.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
