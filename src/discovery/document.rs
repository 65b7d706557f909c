//! Events as the index wants them, read from the database a batch at a time.

use crate::db::Db;
use crate::outbox;
use crate::sql;
use chrono::{DateTime, Datelike, NaiveDate, Utc};
use parterre_entity::{EventId, EventState};
use parterre_schema::{Kind, node_id};
use parterre_search::{EventDocument, Position, SaleState};
use sea_orm::{DbErr, FromQueryResult};
use std::collections::HashMap;
use uuid::Uuid;

#[derive(FromQueryResult)]
struct Row {
    id: EventId,
    organization_id: Uuid,
    title: String,
    description: Option<String>,
    category: Option<String>,
    starts_at: DateTime<Utc>,
    on_sale_at: DateTime<Utc>,
    off_sale_at: DateTime<Utc>,
    state: EventState,
    currency: String,
    popularity: f64,
    venue_id: Uuid,
    venue_name: String,
    city: String,
    country_code: String,
    time_zone: String,
    latitude: Option<f64>,
    longitude: Option<f64>,
    performer_ids: Vec<Uuid>,
    performer_names: Vec<String>,
    price_min: Option<i64>,
    price_max: Option<i64>,
    remaining: Option<i64>,
}

const DOCUMENTS: &str = "SELECT event.id, event.organization_id, title, description, category, starts_at, on_sale_at,
        off_sale_at, state, currency, popularity, venue.id AS venue_id, venue.name AS venue_name, city, country_code,
        time_zone, latitude, longitude, bill.performer_ids, bill.performer_names, price.price_min, price.price_max,
        stock.remaining
    FROM event JOIN venue ON venue.id = event.venue_id
    CROSS JOIN LATERAL (
        SELECT coalesce(array_agg(performer.id ORDER BY position), '{}') AS performer_ids,
               coalesce(array_agg(performer.name ORDER BY position), '{}') AS performer_names
        FROM event_performer JOIN performer ON performer.id = event_performer.performer_id
        WHERE event_performer.event_id = event.id) AS bill
    CROSS JOIN LATERAL (
        SELECT min(price_minor) AS price_min, max(price_minor) AS price_max FROM (
            SELECT price_minor FROM event_zone WHERE event_id = event.id
            UNION ALL SELECT price_minor FROM event_tier WHERE event_id = event.id) AS prices) AS price
    CROSS JOIN LATERAL (
        SELECT sum(remaining)::bigint AS remaining FROM event_counter WHERE event_id = event.id) AS stock";

/// Documents of some events, each with the position of the newest row about it. One that does not exist is left out.
pub(super) async fn of(db: &Db, newest: &HashMap<Uuid, outbox::Position>) -> Result<Vec<EventDocument>, DbErr> {
    if newest.is_empty() {
        return Ok(Vec::new());
    }
    let statement = format!("{DOCUMENTS} WHERE event.id = ANY ($1)");
    let ids: Vec<Uuid> = newest.keys().copied().collect();
    let rows = Row::find_by_statement(sql!(statement, ids)).all(db.pool()).await?;
    let at = |row: &Row| newest.get(&row.id.0).copied().unwrap_or_default();
    Ok(rows.into_iter().map(|row| (at(&row), row)).map(|(at, row)| document(row, at)).collect())
}

/// A page of all documents, ascending by id, read after everything up to a position was committed.
pub(super) async fn page(db: &Db, after: Uuid, limit: i64, at: outbox::Position) -> Result<Vec<EventDocument>, DbErr> {
    let statement = format!("{DOCUMENTS} WHERE event.id > $1 ORDER BY event.id LIMIT $2");
    let rows = Row::find_by_statement(sql!(statement, after, limit)).all(db.pool()).await?;
    Ok(rows.into_iter().map(|row| document(row, at)).collect())
}

fn document(row: Row, at: outbox::Position) -> EventDocument {
    let day = crate::catalogue::local_date(row.starts_at, &row.time_zone);
    let state = match row.state {
        EventState::Draft => SaleState::Draft,
        EventState::Published => SaleState::Published,
        EventState::Paused => SaleState::Paused,
        EventState::Cancelled => SaleState::Cancelled,
    };
    EventDocument {
        id: row.id.0,
        position: Position { xid: at.xid, id: at.id },
        organization: row.organization_id,
        title: row.title,
        description: row.description.unwrap_or_default(),
        category: row.category,
        performers: row.performer_names,
        performer_ids: row.performer_ids.into_iter().map(|id| node_id(Kind::Performer, id).0).collect(),
        venue: row.venue_name,
        venue_id: node_id(Kind::Venue, row.venue_id).0,
        city: row.city,
        country_code: row.country_code,
        local_day: days(day),
        month: day.format("%Y-%m").to_string(),
        starts_at: row.starts_at.timestamp(),
        on_sale_at: row.on_sale_at.timestamp(),
        off_sale_at: row.off_sale_at.timestamp(),
        state,
        has_stock: row.remaining.unwrap_or(0) > 0,
        currency: row.currency,
        price_min: row.price_min.unwrap_or(0),
        price_max: row.price_max.unwrap_or(0),
        place: row.latitude.zip(row.longitude),
        popularity: row.popularity,
    }
}

/// A calendar day as a number: days since 1970-01-01.
pub(super) fn days(day: NaiveDate) -> i64 {
    i64::from(day.num_days_from_ce()) - i64::from(NaiveDate::default().num_days_from_ce())
}
