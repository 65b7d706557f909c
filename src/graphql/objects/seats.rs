//! Seat maps: approximate by contract, served from memory.

use super::events::currency;
use super::{AdmissionTier, Event, PriceZone};
use crate::catalogue::Layout;
use crate::graphql::errors::Failure;
use crate::graphql::loaders::ZonesOf;
use crate::graphql::{loaders, services};
use crate::seatmap::{SectionView, View};
use async_graphql::{Context, ID, Object, Result, SimpleObject, Union};
use chrono::TimeZone as _;
use parterre_entity::{EventId, event};
use parterre_schema::scalars::{DateTime, SeatMapVersion};
use parterre_schema::{LocalId, SeatMapResyncReason, SeatStatus, geometry_url};
use std::sync::Arc;

/// What a letter of a map means.
#[must_use]
pub const fn status_of(letter: char) -> SeatStatus {
    match letter {
        'A' => SeatStatus::Available,
        'H' => SeatStatus::Held,
        'S' => SeatStatus::Sold,
        _ => SeatStatus::Blocked,
    }
}

fn instant(ms: i64) -> DateTime {
    chrono::Utc.timestamp_millis_opt(ms).single().unwrap_or_default().into()
}

fn count(number: usize) -> i32 {
    i32::try_from(number).unwrap_or(i32::MAX)
}

/// A seat of an event.
#[derive(Clone, Debug)]
pub struct EventSeat {
    /// The event.
    pub event: EventId,
    /// Its layout.
    pub layout: Arc<Layout>,
    /// The seat's number.
    pub number: i32,
    /// What it shows, if that is known already.
    pub letter: Option<char>,
}

impl EventSeat {
    fn place(&self) -> Result<&crate::catalogue::Seat, Failure> {
        self.layout
            .seat(self.number)
            .ok_or_else(|| Failure::Internal("a seat that its layout does not have".to_owned()))
    }
}

/// A seat of an event: A-14 of tonight is not A-14 of tomorrow.
#[Object]
impl EventSeat {
    /// Unique within its event, stable, readable. `holdSeats` takes it as it is.
    async fn seat_id(&self) -> Result<ID> {
        Ok(ID(self.place()?.seat_id.clone()))
    }

    /// `sec_…`, unique per event.
    async fn section_id(&self) -> Result<ID> {
        Ok(LocalId::Section.encode(self.event, self.place()?.section))
    }

    /// What people call the section.
    async fn section_name(&self) -> Result<String> {
        let section = usize::try_from(self.place()?.section).unwrap_or(usize::MAX);
        Ok(self.layout.drawing.section_names.get(section).cloned().unwrap_or_default())
    }

    /// Row and number, for people.
    async fn label(&self) -> Result<String> {
        let place = self.place()?;
        Ok(format!("Row {}, seat {}", place.row, place.number))
    }

    /// The row's name.
    async fn row(&self) -> Result<&str> {
        Ok(&self.place()?.row)
    }

    /// The number, as printed.
    async fn number(&self) -> Result<&str> {
        Ok(&self.place()?.number)
    }

    /// What it showed a moment ago: a hold decides.
    async fn status(&self, ctx: &Context<'_>) -> Result<SeatStatus> {
        if let Some(letter) = self.letter {
            return Ok(status_of(letter));
        }
        let map = services(ctx).seat_maps.of(self.event).await.map_err(Failure::from)?;
        Ok(status_of(map.and_then(|map| map.letter(self.number)).unwrap_or('B')))
    }

    /// Its price.
    async fn price_zone(&self, ctx: &Context<'_>) -> Result<PriceZone> {
        let zone = self.place()?.zone;
        let row = loaders(ctx).load_one(self.event).await.map_err(Failure::from)?;
        let row = row.ok_or_else(|| Failure::Internal("a seat without an event".to_owned()))?;
        let zones = loaders(ctx).load_one(ZonesOf(self.event)).await.map_err(Failure::from)?.unwrap_or_default();
        let found = zones.iter().find(|row| row.zone_no == zone);
        let found = found.ok_or_else(|| Failure::Internal("a seat without a price zone".to_owned()))?;
        Ok(PriceZone::new(found, currency(&row.currency)?))
    }

    /// A place for a wheelchair.
    async fn accessible(&self) -> Result<bool> {
        Ok(self.place()?.accessible)
    }

    /// In the layout's unit.
    async fn x(&self) -> Result<f64> {
        Ok(self.place()?.x)
    }

    /// In the layout's unit, downwards.
    async fn y(&self) -> Result<f64> {
        Ok(self.place()?.y)
    }
}

/// A seat map of one moment.
#[derive(Clone, Debug)]
pub struct SeatMap {
    /// The event.
    pub event: Arc<event::Model>,
    /// Its layout.
    pub layout: Option<Arc<Layout>>,
    /// What is shown.
    pub view: View,
    /// Sections wanted.
    pub sections: Option<Vec<i16>>,
}

/// A seat map, approximate by contract: at most 2 seconds old, and a hold decides.
#[Object]
impl SeatMap {
    /// Whose map it is.
    async fn event(&self) -> Event {
        Event(self.event.as_ref().clone())
    }

    /// General admission.
    async fn tiers(&self, ctx: &Context<'_>) -> Result<Vec<AdmissionTier>> {
        Ok(map_tiers(ctx, &self.event, &self.view).await?)
    }

    /// Equal versions mean equal statuses. Hand it to `seatMapChanged` as `afterVersion` to go on from here.
    async fn version(&self) -> SeatMapVersion {
        SeatMapVersion(self.view.version.clone())
    }

    /// The database's time of this map.
    async fn as_of(&self) -> DateTime {
        instant(self.view.as_of_ms)
    }

    /// Seats that show as available, of the sections asked for.
    async fn available_count(&self) -> i32 {
        let wanted = |section: &&SectionView| self.sections.as_ref().is_none_or(|list| list.contains(&section.section));
        count(self.view.sections.iter().filter(wanted).map(SectionView::available).sum())
    }

    /// In the layout's order.
    async fn sections(&self) -> Vec<SeatMapSection> {
        section_objects(self.event.id, self.layout.as_ref(), &self.view, self.sections.as_deref())
    }
}

/// The tiers of a map, with what it says is available.
pub async fn map_tiers(ctx: &Context<'_>, event: &event::Model, view: &View) -> Result<Vec<AdmissionTier>, Failure> {
    if view.tiers.is_empty() {
        return Ok(Vec::new());
    }
    let rows = services(ctx).catalogue.recent_tiers(event.id).await?;
    let currency = currency(&event.currency)?;
    let available = |no: i16| view.tiers.iter().find(|(tier, _)| *tier == no).map(|(_, available)| *available);
    Ok(rows
        .iter()
        .map(|row| AdmissionTier::new(row, available(row.tier_no).unwrap_or(row.available), currency))
        .collect())
}

/// The sections of a map, in order.
#[must_use]
pub fn section_objects(
    event: EventId,
    layout: Option<&Arc<Layout>>,
    view: &View,
    wanted: Option<&[i16]>,
) -> Vec<SeatMapSection> {
    let Some(layout) = layout else { return Vec::new() };
    view.sections
        .iter()
        .filter(|section| wanted.is_none_or(|wanted| wanted.contains(&section.section)))
        .map(|section| SeatMapSection { event, layout: Arc::clone(layout), view: section.clone() })
        .collect()
}

/// One section of a map.
#[derive(Clone, Debug)]
pub struct SeatMapSection {
    event: EventId,
    layout: Arc<Layout>,
    view: SectionView,
}

/// One section of a seat map.
#[Object]
impl SeatMapSection {
    /// `sec_…`, unique per event.
    pub async fn id(&self) -> ID {
        LocalId::Section.encode(self.event, self.view.section)
    }

    /// What people call it.
    async fn name(&self) -> String {
        let section = usize::try_from(self.view.section).unwrap_or(usize::MAX);
        self.layout.drawing.section_names.get(section).cloned().unwrap_or_default()
    }

    /// The version of this section alone.
    async fn version(&self) -> SeatMapVersion {
        SeatMapVersion(self.view.version.clone())
    }

    /// Seats that show as available.
    async fn available_count(&self) -> i32 {
        count(self.view.available())
    }

    /// Where the places of the seats are: JSON, immutable, cacheable for a year. Relative to this server.
    async fn geometry_url(&self) -> String {
        geometry_url(self.layout.id, &self.layout.geometry_hash)
    }

    /// One character a seat, in the geometry's order: A available, H held, S sold, B blocked.
    async fn statuses(&self) -> &str {
        &self.view.letters
    }

    /// Every seat as an object. Large: prefer `statuses` with the geometry.
    async fn seats(&self) -> Vec<EventSeat> {
        self.view
            .letters
            .chars()
            .zip(self.view.first..)
            .map(|(letter, number)| EventSeat {
                event: self.event,
                layout: Arc::clone(&self.layout),
                number,
                letter: Some(letter),
            })
            .collect()
    }
}

/// What a subscriber of a seat map gets: a snapshot first, then deltas.
#[derive(Clone, Debug, Union)]
pub enum SeatMapUpdate {
    Snapshot(SeatMapSnapshot),
    Delta(SeatMapDelta),
    Resync(SeatMapResync),
}

/// The whole map: forget what you had.
#[derive(Clone, Debug, SimpleObject)]
pub struct SeatMapSnapshot {
    /// The version of this map.
    pub version: SeatMapVersion,
    /// General admission.
    pub tiers: Vec<AdmissionTier>,
    /// The database's time of this map.
    pub as_of: DateTime,
    /// Sections asked for, in the layout's order.
    pub sections: Vec<SeatMapSection>,
}

impl SeatMapSnapshot {
    /// Of a view.
    pub async fn new(
        ctx: &Context<'_>,
        event: &event::Model,
        (layout, view): (Option<&Arc<Layout>>, &View),
        wanted: Option<&[i16]>,
    ) -> Result<Self, Failure> {
        Ok(Self {
            version: SeatMapVersion(view.version.clone()),
            tiers: map_tiers(ctx, event, view).await?,
            as_of: instant(view.as_of_ms),
            sections: section_objects(event.id, layout, view, wanted),
        })
    }
}

/// What changed since the message before: apply it to what you have if `fromVersion` is your version.
#[derive(Clone, Debug, SimpleObject)]
pub struct SeatMapDelta {
    /// The version of the message before.
    pub from_version: SeatMapVersion,
    /// The version after this one.
    pub version: SeatMapVersion,
    /// The database's time of this version.
    pub as_of: DateTime,
    /// Seats that show something else now.
    pub changes: Vec<SeatChange>,
    /// Tiers that have another count now.
    pub tier_changes: Vec<TierChange>,
}

impl SeatMapDelta {
    /// At a time in milliseconds.
    #[must_use]
    pub fn new(
        from: SeatMapVersion,
        (version, as_of_ms): (SeatMapVersion, i64),
        changes: Vec<SeatChange>,
        tier_changes: Vec<TierChange>,
    ) -> Self {
        Self { from_version: from, version, as_of: instant(as_of_ms), changes, tier_changes }
    }
}

/// A seat that shows something else now.
#[derive(Clone, Debug, SimpleObject)]
pub struct SeatChange {
    /// The seat.
    pub seat_id: ID,
    /// Its section.
    pub section_id: ID,
    /// What it shows.
    pub status: SeatStatus,
}

/// A tier that has another count now.
#[derive(Clone, Debug, SimpleObject)]
pub struct TierChange {
    /// The tier.
    pub tier_id: ID,
    /// Admissions left.
    pub available: i32,
}

/// Something was missed. A snapshot follows; after `SLOW_CONSUMER` the stream ends: subscribe again.
#[derive(Clone, Debug, SimpleObject)]
pub struct SeatMapResync {
    /// The version now.
    pub version: SeatMapVersion,
    /// Why.
    pub reason: SeatMapResyncReason,
}

/// A seat or tier that was in the way of a hold.
#[derive(Clone, Debug, SimpleObject)]
pub struct SeatConflict {
    /// The seat, or
    pub seat_id: Option<ID>,
    /// the tier.
    pub tier_id: Option<ID>,
    /// What the seat is.
    pub status: Option<SeatStatus>,
    /// What is left of the tier.
    pub available: Option<i32>,
    /// When the hold that has the seat runs out, at the latest.
    pub available_again_at: Option<DateTime>,
}
