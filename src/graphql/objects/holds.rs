//! Holds.

use super::{AdmissionTier, Booking, Event, EventSeat};
use crate::graphql::errors::Failure;
use crate::graphql::{Nullable, loaders, services};
use crate::inventory;
use async_graphql::{Context, ID, Object, Result};
use parterre_entity::{EventId, HoldState, ItemState, hold_item};
use parterre_schema::scalars::{DateTime, Money};
use parterre_schema::{HoldStatus, Kind, node_id};

/// Seats and admissions set aside.
#[derive(Clone, Debug)]
pub struct Hold(pub inventory::Hold);

/// What the contract calls a hold's state.
#[must_use]
pub const fn hold_status(state: HoldState) -> HoldStatus {
    match state {
        HoldState::Active => HoldStatus::Active,
        HoldState::Converted => HoldStatus::Converted,
        HoldState::Released => HoldStatus::Released,
        HoldState::Expired => HoldStatus::Expired,
    }
}

/// Seats and admissions set aside for one buyer until a deadline that never moves.
#[Object]
impl Hold {
    /// `hold_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Hold, self.0.row.id)
    }

    /// Of which event.
    async fn event(&self, ctx: &Context<'_>) -> Result<Event> {
        event(ctx, self.0.row.event_id).await
    }

    /// Where it stands now.
    async fn status(&self) -> HoldStatus {
        hold_status(self.0.status_at(crate::clock::now()))
    }

    /// What it covers, with the price when it was made.
    async fn items(&self) -> Vec<HoldItem> {
        self.0.items.iter().cloned().map(HoldItem).collect()
    }

    /// What will be paid.
    async fn total(&self) -> Result<Money> {
        Ok(super::events::currency(&self.0.row.currency)?.money(self.0.row.total_minor))
    }

    /// When it was made.
    async fn created_at(&self) -> DateTime {
        self.0.row.created_at.into()
    }

    /// The deadline: checkout must be called before.
    async fn expires_at(&self) -> DateTime {
        self.0.row.deadline.into()
    }

    /// Seconds until then, 0 when it has passed.
    async fn expires_in_seconds(&self) -> i32 {
        let left = self.0.row.deadline - crate::clock::now();
        i32::try_from(left.num_seconds().max(0)).unwrap_or(i32::MAX)
    }

    /// The newest booking made of it.
    async fn booking(&self, ctx: &Context<'_>) -> Nullable<Booking> {
        let found = services(ctx).bookings.of_hold(self.0.row.id).await.map_err(Failure::from);
        found.map(|found| found.map(Booking)).map_err(Into::into).transpose()
    }
}

pub(super) async fn event(ctx: &Context<'_>, id: EventId) -> Result<Event> {
    let row = loaders(ctx).load_one(id).await.map_err(Failure::from)?;
    Ok(Event(row.ok_or_else(|| Failure::Internal(format!("event {id} is gone")))?))
}

/// A seat of an event by number.
pub(super) async fn seat(
    ctx: &Context<'_>,
    event: EventId,
    number: i32,
    letter: Option<char>,
) -> Result<EventSeat, Failure> {
    let gone = || Failure::Internal(format!("the layout of event {event} is gone"));
    let frame = services(ctx).catalogue.frame(event).await?.ok_or_else(gone)?;
    let layout = services(ctx).catalogue.layout(frame.layout.ok_or_else(gone)?).await?.ok_or_else(gone)?;
    Ok(EventSeat { event, layout, number, letter })
}

/// One thing a hold covers.
#[derive(Clone, Debug)]
pub struct HoldItem(pub hold_item::Model);

/// A seat, or some admissions of a tier.
#[Object]
impl HoldItem {
    /// The seat, or
    async fn seat(&self, ctx: &Context<'_>) -> Nullable<EventSeat> {
        let number = self.0.seat_no?;
        let letter = match self.0.state {
            ItemState::Pending => Some('H'),
            ItemState::Sold => Some('S'),
            ItemState::Held | ItemState::Returned | ItemState::Withdrawn => None,
        };
        Some(seat(ctx, self.0.event_id, number, letter).await.map_err(Into::into))
    }

    /// the tier.
    async fn tier(&self, ctx: &Context<'_>) -> Nullable<AdmissionTier> {
        let no = self.0.tier_no?;
        super::events::tier(ctx, self.0.event_id, no).await.map_err(Into::into).transpose()
    }

    /// How many.
    async fn quantity(&self) -> i32 {
        self.0.quantity
    }

    /// The price of one when the hold was made.
    async fn unit_price(&self, ctx: &Context<'_>) -> Result<Money> {
        let event = event(ctx, self.0.event_id).await?;
        Ok(super::events::currency(&event.0.currency)?.money(self.0.unit_minor))
    }
}
