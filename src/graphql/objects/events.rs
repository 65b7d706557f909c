//! Events and what they cost.

use super::{Layout, Organizer, Performer, Venue};
use crate::catalogue::{Schedule, local_date, sale_status};
use crate::graphql::errors::Failure;
use crate::graphql::loaders::{BillOf, RemainingOf, TiersOf, ZonesOf};
use crate::graphql::{Nullable, loaders, services, viewer_opt};
use crate::sales::{Figures, Part};
use async_graphql::{Context, ID, Object, Result, SimpleObject};
use parterre_entity::{EventId, InventoryMode as Mode, event, event_tier, event_zone, venue};
use parterre_schema::scalars::{Date, DateTime, Decimal, Money, TimeZone, Version};
use parterre_schema::{Currency, InventoryMode, Kind, LocalId, SaleStatus, node_id};

/// Something at a venue at a time.
#[derive(Clone, Debug)]
pub struct Event(pub event::Model);

pub(super) fn currency(code: &str) -> Result<Currency, Failure> {
    Currency::from_code(code).ok_or_else(|| Failure::Internal(format!("unknown currency {code}")))
}

impl Event {
    /// Where its sale stands now.
    pub async fn sale_status_now(&self, ctx: &Context<'_>) -> Result<SaleStatus, Failure> {
        let row = &self.0;
        let schedule = Schedule::of(row);
        let now = crate::clock::now();
        // Stock is only asked for where it makes a difference.
        match sale_status(row.state, schedule, 1, now) {
            SaleStatus::OnSale => {
                let remaining = loaders(ctx).load_one(RemainingOf(row.id)).await?.unwrap_or(0);
                Ok(sale_status(row.state, schedule, remaining, now))
            }
            status => Ok(status),
        }
    }

    async fn venue_row(&self, ctx: &Context<'_>) -> Result<venue::Model, Failure> {
        let row = loaders(ctx).load_one(self.0.venue_id).await?;
        row.ok_or_else(|| Failure::Internal("an event without a venue".to_owned()))
    }

    async fn zone_rows(&self, ctx: &Context<'_>) -> Result<Vec<event_zone::Model>, Failure> {
        Ok(loaders(ctx).load_one(ZonesOf(self.0.id)).await?.unwrap_or_default())
    }

    async fn tier_rows(&self, ctx: &Context<'_>) -> Result<Vec<event_tier::Model>, Failure> {
        Ok(loaders(ctx).load_one(TiersOf(self.0.id)).await?.unwrap_or_default())
    }
}

/// Something at a venue at a time, and the rules by which it is sold. Copy may be a minute old behind a cache.
#[Object]
impl Event {
    /// `evt_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Event, self.0.id)
    }

    /// For URLs; never changes.
    async fn slug(&self) -> &str {
        &self.0.slug
    }

    /// Counts edits of the catalogue, not sales: hand it back as `expectedVersion`.
    async fn version(&self) -> Version {
        self.0.version.into()
    }

    /// Its title.
    async fn title(&self) -> &str {
        &self.0.title
    }

    /// Free text.
    async fn description(&self) -> Option<&str> {
        self.0.description.as_deref()
    }

    /// As in facets.
    async fn category(&self) -> Option<&str> {
        self.0.category.as_deref()
    }

    /// Who sells it.
    async fn organizer(&self, ctx: &Context<'_>) -> Result<Organizer> {
        let row = loaders(ctx).load_one(self.0.organization_id).await.map_err(Failure::from)?;
        Ok(Organizer(row.ok_or_else(|| Failure::Internal("an event without an organizer".to_owned()))?))
    }

    /// Where it is.
    async fn venue(&self, ctx: &Context<'_>) -> Result<Venue> {
        Ok(Venue(self.venue_row(ctx).await?))
    }

    /// The bill, in order.
    async fn performers(&self, ctx: &Context<'_>) -> Result<Vec<Performer>> {
        let rows = loaders(ctx).load_one(BillOf(self.0.id)).await.map_err(Failure::from)?;
        Ok(rows.unwrap_or_default().into_iter().map(Performer).collect())
    }

    /// When it starts.
    async fn starts_at(&self) -> DateTime {
        self.0.starts_at.into()
    }

    /// The calendar date at the venue on which it starts.
    async fn local_date(&self, ctx: &Context<'_>) -> Result<Date> {
        let venue = self.venue_row(ctx).await?;
        Ok(local_date(self.0.starts_at, &venue.time_zone).into())
    }

    /// The venue's time zone.
    async fn time_zone(&self, ctx: &Context<'_>) -> Result<TimeZone> {
        Ok(TimeZone(self.venue_row(ctx).await?.time_zone))
    }

    /// Where the sale stands now.
    async fn sale_status(&self, ctx: &Context<'_>) -> Result<SaleStatus> {
        Ok(self.sale_status_now(ctx).await?)
    }

    /// When the sale opens.
    async fn on_sale_at(&self) -> DateTime {
        self.0.on_sale_at.into()
    }

    /// When the sale closes.
    async fn off_sale_at(&self) -> DateTime {
        self.0.off_sale_at.into()
    }

    /// What is sold.
    async fn inventory_mode(&self) -> InventoryMode {
        match self.0.inventory_mode {
            Mode::Assigned => InventoryMode::Assigned,
            Mode::GeneralAdmission => InventoryMode::GeneralAdmission,
            Mode::Mixed => InventoryMode::Mixed,
        }
    }

    /// How long a new hold lasts, in seconds.
    async fn hold_seconds(&self) -> i32 {
        self.0.hold_seconds
    }

    /// Seats and admissions that one buyer may have at once.
    async fn max_seats_per_buyer(&self) -> i32 {
        self.0.max_seats_per_buyer
    }

    /// Prices of seats; empty for general admission.
    async fn price_zones(&self, ctx: &Context<'_>) -> Result<Vec<PriceZone>> {
        let currency = currency(&self.0.currency)?;
        Ok(self.zone_rows(ctx).await?.iter().map(|row| PriceZone::new(row, currency)).collect())
    }

    /// General admission; empty for assigned seating.
    async fn tiers(&self, ctx: &Context<'_>) -> Result<Vec<AdmissionTier>> {
        let currency = currency(&self.0.currency)?;
        Ok(self.tier_rows(ctx).await?.iter().map(|row| AdmissionTier::new(row, row.available, currency)).collect())
    }

    /// Cheapest and dearest.
    async fn price_range(&self, ctx: &Context<'_>) -> Nullable<PriceRange> {
        let read = async {
            let currency = currency(&self.0.currency)?;
            let zones = self.zone_rows(ctx).await?.into_iter().map(|row| row.price_minor);
            let prices: Vec<i64> =
                zones.chain(self.tier_rows(ctx).await?.into_iter().map(|row| row.price_minor)).collect();
            let range = prices.iter().min().zip(prices.iter().max());
            Ok::<_, Failure>(
                range.map(|(min, max)| PriceRange { min: currency.money(*min), max: currency.money(*max) }),
            )
        };
        read.await.map_err(Into::into).transpose()
    }

    /// Its seating plan.
    async fn layout(&self, ctx: &Context<'_>) -> Nullable<Layout> {
        let id = self.0.layout_id?;
        let row = loaders(ctx).load_one(id).await.map_err(Failure::from);
        row.map(|row| row.map(Layout)).map_err(Into::into).transpose()
    }

    /// The terms for new bookings.
    async fn cancellation_policy(&self) -> CancellationPolicy {
        let until = self.0.cancel_until_seconds_before;
        CancellationPolicy {
            allowed_until: until.map(|seconds| (self.0.starts_at - chrono::Duration::seconds(seconds.into())).into()),
            refund_percent: percent(self.0.refund_ppm),
            resell: self.0.resell,
        }
    }

    /// Whether picks that leave one seat alone are refused.
    async fn forbid_single_seats(&self) -> bool {
        self.0.forbid_single_seats
    }

    /// Whether a new hold needs an admission token.
    async fn waiting_room_enabled(&self) -> bool {
        self.0.admit_per_minute.is_some()
    }

    /// How it sells: for its organizer only, null to others. A few seconds old.
    async fn sales(&self, ctx: &Context<'_>) -> Nullable<EventSales> {
        if !viewer_opt(ctx).is_some_and(|viewer| viewer.is_of(self.0.organization_id)) {
            return None;
        }
        let read = async {
            let Some(counted) = services(ctx).sales.of(self.0.id).await? else { return Ok(None) };
            let layout = match self.0.layout_id {
                Some(id) => services(ctx).catalogue.layout(id).await?,
                None => None,
            };
            let names = layout.as_deref().map_or(&[][..], |layout| &layout.drawing.section_names);
            EventSales::of(self.0.id, currency(&self.0.currency)?, &counted, names).map(Some)
        };
        read.await.map_err(Into::into).transpose()
    }
}

/// A share in millionths as a percentage without superfluous zeros.
#[must_use]
pub fn percent(ppm: i32) -> Decimal {
    let (whole, rest) = (ppm / 10_000, ppm % 10_000);
    let text = format!("{whole}.{rest:04}");
    Decimal(text.trim_end_matches('0').trim_end_matches('.').to_owned())
}

/// Cheapest and dearest.
#[derive(Clone, Debug, SimpleObject)]
pub struct PriceRange {
    /// Cheapest.
    pub min: Money,
    /// Dearest.
    pub max: Money,
}

/// The terms of cancellation.
#[derive(Clone, Debug, SimpleObject)]
pub struct CancellationPolicy {
    /// Null: until the start.
    pub allowed_until: Option<DateTime>,
    /// Share given back.
    pub refund_percent: Decimal,
    /// Whether cancelled seats go back on sale.
    pub resell: bool,
}

/// What seats of a zone cost.
#[derive(Clone, Debug, SimpleObject)]
pub struct PriceZone {
    /// `zon_…`, unique per event.
    pub id: ID,
    /// Its name in the layout.
    pub name: String,
    /// Of one seat.
    pub price: Money,
}

impl PriceZone {
    /// Of a row.
    #[must_use]
    pub fn new(row: &event_zone::Model, currency: Currency) -> Self {
        Self {
            id: LocalId::Zone.encode(row.event_id, row.zone_no),
            name: row.name.clone(),
            price: currency.money(row.price_minor),
        }
    }
}

/// General admission at one price.
#[derive(Clone, Debug, SimpleObject)]
pub struct AdmissionTier {
    /// `tier_…`, unique per event.
    pub id: ID,
    /// Unique in the event.
    pub name: String,
    /// Of one admission.
    pub price: Money,
    /// Admissions in all.
    pub capacity: i32,
    /// Admissions left, approximately: a hold decides.
    pub available: i32,
}

impl AdmissionTier {
    /// Of a row, with what a map says is available.
    #[must_use]
    pub fn new(row: &event_tier::Model, available: i32, currency: Currency) -> Self {
        Self {
            id: LocalId::Tier.encode(row.event_id, row.tier_no),
            name: row.name.clone(),
            price: currency.money(row.price_minor),
            capacity: row.capacity,
            available,
        }
    }
}

/// A tier of an event by number.
pub(super) async fn tier(ctx: &Context<'_>, event: EventId, no: i16) -> Result<Option<AdmissionTier>, Failure> {
    let Some(row) = loaders(ctx).load_one(event).await? else { return Ok(None) };
    let currency = currency(&row.currency)?;
    let tiers = loaders(ctx).load_one(TiersOf(event)).await?.unwrap_or_default();
    Ok(tiers.iter().find(|tier| tier.tier_no == no).map(|tier| AdmissionTier::new(tier, tier.available, currency)))
}

/// How an event sells.
#[derive(Clone, Debug, SimpleObject)]
pub struct EventSales {
    /// Seats and admissions in all.
    pub capacity: i32,
    /// Sold now.
    pub sold: i32,
    /// Held or being paid.
    pub held: i32,
    /// Off sale.
    pub blocked: i32,
    /// What all bookings paid that were ever confirmed.
    pub gross: Money,
    /// What of it went back.
    pub refunded: Money,
    /// By section and tier.
    pub by_section: Vec<SectionSales>,
    /// By the hour of confirmation, the cancelled too.
    pub by_hour: Vec<HourSales>,
    /// When this was counted.
    pub as_of: DateTime,
}

impl EventSales {
    fn of(
        event: EventId,
        currency: Currency,
        (figures, as_of): &(Figures, chrono::DateTime<chrono::Utc>),
        section_names: &[String],
    ) -> Result<Self, Failure> {
        let whole = |sum: i64| i32::try_from(sum).map_err(|_| Failure::Internal("a count is too large".to_owned()));
        let sum = |of: &dyn Fn(&Part) -> i32| whole(figures.parts.iter().map(|part| i64::from(of(part))).sum());
        let by_section = figures.parts.iter().map(|part| {
            let no = part.section.and_then(|no| usize::try_from(no).ok());
            let name = part.name.clone().or_else(|| no.and_then(|no| section_names.get(no)).cloned());
            SectionSales {
                section_id: part.section.map(|no| LocalId::Section.encode(event, no)),
                tier_id: part.tier.map(|no| LocalId::Tier.encode(event, no)),
                name: name.unwrap_or_default(),
                capacity: part.capacity,
                sold: part.sold,
                gross: currency.money(part.gross_minor),
            }
        });
        let by_hour = figures.hours.iter().map(|hour| {
            Ok(HourSales { hour: hour.hour.into(), sold: whole(hour.sold)?, gross: currency.money(hour.gross_minor) })
        });
        Ok(Self {
            capacity: sum(&|part| part.capacity)?,
            sold: sum(&|part| part.sold)?,
            held: sum(&|part| part.held)?,
            blocked: sum(&|part| part.blocked)?,
            gross: currency.money(figures.gross_minor),
            refunded: currency.money(figures.refunded_minor),
            by_section: by_section.collect(),
            by_hour: by_hour.collect::<Result<_, Failure>>()?,
            as_of: (*as_of).into(),
        })
    }
}

/// How a section or tier sells.
#[derive(Clone, Debug, SimpleObject)]
pub struct SectionSales {
    /// A section, or
    pub section_id: Option<ID>,
    /// a tier.
    pub tier_id: Option<ID>,
    /// Its name.
    pub name: String,
    /// In all.
    pub capacity: i32,
    /// Sold now.
    pub sold: i32,
    /// What those who have it paid.
    pub gross: Money,
}

/// How an hour sold.
#[derive(Clone, Debug, SimpleObject)]
pub struct HourSales {
    /// Its beginning.
    pub hour: DateTime,
    /// Sold in it.
    pub sold: i32,
    /// What they paid.
    pub gross: Money,
}
