//! Reading an event's seats, all of one moment.

use super::state::{Cell, Loaded};
use crate::db::Db;
use crate::inventory::TIERS;
use crate::sql;
use chrono::{DateTime, Utc};
use parterre_entity::{EventId, SeatState};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use std::collections::BTreeMap;

/// The database's time, and how far it is ahead of this process's, in milliseconds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Now {
    pub(super) ms: i64,
    pub(super) ahead_ms: i64,
}

impl Now {
    /// Of what the database said this moment.
    pub(super) fn of(told: DateTime<Utc>) -> Self {
        let ms = told.timestamp_millis();
        Self { ms, ahead_ms: ms - crate::clock::now().timestamp_millis() }
    }
}

/// Everything of an event, or one section, and when.
pub(super) async fn load(db: &Db, event: EventId, section: Option<i16>) -> Result<(Loaded, Now), DbErr> {
    #[derive(FromQueryResult)]
    struct Seat {
        seat_no: i32,
        section_no: i16,
        status: SeatState,
        held_until: Option<DateTime<Utc>>,
    }
    #[derive(FromQueryResult)]
    struct Tier {
        tier_no: i16,
        available: i32,
    }
    let snapshot = db.snapshot().await?;
    let (versions, tiers_version, _) = counters(&snapshot, event).await?;
    let seats = Seat::find_by_statement(sql!(
        "SELECT seat_no, section_no, status, held_until FROM event_seat
         WHERE event_id = $1 AND ($2::smallint IS NULL OR section_no = $2)",
        event,
        section
    ))
    .all(&snapshot)
    .await?;
    let tiers = Tier::find_by_statement(sql!("SELECT tier_no, available FROM event_tier WHERE event_id = $1", event))
        .all(&snapshot)
        .await?;
    let now = Now::of(crate::db::clock(&snapshot).await?);
    snapshot.commit().await?;
    let cells = seats
        .into_iter()
        .map(|seat| {
            let letter = match seat.status {
                SeatState::Available => 'A',
                SeatState::Held | SeatState::Pending => 'H',
                SeatState::Sold => 'S',
                SeatState::Blocked => 'B',
            };
            let until_ms = seat.held_until.map_or(0, |at| at.timestamp_millis());
            (seat.seat_no, Cell { letter, until_ms, section: seat.section_no })
        })
        .collect();
    let loaded = Loaded {
        versions: versions.into_iter().filter(|(no, _)| section.is_none_or(|section| section == *no)).collect(),
        cells,
        tiers_version,
        tiers: tiers.into_iter().map(|tier| (tier.tier_no, tier.available)).collect(),
    };
    Ok((loaded, now))
}

/// An event's counters: by section, and the tiers'. And when, if it has any.
pub(super) async fn counters(
    db: &impl ConnectionTrait,
    event: EventId,
) -> Result<(BTreeMap<i16, i64>, i64, Option<Now>), DbErr> {
    #[derive(FromQueryResult)]
    struct Counter {
        section_no: i16,
        version: i64,
        now: DateTime<Utc>,
    }
    let rows = Counter::find_by_statement(sql!(
        "SELECT section_no, version, clock_timestamp() AS now FROM event_counter WHERE event_id = $1",
        event
    ))
    .all(db)
    .await?;
    let now = rows.iter().map(|row| row.now).max().map(Now::of);
    let mut versions: BTreeMap<i16, i64> = rows.into_iter().map(|row| (row.section_no, row.version)).collect();
    let tiers_version = versions.remove(&TIERS).unwrap_or(0);
    Ok((versions, tiers_version, now))
}
