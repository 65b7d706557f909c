//! Consumers whose cursor lives in the database.
//!
//! A `Consumer` that writes to the database handles rows and moves its cursor in one commit. One that acts elsewhere
//! (the relay) acts first, outside any transaction, under a lease, and then moves its cursor: at least once.

use super::Topic;
use super::feed::{Cluster, Page, Position, Row, cluster, read_after, waiting_behind};
use crate::db::{CommitError, Db, Transaction, is_connection};
use crate::sql;
use async_trait::async_trait;
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use uuid::Uuid;

/// Someone who reacts to what was committed.
#[async_trait]
pub trait Consumer: Send + Sync {
    /// Names its cursor. Never changes.
    fn name(&self) -> &'static str;

    /// What it reacts to: it sees no other rows.
    fn topics(&self) -> &'static [Topic];

    /// Reacts outside the database, with no transaction open. May see a row again.
    async fn act(&self, _rows: &[Row]) -> Result<(), DbErr> {
        Ok(())
    }

    /// Reacts inside the database: what it writes commits with the cursor. May see a row again.
    async fn write(&self, _transaction: &Transaction, _rows: &[Row]) -> Result<(), DbErr> {
        Ok(())
    }
}

/// What a pass found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Rows were handled; there may be more.
    Moved,
    /// Committed rows wait for an older transaction to end: look again soon.
    Behind,
    /// Nothing to do, or another process is doing it.
    Idle,
}

/// Rows looked at in one pass.
const BATCH_ROWS: u32 = 1_000;
const LEASE_SECONDS: i32 = 5;

/// One pass of a consumer. A row it can't digest is set aside, so that the feed goes on.
pub async fn consume(db: &Db, consumer: &dyn Consumer) -> Result<Progress, DbErr> {
    let after = cursor(db, consumer.name()).await?;
    let Page { rows, end } = read_after(db.pool(), after, BATCH_ROWS, consumer.topics()).await?;
    let Some(end) = end else {
        let behind = waiting_behind(db.pool(), after).await?;
        return Ok(if behind { Progress::Behind } else { Progress::Idle });
    };
    let Some(lease) = take_lease(db, consumer.name(), after).await? else { return Ok(Progress::Idle) };
    let result = deliver(db, consumer, &rows, (after, end)).await;
    drop_lease(db, consumer.name(), lease).await?;
    result.map(|()| Progress::Moved)
}

/// All rows at once; if that fails, one by one until the one that fails shows, which is set aside.
async fn deliver(
    db: &Db,
    consumer: &dyn Consumer,
    rows: &[Row],
    (mut after, end): (Position, Position),
) -> Result<(), DbErr> {
    match handle(db, consumer, rows, (after, end)).await {
        Err(error) if !rows.is_empty() && !is_connection(&error) => {}
        result => return result,
    }
    for row in rows {
        match handle(db, consumer, std::slice::from_ref(row), (after, row.position)).await {
            Ok(()) => {}
            Err(error) if is_connection(&error) || crate::db::may_repeat(&error) => return Err(error),
            Err(error) => set_aside(db, consumer.name(), (after, row.position), &error).await?,
        }
        after = row.position;
    }
    Ok(())
}

/// Rows between two positions, and what lies between them that is not the consumer's.
async fn handle(
    db: &Db,
    consumer: &dyn Consumer,
    rows: &[Row],
    (after, end): (Position, Position),
) -> Result<(), DbErr> {
    consumer.act(rows).await?;
    let transaction = db.begin("outbox_consume").await?;
    if rows.is_empty() {
        // Nothing is lost if a crash takes the cursor back, so nobody waits for the disk.
        transaction.execute_unprepared("SET LOCAL synchronous_commit = off").await?;
    } else {
        consumer.write(&transaction, rows).await?;
    }
    if move_cursor(&transaction, consumer.name(), after, end).await? == 0 {
        // Another process was faster: its writes stand, ours must not.
        return transaction.rollback().await;
    }
    transaction.commit().await.map_err(CommitError::into_cause)?;
    metrics::counter!("parterre_outbox_delivered_total", "consumer" => consumer.name())
        .increment(u64::try_from(rows.len()).unwrap_or(u64::MAX));
    Ok(())
}

/// The consumer's cursor. One from another cluster means nothing: then the whole outbox starts over.
async fn cursor(db: &Db, name: &'static str) -> Result<Position, DbErr> {
    #[derive(FromQueryResult)]
    struct Cursor {
        xid: String,
        id: i64,
        system_identifier: String,
        timeline: i32,
    }
    let here = cluster(db.pool()).await?;
    let row = Cursor::find_by_statement(sql!(
        "SELECT xid::text AS xid, id, system_identifier, timeline FROM outbox_cursor WHERE consumer = $1",
        name
    ))
    .one(db.pool())
    .await?;
    match row {
        Some(row) if row.system_identifier == here.system_identifier && row.timeline == here.timeline => {
            Ok(Position { xid: row.xid.parse().unwrap_or_default(), id: row.id })
        }
        Some(_) => {
            start_over(db, &here).await?;
            Ok(Position::default())
        }
        None => {
            db.pool()
                .execute_raw(sql!(
                    "INSERT INTO outbox_cursor (consumer, xid, id, system_identifier, timeline)
                     VALUES ($1, '0', 0, $2, $3) ON CONFLICT DO NOTHING",
                    name,
                    here.system_identifier,
                    here.timeline
                ))
                .await?;
            Ok(Position::default())
        }
    }
}

/// After a restore or a failover the saved transaction ids are another history's: every kept row gets an id of this
/// one, in its old order, and every cursor goes back to the beginning.
async fn start_over(db: &Db, here: &Cluster) -> Result<(), DbErr> {
    tracing::warn!("the database is another cluster than before, delivering the kept outbox rows again");
    let transaction = db.begin("outbox_start_over").await?;
    let stale = transaction
        .execute_raw(sql!(
            "UPDATE outbox_cursor SET xid = '0', id = 0, system_identifier = $1, timeline = $2
             WHERE system_identifier <> $1 OR timeline <> $2",
            here.system_identifier.clone(),
            here.timeline
        ))
        .await?
        .rows_affected();
    if stale > 0 {
        transaction.execute_raw(sql!("UPDATE outbox SET xid = pg_current_xact_id()")).await?;
        transaction.execute_raw(sql!("UPDATE outbox_removed SET xid = '0', id = 0")).await?;
    }
    transaction.commit().await.map_err(CommitError::into_cause)
}

/// Before an UPDATE that joins it: nobody waits for the disk. A lease that a crash takes back is only taken again.
const QUICKLY: &str = "WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true) AS off)";

async fn take_lease(db: &Db, name: &'static str, after: Position) -> Result<Option<Uuid>, DbErr> {
    let token = Uuid::now_v7();
    let taken = db
        .pool()
        .execute_raw(sql!(
            format!(
                "{QUICKLY} UPDATE outbox_cursor
                 SET lease_token = $2, lease_until = clock_timestamp() + make_interval(secs => $3)
                 FROM quick WHERE quick.off = 'off' AND consumer = $1
                   AND (lease_until IS NULL OR lease_until <= clock_timestamp()) AND xid = $4::text::xid8 AND id = $5"
            ),
            name,
            token,
            f64::from(LEASE_SECONDS),
            after.xid.to_string(),
            after.id
        ))
        .await?
        .rows_affected();
    Ok((taken == 1).then_some(token))
}

async fn drop_lease(db: &Db, name: &'static str, token: Uuid) -> Result<(), DbErr> {
    db.pool()
        .execute_raw(sql!(
            format!(
                "{QUICKLY} UPDATE outbox_cursor SET lease_token = NULL, lease_until = NULL
                 FROM quick WHERE quick.off = 'off' AND consumer = $1 AND lease_token = $2"
            ),
            name,
            token
        ))
        .await
        .map(drop)
}

async fn move_cursor(
    transaction: &Transaction,
    name: &'static str,
    from: Position,
    to: Position,
) -> Result<u64, DbErr> {
    let moved = transaction
        .execute_raw(sql!(
            "UPDATE outbox_cursor SET xid = $4::text::xid8, id = $5
             WHERE consumer = $1 AND xid = $2::text::xid8 AND id = $3",
            name,
            from.xid.to_string(),
            from.id,
            to.xid.to_string(),
            to.id
        ))
        .await?;
    Ok(moved.rows_affected())
}

/// Notes a row that could not be handled and goes past it, unless another process is past it already.
async fn set_aside(db: &Db, name: &'static str, (after, at): (Position, Position), error: &DbErr) -> Result<(), DbErr> {
    let transaction = db.begin("outbox_quarantine").await?;
    if move_cursor(&transaction, name, after, at).await? == 0 {
        return transaction.rollback().await;
    }
    transaction
        .execute_raw(sql!(
            "INSERT INTO outbox_quarantine (consumer, xid, id, error) VALUES ($1, $2::text::xid8, $3, $4)
             ON CONFLICT DO NOTHING",
            name,
            at.xid.to_string(),
            at.id,
            error.to_string()
        ))
        .await?;
    transaction.commit().await.map_err(CommitError::into_cause)?;
    tracing::error!(consumer = name, outbox.xid = at.xid, outbox.id = at.id, %error, "an outbox row could not be handled and was set aside");
    metrics::counter!("parterre_outbox_quarantined_total", "consumer" => name).increment(1);
    Ok(())
}
