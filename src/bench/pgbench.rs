//! The anchor of holds: what PostgreSQL does when every hold is a transaction of its own, with the same statements, tables
//! and rows, and nobody in between.

use super::world::{Arena, World};
use anyhow::Context as _;
use parterre_schema::parse_node_id;
use sea_orm::ConnectionTrait as _;
use std::path::Path;

/// Clients of pgbench.
const CLIENTS: &str = "16";

/// Events that it needs, so that it does not run out of seats in a minute.
pub(super) const EVENTS: usize = 4;
/// Pairs of neighbours of each.
const PAIRS: usize = 25_000;

/// Two-seat holds a second, for so many seconds, of pairs that nobody had.
pub(super) async fn holds(world: &World, events: &[Arena], seconds: u64) -> anyhow::Result<f64> {
    let mut ids = Vec::with_capacity(events.len());
    for arena in events {
        let (_, event) = parse_node_id(&arena.event).context("an event id")?;
        ids.push(format!("'{event}'"));
    }
    let ids = ids.join(", ");
    world.db.pool().execute_unprepared("CREATE SEQUENCE IF NOT EXISTS anchor MINVALUE 0").await?;
    let script = format!(
        r"SELECT gen_random_uuid() AS hold, clock_timestamp() + interval '1 hour' AS deadline, nextval('anchor')::int AS pair \gset
SELECT (ARRAY[{ids}])[:pair / {PAIRS} + 1] AS event, :pair % {PAIRS} * 2 AS seat \gset
BEGIN;
SELECT state, on_sale_at, off_sale_at, hold_seconds, max_seats_per_buyer, currency FROM event WHERE id = :event::uuid FOR SHARE;
SELECT zone_no, price_minor FROM event_zone WHERE event_id = :event::uuid;
INSERT INTO event_quota (event_id, buyer) VALUES (:event::uuid, 'pgbench-' || :hold) ON CONFLICT DO NOTHING;
SELECT fingerprint, result_id FROM idempotency WHERE event_id = :event::uuid AND buyer = 'pgbench-' || :hold AND operation = 'hold' AND key = 'k';
SELECT seat_no, status, held_until, section_no, zone_no FROM event_seat WHERE event_id = :event::uuid AND seat_no IN (:seat::int, :seat::int + 1) ORDER BY seat_no FOR NO KEY UPDATE;
SELECT coalesce(sum(quantity), 0) FROM hold JOIN hold_item ON hold_id = hold.id WHERE hold.event_id = :event::uuid AND buyer = 'pgbench-' || :hold AND state IN ('HELD', 'PENDING', 'SOLD');
UPDATE event_seat SET status = 'HELD', hold_id = :hold::uuid, held_until = :deadline::timestamptz WHERE event_id = :event::uuid AND seat_no IN (:seat::int, :seat::int + 1) AND status = 'AVAILABLE';
INSERT INTO idempotency (event_id, buyer, operation, key, fingerprint, result_id) VALUES (:event::uuid, 'pgbench-' || :hold, 'hold', 'k', repeat('f', 64), :hold::uuid);
INSERT INTO hold (id, event_id, buyer, status, deadline, total_minor, currency, created_at) VALUES (:hold::uuid, :event::uuid, 'pgbench-' || :hold, 'ACTIVE', :deadline::timestamptz, 5000, 'EUR', clock_timestamp());
INSERT INTO hold_item (hold_id, item_no, event_id, seat_no, quantity, unit_minor, state) VALUES (:hold::uuid, 0, :event::uuid, :seat::int, 1, 2500, 'HELD'), (:hold::uuid, 1, :event::uuid, :seat::int + 1, 1, 2500, 'HELD');
UPDATE event_counter SET version = version + 1 WHERE event_id = :event::uuid AND section_no = :seat::int / 5000 RETURNING version AS version \gset
INSERT INTO outbox (topic, event_id, subject_id, payload) VALUES ('hold', :event::uuid, :hold::uuid, jsonb_build_object('to', 'ACTIVE')), ('seats', :event::uuid, NULL, jsonb_build_object('event', :event::text, 'tiers', NULL, 'sections', jsonb_build_array(jsonb_build_object('section', :seat::int / 5000, 'version', :version::bigint, 'seats', jsonb_build_array(jsonb_build_array(:seat::int, 'H', (extract(epoch FROM :deadline::timestamptz) * 1000)::bigint), jsonb_build_array(:seat::int + 1, 'H', (extract(epoch FROM :deadline::timestamptz) * 1000)::bigint))))));
COMMIT;
"
    );
    // Where the cluster's own user can read it.
    let path = Path::new("/tmp").join(format!("parterre-pgbench-{}.sql", std::process::id()));
    std::fs::write(&path, script)?;
    let (cluster, seconds, shown) = (world.cluster.clone(), seconds.to_string(), path.display().to_string());
    let run = move || {
        let options = ["-n", "-M", "prepared", "-c", CLIENTS, "-j", "2", "-T", &seconds, "-f", &shown];
        cluster.pgbench("bench", &options)
    };
    // What the server would do meanwhile is not part of the anchor: it reacts to every row of the outbox.
    world.stop_server().await?;
    let said = tokio::task::spawn_blocking(run).await?;
    world.continue_server().await?;
    std::fs::remove_file(&path)?;
    let said = said?;
    let line = said.lines().find_map(|line| line.strip_prefix("tps = "));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).with_context(|| said.clone())
}
