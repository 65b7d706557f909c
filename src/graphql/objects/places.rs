//! Organizers, venues, performers, layouts.

use super::{Event, EventConnection, VenueConnection, read_page};
use crate::catalogue::{EventFilter, Note, Page};
use crate::graphql::errors::Failure;
use crate::graphql::{Nullable, loaders, services, viewer_opt};
use async_graphql::{Context, ID, Object, Result, SimpleObject};
use parterre_entity::{layout, organization, performer, venue};
use parterre_schema::scalars::{DateTime, TimeZone, Version};
use parterre_schema::{Kind, SaleStatus, geometry_url, node_id};

/// Who sells.
#[derive(Clone, Debug)]
pub struct Organizer(pub organization::Model);

/// Who sells: an organization with its venues and events.
#[Object]
impl Organizer {
    /// `org_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Organizer, self.0.id)
    }

    /// What people call it.
    async fn name(&self) -> &str {
        &self.0.name
    }

    /// Its events, newest first. Drafts are for the organization itself.
    async fn events(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only these; null: all.")] status: Option<Vec<SaleStatus>>,
        #[graphql(desc = "1 to 100.", default_with = "Some(20)")] first: Option<i32>,
        #[graphql(desc = "A cursor of the page before.")] after: Option<String>,
    ) -> Nullable<EventConnection> {
        let read = async {
            let page = read_page(first, after.as_deref())?;
            let drafts = viewer_opt(ctx).is_some_and(|viewer| viewer.is_of(self.0.id));
            let mut entries = Vec::new();
            let mut reading = Page { after: page.after, limit: page.limit() };
            // Sale status is derived, so pages are read until enough events have a wanted one.
            loop {
                let rows = services(ctx).catalogue.events_of(self.0.id, EventFilter { drafts }, reading).await?;
                let last = rows.last().map(|row| row.id.0);
                let full = u64::try_from(rows.len()) == Ok(reading.limit);
                for row in rows {
                    let id = row.id.0;
                    let event = Event(row);
                    let wanted = match &status {
                        Some(status) if !status.is_empty() => status.contains(&event.sale_status_now(ctx).await?),
                        Some(_) | None => true,
                    };
                    if wanted {
                        entries.push((id, event));
                    }
                }
                if !full || u64::try_from(entries.len()).unwrap_or(u64::MAX) >= page.limit() {
                    return Ok::<_, Failure>(EventConnection::new(entries, &page));
                }
                reading.after = last;
            }
        };
        Some(read.await.map_err(Into::into))
    }

    /// Its venues, newest first.
    async fn venues(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "1 to 100.", default_with = "Some(20)")] first: Option<i32>,
        #[graphql(desc = "A cursor of the page before.")] after: Option<String>,
    ) -> Nullable<VenueConnection> {
        let read = async {
            let page = read_page(first, after.as_deref())?;
            let rows =
                services(ctx).catalogue.venues_of(self.0.id, Page { after: page.after, limit: page.limit() }).await?;
            let entries = rows.into_iter().map(|row| (row.id.0, Venue(row))).collect();
            Ok::<_, Failure>(VenueConnection::new(entries, &page))
        };
        Some(read.await.map_err(Into::into))
    }
}

/// A place.
#[derive(Clone, Debug)]
pub struct Venue(pub venue::Model);

/// A place where events happen. Its time zone decides their local dates.
#[Object]
impl Venue {
    /// `ven_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Venue, self.0.id)
    }

    /// Counts edits: hand it back as `expectedVersion`.
    async fn version(&self) -> Version {
        self.0.version.into()
    }

    /// Its seating plans, oldest first, at most 100.
    async fn layouts(&self, ctx: &Context<'_>) -> Nullable<Vec<Layout>> {
        let rows = services(ctx).catalogue.layouts_of(self.0.id).await.map_err(Failure::from);
        Some(rows.map(|rows| rows.into_iter().map(Layout).collect()).map_err(Into::into))
    }

    /// What people call it.
    async fn name(&self) -> &str {
        &self.0.name
    }

    /// Its city.
    async fn city(&self) -> &str {
        &self.0.city
    }

    /// ISO 3166-1 alpha-2.
    async fn country_code(&self) -> &str {
        &self.0.country_code
    }

    /// IANA name.
    async fn time_zone(&self) -> TimeZone {
        TimeZone(self.0.time_zone.clone())
    }

    /// Degrees.
    async fn latitude(&self) -> Option<f64> {
        self.0.latitude
    }

    /// Degrees.
    async fn longitude(&self) -> Option<f64> {
        self.0.longitude
    }
}

/// Who is on stage.
#[derive(Clone, Debug)]
pub struct Performer(pub performer::Model);

/// Who is on stage: edited by the organization that created it, billed by all.
#[Object]
impl Performer {
    /// `prf_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Performer, self.0.id)
    }

    /// Counts edits: hand it back as `expectedVersion`.
    async fn version(&self) -> Version {
        self.0.version.into()
    }

    /// The name on the bill.
    async fn name(&self) -> &str {
        &self.0.name
    }

    /// Free text.
    async fn genre(&self) -> Option<&str> {
        self.0.genre.as_deref()
    }
}

/// A seating plan.
#[derive(Clone, Debug)]
pub struct Layout(pub layout::Model);

/// An immutable seating plan of a venue.
#[Object]
impl Layout {
    /// `lay_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Layout, self.0.id)
    }

    /// Its venue.
    async fn venue(&self, ctx: &Context<'_>) -> Result<Venue> {
        let row = loaders(ctx).load_one(self.0.venue_id).await.map_err(Failure::from)?;
        Ok(Venue(row.ok_or_else(|| Failure::Internal("a layout without a venue".to_owned()))?))
    }

    /// What people call it.
    async fn name(&self) -> &str {
        &self.0.name
    }

    /// How many seats it has.
    async fn seat_count(&self) -> i32 {
        self.0.seat_count
    }

    /// Its price zones: an event sets a price for each.
    async fn zones(&self) -> &[String] {
        &self.0.zone_names
    }

    /// Its sections, in order.
    async fn section_names(&self) -> &[String] {
        &self.0.section_names
    }

    /// Where the places of its seats are: JSON, immutable, cacheable for a year. Relative to this server.
    async fn geometry_url(&self) -> String {
        geometry_url(self.0.id, &self.0.geometry_hash)
    }

    /// When it was made.
    async fn created_at(&self) -> DateTime {
        self.0.created_at.into()
    }
}

/// Something that an import changed or left out.
#[derive(Clone, Debug, SimpleObject)]
pub struct LayoutNote {
    /// A word to switch on: `CATEGORY_RENAMED, GUID_REPEATED`, `ROW_NAMED`, `ROWS_JOINED`, `SEAT_NUMBERED`, `SEAT_RENAMED`, `SECTION_RENAMED`,
    /// `EMPTY_ROW`, `UNKNOWN_PROPERTY`. More may come.
    pub code: String,
    /// For people.
    pub message: String,
    /// Where in the document.
    pub path: Vec<String>,
}

impl From<Note> for LayoutNote {
    fn from(note: Note) -> Self {
        Self { code: note.code.to_owned(), message: note.message, path: note.path }
    }
}
