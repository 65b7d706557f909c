//! What happens to the items of a hold after it was made: converted, sold, given back. Each function takes the caller's
//! transaction, in which the hold's row is locked, and names owner and state of every row it writes, so that a late
//! clean-up of one hold can't touch another's seats.

use super::batch::expect_rows;
use super::counters::Bump;
use crate::db::Transaction;
use crate::sql;
use parterre_entity::{BookingId, EventId, HoldId, ItemState, SeatState};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use std::collections::BTreeMap;
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

/// An item of a hold, and the booking that owns or will own it: the nil UUID if it is nobody's, since arrays of ids can't
/// carry NULL.
#[derive(FromQueryResult)]
struct Item {
    hold_id: Uuid,
    booking_id: Uuid,
    item_no: i16,
    event_id: EventId,
    seat_no: Option<i32>,
    tier_no: Option<i16>,
    quantity: i32,
    state: ItemState,
}

/// A seat of a hold, and the hold and booking of its item.
#[derive(FromQueryResult)]
struct SeatOfItem {
    event_id: EventId,
    seat_no: i32,
    section_no: i16,
    hold_id: Uuid,
    booking_id: Uuid,
}

/// Changes the items of holds, and returns what readers see of it.
pub async fn shift(tx: &Transaction, holds: &[Items], shift: Shift) -> Result<Result<Bump, NotAllHeld>, DbErr> {
    let plan = shift.plan();
    let all = Item::find_by_statement(sql!(
        "SELECT item.*, wanted.booking_id FROM unnest($1::uuid[], $2::uuid[]) AS wanted (hold_id, booking_id)
         CROSS JOIN LATERAL (
             SELECT hold_id, item_no, event_id, seat_no, tier_no, quantity, state FROM hold_item
             WHERE hold_item.hold_id = wanted.hold_id OFFSET 0) AS item
         ORDER BY event_id, seat_no, tier_no",
        holds.iter().map(|items| items.hold.0).collect::<Vec<_>>(),
        holds.iter().map(|items| items.booking.map_or(Uuid::nil(), Uuid::from)).collect::<Vec<_>>()
    ))
    .all(&**tx)
    .await?;
    let moving: Vec<&Item> = all.iter().filter(|item| item.state == plan.item.0).collect();
    if plan.all_or_none && moving.len() != all.len() {
        return Ok(Err(NotAllHeld));
    }
    let wanted: Vec<(&Item, i32)> = moving.iter().filter_map(|item| Some((*item, item.seat_no?))).collect();
    let owned = lock_owned_seats(tx, &plan, &wanted).await?;
    if plan.all_or_none && owned.len() != wanted.len() {
        return Ok(Err(NotAllHeld));
    }
    let mut tiers: BTreeMap<(Uuid, i16), i32> = BTreeMap::new();
    for item in &moving {
        if let Some(tier) = item.tier_no {
            *tiers.entry((item.event_id.0, tier)).or_default() += item.quantity;
        }
    }
    let mut bump = Bump::default();
    write_seats(tx, &plan, &owned).await?;
    for seat in &owned {
        bump.seat(seat.event_id, seat.section_no, (seat.seat_no, plan.letter, 0), plan.remaining);
    }
    for (event, tier, available) in write_tiers(tx, &plan, &tiers).await? {
        let quantity = tiers.get(&(event.0, tier)).copied().unwrap_or(0);
        bump.tier(event, tier, available, plan.remaining * quantity);
    }
    let written = tx
        .execute_raw(sql!(
            "UPDATE hold_item AS item SET state = $3 FROM unnest($1::uuid[], $2::smallint[]) AS moved (hold_id, item_no)
             WHERE item.hold_id = moved.hold_id AND item.item_no = moved.item_no AND item.state = $4",
            moving.iter().map(|item| item.hold_id).collect::<Vec<_>>(),
            moving.iter().map(|item| item.item_no).collect::<Vec<_>>(),
            plan.item.1.as_str(),
            plan.item.0.as_str()
        ))
        .await?
        .rows_affected();
    expect_rows("items of holds", moving.len(), written)?;
    Ok(Ok(bump))
}

/// Locks the seats in key order and keeps those that are still this owner's, in the state the change starts from: the
/// hold's while HELD, the booking's from then on.
async fn lock_owned_seats(tx: &Transaction, plan: &Plan, wanted: &[(&Item, i32)]) -> Result<Vec<SeatOfItem>, DbErr> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    SeatOfItem::find_by_statement(sql!(
        "SELECT event_id, seat_no, section_no, wanted_hold AS hold_id, wanted_booking AS booking_id FROM (
             SELECT locked.*, wanted.hold_id AS wanted_hold, wanted.booking_id AS wanted_booking
             FROM unnest($1::uuid[], $2::int[], $3::uuid[], $4::uuid[]) AS wanted (event_id, seat_no, hold_id, booking_id)
             CROSS JOIN LATERAL (
                 SELECT event_id, seat_no, section_no, status, hold_id, booking_id FROM event_seat AS seat
                 WHERE seat.event_id = wanted.event_id AND seat.seat_no = wanted.seat_no FOR NO KEY UPDATE) AS locked) AS seat
         WHERE status = $5 AND CASE WHEN status = 'HELD' THEN hold_id = wanted_hold ELSE booking_id = wanted_booking END",
        wanted.iter().map(|(item, _)| item.event_id.0).collect::<Vec<_>>(),
        wanted.iter().map(|(_, seat)| *seat).collect::<Vec<_>>(),
        wanted.iter().map(|(item, _)| item.hold_id).collect::<Vec<_>>(),
        wanted.iter().map(|(item, _)| item.booking_id).collect::<Vec<_>>(),
        plan.seat.0.as_str()
    ))
    .all(&**tx)
    .await
}

async fn write_seats(tx: &Transaction, plan: &Plan, seats: &[SeatOfItem]) -> Result<(), DbErr> {
    if seats.is_empty() {
        return Ok(());
    }
    let becomes_the_bookings = match plan.seat.1 {
        SeatState::Pending | SeatState::Sold => true,
        SeatState::Available | SeatState::Held | SeatState::Blocked => false,
    };
    let written = tx
        .execute_raw(sql!(
            "UPDATE event_seat AS seat SET status = $5, hold_id = NULL, held_until = NULL,
                 booking_id = CASE WHEN $6 THEN moved.booking_id END
             FROM unnest($1::uuid[], $2::int[], $3::uuid[], $4::uuid[]) AS moved (event_id, seat_no, hold_id, booking_id)
             WHERE seat.event_id = moved.event_id AND seat.seat_no = moved.seat_no AND seat.status = $7
               AND CASE WHEN seat.status = 'HELD' THEN seat.hold_id = moved.hold_id ELSE seat.booking_id = moved.booking_id END",
            seats.iter().map(|seat| seat.event_id.0).collect::<Vec<_>>(),
            seats.iter().map(|seat| seat.seat_no).collect::<Vec<_>>(),
            seats.iter().map(|seat| seat.hold_id).collect::<Vec<_>>(),
            seats.iter().map(|seat| seat.booking_id).collect::<Vec<_>>(),
            plan.seat.1.as_str(),
            becomes_the_bookings,
            plan.seat.0.as_str()
        ))
        .await?
        .rows_affected();
    expect_rows("seats of holds", seats.len(), written)
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

/// Moves counts of tiers, locked in key order. Returns what is available of each.
async fn write_tiers(
    tx: &Transaction,
    plan: &Plan,
    tiers: &BTreeMap<(Uuid, i16), i32>,
) -> Result<Vec<(EventId, i16, i32)>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        event_id: EventId,
        tier_no: i16,
        available: i32,
    }
    if tiers.is_empty() {
        return Ok(Vec::new());
    }
    let (events, numbers): (Vec<Uuid>, Vec<i16>) = tiers.keys().copied().unzip();
    let quantities: Vec<i32> = tiers.values().copied().collect();
    tx.execute_raw(sql!(
        "SELECT FROM unnest($1::uuid[], $2::smallint[]) AS wanted (event_id, tier_no) CROSS JOIN LATERAL (
             SELECT FROM event_tier AS tier WHERE tier.event_id = wanted.event_id AND tier.tier_no = wanted.tier_no
             FOR NO KEY UPDATE) AS locked",
        events.clone(),
        numbers.clone()
    ))
    .await?;
    let (from, to) = (column(plan.item.0), column(plan.item.1));
    let rows = Row::find_by_statement(sql!(
        format!(
            "UPDATE event_tier AS tier SET {from} = {from} - moved.quantity, {to} = {to} + moved.quantity
             FROM unnest($1::uuid[], $2::smallint[], $3::int[]) AS moved (event_id, tier_no, quantity)
             WHERE tier.event_id = moved.event_id AND tier.tier_no = moved.tier_no
             RETURNING tier.event_id, tier.tier_no, tier.available"
        ),
        events,
        numbers,
        quantities
    ))
    .all(&**tx)
    .await?;
    expect_rows("tiers of holds", tiers.len(), u64::try_from(rows.len()).unwrap_or(u64::MAX))?;
    Ok(rows.into_iter().map(|row| (row.event_id, row.tier_no, row.available)).collect())
}
