//! How far behind consumers are, for the metrics.

use super::feed::Position;
use crate::db::{Db, Single};
use crate::sql;
use sea_orm::{DbErr, FromQueryResult};

/// Tells the lag of every consumer whose cursor is in the database.
pub async fn watch_all(db: &Db) -> Result<(), DbErr> {
    #[derive(FromQueryResult)]
    struct Cursor {
        consumer: String,
        xid: String,
        id: i64,
    }
    let cursors = Cursor::find_by_statement(sql!("SELECT consumer, xid::text AS xid, id FROM outbox_cursor"));
    for Cursor { consumer, xid, id } in cursors.all(db.pool()).await? {
        watch(db, consumer, Position { xid: xid.parse().unwrap_or_default(), id }).await?;
    }
    Ok(())
}

/// Tells the age of the oldest row that a consumer has not done.
pub async fn watch(db: &Db, consumer: impl Into<String>, position: Position) -> Result<(), DbErr> {
    let lag = Single::<f64>::find_by_statement(sql!(
        "SELECT coalesce(extract(epoch FROM clock_timestamp() - (
             SELECT created_at FROM outbox WHERE (xid, id) > ($1::text::xid8, $2) ORDER BY xid, id LIMIT 1)), 0)::float8 AS value",
        position.xid.to_string(),
        position.id
    ))
    .one(db.pool())
    .await?;
    metrics::gauge!("parterre_outbox_lag_seconds", "consumer" => consumer.into()).set(lag.map_or(0.0, |lag| lag.value));
    Ok(())
}
