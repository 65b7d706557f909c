//! Reading the outbox in commit order.

use parterre_entity::EventId;
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::db::Single;
use crate::sql;

/// A place in the feed: transaction id, then row id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// The 64-bit id of the transaction.
    pub xid: u64,
    /// The row within all rows.
    pub id: i64,
}

/// A row of the outbox.
#[derive(Clone, Debug)]
pub struct Row {
    /// Where it stands.
    pub position: Position,
    /// What it is about: a `Topic`'s text.
    pub topic: String,
    /// The event it belongs to.
    pub event: Option<EventId>,
    /// The thing that changed.
    pub subject: Option<Uuid>,
    /// What the writer told.
    pub payload: serde_json::Value,
}

impl Row {
    /// Whether a field of what the writer told is this word.
    #[must_use]
    pub fn says(&self, field: &str, word: &str) -> bool {
        self.payload.get(field).is_some_and(|found| found == word)
    }
}

/// Which database cluster this is. A restore or a failover changes it, and old cursors mean nothing then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cluster {
    /// PostgreSQL's system identifier.
    pub system_identifier: String,
    /// Its timeline.
    pub timeline: i32,
}

#[derive(FromQueryResult)]
struct Raw {
    xid: String,
    id: i64,
    topic: String,
    event_id: Option<EventId>,
    subject_id: Option<Uuid>,
    payload: serde_json::Value,
}

/// Up to `limit` rows after a position that no transaction in flight can still come before. Ordered by the columns: a bare
/// `xid` would name the text that is selected, and "10" comes before "9".
pub async fn read_after(db: &impl ConnectionTrait, after: Position, limit: u32) -> Result<Vec<Row>, DbErr> {
    let rows = Raw::find_by_statement(sql!(
        "SELECT xid::text AS xid, id, topic, event_id, subject_id, payload FROM outbox
         WHERE (xid, id) > ($1::text::xid8, $2) AND xid < pg_snapshot_xmin(pg_current_snapshot())
         ORDER BY outbox.xid, outbox.id LIMIT $3",
        after.xid.to_string(),
        after.id,
        i64::from(limit)
    ))
    .all(db)
    .await?;
    Ok(rows
        .into_iter()
        .map(|raw| Row {
            position: Position { xid: raw.xid.parse().unwrap_or_default(), id: raw.id },
            topic: raw.topic,
            event: raw.event_id,
            subject: raw.subject_id,
            payload: raw.payload,
        })
        .collect())
}

/// Whether committed rows wait behind the horizon, held back by some older transaction in flight.
pub async fn waiting_behind(db: &impl ConnectionTrait, after: Position) -> Result<bool, DbErr> {
    let row = Single::<bool>::find_by_statement(sql!(
        "SELECT EXISTS (SELECT FROM outbox WHERE (xid, id) > ($1::text::xid8, $2)) AS value",
        after.xid.to_string(),
        after.id
    ))
    .one(db)
    .await?;
    Ok(row.is_some_and(|row| row.value))
}

/// The cluster we are connected to.
pub async fn cluster(db: &impl ConnectionTrait) -> Result<Cluster, DbErr> {
    #[derive(FromQueryResult)]
    struct Identity {
        system_identifier: String,
        timeline: i32,
    }
    let row = Identity::find_by_statement(sql!(
        "SELECT (SELECT system_identifier::text FROM pg_control_system()) AS system_identifier,
                (SELECT timeline_id FROM pg_control_checkpoint()) AS timeline"
    ))
    .one(db)
    .await?
    .ok_or_else(|| DbErr::RecordNotFound("pg_control_system".to_owned()))?;
    Ok(Cluster { system_identifier: row.system_identifier, timeline: row.timeline })
}
