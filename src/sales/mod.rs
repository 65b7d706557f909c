//! How events sell, for those who sell them: counted when somebody looks, from what the inventory and the bookings say, if
//! something changed since they were last counted, and kept.
//!
//! Invariants: figures are never moved by sums of changes, they are counted anew, so a change told twice or late makes
//! no difference; a mark made while somebody counts is counted again; an event that nobody looks at costs nothing but its
//! mark. This room writes nothing but its own table.

use crate::db::Db;
use crate::db::Transaction;
use crate::outbox::{Consumer, Row, Topic};
use crate::sql;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use moka::future::Cache;
use parterre_entity::EventId;
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use uuid::Uuid;

/// How an event sells. Money in minor units of the event's currency.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// By section and tier.
    pub parts: Vec<Part>,
    /// By the hour of confirmation, oldest first.
    pub hours: Vec<Hour>,
    /// What all bookings that were ever confirmed paid.
    pub gross_minor: i64,
    /// What went back.
    pub refunded_minor: i64,
}

/// How a section or a tier sells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Part {
    /// A section's number, or
    pub section: Option<i16>,
    /// a tier's.
    pub tier: Option<i16>,
    /// A tier's name.
    pub name: Option<String>,
    /// In all.
    pub capacity: i32,
    /// Sold now.
    pub sold: i32,
    /// Held or being paid.
    pub held: i32,
    /// Off sale.
    pub blocked: i32,
    /// What those who have it paid.
    pub gross_minor: i64,
}

/// What was sold in an hour.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Hour {
    /// Its beginning.
    pub hour: DateTime<Utc>,
    /// Seats and admissions.
    pub sold: i64,
    /// What they paid.
    pub gross_minor: i64,
}

/// How long figures are told before an event of which something changed is counted again.
const FRESH: Duration = Duration::from_secs(2);

/// Events counted at once: each count reads a whole house, and those who sell must not use up the connections of those who buy.
const COUNTED_AT_ONCE: usize = 2;

/// Figures, and when they were counted; none of an event that does not exist.
pub type Told = Option<Arc<(Figures, DateTime<Utc>)>>;

/// Counts and reads.
#[derive(Clone, Debug)]
pub struct Sales {
    db: Db,
    recent: Cache<EventId, Told>,
    counting: Arc<Semaphore>,
}

/// Marks the events of which something changed.
#[derive(Clone, Copy, Debug, Default)]
pub struct Marker;

#[async_trait]
impl Consumer for Marker {
    fn name(&self) -> &'static str {
        "sales"
    }

    fn topics(&self) -> &'static [Topic] {
        &[Topic::Seats, Topic::Booking, Topic::Event]
    }

    async fn write(&self, transaction: &Transaction, rows: &[Row]) -> Result<(), DbErr> {
        let events: BTreeSet<Uuid> = rows.iter().filter_map(|row| row.event.map(Uuid::from)).collect();
        mark(&**transaction, events.into_iter().collect()).await
    }
}

async fn mark(db: &impl ConnectionTrait, events: Vec<Uuid>) -> Result<(), DbErr> {
    if events.is_empty() {
        return Ok(());
    }
    db.execute_raw(sql!(
        "INSERT INTO event_sales (event_id, marked)
         SELECT id, 1 FROM event WHERE id = ANY ($1) ORDER BY id
         ON CONFLICT (event_id) DO UPDATE SET marked = event_sales.marked + 1",
        events
    ))
    .await
    .map(drop)
}

impl Sales {
    /// Of a database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        let recent = Cache::builder().max_capacity(1_000).time_to_live(FRESH).build();
        Self { db, recent, counting: Arc::new(Semaphore::new(COUNTED_AT_ONCE)) }
    }

    /// How an event sells, at most two seconds and the time of counting ago. Many who ask at once are counted for once.
    pub async fn of(&self, event: EventId) -> Result<Told, Arc<DbErr>> {
        self.recent.try_get_with(event, async { self.counted(event).await }).await
    }

    async fn counted(&self, event: EventId) -> Result<Told, DbErr> {
        let mut row = read(&self.db, event).await?;
        if row.as_ref().is_none_or(|row| row.is_behind) {
            // Nobody closes it.
            let _turn = self.counting.acquire().await;
            if row.is_none() {
                mark(self.db.pool(), vec![event.0]).await?;
            }
            count(&self.db, event).await?;
            row = read(&self.db, event).await?;
        }
        let figures = row.map(|row| {
            let figures = serde_json::from_value(row.figures).map_err(|error| DbErr::Json(error.to_string()))?;
            Ok::<_, DbErr>(Arc::new((figures, row.as_of)))
        });
        figures.transpose()
    }
}

#[derive(FromQueryResult)]
struct Counted {
    figures: serde_json::Value,
    as_of: DateTime<Utc>,
    is_behind: bool,
}

async fn read(db: &Db, event: EventId) -> Result<Option<Counted>, DbErr> {
    Counted::find_by_statement(sql!(
        "SELECT figures, as_of, marked > counted AS is_behind FROM event_sales WHERE event_id = $1 AND figures IS NOT NULL",
        event
    ))
    .one(db.pool())
    .await
}

/// Counts an event, up to the mark that it has before the counting begins.
async fn count(db: &Db, event: EventId) -> Result<(), DbErr> {
    let mark = crate::db::Single::<i64>::find_by_statement(sql!(
        "SELECT marked AS value FROM event_sales WHERE event_id = $1",
        event
    ));
    let Some(mark) = mark.one(db.pool()).await?.map(|row| row.value) else { return Ok(()) };
    let counted = db
        .pool()
        .execute_raw(sql!(
            "WITH seats AS (
                SELECT section_no, count(*) AS capacity, count(*) FILTER (WHERE status = 'SOLD') AS sold,
                       count(*) FILTER (WHERE status = 'PENDING'
                           OR (status = 'HELD' AND held_until > clock_timestamp())) AS held,
                       count(*) FILTER (WHERE status = 'BLOCKED') AS blocked
                FROM event_seat WHERE event_id = $1 GROUP BY section_no),
             seat_gross AS (
                SELECT seat.section_no, sum(item.unit_minor)::bigint AS gross
                FROM hold_item AS item
                JOIN event_seat AS seat ON seat.event_id = item.event_id AND seat.seat_no = item.seat_no
                WHERE item.event_id = $1 AND item.state = 'SOLD' AND item.seat_no IS NOT NULL GROUP BY 1),
             confirmed AS (SELECT hold_id, status, total_minor, confirmed_at FROM booking
                           WHERE event_id = $1 AND confirmed_at IS NOT NULL),
             tier_gross AS (
                SELECT item.tier_no, sum(item.unit_minor * item.quantity)::bigint AS gross
                FROM confirmed JOIN hold_item AS item ON item.hold_id = confirmed.hold_id
                WHERE item.state = 'SOLD' AND item.tier_no IS NOT NULL GROUP BY 1),
             parts AS (
                SELECT 0 AS kind, section_no AS no, jsonb_build_object('section', section_no, 'capacity', capacity,
                       'sold', sold, 'held', held, 'blocked', blocked, 'gross_minor', coalesce(gross, 0)) AS part
                FROM seats LEFT JOIN seat_gross USING (section_no)
                UNION ALL
                SELECT 1, tier_no, jsonb_build_object('tier', tier_no, 'name', name, 'capacity', capacity, 'sold', sold,
                       'held', held + pending, 'blocked', withdrawn, 'gross_minor', coalesce(gross, 0))
                FROM event_tier LEFT JOIN tier_gross USING (tier_no) WHERE event_id = $1),
             hours AS (
                SELECT date_trunc('hour', confirmed_at) AS hour, sum(item.quantity) AS sold,
                       sum(item.quantity * item.unit_minor)::bigint AS gross
                FROM confirmed JOIN hold_item AS item ON item.hold_id = confirmed.hold_id GROUP BY 1)
             UPDATE event_sales SET counted = $2, as_of = clock_timestamp(), figures = jsonb_build_object(
                'parts', (SELECT coalesce(jsonb_agg(part ORDER BY kind, no), '[]') FROM parts),
                'hours', (SELECT coalesce(jsonb_agg(jsonb_build_object('hour', hour, 'sold', sold, 'gross_minor', gross)
                                                    ORDER BY hour), '[]') FROM hours),
                'gross_minor', (SELECT coalesce(sum(total_minor), 0)::bigint FROM confirmed),
                'refunded_minor', (SELECT coalesce(sum(amount_minor), 0)::bigint FROM refund
                                   WHERE event_id = $1 AND status = 'SUCCEEDED' AND stray_of IS NULL))
             WHERE event_id = $1 AND (counted < $2 OR figures IS NULL)",
            event,
            mark
        ))
        .await?;
    metrics::counter!("parterre_sales_counted_total").increment(counted.rows_affected());
    Ok(())
}
