//! Money that came in late, or at once without an authorization: exactly the seats of the hold, if they are still free.
//! Never others, and never from a new owner.

use super::batch::expect_rows;
use super::counters::Bump;
use super::shift::Items;
use crate::db::{self, Transaction};
use crate::sql;
use chrono::{DateTime, Utc};
use parterre_entity::{HoldId, ItemState, SeatState};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use std::collections::BTreeMap;

/// Something of the hold is somebody else's by now, or the buyer has as much as one may. Whoever gets it goes back to where
/// they were before: what was overdue may have been taken from others already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

#[derive(FromQueryResult)]
struct Item {
    seat_no: Option<i32>,
    tier_no: Option<i16>,
    quantity: i32,
    state: ItemState,
}

/// Sells a hold's items to its booking although the hold is over, and returns what readers see of it. The event, the
/// buyer's quota, the hold, the booking and the payment are locked by the caller.
pub async fn sell_late(tx: &Transaction, items: Items, buyer: &str) -> Result<Result<Bump, Gone>, DbErr> {
    let wanted = Item::find_by_statement(sql!(
        "SELECT seat_no, tier_no, quantity, state FROM hold_item WHERE hold_id = $1 ORDER BY seat_no, tier_no",
        items.hold
    ))
    .all(&**tx)
    .await?;
    if wanted.iter().any(|item| !matches!(item.state, ItemState::Held | ItemState::Returned)) {
        return Ok(Err(Gone));
    }
    let seats: Vec<i32> = wanted.iter().filter_map(|item| item.seat_no).collect();
    let locked = lock_seats(tx, items, seats.clone()).await?;
    let mut tiers = lock_tiers(tx, items, &wanted).await?;
    let now = db::clock(&**tx).await?;
    for (tier, share) in &mut tiers {
        if share.returned > share.available {
            share.available += super::batch::reclaim(tx, items.event, *tier, now).await?;
        }
    }
    let seats_free = locked.len() == seats.len() && locked.iter().all(|seat| seat.is_ours_to_take(items.hold, now));
    let tiers_free = tiers.values().all(|tier| tier.returned <= tier.available);
    if !seats_free || !tiers_free || !within_limit(tx, items, buyer, &wanted).await? {
        return Ok(Err(Gone));
    }
    write(tx, items, &locked, &tiers).await.map(Ok)
}

#[derive(FromQueryResult)]
struct LockedSeat {
    seat_no: i32,
    section_no: i16,
    status: SeatState,
    hold_id: Option<HoldId>,
    held_until: Option<DateTime<Utc>>,
}

impl LockedSeat {
    fn is_ours_to_take(&self, hold: HoldId, now: DateTime<Utc>) -> bool {
        match self.status {
            SeatState::Available => true,
            SeatState::Held => self.hold_id == Some(hold) || self.held_until.is_some_and(|deadline| deadline <= now),
            SeatState::Pending | SeatState::Sold | SeatState::Blocked => false,
        }
    }
}

async fn lock_seats(tx: &Transaction, items: Items, seats: Vec<i32>) -> Result<Vec<LockedSeat>, DbErr> {
    LockedSeat::find_by_statement(sql!(
        "SELECT locked.* FROM unnest($2::int[]) AS wanted (seat_no) CROSS JOIN LATERAL (
             SELECT seat_no, section_no, status, hold_id, held_until FROM event_seat AS seat
             WHERE seat.event_id = $1 AND seat.seat_no = wanted.seat_no FOR NO KEY UPDATE) AS locked",
        items.event,
        seats
    ))
    .all(&**tx)
    .await
}

/// A tier's count, and how much of it this hold takes from `held` and from `available`.
struct TierShare {
    available: i32,
    held: i32,
    returned: i32,
}

async fn lock_tiers(tx: &Transaction, items: Items, wanted: &[Item]) -> Result<BTreeMap<i16, TierShare>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        tier_no: i16,
        available: i32,
    }
    let mut numbers: Vec<i16> = wanted.iter().filter_map(|item| item.tier_no).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let rows = Row::find_by_statement(sql!(
        "SELECT tier_no, available FROM event_tier WHERE event_id = $1 AND tier_no = ANY ($2) ORDER BY tier_no FOR NO KEY UPDATE",
        items.event,
        numbers
    ))
    .all(&**tx)
    .await?;
    let sum = |tier: i16, state: ItemState| {
        wanted.iter().filter(|item| item.tier_no == Some(tier) && item.state == state).map(|item| item.quantity).sum()
    };
    let share = |row: Row| {
        let share = TierShare {
            available: row.available,
            held: sum(row.tier_no, ItemState::Held),
            returned: sum(row.tier_no, ItemState::Returned),
        };
        (row.tier_no, share)
    };
    Ok(rows.into_iter().map(share).collect())
}

/// The buyer's limit, this hold's own items apart.
async fn within_limit(tx: &Transaction, items: Items, buyer: &str, wanted: &[Item]) -> Result<bool, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        had: i64,
        max: i32,
    }
    let row = Row::find_by_statement(sql!(
        "SELECT event.max_seats_per_buyer AS max,
            (SELECT coalesce(sum(item.quantity), 0)::bigint FROM hold JOIN hold_item AS item ON item.hold_id = hold.id
             WHERE hold.event_id = $1 AND hold.buyer = $2 AND hold.id <> $3
               AND (item.state IN ('PENDING', 'SOLD')
                    OR (item.state = 'HELD' AND hold.status = 'ACTIVE' AND hold.deadline > clock_timestamp()))) AS had
         FROM event WHERE event.id = $1",
        items.event,
        buyer,
        items.hold
    ))
    .one(&**tx)
    .await?;
    let asked: i64 = wanted.iter().map(|item| i64::from(item.quantity)).sum();
    Ok(row.is_some_and(|row| row.had.saturating_add(asked) <= i64::from(row.max)))
}

async fn write(
    tx: &Transaction,
    items: Items,
    seats: &[LockedSeat],
    tiers: &BTreeMap<i16, TierShare>,
) -> Result<Bump, DbErr> {
    let mut bump = Bump::default();
    let numbers: Vec<i32> = seats.iter().map(|seat| seat.seat_no).collect();
    let written = tx
        .execute_raw(sql!(
            "UPDATE event_seat AS seat SET status = 'SOLD', hold_id = NULL, held_until = NULL, booking_id = $3
             FROM unnest($2::int[]) AS sold (seat_no)
             WHERE seat.event_id = $1 AND seat.seat_no = sold.seat_no AND seat.status IN ('AVAILABLE', 'HELD')",
            items.event,
            numbers,
            items.booking
        ))
        .await?
        .rows_affected();
    expect_rows("seats sold late", seats.len(), written)?;
    for seat in seats {
        bump.seat(items.event, seat.section_no, (seat.seat_no, 'S', 0), -1);
    }
    for (tier, share) in tiers {
        let written = tx
            .execute_raw(sql!(
                "UPDATE event_tier SET available = available - $3, held = held - $4, sold = sold + $3 + $4
                 WHERE event_id = $1 AND tier_no = $2",
                items.event,
                *tier,
                share.returned,
                share.held
            ))
            .await?
            .rows_affected();
        expect_rows("tiers sold late", 1, written)?;
        bump.tier(items.event, *tier, share.available - share.returned, -(share.returned + share.held));
    }
    tx.execute_raw(sql!(
        "UPDATE hold_item SET state = 'SOLD' WHERE hold_id = $1 AND state IN ('HELD', 'RETURNED')",
        items.hold
    ))
    .await?;
    Ok(bump)
}
