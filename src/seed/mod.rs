//! Demo data, made through the catalogue like anybody's: some fixed events for trying things, and two thousand for
//! search. Their dates are relative to each start, so that they never rot.
//!
//! Invariant: safe to run again, also after it was cut off: what is there by name is not made twice.

mod sources;

use crate::app::App;
use crate::audit::Organizer;
use crate::catalogue::{Catalogue, LayoutDraft, Names, SaleStep};
use crate::inventory::{Answer, HoldRequest};
use anyhow::Context as _;
use chrono::{DateTime, Duration, Utc};
use futures_util::StreamExt as _;
use parterre_entity::{EventId, HoldId, LayoutId, VenueId};
use parterre_schema::scalars::{CurrencyCode, DateTime as Instant, Decimal, TimeZone, Version};
use parterre_schema::{
    CreateEventInput, CreatePerformerInput, CreateVenueInput, InventoryMode, Kind, TierInput, ZonePriceInput, node_id,
};
pub(crate) use sources::{Act, Entry, Place, plan};

/// Whose the demo events are.
const ORGANIZATION: &str = "Parterre Demo";
const THEATRE: &str = "An Evening at the Theatre";
/// The fixed event that opens an hour after each start: the others' dates are kept relative to it.
const ANCHOR: &str = "Doors Open in an Hour";
/// Events for search.
const EVENTS: usize = 2_000;
/// Places and acts of those.
const PLACES: usize = 250;
const ACTS: usize = 700;
/// Made at a time.
const AT_ONCE: usize = 8;

/// Makes the demo data if it is not there, and brings its dates up to date if it is.
pub async fn run(app: &App) -> anyhow::Result<()> {
    let catalogue = &app.services.catalogue;
    let organization =
        catalogue.organization_named(ORGANIZATION, true).await?.context("the demo organization is not there")?;
    let who = Organizer { actor: "seed".to_owned(), organization };
    let now = crate::clock::now();
    if let Some(anchor) = catalogue.event_titled(organization, ANCHOR).await? {
        let behind = now + Duration::hours(1) - anchor.on_sale_at;
        if behind > Duration::minutes(1) {
            catalogue.shift_dates(&who, behind).await?;
        }
        return Ok(());
    }
    tracing::info!("making the demo data, once");
    let seeding = Seeding { app, who, now, known: catalogue.names_of(organization).await? };
    seeding.fixed_events().await?;
    seeding.events_for_search().await?;
    seeding.anchor().await?;
    tracing::info!("the demo data is there");
    Ok(())
}

/// The node id of the fixed theatre event.
pub async fn theatre(app: &App) -> anyhow::Result<String> {
    let catalogue = &app.services.catalogue;
    let organization = catalogue.organization_named(ORGANIZATION, false).await?.context("there is no demo data")?;
    let event = catalogue.event_titled(organization, THEATRE).await?.context("there is no demo theatre")?;
    Ok(node_id(Kind::Event, event.id).0)
}

struct Seeding<'a> {
    app: &'a App,
    who: Organizer,
    now: DateTime<Utc>,
    known: Names,
}

/// What an event sells, and where.
struct Offer<'a> {
    venue: VenueId,
    layout: Option<(LayoutId, Vec<(String, String)>)>,
    tiers: Vec<(&'a str, &'a str, i32)>,
    currency: &'a str,
}

/// What an event is.
struct Copy<'a> {
    title: &'a str,
    description: &'a str,
    category: &'a str,
    performers: Vec<uuid::Uuid>,
    popularity: f64,
    starts_at: DateTime<Utc>,
    on_sale_at: DateTime<Utc>,
}

impl Seeding<'_> {
    fn catalogue(&self) -> &Catalogue {
        &self.app.services.catalogue
    }

    async fn fixed_events(&self) -> anyhow::Result<()> {
        let dresden =
            self.venue(&Place::fixed("Staatsschauspiel", "Dresden", "DE", "Europe/Berlin", (51.053, 13.734))).await?;
        let theatre = self.layout(dresden, "Theatre", sources::THEATRE).await?;
        let prices = ["Parkett vorne", "Parkett mitte", "Parkett hinten", "Balkon vorne", "Balkon hinten"];
        let prices = priced(&prices, &["89.00", "69.00", "49.00", "59.00", "29.00"]);
        let offer = Offer { venue: dresden, layout: Some((theatre, prices)), tiers: Vec::new(), currency: "EUR" };
        self.event(self.fixed(THEATRE, "The real 1,057-seat plan, in five price zones.", "Theatre", 21), offer).await?;

        let kharkiv =
            self.venue(&Place::fixed("Metalist Stadium", "Kharkiv", "UA", "Europe/Kyiv", (49.981, 36.261))).await?;
        let stadium = self.layout(kharkiv, "Stadium", sources::STADIUM).await?;
        let prices = priced(
            &["West", "VIP", "Skybox", "South", "East", "North"],
            &["40.00", "150.00", "300.00", "20.00", "35.00", "20.00"],
        );
        let offer = Offer { venue: kharkiv, layout: Some((stadium, prices)), tiers: Vec::new(), currency: "EUR" };
        self.event(self.fixed("A Night at the Stadium", "All 39,616 real seats.", "Concert", 60), offer).await?;

        let berlin = self.venue(&Place::fixed("Kesselhaus", "Berlin", "DE", "Europe/Berlin", (52.539, 13.412))).await?;
        let tiers = vec![("Early bird", "18.00", 100), ("Regular", "25.00", 400)];
        let club = Offer { venue: berlin, layout: None, tiers, currency: "EUR" };
        self.event(
            self.fixed("Club Night in Two Tiers", "General admission: early birds and the rest.", "Club", 14),
            club,
        )
        .await?;

        let vienna =
            self.venue(&Place::fixed("Concert Hall", "Vienna", "AT", "Europe/Vienna", (48.201, 16.373))).await?;
        let hall = self.layout(vienna, "Hall with a dance floor", sources::HALL).await?;
        let zones = ["Танцевальный партер", "VIP 4", "VIP 3", "VIP 2", "VIP 1", "Super VIP"];
        let prices = priced(&zones, &["30.00", "45.00", "55.00", "65.00", "80.00", "120.00"]);
        let tiers = vec![("Standing", "22.00", 200)];
        let mixed = Offer { venue: vienna, layout: Some((hall, prices)), tiers, currency: "EUR" };
        self.event(
            self.fixed("Seats and Standing", "A mixed event: seats by number, standing by count.", "Concert", 30),
            mixed,
        )
        .await?;

        let free = Offer { venue: berlin, layout: None, tiers: vec![("Entry", "0.00", 300)], currency: "EUR" };
        self.event(
            self.fixed("Free Open Rehearsal", "Costs nothing: confirmed at once, no payment.", "Classical", 7),
            free,
        )
        .await?;

        let tokyo = self.venue(&Place::fixed("Budokan", "Tokyo", "JP", "Asia/Tokyo", (35.693, 139.750))).await?;
        let yen = Offer {
            venue: tokyo,
            layout: None,
            tiers: vec![("Arena", "12000", 500), ("Stand", "8000", 1_500)],
            currency: "JPY",
        };
        self.event(
            self.fixed("東京の夜 A Night in Tokyo", "Priced in yen, which has no decimals.", "Concert", 45),
            yen,
        )
        .await?;

        let small = Offer { venue: berlin, layout: None, tiers: vec![("Members", "0.00", 24)], currency: "EUR" };
        let sold_out =
            self.event(self.fixed("Members' Preview, Sold Out", "Nothing is left.", "Theatre", 10), small).await?;
        self.sell_out(sold_out).await
    }

    /// The last event made: its being there says that all of the rest is.
    async fn anchor(&self) -> anyhow::Result<()> {
        let berlin = self.venue(&Place::fixed("Kesselhaus", "Berlin", "DE", "Europe/Berlin", (52.539, 13.412))).await?;
        let offer = Offer { venue: berlin, layout: None, tiers: vec![("Regular", "30.00", 500)], currency: "EUR" };
        let mut copy = self.fixed(ANCHOR, "The sale opens an hour after this server was started.", "Club", 3);
        copy.on_sale_at = self.now + Duration::hours(1);
        self.event(copy, offer).await.map(drop)
    }

    fn fixed<'b>(&self, title: &'b str, description: &'b str, category: &'b str, days: i64) -> Copy<'b> {
        Copy {
            title,
            description,
            category,
            performers: Vec::new(),
            popularity: 10.0,
            starts_at: self.now + Duration::days(days),
            on_sale_at: self.now - Duration::days(1),
        }
    }

    /// Sells an event's one free tier to people two at a time.
    async fn sell_out(&self, event: EventId) -> anyhow::Result<()> {
        for number in 0..12 {
            let buyer = format!("member-{number}");
            let request = HoldRequest {
                hold: HoldId::new(),
                event,
                buyer: buyer.clone(),
                key: "seed".to_owned(),
                fingerprint: "seed".to_owned(),
                seats: Vec::new(),
                tiers: vec![(0, 2)],
                best: None,
                layout: None,
            };
            let Answer::Held { hold, .. } = self.app.services.inventory.hold(request).await? else { continue };
            let request = crate::booking::CheckoutRequest {
                hold: hold.row.id,
                buyer,
                key: "seed".to_owned(),
                fingerprint: "seed".to_owned(),
                payment_method: "none".to_owned(),
                return_url: None,
                contact_email: None,
                locale: None,
            };
            self.app.services.bookings.checkout(&request).await?.ok().context("a free booking was refused")?;
        }
        Ok(())
    }

    async fn events_for_search(&self) -> anyhow::Result<()> {
        let plan = sources::plan(EVENTS, (PLACES, ACTS))?;
        let venues = self.all(&plan.places, |place| self.venue(place)).await?;
        let performers = self.all(&plan.acts, |act| self.performer(act)).await?;
        let made = futures_util::stream::iter(plan.events.iter().map(|entry| {
            let (venues, performers) = (&venues, &performers);
            async move {
                let (Some(venue), Some(performer)) = (venues.get(entry.place), performers.get(entry.act)) else {
                    return Ok(());
                };
                let starts_at = self.now + Duration::days(entry.days) + Duration::hours(entry.hour);
                let copy = Copy {
                    title: &entry.title,
                    description: &entry.description,
                    category: entry.category,
                    performers: vec![*performer],
                    popularity: entry.popularity,
                    starts_at,
                    on_sale_at: self.now + Duration::days(entry.on_sale_days),
                };
                let tiers = vec![("General admission", entry.price.as_str(), entry.capacity)];
                let offer = Offer { venue: *venue, layout: None, tiers, currency: entry.currency };
                self.event(copy, offer).await.map(drop)
            }
        }))
        .buffer_unordered(AT_ONCE)
        .collect::<Vec<anyhow::Result<()>>>()
        .await;
        made.into_iter().collect()
    }

    /// Makes things several at a time, in order.
    async fn all<'b, T, R, F: Future<Output = anyhow::Result<R>>>(
        &self,
        things: &'b [T],
        make: impl Fn(&'b T) -> F,
    ) -> anyhow::Result<Vec<R>> {
        futures_util::stream::iter(things.iter().map(make))
            .buffered(AT_ONCE)
            .collect::<Vec<_>>()
            .await
            .into_iter()
            .collect()
    }

    async fn venue(&self, place: &Place) -> anyhow::Result<VenueId> {
        if let Some(id) = self.known.venues.get(&place.name) {
            return Ok(*id);
        }
        if let Some(id) = self.catalogue().venue_named(self.who.organization, &place.name).await? {
            return Ok(id);
        }
        let input = CreateVenueInput {
            name: place.name.clone(),
            city: place.city.clone(),
            country_code: place.country.clone(),
            time_zone: TimeZone(place.time_zone.clone()),
            latitude: Some(place.at.0),
            longitude: Some(place.at.1),
        };
        Ok(self.catalogue().create_venue(&self.who, &input).await?.id)
    }

    async fn performer(&self, act: &Act) -> anyhow::Result<uuid::Uuid> {
        if let Some(id) = self.known.performers.get(&act.name) {
            return Ok(*id);
        }
        let input = CreatePerformerInput { name: act.name.clone(), genre: act.genre.clone() };
        Ok(self.catalogue().create_performer(&self.who, &input).await?.id.0)
    }

    async fn layout(&self, venue: VenueId, name: &str, plan: &str) -> anyhow::Result<LayoutId> {
        if let Some(id) = self.known.layouts.get(&(venue, name.to_owned())) {
            return Ok(*id);
        }
        let (draft, _): (LayoutDraft, _) = Catalogue::read_plan(name.to_owned(), plan)?;
        Ok(self.catalogue().save_layout(&self.who, venue, &draft).await?)
    }

    /// Creates and publishes an event, unless there is one of this title.
    async fn event(&self, copy: Copy<'_>, offer: Offer<'_>) -> anyhow::Result<EventId> {
        let made = match self.known.events.get(copy.title) {
            Some((id, true)) => return Ok(*id),
            Some((id, false)) => (*id, 1),
            None => {
                let input = event_input(&copy, &offer);
                let row = self.catalogue().create_popular_event(&self.who, &input, copy.popularity).await?;
                (row.id, row.version)
            }
        };
        let version = Version::from(made.1);
        let id = node_id(Kind::Event, made.0);
        self.catalogue().step_event(&self.who, (&id, &version), (SaleStep::Publish, None)).await?;
        Ok(made.0)
    }
}

fn priced(zones: &[&str], prices: &[&str]) -> Vec<(String, String)> {
    zones.iter().zip(prices).map(|(zone, price)| ((*zone).to_owned(), (*price).to_owned())).collect()
}

fn event_input(copy: &Copy<'_>, offer: &Offer<'_>) -> CreateEventInput {
    let inventory_mode = match (&offer.layout, offer.tiers.is_empty()) {
        (Some(_), true) => InventoryMode::Assigned,
        (Some(_), false) => InventoryMode::Mixed,
        (None, _) => InventoryMode::GeneralAdmission,
    };
    let zone = |(zone, price): &(String, String)| ZonePriceInput { zone: zone.clone(), price: Decimal(price.clone()) };
    let tier = |(name, price, capacity): &(&str, &str, i32)| TierInput {
        name: (*name).to_owned(),
        price: Decimal((*price).to_owned()),
        capacity: *capacity,
    };
    CreateEventInput {
        venue_id: node_id(Kind::Venue, offer.venue),
        layout_id: offer.layout.as_ref().map(|(id, _)| node_id(Kind::Layout, *id)),
        title: copy.title.to_owned(),
        description: Some(copy.description.to_owned()),
        category: Some(copy.category.to_owned()),
        performer_ids: Some(copy.performers.iter().map(|id| node_id(Kind::Performer, *id)).collect()),
        starts_at: Instant::from(copy.starts_at),
        on_sale_at: Instant::from(copy.on_sale_at),
        off_sale_at: Instant::from(copy.starts_at - Duration::minutes(30)),
        inventory_mode,
        zone_prices: offer.layout.as_ref().map(|(_, prices)| prices.iter().map(zone).collect()),
        tiers: (!offer.tiers.is_empty()).then(|| offer.tiers.iter().map(tier).collect()),
        currency: CurrencyCode(offer.currency.to_owned()),
        hold_seconds: None,
        max_seats_per_buyer: None,
        forbid_single_seats: None,
        waiting_room: None,
        cancellation: None,
    }
}
