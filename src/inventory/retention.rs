//! What inventory forgets after a while: the keys of holds, and holds that ended without a booking.
//!
//! Hold ids are version 7 UUIDs, so they ascend with time: each sweep remembers the last id it looked at, and goes on
//! from there when what follows is old enough. One process at a time.

use crate::db::{self, CommitError, Db, Single, Transaction};
use crate::sql;
use chrono::{DateTime, Duration, Utc};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use uuid::Uuid;

/// How long the key of a hold is known: longer than any hold lives.
pub const KEYS_KEPT: Duration = Duration::hours(24);
/// How long a hold is kept that ended without a booking.
pub const HOLDS_KEPT: Duration = Duration::days(30);
/// How far the clock that made an id may have been from the database's, and how long the longest hold lives.
const MARGIN: Duration = Duration::hours(25);
/// Holds a pass looks at, at the most.
const HOLDS_A_PASS: i64 = 1_000;

/// How far a sweep has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Swept {
    /// Holds looked at: 0 when what is left is not old enough.
    pub seen: usize,
    /// Rows removed.
    pub removed: u64,
}

/// Removes keys of holds that are older than `kept`. Keys of checkouts and cancellations stay with their booking.
pub(super) async fn forget_keys(db: &Db, kept: Duration) -> Result<Swept, DbErr> {
    let tx = db.begin("hold_keys_forget").await?;
    let (page, _) = page(&tx, "keys", kept).await?;
    let removed = remove_keys(&tx, &page, kept).await?;
    finish(tx, "keys", &page, removed).await
}

/// Removes holds, with their items and keys, that ended without a booking more than `kept` ago.
pub(super) async fn forget_holds(db: &Db, kept: Duration) -> Result<Swept, DbErr> {
    let tx = db.begin("holds_forget").await?;
    let (mut page, before) = page(&tx, "holds", kept).await?;
    // The sweep never comes back, so it waits for a hold whose end is late.
    let live = Single::<Uuid>::find_by_statement(sql!(
        "SELECT hold.id AS value FROM unnest($1::uuid[]) AS wanted (id)
         CROSS JOIN LATERAL (SELECT id FROM hold WHERE hold.id = wanted.id AND status = 'ACTIVE') AS hold
         ORDER BY hold.id LIMIT 1",
        page.clone()
    ));
    if let Some(live) = live.one(&*tx).await? {
        page.retain(|id| *id < live.value);
    }
    remove_keys(&tx, &page, kept).await?;
    // One that was released or has expired and has no booking never gets one.
    let ended = Single::<Uuid>::find_by_statement(sql!(
        "SELECT hold.id AS value FROM unnest($1::uuid[]) AS wanted (id)
         CROSS JOIN LATERAL (
             SELECT id FROM hold WHERE hold.id = wanted.id AND status IN ('RELEASED', 'EXPIRED') AND deadline <= $2
               AND NOT EXISTS (SELECT FROM booking WHERE booking.hold_id = hold.id) FOR UPDATE) AS hold",
        page.clone(),
        before
    ))
    .all(&*tx)
    .await?;
    let ended: Vec<Uuid> = ended.into_iter().map(|row| row.value).collect();
    tx.execute_raw(sql!("DELETE FROM hold_item WHERE hold_id = ANY ($1)", ended.clone())).await?;
    let removed = tx.execute_raw(sql!("DELETE FROM hold WHERE id = ANY ($1)", ended)).await?.rows_affected();
    finish(tx, "holds", &page, removed).await
}

/// The next holds of a sweep that are old enough, ascending, and the time before which something is old.
async fn page(tx: &Transaction, sweep: &str, kept: Duration) -> Result<(Vec<Uuid>, DateTime<Utc>), DbErr> {
    let before = db::clock(&**tx).await? - kept;
    let rows = Single::<Uuid>::find_by_statement(sql!(
        "WITH place AS MATERIALIZED (SELECT after FROM hold_sweep WHERE name = $1 FOR UPDATE SKIP LOCKED)
         SELECT hold.id AS value FROM place
         CROSS JOIN LATERAL (SELECT id FROM hold WHERE id > place.after AND id < $2 ORDER BY id LIMIT $3) AS hold
         ORDER BY hold.id",
        sweep.to_owned(),
        first_id_at(before - MARGIN),
        HOLDS_A_PASS
    ))
    .all(&**tx)
    .await?;
    Ok((rows.into_iter().map(|row| row.value).collect(), before))
}

/// The least id that could be made at a time.
fn first_id_at(time: DateTime<Utc>) -> Uuid {
    Uuid::from_u128(u128::try_from(time.timestamp_millis()).unwrap_or(0) << 80)
}

async fn remove_keys(tx: &Transaction, holds: &[Uuid], kept: Duration) -> Result<u64, DbErr> {
    let removed = tx
        .execute_raw(sql!(
            "DELETE FROM idempotency WHERE ctid = ANY (ARRAY (
                 SELECT known.ctid FROM unnest($1::uuid[]) AS wanted (id)
                 CROSS JOIN LATERAL (SELECT event_id, buyer FROM hold WHERE hold.id = wanted.id) AS hold
                 CROSS JOIN LATERAL (
                     SELECT ctid FROM idempotency AS i
                     WHERE i.event_id = hold.event_id AND i.buyer = hold.buyer AND i.operation = 'hold'
                       AND i.result_id = wanted.id AND i.created_at <= clock_timestamp() - make_interval(secs => $2)
                     OFFSET 0) AS known))",
            holds.to_vec(),
            kept.as_seconds_f64()
        ))
        .await?;
    Ok(removed.rows_affected())
}

async fn finish(tx: Transaction, sweep: &'static str, page: &[Uuid], removed: u64) -> Result<Swept, DbErr> {
    let Some(last) = page.last() else {
        tx.rollback().await?;
        return Ok(Swept { seen: 0, removed: 0 });
    };
    tx.execute_raw(sql!("UPDATE hold_sweep SET after = $2 WHERE name = $1", sweep.to_owned(), *last)).await?;
    tx.commit().await.map_err(CommitError::into_cause)?;
    metrics::counter!("parterre_retention_removed_total", "what" => sweep).increment(removed);
    Ok(Swept { seen: page.len(), removed })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_made_later_are_greater() {
        let now = DateTime::from_timestamp_millis(1_796_000_000_123).unwrap();
        let made = |time: DateTime<Utc>| {
            let stamp = uuid::Timestamp::from_unix(
                uuid::NoContext,
                time.timestamp().unsigned_abs(),
                time.timestamp_subsec_nanos(),
            );
            Uuid::new_v7(stamp)
        };
        assert!(first_id_at(now) <= made(now));
        assert!(made(now - Duration::milliseconds(1)) < first_id_at(now));
    }
}
