//! Rows that every consumer has done are removed after a while.
//!
//! A consumer whose cursor is in the database never misses one: nothing behind the slowest cursor is touched. A reader
//! that keeps its cursor elsewhere (a server's search index) compares it with `removed`, and starts over if it is older.

use super::feed::Position;
use crate::db::{CommitError, Db, Single};
use crate::sql;
use chrono::Duration;
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};

/// Rows a pass removes at the most.
const ROWS_A_PASS: u32 = 2_000;

/// The last row that was removed; everything up to it is gone, except what was set aside. The beginning if that was noted
/// on another cluster, whose transaction ids say nothing here.
pub async fn removed(db: &impl ConnectionTrait) -> Result<Position, DbErr> {
    #[derive(FromQueryResult)]
    struct Removed {
        xid: String,
        id: i64,
    }
    let row = Removed::find_by_statement(sql!(
        "SELECT removed.xid::text AS xid, removed.id FROM outbox_removed AS removed, pg_control_system() AS cluster,
                pg_control_checkpoint() AS checkpoint
         WHERE removed.system_identifier = cluster.system_identifier::text AND removed.timeline = checkpoint.timeline_id"
    ))
    .one(db)
    .await?;
    Ok(row.map_or_else(Position::default, |row| Position { xid: row.xid.parse().unwrap_or_default(), id: row.id }))
}

/// Removes some of the rows that are older than `kept` and that every consumer has done. Returns how many were passed:
/// 0 when there are no more. Rows that were set aside stay until a person has dealt with them.
pub async fn forget_some(db: &Db, kept: Duration) -> Result<u64, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        xid: String,
        id: i64,
        is_old: bool,
    }
    let transaction = db.begin("outbox_forget").await?;
    // One process at a time.
    let turn =
        Single::<bool>::find_by_statement(sql!("SELECT one_row AS value FROM outbox_removed FOR UPDATE SKIP LOCKED"));
    if turn.one(&*transaction).await?.is_none() {
        transaction.rollback().await?;
        return Ok(0);
    }
    let rows = Row::find_by_statement(sql!(
        "SELECT oldest.xid::text AS xid, oldest.id, oldest.created_at < clock_timestamp() - make_interval(secs => $1) AS is_old
         FROM outbox_removed AS removed
         CROSS JOIN LATERAL (SELECT xid, id FROM outbox_cursor ORDER BY outbox_cursor.xid, outbox_cursor.id LIMIT 1) AS slowest
         CROSS JOIN LATERAL (
             SELECT xid, id, created_at FROM outbox
             WHERE (outbox.xid, outbox.id) > (removed.xid, removed.id) AND (outbox.xid, outbox.id) <= (slowest.xid, slowest.id)
             ORDER BY outbox.xid, outbox.id LIMIT $2) AS oldest
         ORDER BY oldest.xid, oldest.id",
        kept.as_seconds_f64(),
        i64::from(ROWS_A_PASS)
    ))
    .all(&*transaction)
    .await?;
    let old: Vec<Row> = rows.into_iter().take_while(|row| row.is_old).collect();
    let Some(last) = old.last() else {
        transaction.rollback().await?;
        return Ok(0);
    };
    let removed = transaction
        .execute_raw(sql!(
            "DELETE FROM outbox USING outbox_removed AS removed
             WHERE (outbox.xid, outbox.id) > (removed.xid, removed.id) AND (outbox.xid, outbox.id) <= ($1::text::xid8, $2)
               AND NOT EXISTS (SELECT FROM outbox_quarantine AS aside WHERE aside.xid = outbox.xid AND aside.id = outbox.id)",
            last.xid.clone(),
            last.id
        ))
        .await?
        .rows_affected();
    transaction
        .execute_raw(sql!(
            "UPDATE outbox_removed SET xid = $1::text::xid8, id = $2,
                 created_at = greatest(outbox_removed.created_at, clock_timestamp() - make_interval(secs => $3)),
                 system_identifier = cluster.system_identifier::text, timeline = checkpoint.timeline_id
             FROM pg_control_system() AS cluster, pg_control_checkpoint() AS checkpoint",
            last.xid.clone(),
            last.id,
            kept.as_seconds_f64()
        ))
        .await?;
    transaction.commit().await.map_err(CommitError::into_cause)?;
    metrics::counter!("parterre_outbox_removed_total").increment(removed);
    Ok(u64::try_from(old.len()).unwrap_or(u64::MAX))
}
