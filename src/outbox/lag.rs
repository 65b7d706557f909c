//! How far behind consumers are, for the metrics.

use super::feed::Position;
use crate::db::{Db, Single};
use crate::sql;
use sea_orm::{DbErr, FromQueryResult};

#[derive(FromQueryResult)]
struct Lag {
    consumer: String,
    seconds: f64,
}

/// The age of the oldest row that each consumer has not done. Theirs who keep their cursor elsewhere is `behind`.
pub async fn watch(db: &Db, elsewhere: Option<(&'static str, Position)>) -> Result<(), DbErr> {
    let lags = Lag::find_by_statement(sql!(
        "SELECT consumer, coalesce(extract(epoch FROM clock_timestamp() - (
             SELECT created_at FROM outbox WHERE (outbox.xid, outbox.id) > (cursor.xid, cursor.id)
             ORDER BY xid, id LIMIT 1)), 0)::float8 AS seconds
         FROM outbox_cursor AS cursor"
    ))
    .all(db.pool())
    .await?;
    for Lag { consumer, seconds } in lags {
        metrics::gauge!("parterre_outbox_lag_seconds", "consumer" => consumer).set(seconds);
    }
    if let Some((consumer, position)) = elsewhere {
        let lag = Single::<f64>::find_by_statement(sql!(
            "SELECT coalesce(extract(epoch FROM clock_timestamp() - (
                 SELECT created_at FROM outbox WHERE (xid, id) > ($1::text::xid8, $2) ORDER BY xid, id LIMIT 1)), 0)::float8 AS value",
            position.xid.to_string(),
            position.id
        ))
        .one(db.pool())
        .await?;
        metrics::gauge!("parterre_outbox_lag_seconds", "consumer" => consumer).set(lag.map_or(0.0, |lag| lag.value));
    }
    Ok(())
}
