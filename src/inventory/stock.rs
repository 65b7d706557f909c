//! How much an event has to sell: creating its seats and tiers, changing a capacity, taking seats off sale.

use super::batch::expect_rows;
use super::counters::{self, Bump, TIERS};
use super::rules::{Conflict, SeatRow};
use crate::bus::SeatsDelta;
use crate::db::{self, Transaction};
use crate::sql;
use chrono::{DateTime, Utc};
use parterre_entity::{EventId, LayoutId, SeatState};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A tier to be created or changed.
#[derive(Clone, Debug)]
pub struct TierSpec {
    /// Its number, from 0.
    pub no: i16,
    /// Unique in the event.
    pub name: String,
    /// In minor units.
    pub price_minor: i64,
    /// Admissions.
    pub capacity: i32,
}

/// Creates the seats of a range of a layout's seat numbers, all available. Safe to run again.
pub async fn create_seats(
    tx: &Transaction,
    event: EventId,
    layout: LayoutId,
    range: std::ops::Range<i32>,
) -> Result<(), DbErr> {
    tx.execute_raw(sql!(
        "INSERT INTO event_seat (event_id, seat_no, section_no, zone_no)
         SELECT $1, seat_no, section_no, zone_no FROM layout_seat
         WHERE layout_id = $2 AND seat_no >= $3 AND seat_no < $4 ORDER BY seat_no ON CONFLICT DO NOTHING",
        event,
        layout,
        range.start,
        range.end
    ))
    .await
    .map(drop)
}

/// Creates a counter for every section of the event's seats. Once, when all seats are there.
pub async fn create_section_counters(tx: &Transaction, event: EventId) -> Result<(), DbErr> {
    tx.execute_raw(sql!(
        "INSERT INTO event_counter (event_id, section_no, remaining)
         SELECT event_id, section_no, count(*) FROM event_seat WHERE event_id = $1 GROUP BY event_id, section_no",
        event
    ))
    .await
    .map(drop)
}

/// Creates tiers, all available, and their counter.
pub async fn create_tiers(tx: &Transaction, event: EventId, tiers: &[TierSpec]) -> Result<(), DbErr> {
    for tier in tiers {
        tx.execute_raw(tier_insert(event, tier)).await?;
    }
    let capacity: i32 = tiers.iter().map(|tier| tier.capacity).fold(0, i32::saturating_add);
    tx.execute_raw(sql!(
        "INSERT INTO event_counter (event_id, section_no, remaining) VALUES ($1, $2, $3)",
        event,
        TIERS,
        capacity
    ))
    .await
    .map(drop)
}

/// The statement that adds a tier with everything available.
fn tier_insert(event: EventId, tier: &TierSpec) -> sea_orm::Statement {
    sql!(
        "INSERT INTO event_tier (event_id, tier_no, name, price_minor, capacity, available)
         VALUES ($1, $2, $3, $4, $5, $5)",
        event,
        tier.no,
        tier.name.clone(),
        tier.price_minor,
        tier.capacity
    )
}

/// Takes the tiers of a draft away, of which nothing can have been taken.
pub async fn clear_tiers(tx: &Transaction, event: EventId) -> Result<(), DbErr> {
    tx.execute_raw(sql!("DELETE FROM event_tier WHERE event_id = $1 AND available = capacity", event)).await?;
    tx.execute_raw(sql!(
        "UPDATE event_counter SET version = version + 1, remaining = 0 WHERE event_id = $1 AND section_no = $2",
        event,
        TIERS
    ))
    .await
    .map(drop)
}

/// Why a tier could not be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BelowTaken {
    /// The tier's number.
    pub tier: i16,
    /// Admissions that are held, pending, sold or withdrawn.
    pub taken: i32,
}

/// Changes prices and capacities, and adds tiers that are not there yet. The caller has the event's row locked.
pub async fn set_tiers(
    tx: &Transaction,
    event: EventId,
    tiers: &[TierSpec],
) -> Result<Result<Vec<Arc<SeatsDelta>>, BelowTaken>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        tier_no: i16,
        capacity: i32,
        available: i32,
    }
    let rows = Row::find_by_statement(sql!(
        "SELECT tier_no, capacity, available FROM event_tier WHERE event_id = $1 ORDER BY tier_no FOR NO KEY UPDATE",
        event
    ))
    .all(&**tx)
    .await?;
    let mut bump = Bump::default();
    for tier in tiers {
        let known = rows.iter().find(|row| row.tier_no == tier.no);
        let (available, added) = match known {
            Some(row) => (row.available + (tier.capacity - row.capacity), tier.capacity - row.capacity),
            None => (tier.capacity, tier.capacity),
        };
        if available < 0 {
            return Ok(Err(BelowTaken { tier: tier.no, taken: tier.capacity - available }));
        }
        let statement = match known {
            Some(_) => sql!(
                "UPDATE event_tier SET price_minor = $3, capacity = $4, available = $5 WHERE event_id = $1 AND tier_no = $2",
                event,
                tier.no,
                tier.price_minor,
                tier.capacity,
                available
            ),
            None => tier_insert(event, tier),
        };
        tx.execute_raw(statement).await?;
        bump.tier(event, tier.no, available, added);
    }
    counters::bump(tx, bump).await.map(Ok)
}

/// Takes seats off sale or puts them back; those that are so already stay. What readers see of it, or the list of those in
/// the way.
pub async fn block_seats(
    tx: &Transaction,
    event: EventId,
    seats: &BTreeSet<i32>,
    blocked: bool,
) -> Result<Result<Bump, Vec<Conflict>>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        seat_no: i32,
        status: SeatState,
        held_until: Option<DateTime<Utc>>,
        section_no: i16,
        zone_no: i16,
    }
    let rows = Row::find_by_statement(sql!(
        "SELECT locked.* FROM unnest($2::int[]) AS wanted (seat_no) CROSS JOIN LATERAL (
             SELECT seat_no, status, held_until, section_no, zone_no FROM event_seat AS seat
             WHERE seat.event_id = $1 AND seat.seat_no = wanted.seat_no FOR NO KEY UPDATE) AS locked",
        event,
        seats.iter().copied().collect::<Vec<_>>()
    ))
    .all(&**tx)
    .await?;
    let now = db::clock(&**tx).await?;
    let mut conflicts = Vec::new();
    let mut moving = Vec::new();
    let mut bump = Bump::default();
    let (letter, remaining) = if blocked { ('B', -1) } else { ('A', 1) };
    for row in rows {
        let seat =
            SeatRow { status: row.status, held_until: row.held_until, section: row.section_no, zone: row.zone_no };
        let is_blocked = seat.status == SeatState::Blocked;
        if is_blocked == blocked {
            continue;
        }
        if blocked && !seat.is_free(now) {
            conflicts.push(Conflict::Seat { seat: row.seat_no, status: row.status, free_at: row.held_until });
            continue;
        }
        moving.push(row.seat_no);
        bump.seat(event, row.section_no, (row.seat_no, letter, 0), remaining);
    }
    if !conflicts.is_empty() {
        return Ok(Err(conflicts));
    }
    let to = if blocked { SeatState::Blocked } else { SeatState::Available };
    let expected = moving.len();
    let written = tx
        .execute_raw(sql!(
            "UPDATE event_seat AS seat SET status = $3, hold_id = NULL, held_until = NULL
             FROM unnest($2::int[]) AS moved (seat_no)
             WHERE seat.event_id = $1 AND seat.seat_no = moved.seat_no AND seat.status IN ('AVAILABLE', 'HELD', 'BLOCKED')",
            event,
            moving,
            to.as_str()
        ))
        .await?
        .rows_affected();
    expect_rows("seats blocked or put back", expected, written)?;
    Ok(Ok(bump))
}
