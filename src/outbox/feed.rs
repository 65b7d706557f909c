//! Reading the outbox in commit order.

use parterre_entity::EventId;
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::Topic;
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
    wanted: bool,
}

/// What a look at the feed found.
#[derive(Clone, Debug, Default)]
pub struct Page {
    /// Rows of the topics asked for.
    pub rows: Vec<Row>,
    /// The last row that was looked at, of whatever topic; none at the end of the feed.
    pub end: Option<Position>,
}

/// Looks at up to `limit` rows after a position that no transaction in flight can still come before, and returns those of
/// some topics and where it ended. Ordered by the columns: a bare `xid` would name the text that is selected, and "10" comes
/// before "9".
pub async fn read_after(
    db: &impl ConnectionTrait,
    after: Position,
    limit: u32,
    topics: &[Topic],
) -> Result<Page, DbErr> {
    let topics: Vec<String> = topics.iter().map(|topic| topic.as_str().to_owned()).collect();
    let rows = Raw::find_by_statement(sql!(
        "WITH page AS MATERIALIZED (
             SELECT xid, id, topic, event_id, subject_id, payload FROM outbox
             WHERE (xid, id) > ($1::text::xid8, $2) AND xid < pg_snapshot_xmin(pg_current_snapshot())
             ORDER BY outbox.xid, outbox.id LIMIT $3),
         last AS (SELECT xid, id FROM page ORDER BY page.xid DESC, page.id DESC LIMIT 1)
         SELECT page.xid::text AS xid, page.id, topic, event_id, subject_id, payload, topic = ANY ($4) AS wanted
         FROM page CROSS JOIN last WHERE topic = ANY ($4) OR (page.xid, page.id) = (last.xid, last.id)
         ORDER BY page.xid, page.id",
        after.xid.to_string(),
        after.id,
        i64::from(limit),
        topics
    ))
    .all(db)
    .await?;
    let mut page = Page::default();
    for raw in rows {
        let position = Position { xid: raw.xid.parse().unwrap_or_default(), id: raw.id };
        page.end = Some(position);
        if raw.wanted {
            page.rows.push(Row {
                position,
                topic: raw.topic,
                event: raw.event_id,
                subject: raw.subject_id,
                payload: raw.payload,
            });
        }
    }
    Ok(page)
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
