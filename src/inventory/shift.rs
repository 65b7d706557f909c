//! What happens to the items of a hold after it was made: converted, sold, given back. Each function takes the caller's
//! transaction, in which the hold's row is locked, and names owner and state of every row it writes, so that a late
//! clean-up of one hold can't touch another's seats.

use super::batch::expect_rows;
use super::counters::{self, Bump};
use crate::bus::SeatsDelta;
use crate::db::Transaction;
use crate::sql;
use parterre_entity::{BookingId, EventId, HoldId, ItemState, SeatState};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// A change of all items of a hold that are in one state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shift {
    /// HELD → PENDING: the payment is about to be captured. All items or none.
    Convert,
    /// PENDING → SOLD: paid. All items or none.
    Sell,
    /// HELD → RETURNED: the hold was released or ran out. Seats that someone else has by now are left alone.
    Release,
    /// PENDING → RETURNED: the capture failed for good.
    Return,
    /// SOLD → RETURNED: cancelled, back on sale.
    Resell,
    /// SOLD → WITHDRAWN: cancelled, off sale.
    Withdraw,
}

struct Plan {
    item: (ItemState, ItemState),
    seat: (SeatState, SeatState),
    letter: char,
    remaining: i32,
    all_or_none: bool,
}

impl Shift {
    const fn plan(self) -> Plan {
        use ItemState as I;
        use SeatState as S;
        match self {
            Self::Convert => Plan {
                item: (I::Held, I::Pending),
                seat: (S::Held, S::Pending),
                letter: 'H',
                remaining: 0,
                all_or_none: true,
            },
            Self::Sell => Plan {
                item: (I::Pending, I::Sold),
                seat: (S::Pending, S::Sold),
                letter: 'S',
                remaining: -1,
                all_or_none: true,
            },
            Self::Release => Plan {
                item: (I::Held, I::Returned),
                seat: (S::Held, S::Available),
                letter: 'A',
                remaining: 0,
                all_or_none: false,
            },
            Self::Return => Plan {
                item: (I::Pending, I::Returned),
                seat: (S::Pending, S::Available),
                letter: 'A',
                remaining: 0,
                all_or_none: true,
            },
            Self::Resell => Plan {
                item: (I::Sold, I::Returned),
                seat: (S::Sold, S::Available),
                letter: 'A',
                remaining: 1,
                all_or_none: true,
            },
            Self::Withdraw => Plan {
                item: (I::Sold, I::Withdrawn),
                seat: (S::Sold, S::Blocked),
                letter: 'B',
                remaining: 0,
                all_or_none: true,
            },
        }
    }
}

/// Whose items.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// The event.
    pub event: EventId,
    /// The hold, whose row the caller has locked.
    pub hold: HoldId,
    /// The booking that owns, or will own, what is PENDING or SOLD.
    pub booking: Option<BookingId>,
}

/// All items were to change, and some are not this hold's any more. Nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the hold does not have all its items any more")]
pub struct NotAllHeld;

#[derive(FromQueryResult)]
struct Item {
    item_no: i16,
    seat_no: Option<i32>,
    tier_no: Option<i16>,
    quantity: i32,
    state: ItemState,
}

#[derive(FromQueryResult)]
struct SeatOfItem {
    seat_no: i32,
    section_no: i16,
}

/// Changes a hold's items and tells what readers see of it.
pub async fn shift(
    tx: &Transaction,
    items: Items,
    shift: Shift,
) -> Result<Result<Vec<Arc<SeatsDelta>>, NotAllHeld>, DbErr> {
    let plan = shift.plan();
    let all = Item::find_by_statement(sql!(
        "SELECT item_no, seat_no, tier_no, quantity, state FROM hold_item WHERE hold_id = $1 ORDER BY seat_no, tier_no",
        items.hold
    ))
    .all(&**tx)
    .await?;
    let moving: Vec<&Item> = all.iter().filter(|item| item.state == plan.item.0).collect();
    if plan.all_or_none && moving.len() != all.len() {
        return Ok(Err(NotAllHeld));
    }
    let wanted: Vec<i32> = moving.iter().filter_map(|item| item.seat_no).collect();
    let owned = lock_owned_seats(tx, items, &plan, wanted.clone()).await?;
    if plan.all_or_none && owned.len() != wanted.len() {
        return Ok(Err(NotAllHeld));
    }
    let mut tiers: BTreeMap<i16, i32> = BTreeMap::new();
    for item in &moving {
        if let Some(tier) = item.tier_no {
            *tiers.entry(tier).or_default() += item.quantity;
        }
    }
    let mut bump = Bump::default();
    write_seats(tx, items, &plan, &owned).await?;
    for seat in &owned {
        bump.seat(items.event, seat.section_no, (seat.seat_no, plan.letter, 0), plan.remaining);
    }
    let counted = write_tiers(tx, items.event, &plan, &tiers).await?;
    for (tier, available) in counted {
        let quantity = tiers.get(&tier).copied().unwrap_or(0);
        bump.tier(items.event, tier, available, plan.remaining * quantity);
    }
    let numbers: Vec<i16> = moving.iter().map(|item| item.item_no).collect();
    let written = tx
        .execute_raw(sql!(
            "UPDATE hold_item SET state = $3 WHERE hold_id = $1 AND item_no = ANY ($2) AND state = $4",
            items.hold,
            numbers,
            plan.item.1.as_str(),
            plan.item.0.as_str()
        ))
        .await?
        .rows_affected();
    expect_rows("items of a hold", moving.len(), written)?;
    counters::bump(tx, bump).await.map(Ok)
}

/// Locks the seats in key order and keeps those that are still this owner's, in the state the change starts from.
async fn lock_owned_seats(
    tx: &Transaction,
    items: Items,
    plan: &Plan,
    wanted: Vec<i32>,
) -> Result<Vec<SeatOfItem>, DbErr> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    SeatOfItem::find_by_statement(sql!(
        "SELECT seat_no, section_no FROM (
             SELECT locked.* FROM unnest($2::int[]) AS wanted (seat_no)
             CROSS JOIN LATERAL (
                 SELECT seat_no, section_no, status, hold_id, booking_id FROM event_seat AS seat
                 WHERE seat.event_id = $1 AND seat.seat_no = wanted.seat_no FOR NO KEY UPDATE) AS locked) AS seat
         WHERE status = $3 AND CASE WHEN status = 'HELD' THEN hold_id = $4 ELSE booking_id = $5 END",
        items.event,
        wanted,
        plan.seat.0.as_str(),
        items.hold,
        items.booking
    ))
    .all(&**tx)
    .await
}

async fn write_seats(tx: &Transaction, items: Items, plan: &Plan, seats: &[SeatOfItem]) -> Result<(), DbErr> {
    if seats.is_empty() {
        return Ok(());
    }
    let numbers: Vec<i32> = seats.iter().map(|seat| seat.seat_no).collect();
    let owner = match plan.seat.1 {
        SeatState::Pending | SeatState::Sold => items.booking,
        SeatState::Available | SeatState::Held | SeatState::Blocked => None,
    };
    let written = tx
        .execute_raw(sql!(
            "UPDATE event_seat AS seat SET status = $3, hold_id = NULL, held_until = NULL, booking_id = $4
             FROM unnest($2::int[]) AS moved (seat_no)
             WHERE seat.event_id = $1 AND seat.seat_no = moved.seat_no AND seat.status = $5
               AND CASE WHEN seat.status = 'HELD' THEN seat.hold_id = $6 ELSE seat.booking_id = $7 END",
            items.event,
            numbers,
            plan.seat.1.as_str(),
            owner,
            plan.seat.0.as_str(),
            items.hold,
            items.booking
        ))
        .await?
        .rows_affected();
    expect_rows("seats of a hold", seats.len(), written)
}

/// The column of a tier's row that counts items of a state.
const fn column(state: ItemState) -> &'static str {
    match state {
        ItemState::Held => "held",
        ItemState::Pending => "pending",
        ItemState::Sold => "sold",
        ItemState::Returned => "available",
        ItemState::Withdrawn => "withdrawn",
    }
}

async fn write_tiers(
    tx: &Transaction,
    event: EventId,
    plan: &Plan,
    tiers: &BTreeMap<i16, i32>,
) -> Result<Vec<(i16, i32)>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        tier_no: i16,
        available: i32,
    }
    if tiers.is_empty() {
        return Ok(Vec::new());
    }
    let numbers: Vec<i16> = tiers.keys().copied().collect();
    let quantities: Vec<i32> = tiers.values().copied().collect();
    tx.execute_raw(sql!(
        "SELECT FROM unnest($2::smallint[]) AS wanted (tier_no) CROSS JOIN LATERAL (
             SELECT FROM event_tier AS tier WHERE tier.event_id = $1 AND tier.tier_no = wanted.tier_no
             FOR NO KEY UPDATE) AS locked",
        Uuid::from(event),
        numbers.clone()
    ))
    .await?;
    let (from, to) = (column(plan.item.0), column(plan.item.1));
    let rows = Row::find_by_statement(sql!(
        format!(
            "UPDATE event_tier AS tier SET {from} = {from} - moved.quantity, {to} = {to} + moved.quantity
             FROM unnest($2::smallint[], $3::int[]) AS moved (tier_no, quantity)
             WHERE tier.event_id = $1 AND tier.tier_no = moved.tier_no RETURNING tier.tier_no, tier.available"
        ),
        event,
        numbers,
        quantities
    ))
    .all(&**tx)
    .await?;
    expect_rows("tiers of a hold", tiers.len(), u64::try_from(rows.len()).unwrap_or(u64::MAX))?;
    Ok(rows.into_iter().map(|row| (row.tier_no, row.available)).collect())
}
