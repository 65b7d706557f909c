//! The anchor of holds: what PostgreSQL does when every hold is a transaction of its own, with the same statements, tables
//! and rows, and nobody in between.

use super::holds::STEP;
use super::world::{Arena, World};
use anyhow::Context as _;
use parterre_schema::parse_node_id;
use std::path::Path;

/// Clients of pgbench.
const CLIENTS: u64 = 16;

/// What every session of the server has in its write transactions too: one plan for each statement, through indexes.
const SETTINGS: &str = "-c jit=off -c enable_seqscan=off -c enable_hashjoin=off -c enable_mergejoin=off \
    -c plan_cache_mode=force_generic_plan";

/// Runs it, of pairs that nobody had.
pub(super) struct Anchor<'a> {
    world: &'a World,
    events: &'a [Arena],
    /// Pairs that it may have in a run.
    pairs: u64,
    /// Pairs that it had.
    had: u64,
}

impl<'a> Anchor<'a> {
    /// On the same events as the server, of whose pairs, in the same order that jumps about, it takes the last `runs`
    /// times `pairs`.
    pub(super) const fn new(world: &'a World, events: &'a [Arena], pairs: u64) -> Self {
        Self { world, events, pairs, had: 0 }
    }

    /// Two-seat holds a second, for so many seconds, or until its pairs are used up.
    pub(super) async fn run(&mut self, seconds: u64) -> anyhow::Result<f64> {
        let mut ids = Vec::with_capacity(self.events.len());
        for arena in self.events {
            let (_, event) = parse_node_id(&arena.event).context("an event id")?;
            ids.push(format!("'{event}'"));
        }
        let (ids, pairs) = (ids.join(", "), self.events.first().context("no event")?.pairs());
        let all = pairs * u64::try_from(self.events.len())?;
        let last = all - 1 - self.had;
        let section = pairs * 2 / 10;
        let script = format!(
            r"\set at (:last - :client_id - {CLIENTS} * :n) * {STEP} % {all}
\set n :n + 1
\set event_no :at / {pairs} + 1
\set seat :at % {pairs} * 2
BEGIN;
SELECT id AS event, {UUID_V7} AS hold, clock_timestamp() + interval '1 hour' AS deadline, state, on_sale_at, off_sale_at, hold_seconds, max_seats_per_buyer, currency FROM event WHERE id = (ARRAY[{ids}]::uuid[])[:event_no] FOR SHARE \gset
SELECT zone_no, price_minor FROM event_zone WHERE event_id = :event::uuid;
INSERT INTO event_quota (event_id, buyer) VALUES (:event::uuid, 'pgbench-' || :hold) ON CONFLICT DO NOTHING;
SELECT fingerprint, result_id FROM idempotency WHERE event_id = :event::uuid AND buyer = 'pgbench-' || :hold AND operation = 'hold' AND key = 'k';
SELECT seat_no, status, held_until, section_no, zone_no FROM event_seat WHERE event_id = :event::uuid AND seat_no IN (:seat::int, :seat::int + 1) ORDER BY seat_no FOR NO KEY UPDATE;
SELECT coalesce(sum(quantity), 0) FROM hold JOIN hold_item ON hold_id = hold.id WHERE hold.event_id = :event::uuid AND buyer = 'pgbench-' || :hold AND state IN ('HELD', 'PENDING', 'SOLD');
UPDATE event_seat SET status = 'HELD', hold_id = :hold::uuid, held_until = :deadline::timestamptz WHERE event_id = :event::uuid AND seat_no IN (:seat::int, :seat::int + 1) AND status = 'AVAILABLE';
INSERT INTO idempotency (event_id, buyer, operation, key, fingerprint, result_id) VALUES (:event::uuid, 'pgbench-' || :hold, 'hold', 'k', repeat('f', 64), :hold::uuid);
INSERT INTO hold (id, event_id, buyer, status, deadline, total_minor, currency, created_at) VALUES (:hold::uuid, :event::uuid, 'pgbench-' || :hold, 'ACTIVE', :deadline::timestamptz, 5000, 'EUR', clock_timestamp());
INSERT INTO hold_item (hold_id, item_no, event_id, seat_no, quantity, unit_minor, state) VALUES (:hold::uuid, 0, :event::uuid, :seat::int, 1, 2500, 'HELD'), (:hold::uuid, 1, :event::uuid, :seat::int + 1, 1, 2500, 'HELD');
UPDATE event_counter SET version = version + 1 WHERE event_id = :event::uuid AND section_no = :seat::int / {section} RETURNING version AS version \gset
INSERT INTO outbox (topic, event_id, subject_id, payload) VALUES ('hold', :event::uuid, :hold::uuid, jsonb_build_object('to', 'ACTIVE')), ('seats', :event::uuid, NULL, jsonb_build_object('event', :event::text, 'tiers', NULL, 'sections', jsonb_build_array(jsonb_build_object('section', :seat::int / {section}, 'version', :version::bigint, 'seats', jsonb_build_array(jsonb_build_array(:seat::int, 'H', (extract(epoch FROM :deadline::timestamptz) * 1000)::bigint), jsonb_build_array(:seat::int + 1, 'H', (extract(epoch FROM :deadline::timestamptz) * 1000)::bigint))))));
COMMIT;
"
        );
        // Where the cluster's own user can read it.
        let path = Path::new("/tmp").join(format!("parterre-pgbench-{}.sql", std::process::id()));
        std::fs::write(&path, script)?;
        let (cluster, shown) = (self.world.cluster.clone(), path.display().to_string());
        // Nobody makes three thousand such transactions a second on such a machine; where they would not last, it is told how many.
        let how = if self.pairs / 3_000 > seconds {
            ["-T".to_owned(), seconds.to_string()]
        } else {
            ["-t".to_owned(), (self.pairs / CLIENTS).max(1).to_string()]
        };
        let clients = CLIENTS.to_string();
        let run = move || {
            let last = format!("last={last}");
            let mut options =
                vec!["-n", "-M", "prepared", "-c", &clients, "-j", "2", "-f", &shown, "-D", &last, "-D", "n=0"];
            options.extend(how.iter().map(String::as_str));
            cluster.pgbench("bench", SETTINGS, &options)
        };
        // What the server would do meanwhile is not part of the anchor: it reacts to every row of the outbox.
        self.world.stop_server().await?;
        let said = tokio::task::spawn_blocking(run).await?;
        self.world.continue_server(self.events).await?;
        std::fs::remove_file(&path)?;
        let said = said?;
        self.had += self.pairs;
        let line = said.lines().find_map(|line| line.strip_prefix("tps = "));
        line.and_then(|line| line.split_whitespace().next()?.parse().ok()).with_context(|| said.clone())
    }
}

/// A key that grows with time, as the server's do.
const UUID_V7: &str = "encode(set_bit(set_bit(overlay(uuid_send(gen_random_uuid()) placing \
    substring(int8send((extract(epoch FROM clock_timestamp()) * 1000)::bigint) from 3) from 1 for 6), 52, 1), 53, 1), 'hex')::uuid";
