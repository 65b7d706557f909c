//! How far behind consumers are: for the metrics, and for whoever wonders why rows are kept.

use super::feed::Position;
use crate::db::{Db, Single};
use crate::sql;
use chrono::Duration;
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};

/// How far behind a consumer is whose cursor is in the database.
#[derive(Clone, Debug, PartialEq, FromQueryResult)]
pub struct Lag {
    /// Its name.
    pub consumer: String,
    /// The age of the oldest row that it has not done; 0 if it has done all.
    pub seconds: f64,
}

/// Every consumer's lag, by name.
pub async fn lags(db: &Db) -> Result<Vec<Lag>, DbErr> {
    Lag::find_by_statement(sql!(
        "SELECT consumer, coalesce(extract(epoch FROM clock_timestamp() - next.created_at), 0)::float8 AS seconds
         FROM outbox_cursor AS cursor LEFT JOIN LATERAL (
             SELECT created_at FROM outbox WHERE (outbox.xid, outbox.id) > (cursor.xid, cursor.id)
             ORDER BY outbox.xid, outbox.id LIMIT 1) AS next ON true
         ORDER BY consumer"
    ))
    .all(db.pool())
    .await
}

/// Tells every consumer's lag as a metric. Returns those for whose sake rows are kept longer than they would be.
pub async fn watch_all(db: &Db, kept: Duration) -> Result<Vec<Lag>, DbErr> {
    let mut lags = lags(db).await?;
    for lag in &lags {
        metrics::gauge!("parterre_outbox_lag_seconds", "consumer" => lag.consumer.clone()).set(lag.seconds);
    }
    lags.retain(|lag| lag.seconds > kept.as_seconds_f64());
    Ok(lags)
}

/// Forgets a consumer that was switched off for good, so that nothing is kept for it. One that runs starts over. Whether
/// there was one of that name.
pub async fn forget(db: &Db, consumer: &str) -> Result<bool, DbErr> {
    let gone = db.pool().execute_raw(sql!("DELETE FROM outbox_cursor WHERE consumer = $1", consumer)).await?;
    Ok(gone.rows_affected() > 0)
}

/// Tells the age of the oldest row that a reader with a cursor of its own has not done.
pub async fn watch(db: &Db, reader: &'static str, position: Position) -> Result<(), DbErr> {
    let lag = Single::<f64>::find_by_statement(sql!(
        "SELECT coalesce(extract(epoch FROM clock_timestamp() - (
             SELECT created_at FROM outbox WHERE (xid, id) > ($1::text::xid8, $2) ORDER BY xid, id LIMIT 1)), 0)::float8 AS value",
        position.xid.to_string(),
        position.id
    ))
    .one(db.pool())
    .await?;
    metrics::gauge!("parterre_outbox_lag_seconds", "consumer" => reader).set(lag.map_or(0.0, |lag| lag.value));
    Ok(())
}
