//! The catalogue's writes, each one transaction with its audit and outbox rows.

use super::layout::Draft;
use super::rules::{self, EventEdits, EventFacts, SaleStep, Schedule, VenueFacts};
use super::{CatalogueError, LayoutId};
use crate::audit::{self, Organizer};
use crate::bus::SeatsDelta;
use crate::db::{Db, Transaction, repeating};
use crate::input::Invalid;
use crate::inventory::{self, TierSpec};
use crate::outbox::{self, Change, Topic};
use crate::sql;
use parterre_entity::{
    EventId, EventState, PerformerId, VenueId, event, event_tier, event_zone, layout, performer, venue,
};
use sea_orm::{
    ActiveModelTrait, ColumnTrait, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, IntoActiveModel, QueryFilter,
    QueryOrder, QuerySelect,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use uuid::Uuid;

/// Seats created in one transaction: well under a second of work, so that no reader of the outbox waits for it.
const SEATS_A_CHUNK: i32 = 10_000;

async fn tell(
    tx: &Transaction,
    topic: Topic,
    event: Option<EventId>,
    subject: impl Into<Uuid>,
    what: &'static str,
) -> Result<(), DbErr> {
    let change = Change { topic, event, subject: Some(subject.into()), payload: serde_json::json!({ "change": what }) };
    outbox::append(&**tx, &[change]).await
}

pub(super) async fn insert_venue(db: &Db, who: &Organizer, facts: VenueFacts) -> Result<venue::Model, CatalogueError> {
    let tx = db.begin("venue_create").await?;
    let row = venue::Model {
        id: VenueId::new(),
        organization_id: who.organization,
        version: 1,
        name: facts.name,
        city: facts.city,
        country_code: facts.country_code,
        time_zone: facts.time_zone,
        latitude: facts.place.map(|place| place.0),
        longitude: facts.place.map(|place| place.1),
        created_at: crate::db::clock(&*tx).await?,
    };
    venue::Entity::insert(row.clone().into_active_model()).exec_without_returning(&*tx).await?;
    audit::record(&*tx, who, "createVenue", row.id, serde_json::json!({})).await?;
    tell(&tx, Topic::Venue, None, row.id, "created").await?;
    tx.commit().await?;
    Ok(row)
}

/// A venue's new facts; what is `None` stays.
#[derive(Clone, Debug, Default)]
pub(super) struct VenueEdits {
    pub(super) name: Option<String>,
    pub(super) city: Option<String>,
    pub(super) country_code: Option<String>,
    pub(super) latitude: Option<f64>,
    pub(super) longitude: Option<f64>,
}

pub(super) async fn update_venue(
    db: &Db,
    who: &Organizer,
    (id, expected): (VenueId, i64),
    edits: VenueEdits,
) -> Result<venue::Model, CatalogueError> {
    let tx = db.begin("venue_update").await?;
    let mut row = venue::Entity::find_by_id(id)
        .filter(venue::Column::OrganizationId.eq(who.organization))
        .lock(sea_orm::sea_query::LockType::NoKeyUpdate)
        .one(&*tx)
        .await?
        .ok_or(CatalogueError::NotFound("venueId"))?;
    check_version(row.version, expected)?;
    row.version += 1;
    row.name = edits.name.unwrap_or(row.name);
    row.city = edits.city.unwrap_or(row.city);
    row.country_code = edits.country_code.unwrap_or(row.country_code);
    let place = rules::place(edits.latitude.or(row.latitude), edits.longitude.or(row.longitude))?;
    (row.latitude, row.longitude) = (place.map(|place| place.0), place.map(|place| place.1));
    venue::Entity::update(row.clone().into_active_model().reset_all()).exec(&*tx).await?;
    audit::record(&*tx, who, "updateVenue", id, serde_json::json!({ "version": row.version })).await?;
    tell(&tx, Topic::Venue, None, id, "updated").await?;
    tx.commit().await?;
    Ok(row)
}

pub(super) async fn insert_performer(
    db: &Db,
    who: &Organizer,
    (name, genre): (String, Option<String>),
) -> Result<performer::Model, CatalogueError> {
    let tx = db.begin("performer_create").await?;
    let created_at = crate::db::clock(&*tx).await?;
    let row = performer::Model {
        id: PerformerId::new(),
        organization_id: who.organization,
        version: 1,
        name,
        genre,
        created_at,
    };
    performer::Entity::insert(row.clone().into_active_model()).exec_without_returning(&*tx).await?;
    audit::record(&*tx, who, "createPerformer", row.id, serde_json::json!({})).await?;
    tell(&tx, Topic::Performer, None, row.id, "created").await?;
    tx.commit().await?;
    Ok(row)
}

pub(super) async fn update_performer(
    db: &Db,
    who: &Organizer,
    (id, expected): (PerformerId, i64),
    (name, genre): (Option<String>, Option<Option<String>>),
) -> Result<performer::Model, CatalogueError> {
    let tx = db.begin("performer_update").await?;
    let mut row = performer::Entity::find_by_id(id)
        .filter(performer::Column::OrganizationId.eq(who.organization))
        .lock(sea_orm::sea_query::LockType::NoKeyUpdate)
        .one(&*tx)
        .await?
        .ok_or(CatalogueError::NotFound("performerId"))?;
    check_version(row.version, expected)?;
    row.version += 1;
    row.name = name.unwrap_or(row.name);
    row.genre = genre.unwrap_or(row.genre);
    performer::Entity::update(row.clone().into_active_model().reset_all()).exec(&*tx).await?;
    audit::record(&*tx, who, "updatePerformer", id, serde_json::json!({ "version": row.version })).await?;
    tell(&tx, Topic::Performer, None, id, "updated").await?;
    tx.commit().await?;
    Ok(row)
}

fn check_version(current: i64, expected: i64) -> Result<(), CatalogueError> {
    if current == expected { Ok(()) } else { Err(CatalogueError::Stale { current }) }
}

/// Saves a layout and all its seats.
pub(super) async fn insert_layout(
    db: &Db,
    who: &Organizer,
    venue: VenueId,
    draft: &Draft,
) -> Result<LayoutId, CatalogueError> {
    // Hashing hundreds of thousands of places takes a while: not while a transaction is open.
    let geometry_hash = draft.geometry_hash();
    let tx = db.begin("layout_create").await?;
    own_venue(&tx, who, venue).await?;
    let row = layout::Model {
        id: LayoutId::new(),
        venue_id: venue,
        name: draft.name.clone(),
        seat_count: i32::try_from(draft.seats.len()).unwrap_or(i32::MAX),
        section_names: draft.section_names.clone(),
        zone_names: draft.zone_names.clone(),
        geometry_hash,
        created_at: crate::db::clock(&*tx).await?,
    };
    layout::Entity::insert(row.clone().into_active_model()).exec_without_returning(&*tx).await?;
    let mut first = 0_i32;
    for chunk in draft.seats.chunks(10_000) {
        insert_layout_seats(&tx, row.id, first, chunk).await?;
        first += i32::try_from(chunk.len()).unwrap_or(i32::MAX);
    }
    audit::record(&*tx, who, "createLayout", row.id, serde_json::json!({ "seats": row.seat_count })).await?;
    tx.commit().await?;
    Ok(row.id)
}

async fn insert_layout_seats(
    tx: &Transaction,
    layout: LayoutId,
    first: i32,
    seats: &[super::Seat],
) -> Result<(), DbErr> {
    tx.execute_raw(sql!(
        "INSERT INTO layout_seat (layout_id, seat_no, seat_id, section_no, row_name, number, zone_no, accessible, x, y, next_no)
         SELECT $1, $2 + (ordinality - 1)::int, seat_id, section_no, row_name, number, zone_no, accessible, x, y, nullif(next_no, -1)
         FROM unnest($3::text[], $4::smallint[], $5::text[], $6::text[], $7::smallint[], $8::bool[], $9::float8[],
                     $10::float8[], $11::int[]) WITH ORDINALITY
             AS new (seat_id, section_no, row_name, number, zone_no, accessible, x, y, next_no, ordinality)",
        layout,
        first,
        seats.iter().map(|seat| seat.seat_id.clone()).collect::<Vec<_>>(),
        seats.iter().map(|seat| seat.section).collect::<Vec<_>>(),
        seats.iter().map(|seat| seat.row.clone()).collect::<Vec<_>>(),
        seats.iter().map(|seat| seat.number.clone()).collect::<Vec<_>>(),
        seats.iter().map(|seat| seat.zone).collect::<Vec<_>>(),
        seats.iter().map(|seat| seat.accessible).collect::<Vec<_>>(),
        seats.iter().map(|seat| seat.x).collect::<Vec<_>>(),
        seats.iter().map(|seat| seat.y).collect::<Vec<_>>(),
        seats.iter().map(|seat| seat.next.unwrap_or(-1)).collect::<Vec<_>>()
    ))
    .await
    .map(drop)
}

async fn own_venue(tx: &Transaction, who: &Organizer, id: VenueId) -> Result<venue::Model, CatalogueError> {
    venue::Entity::find_by_id(id)
        .filter(venue::Column::OrganizationId.eq(who.organization))
        .one(&**tx)
        .await?
        .ok_or(CatalogueError::NotFound("venueId"))
}

/// Where a new event takes place and who is on its bill.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    pub(super) venue: VenueId,
    pub(super) layout: Option<Arc<super::Layout>>,
    pub(super) performers: Vec<PerformerId>,
    pub(super) popularity: f64,
}

/// Creates a draft; then its seats in chunks; then marks it ready. A kill in between leaves a draft that a worker ends.
pub(super) async fn insert_event(
    db: &Db,
    who: &Organizer,
    place: &Placement,
    facts: &EventFacts,
) -> Result<event::Model, CatalogueError> {
    let row = repeating(|| insert_draft(db, who, place, facts)).await?;
    match &place.layout {
        // Each commit is repeated for itself: repeating the whole would make a second event.
        Some(layout) => repeating(|| finish_seats(db, row.id, layout.id, row.seats_wanted)).await,
        None => Ok(row),
    }
}

async fn insert_draft(
    db: &Db,
    who: &Organizer,
    place: &Placement,
    facts: &EventFacts,
) -> Result<event::Model, CatalogueError> {
    let tx = db.begin("event_create").await?;
    let venue = own_venue(&tx, who, place.venue).await?;
    let zones = zone_rows(place.layout.as_deref(), &facts.zone_prices)?;
    let id = EventId::new();
    let local_day = super::local_date(facts.schedule.starts_at, &venue.time_zone);
    let row = event::Model {
        id,
        organization_id: who.organization,
        venue_id: place.venue,
        layout_id: place.layout.as_ref().map(|layout| layout.id),
        slug: slug(&facts.title, local_day, id),
        version: 1,
        title: facts.title.clone(),
        description: facts.description.clone(),
        category: facts.category.clone(),
        starts_at: facts.schedule.starts_at,
        on_sale_at: facts.schedule.on_sale_at,
        off_sale_at: facts.schedule.off_sale_at,
        state: EventState::Draft,
        inventory_mode: facts.mode,
        seats_wanted: place
            .layout
            .as_ref()
            .map_or(0, |layout| i32::try_from(layout.drawing.seats.len()).unwrap_or(i32::MAX)),
        seats_ready: place.layout.is_none(),
        currency: facts.currency.code().to_owned(),
        hold_seconds: facts.hold_seconds,
        max_seats_per_buyer: facts.max_seats_per_buyer,
        forbid_single_seats: facts.forbid_single_seats,
        admit_per_minute: facts.waiting_room.map(|room| room.admit_per_minute),
        active_per_remaining_seat: facts.waiting_room.map_or(1.5, |room| room.active_per_remaining_seat),
        admission_seconds: facts.waiting_room.map_or(600, |room| room.admission_seconds),
        cancel_until_seconds_before: facts.cancellation.until_seconds_before,
        refund_ppm: facts.cancellation.refund_ppm,
        resell: facts.cancellation.resell,
        popularity: place.popularity,
        created_at: crate::db::clock(&*tx).await?,
    };
    event::Entity::insert(row.clone().into_active_model()).exec_without_returning(&*tx).await?;
    write_bill(&tx, id, &place.performers).await?;
    for (zone_no, name, price_minor) in zones {
        let zone = event_zone::Model { event_id: id, zone_no, name, price_minor };
        event_zone::Entity::insert(zone.into_active_model()).exec_without_returning(&*tx).await?;
    }
    if !facts.tiers.is_empty() {
        let specs: Vec<TierSpec> = (0_i16..)
            .zip(&facts.tiers)
            .map(|(no, tier)| TierSpec {
                no,
                name: tier.name.clone(),
                price_minor: tier.minor,
                capacity: tier.capacity,
            })
            .collect();
        inventory::create_tiers(&tx, id, &specs).await?;
    }
    audit::record(&*tx, who, "createEvent", id, serde_json::json!({})).await?;
    tell(&tx, Topic::Event, Some(id), id, "created").await?;
    tx.commit().await?;
    Ok(row)
}

/// Creates what is missing of an event's seats, a chunk a transaction, and marks the event ready.
pub(super) async fn finish_seats(
    db: &Db,
    event: EventId,
    layout: LayoutId,
    seats_wanted: i32,
) -> Result<event::Model, CatalogueError> {
    let mut first = 0;
    while first < seats_wanted {
        let tx = db.begin("event_seats_create").await?;
        inventory::create_seats(&tx, event, layout, first..first + SEATS_A_CHUNK).await?;
        tx.commit().await?;
        first += SEATS_A_CHUNK;
    }
    let tx = db.begin("event_seats_ready").await?;
    let mut row = lock_event(&tx, event).await?.ok_or(CatalogueError::NotFound("eventId"))?;
    if !row.seats_ready {
        inventory::create_section_counters(&tx, event).await?;
        tx.execute_raw(sql!("UPDATE event SET seats_ready = true WHERE id = $1 AND NOT seats_ready", event)).await?;
        row.seats_ready = true;
        tell(&tx, Topic::Event, Some(event), event, "ready").await?;
    }
    tx.commit().await?;
    Ok(row)
}

/// A price for every zone of the layout.
fn zone_rows(layout: Option<&super::Layout>, prices: &[rules::Price]) -> Result<Vec<(i16, String, i64)>, Invalid> {
    let Some(layout) = layout else { return Ok(Vec::new()) };
    let zones = &layout.drawing.zone_names;
    if let Some(index) = prices.iter().position(|price| !zones.contains(&price.name)) {
        return Err(Invalid::new(format!("zonePrices.{index}.zone"), "the layout has no such zone"));
    }
    (0_i16..)
        .zip(zones)
        .map(|(no, zone)| match prices.iter().find(|price| price.name == *zone) {
            Some(price) => Ok((no, zone.clone(), price.minor)),
            None => Err(Invalid::new("zonePrices", format!("a price is missing for the zone \"{zone}\""))),
        })
        .collect()
}

fn slug(title: &str, day: chrono::NaiveDate, id: EventId) -> String {
    let words: String = slug::slugify(title).chars().take(60).collect();
    let tail: String = id.0.simple().to_string().chars().skip(24).collect();
    [words.trim_matches('-'), &day.to_string(), &tail]
        .iter()
        .filter(|part| !part.is_empty())
        .copied()
        .collect::<Vec<_>>()
        .join("-")
}

async fn write_bill(tx: &Transaction, event: EventId, performers: &[PerformerId]) -> Result<(), CatalogueError> {
    tx.execute_raw(sql!("DELETE FROM event_performer WHERE event_id = $1", event)).await?;
    let ids: Vec<Uuid> = performers.iter().map(|id| id.0).collect();
    let written = tx
        .execute_raw(sql!(
            "INSERT INTO event_performer (event_id, position, performer_id)
             SELECT $1, ordinality::smallint - 1, performer.id
             FROM unnest($2::uuid[]) WITH ORDINALITY AS bill (id, ordinality) JOIN performer ON performer.id = bill.id",
            event,
            ids
        ))
        .await?
        .rows_affected();
    if u64::try_from(performers.len()) == Ok(written) { Ok(()) } else { Err(CatalogueError::NotFound("performerIds")) }
}

async fn lock_event(tx: &Transaction, id: EventId) -> Result<Option<event::Model>, DbErr> {
    crate::db::close_gate(tx, id.0).await?;
    event::Entity::find_by_id(id).lock(sea_orm::sea_query::LockType::NoKeyUpdate).one(&**tx).await
}

async fn own_event(tx: &Transaction, who: &Organizer, id: EventId) -> Result<event::Model, CatalogueError> {
    let row = lock_event(tx, id).await?.filter(|row| row.organization_id == who.organization);
    row.ok_or(CatalogueError::NotFound("eventId"))
}

/// Edits an event. Batches of holds in flight finish first, later ones see the new rules.
pub(super) async fn update_event(
    db: &Db,
    who: &Organizer,
    (id, expected): (EventId, i64),
    edits: EventEdits,
    performers: Option<Vec<PerformerId>>,
) -> Result<(event::Model, Vec<Arc<SeatsDelta>>), CatalogueError> {
    let tx = db.begin("event_update").await?;
    let mut row = own_event(&tx, who, id).await?;
    check_version(row.version, expected)?;
    if row.state == EventState::Cancelled {
        return Err(Invalid::new("eventId", "the event is cancelled").into());
    }
    row.version += 1;
    let schedule = rules::schedule(Schedule {
        starts_at: edits.starts_at.unwrap_or(row.starts_at),
        on_sale_at: edits.on_sale_at.unwrap_or(row.on_sale_at),
        off_sale_at: edits.off_sale_at.unwrap_or(row.off_sale_at),
    })?;
    (row.starts_at, row.on_sale_at, row.off_sale_at) = (schedule.starts_at, schedule.on_sale_at, schedule.off_sale_at);
    row.title = edits.title.unwrap_or(row.title);
    row.description = edits.description.unwrap_or(row.description);
    row.category = edits.category.unwrap_or(row.category);
    row.hold_seconds = edits.hold_seconds.unwrap_or(row.hold_seconds);
    row.max_seats_per_buyer = edits.max_seats_per_buyer.unwrap_or(row.max_seats_per_buyer);
    row.forbid_single_seats = edits.forbid_single_seats.unwrap_or(row.forbid_single_seats);
    if let Some(room) = edits.waiting_room {
        row.admit_per_minute = Some(room.admit_per_minute);
        row.active_per_remaining_seat = room.active_per_remaining_seat;
        row.admission_seconds = room.admission_seconds;
    }
    if let Some(policy) = edits.cancellation {
        row.cancel_until_seconds_before = policy.until_seconds_before;
        row.refund_ppm = policy.refund_ppm;
        row.resell = policy.resell;
    }
    event::Entity::update(row.clone().into_active_model().reset_all()).exec(&*tx).await?;
    if let Some(performers) = performers {
        write_bill(&tx, id, &performers).await?;
    }
    if let Some(prices) = edits.zone_prices {
        reprice_zones(&tx, &row, &prices).await?;
    }
    let deltas = match edits.tiers {
        Some(tiers) => change_tiers(&tx, &row, tiers).await?,
        None => Vec::new(),
    };
    audit::record(&*tx, who, "updateEvent", id, serde_json::json!({ "version": row.version })).await?;
    tell(&tx, Topic::Event, Some(id), id, "updated").await?;
    tx.commit().await?;
    Ok((row, deltas))
}

/// New prices by zone name; `[]` clears a draft's, which then can't be published until they are set.
async fn reprice_zones(tx: &Transaction, row: &event::Model, prices: &[rules::Price]) -> Result<(), CatalogueError> {
    if prices.is_empty() && row.state != EventState::Draft {
        return Err(Invalid::new("zonePrices", "a published event keeps its prices: leave this out").into());
    }
    if prices.is_empty() {
        tx.execute_raw(sql!("DELETE FROM event_zone WHERE event_id = $1", row.id)).await?;
        return Ok(());
    }
    let zones = match row.layout_id {
        Some(layout) => layout::Entity::find_by_id(layout).one(&**tx).await?.map(|layout| layout.zone_names),
        None => None,
    }
    .unwrap_or_default();
    for (index, price) in prices.iter().enumerate() {
        let no = zones.iter().position(|zone| *zone == price.name).and_then(|no| i16::try_from(no).ok());
        let no = no.ok_or_else(|| Invalid::new(format!("zonePrices.{index}.zone"), "the layout has no such zone"))?;
        tx.execute_raw(sql!(
            "INSERT INTO event_zone (event_id, zone_no, name, price_minor) VALUES ($1, $2, $3, $4)
             ON CONFLICT (event_id, zone_no) DO UPDATE SET price_minor = $4",
            row.id,
            no,
            price.name.clone(),
            price.minor
        ))
        .await?;
    }
    Ok(())
}

async fn change_tiers(
    tx: &Transaction,
    row: &event::Model,
    tiers: Vec<rules::Tier>,
) -> Result<Vec<Arc<SeatsDelta>>, CatalogueError> {
    if !rules::sells(row.inventory_mode).1 {
        return match (tiers.is_empty(), row.state) {
            (true, EventState::Draft) => Ok(Vec::new()),
            _ => Err(Invalid::new("tiers", "assigned seating has no tiers").into()),
        };
    }
    let known = event_tier::Entity::find()
        .filter(event_tier::Column::EventId.eq(row.id))
        .order_by_asc(event_tier::Column::TierNo)
        .all(&**tx)
        .await?;
    if tiers.is_empty() {
        if row.state != EventState::Draft {
            return Err(Invalid::new("tiers", "a published event keeps its tiers: leave this out").into());
        }
        inventory::clear_tiers(tx, row.id).await?;
        return Ok(Vec::new());
    }
    let mut next_no = known.iter().map(|tier| tier.tier_no).max().map_or(0, |no| no + 1);
    let mut specs = Vec::with_capacity(tiers.len());
    for tier in &tiers {
        let no = known.iter().find(|old| old.name == tier.name).map_or_else(
            || {
                let no = next_no;
                next_no += 1;
                no
            },
            |old| old.tier_no,
        );
        specs.push(TierSpec { no, name: tier.name.clone(), price_minor: tier.minor, capacity: tier.capacity });
    }
    if usize::try_from(next_no).unwrap_or(usize::MAX) > parterre_schema::limits::TIERS_MAX {
        return Err(Invalid::new("tiers", format!("at most {} tiers", parterre_schema::limits::TIERS_MAX)).into());
    }
    inventory::set_tiers(tx, row.id, &specs).await?.map_err(|below| {
        let index = specs.iter().position(|spec| spec.no == below.tier).unwrap_or(0);
        Invalid::new(format!("tiers.{index}.capacity"), format!("{} admissions are taken already", below.taken)).into()
    })
}

/// Publishes, pauses, resumes or cancels. Waits for batches of holds in flight, so that nothing slips through after.
pub(super) async fn step_event(
    db: &Db,
    who: &Organizer,
    (id, expected): (EventId, i64),
    (step, reason): (SaleStep, Option<String>),
) -> Result<event::Model, CatalogueError> {
    let tx = db.begin("event_step").await?;
    let mut row = own_event(&tx, who, id).await?;
    check_version(row.version, expected)?;
    let to = rules::next(row.state, step).map_err(|message| Invalid::new("eventId", message))?;
    if step == SaleStep::Publish && !row.seats_ready {
        return Err(Invalid::new("eventId", "the event's seats are still being created, try again in a minute").into());
    }
    if step == SaleStep::Publish {
        check_priced(&tx, &row).await?;
    }
    let written = tx
        .execute_raw(sql!(
            "UPDATE event SET state = $2, version = version + 1 WHERE id = $1 AND state = $3",
            id,
            to.as_str(),
            row.state.as_str()
        ))
        .await?
        .rows_affected();
    if written != 1 {
        return Err(DbErr::Custom("a locked event changed its state".to_owned()).into());
    }
    row.state = to;
    row.version += 1;
    let (action, what) = match step {
        SaleStep::Publish => ("publishEvent", "published"),
        SaleStep::Pause => ("pauseSales", "paused"),
        SaleStep::Resume => ("resumeSales", "resumed"),
        SaleStep::Cancel => ("cancelEvent", "cancelled"),
    };
    audit::record(&*tx, who, action, id, serde_json::json!({ "reason": reason })).await?;
    tell(&tx, Topic::Event, Some(id), id, what).await?;
    tx.commit().await?;
    Ok(row)
}

/// An event that is sold has a price for everything it sells.
async fn check_priced(tx: &Transaction, row: &event::Model) -> Result<(), CatalogueError> {
    let (sells_seats, sells_tiers) = rules::sells(row.inventory_mode);
    let unpriced = crate::db::Single::<i64>::find_by_statement(sql!(
        "SELECT count(DISTINCT zone_no) AS value FROM event_seat AS seat WHERE event_id = $1
           AND NOT EXISTS (SELECT FROM event_zone WHERE event_id = $1 AND zone_no = seat.zone_no)",
        row.id
    ));
    if sells_seats && unpriced.one(&**tx).await?.is_none_or(|row| row.value > 0) {
        return Err(Invalid::new("eventId", "set a price for every zone first (updateEvent, zonePrices)").into());
    }
    let tiers = event_tier::Entity::find().filter(event_tier::Column::EventId.eq(row.id)).one(&**tx).await?;
    if sells_tiers && tiers.is_none() {
        return Err(Invalid::new("eventId", "set a tier first (updateEvent, tiers)").into());
    }
    Ok(())
}

/// Takes seats off sale or puts them back.
pub(super) async fn block_seats(
    db: &Db,
    who: &Organizer,
    id: EventId,
    seats: &BTreeSet<i32>,
    blocked: bool,
) -> Result<(event::Model, Vec<Arc<SeatsDelta>>), CatalogueError> {
    let tx = db.begin("seats_block").await?;
    let row = own_event(&tx, who, id).await?;
    if !row.seats_ready {
        return Err(Invalid::new("eventId", "the event's seats are still being created, try again in a minute").into());
    }
    let bump = inventory::block_seats(&tx, id, seats, blocked).await?.map_err(CatalogueError::SeatsTaken)?;
    audit::record(&*tx, who, "blockSeats", id, serde_json::json!({ "seats": seats.len(), "blocked": blocked })).await?;
    let deltas = inventory::bump(&tx, bump).await?;
    tx.commit().await?;
    Ok((row, deltas))
}

/// Drafts whose seats were not finished, by a process that died.
pub(super) async fn unfinished_drafts(db: &Db) -> Result<Vec<(EventId, LayoutId, i32)>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        id: EventId,
        layout_id: LayoutId,
        seats_wanted: i32,
    }
    let rows = Row::find_by_statement(sql!(
        "SELECT id, layout_id, seats_wanted FROM event
         WHERE NOT seats_ready AND created_at < clock_timestamp() - interval '1 minute' LIMIT 20"
    ))
    .all(db.pool())
    .await?;
    Ok(rows.into_iter().map(|row| (row.id, row.layout_id, row.seats_wanted)).collect())
}

/// Moves the dates of an organization's events, for demo data that must not rot.
pub(super) async fn shift_dates(db: &Db, who: &Organizer, seconds: f64) -> Result<(), CatalogueError> {
    let tx = db.begin("event_dates_shift").await?;
    let rows = db_ids(
        &tx,
        sql!(
            "UPDATE event SET starts_at = starts_at + make_interval(secs => $2), on_sale_at = on_sale_at + make_interval(secs => $2),
                off_sale_at = off_sale_at + make_interval(secs => $2)
             WHERE organization_id = $1 AND state <> 'CANCELLED' RETURNING id AS value",
            who.organization,
            seconds
        ),
    )
    .await?;
    let changes: Vec<Change> = rows
        .into_iter()
        .map(|id| Change {
            topic: Topic::Event,
            event: Some(EventId(id)),
            subject: Some(id),
            payload: serde_json::json!({ "change": "updated" }),
        })
        .collect();
    outbox::append(&*tx, &changes).await?;
    audit::record(&*tx, who, "shiftDates", who.organization, serde_json::json!({ "seconds": seconds })).await?;
    tx.commit().await.map_err(CatalogueError::from)
}

async fn db_ids(tx: &Transaction, statement: sea_orm::Statement) -> Result<Vec<Uuid>, DbErr> {
    let rows = crate::db::Single::<Uuid>::find_by_statement(statement).all(&**tx).await?;
    Ok(rows.into_iter().map(|row| row.value).collect())
}
