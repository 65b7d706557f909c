//! The queues of all processes, in Redis: a sorted set for the line, one for those inside, a script a call.
//!
//! Invariants: one round trip a call; by Redis's own clock; all keys of an event share a slot of a cluster.

use super::queue::{ADMITTED_MAX, Admitted, Clock, Gate, KEPT, Place, Queue, QueueError};
use super::rules::{CLAIMED_WITHIN, TOKEN_LIFE};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use parterre_entity::EventId;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{RedisError, Script, ScriptInvocation};
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// How long Redis may take.
const ANSWER_WITHIN: Duration = Duration::from_millis(500);

/// KEYS: line (buyer by arrival), inside (buyer by the end of the admission), stays (buyer: id, last end), room.
/// All times are microseconds. The first argument is how far a test's clock is ahead.
const NOW: &str = r"
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2] + tonumber(ARGV[1])
";

/// ARGV: ahead, buyer, whether to join, life of a token, how long keys are kept (ms).
/// Returns what (0 absent, 1 waiting, 2 inside), a number, the admission's id.
const PLACE: &str = r"
local buyer, life = ARGV[2], tonumber(ARGV[4])
local till = redis.call('ZSCORE', KEYS[2], buyer)
if till then
  local id, last = string.match(redis.call('HGET', KEYS[3], buyer) or '', '^(%S+) (%d+)$')
  if id and tonumber(till) > now then
    local renewed = math.min(now + life, tonumber(last))
    redis.call('ZADD', KEYS[2], string.format('%.0f', renewed), buyer)
    return {2, math.floor(renewed / 1000), id}
  end
  redis.call('ZREM', KEYS[2], buyer)
  redis.call('HDEL', KEYS[3], buyer)
end
local rank = redis.call('ZRANK', KEYS[1], buyer)
if not rank and ARGV[3] == '1' then
  local arrival = math.max(now, (tonumber(redis.call('HGET', KEYS[4], 'last_arrival')) or 0) + 1)
  redis.call('HSET', KEYS[4], 'last_arrival', string.format('%.0f', arrival))
  redis.call('ZADD', KEYS[1], string.format('%.0f', arrival), buyer)
  redis.call('PEXPIRE', KEYS[1], ARGV[5])
  redis.call('PEXPIRE', KEYS[4], ARGV[5])
  rank = redis.call('ZCARD', KEYS[1]) - 1
end
if rank then return {1, rank, ''} end
return {0, 0, ''}
";

/// ARGV: ahead, buyer, whether a place in line is given up too. Returns the id of the admission that ended, or ''.
const LEAVE: &str = r"
local buyer = ARGV[2]
if ARGV[3] == '1' then redis.call('ZREM', KEYS[1], buyer) end
local till = redis.call('ZSCORE', KEYS[2], buyer)
local stay = redis.call('HGET', KEYS[3], buyer)
redis.call('ZREM', KEYS[2], buyer)
redis.call('HDEL', KEYS[3], buyer)
if till and stay and tonumber(till) > now then return string.match(stay, '^%S+') end
return ''
";

/// ARGV: ahead, process, factor, people a minute, slots, opens at, how long it may stay unclaimed, longest stay, most at once, prefix
/// of new ids, how long keys are kept (ms). Returns whether it is open, total, waiting, inside, arrival of the first in
/// line, now, then those let in. The arithmetic is `Allowance`'s; the factor is the most careful process's.
const ADMIT: &str = r"
local process, minute, slots = ARGV[2], tonumber(ARGV[4]), tonumber(ARGV[5])
local gone = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', string.format('%.0f', now))
for _, buyer in ipairs(gone) do
  redis.call('ZREM', KEYS[2], buyer)
  redis.call('HDEL', KEYS[3], buyer)
end
local opened = tonumber(redis.call('HGET', KEYS[4], 'opened_at'))
if not opened then return {0} end
redis.call('HSET', KEYS[4], 'pace:' .. process, ARGV[3] .. ' ' .. string.format('%.0f', now))
local room = redis.call('HGETALL', KEYS[4])
local factor = 1
for i = 1, #room, 2 do
  if string.sub(room[i], 1, 5) == 'pace:' then
    local theirs, at = string.match(room[i + 1], '^(%S+) (%d+)$')
    if now - tonumber(at) > 10000000 then redis.call('HDEL', KEYS[4], room[i])
    elseif now - tonumber(at) <= 3000000 then factor = math.min(factor, tonumber(theirs)) end
  end
end
local each = 60000000 / math.max(minute * factor, math.min(minute, 60))
local burst = math.max(math.floor(1000000 / each), 1)
local inside_max = 0
if slots > 0 then inside_max = math.max(math.floor(slots * factor), 1) end
local start = math.max(opened, tonumber(ARGV[6]))
local inside = redis.call('ZCARD', KEYS[2])
local let_in = {}
if now >= start then
  local credit = math.max(tonumber(redis.call('HGET', KEYS[4], 'credit_at')) or 0, now - burst * each, start - each)
  local count = math.min(math.floor((now - credit) / each), inside_max - inside, tonumber(ARGV[9]))
  if count > 0 then
    local popped = redis.call('ZPOPMIN', KEYS[1], count)
    local last = now + tonumber(ARGV[8])
    local till = math.min(now + tonumber(ARGV[7]), last)
    for i = 1, #popped, 2 do
      let_in[#let_in + 1] = popped[i]
      redis.call('ZADD', KEYS[2], string.format('%.0f', till), popped[i])
      redis.call('HSET', KEYS[3], popped[i], ARGV[10] .. '-' .. #let_in .. ' ' .. string.format('%.0f', last))
    end
    credit = credit + #let_in * each
  end
  redis.call('HSET', KEYS[4], 'credit_at', string.format('%.3f', credit))
end
local total = redis.call('HINCRBY', KEYS[4], 'total', #let_in)
for _, key in ipairs(KEYS) do redis.call('PEXPIRE', key, ARGV[11]) end
local first = redis.call('ZRANGE', KEYS[1], 0, 0, 'WITHSCORES')[2]
local told = {1, total, redis.call('ZCARD', KEYS[1]), inside + #let_in, first or string.format('%.0f', now),
  string.format('%.0f', now)}
for _, buyer in ipairs(let_in) do told[#told + 1] = buyer end
return told
";

/// ARGV: ahead, after how long.
const OPEN: &str = r"
redis.call('HSETNX', KEYS[4], 'opened_at', string.format('%.0f', now + tonumber(ARGV[2])))
";

/// Queues in Redis.
#[derive(Clone)]
pub struct RedisQueue {
    /// Connects at the first use, for all who wait, and again by itself.
    connection: ConnectionManager,
    prefix: String,
    clock: Clock,
    scripts: Arc<Scripts>,
}

struct Scripts {
    place: Script,
    leave: Script,
    admit: Script,
    open: Script,
}

impl std::fmt::Debug for RedisQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisQueue").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

impl From<RedisError> for QueueError {
    fn from(error: RedisError) -> Self {
        Self(error.to_string())
    }
}

/// What Redis answers in time.
async fn within<T>(answer: impl Future<Output = Result<T, RedisError>>) -> Result<T, QueueError> {
    match tokio::time::timeout(2 * ANSWER_WITHIN, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(QueueError("no answer in time".to_owned())),
    }
}

fn micros(duration: Duration) -> u128 {
    duration.as_micros()
}

impl RedisQueue {
    /// Connects at the first use, and again by itself. `namespace` keeps several installations on one Redis apart.
    pub fn new(url: &str, namespace: &str, clock: Clock) -> Result<Self, QueueError> {
        let settings = ConnectionManagerConfig::new()
            .set_response_timeout(Some(ANSWER_WITHIN))
            .set_connection_timeout(Some(ANSWER_WITHIN))
            .set_number_of_retries(1);
        let script = |text: &str| Script::new(&format!("{NOW}{text}"));
        Ok(Self {
            connection: ConnectionManager::new_lazy_with_config(redis::Client::open(url)?, settings)?,
            prefix: format!("parterre:{namespace}:queue:"),
            clock,
            scripts: Arc::new(Scripts {
                place: script(PLACE),
                leave: script(LEAVE),
                admit: script(ADMIT),
                open: script(OPEN),
            }),
        })
    }

    fn key(&self, event: EventId, of: &str) -> String {
        format!("{}{{{event}}}:{of}", self.prefix)
    }

    /// A call of a script on an event's keys, at a time.
    fn call<'a>(&self, script: &'a Script, event: EventId) -> ScriptInvocation<'a> {
        let mut call = script.prepare_invoke();
        for of in ["line", "inside", "stays", "room"] {
            call.key(self.key(event, of));
        }
        call.arg(self.clock.ahead_ms().saturating_mul(1_000));
        call
    }

    async fn ask<T: redis::FromRedisValue>(&self, call: ScriptInvocation<'_>) -> Result<T, QueueError> {
        let mut connection = self.connection.clone();
        within(call.invoke_async(&mut connection)).await
    }

    async fn place(&self, event: EventId, buyer: &str, join: bool) -> Result<Place, QueueError> {
        let mut call = self.call(&self.scripts.place, event);
        call.arg(buyer).arg(u8::from(join)).arg(micros(TOKEN_LIFE)).arg(KEPT.as_millis());
        let (what, number, admission): (u8, i64, String) = self.ask(call).await?;
        Ok(match what {
            0 => Place::Absent,
            1 => Place::Waiting { ahead: u64::try_from(number).unwrap_or(0) },
            _ => Place::Admitted { admission, until_ms: number },
        })
    }

    async fn end(&self, event: EventId, buyer: &str, line_too: bool) -> Result<Option<String>, QueueError> {
        let mut call = self.call(&self.scripts.leave, event);
        call.arg(buyer).arg(u8::from(line_too));
        let ended: String = self.ask(call).await?;
        Ok((!ended.is_empty()).then_some(ended))
    }
}

#[async_trait]
impl Queue for RedisQueue {
    async fn join(&self, event: EventId, buyer: &str) -> Result<Place, QueueError> {
        self.place(event, buyer, true).await
    }

    async fn find(&self, event: EventId, buyer: &str) -> Result<Place, QueueError> {
        self.place(event, buyer, false).await
    }

    async fn leave(&self, event: EventId, buyer: &str) -> Result<Option<String>, QueueError> {
        self.end(event, buyer, true).await
    }

    async fn finish(&self, event: EventId, buyer: &str) -> Result<Option<String>, QueueError> {
        self.end(event, buyer, false).await
    }

    async fn admit(&self, event: EventId, gate: &Gate) -> Result<Option<Admitted>, QueueError> {
        let mut call = self.call(&self.scripts.admit, event);
        call.arg(&*gate.process)
            .arg(gate.allowance.factor)
            .arg(gate.allowance.per_minute)
            .arg(gate.allowance.slots)
            .arg(gate.opens_at_ms.saturating_mul(1_000))
            .arg(micros(CLAIMED_WITHIN))
            .arg(micros(gate.stay))
            .arg(ADMITTED_MAX)
            .arg(Uuid::now_v7().simple().to_string())
            .arg(KEPT.as_millis());
        let told: Vec<String> = self.ask(call).await?;
        let number = |at: usize| told.get(at).and_then(|text: &String| text.parse::<u64>().ok()).unwrap_or(0);
        if number(0) == 0 {
            return Ok(None);
        }
        Ok(Some(Admitted {
            buyers: told.iter().skip(6).cloned().collect(),
            total: number(1),
            waiting: number(2),
            inside: number(3),
            oldest: Duration::from_micros(number(5).saturating_sub(number(4))),
        }))
    }

    async fn open(&self, event: EventId, quiet: Duration) -> Result<(), QueueError> {
        let mut call = self.call(&self.scripts.open, event);
        call.arg(micros(quiet));
        self.ask(call).await
    }

    async fn clear(&self, event: EventId, before: DateTime<Utc>) -> Result<(), QueueError> {
        let mut connection = self.connection.clone();
        let mut clear = redis::cmd("ZREMRANGEBYSCORE");
        clear.arg(self.key(event, "line")).arg("-inf").arg(before.timestamp_micros());
        within(clear.query_async(&mut connection)).await
    }

    fn now(&self) -> DateTime<Utc> {
        self.clock.now()
    }
}
