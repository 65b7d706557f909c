//! What is on, where, and what it costs: organizers write it, everyone reads it.
//!
//! Invariants: a layout never changes; a draft is seen by its organization only; every write has its audit row, and
//! what others react to its outbox row, in its own commit. Seats and tiers of an event are the inventory's: this room asks for them to be made.

mod layout;
mod plan;
mod read;
mod rules;
mod store;

pub use layout::{Draft as LayoutDraft, Layout, Seat};
pub use plan::Note;
pub use read::{EventFilter, Names, Page};
pub use rules::{SaleStep, Schedule, sale_status};

use crate::audit::Organizer;
use crate::bus::SeatsDelta;
use crate::db::{self, CommitError, Db, repeating};
use crate::input::{Invalid, optional_text, text};
use crate::inventory::Conflict;
use parterre_entity::{EventId, LayoutId, OrganizationId, PerformerId, VenueId, event, event_tier, performer, venue};
use parterre_schema::Currency;
use parterre_schema::{
    BlockSeatsInput, CreateEventInput, CreateLayoutInput, CreatePerformerInput, CreateVenueInput, Kind,
    UpdateEventInput, UpdatePerformerInput, UpdateVenueInput, Version, limits, parse_node_id,
};
use sea_orm::DbErr;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// Why a write did not happen.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueError {
    /// An input is wrong.
    #[error(transparent)]
    Invalid(#[from] Invalid),
    /// No such object, or another organization's: the input field that names it.
    #[error("{0}: no such object")]
    NotFound(&'static str),
    /// Edited since.
    #[error("the version is {current} now")]
    Stale {
        /// Now.
        current: i64,
    },
    /// Seats that are held or sold can't be blocked.
    #[error("seats are taken")]
    SeatsTaken(Vec<Conflict>),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl db::MayRepeat for CatalogueError {
    fn may_repeat(&self) -> bool {
        match self {
            Self::Database(error) | Self::Commit(CommitError::RolledBack(error)) => db::may_repeat(error),
            Self::Invalid(_)
            | Self::NotFound(_)
            | Self::Stale { .. }
            | Self::SeatsTaken(_)
            | Self::Commit(CommitError::Unknown(_)) => false,
        }
    }
}

/// The local calendar date of an instant in a venue's time zone.
#[must_use]
pub fn local_date(at: chrono::DateTime<chrono::Utc>, time_zone: &str) -> chrono::NaiveDate {
    let zone: chrono_tz::Tz = time_zone.parse().unwrap_or(chrono_tz::UTC);
    at.with_timezone(&zone).date_naive()
}

/// The catalogue, with the layouts in use kept in memory.
#[derive(Clone, Debug)]
pub struct Catalogue {
    db: Db,
    layouts: moka::future::Cache<LayoutId, Arc<Layout>>,
    frames: moka::future::Cache<EventId, Frame>,
    recent: moka::future::Cache<EventId, Option<Arc<event::Model>>>,
    recent_tiers: moka::future::Cache<EventId, Arc<Vec<event_tier::Model>>>,
}

/// How old what is told of an event from memory may be.
pub const RECENT: Duration = Duration::from_secs(2);

/// What of an event never changes.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Whose it is.
    pub organization: OrganizationId,
    /// Its layout.
    pub layout: Option<LayoutId>,
    /// Of every price.
    pub currency: Currency,
}

impl Catalogue {
    /// Over a database.
    #[must_use]
    pub fn new(db: Db) -> Self {
        let recent = moka::future::Cache::builder().max_capacity(100_000).time_to_live(RECENT).build();
        let recent_tiers = moka::future::Cache::builder().max_capacity(100_000).time_to_live(RECENT).build();
        Self {
            db,
            layouts: moka::future::Cache::new(64),
            frames: moka::future::Cache::new(100_000),
            recent,
            recent_tiers,
        }
    }

    /// Creates a venue.
    pub async fn create_venue(
        &self,
        who: &Organizer,
        input: &CreateVenueInput,
    ) -> Result<venue::Model, CatalogueError> {
        let facts = rules::venue(input)?;
        repeating(|| store::insert_venue(&self.db, who, facts.clone())).await
    }

    /// Edits a venue.
    pub async fn update_venue(
        &self,
        who: &Organizer,
        input: &UpdateVenueInput,
    ) -> Result<venue::Model, CatalogueError> {
        let id = VenueId(id_of(Kind::Venue, &input.venue_id, "venueId")?);
        let expected = expected_version(&input.expected_version)?;
        let edits = store::VenueEdits {
            name: input.name.as_deref().map(|name| text("name", name, limits::NAME_CHARS_MAX)).transpose()?,
            city: input.city.as_deref().map(|city| text("city", city, limits::NAME_CHARS_MAX)).transpose()?,
            country_code: input.country_code.as_deref().map(rules::country_code).transpose()?,
            latitude: input.latitude,
            longitude: input.longitude,
        };
        repeating(|| store::update_venue(&self.db, who, (id, expected), edits.clone())).await
    }

    /// Creates a performer.
    pub async fn create_performer(
        &self,
        who: &Organizer,
        input: &CreatePerformerInput,
    ) -> Result<performer::Model, CatalogueError> {
        let name = text("name", &input.name, limits::NAME_CHARS_MAX)?;
        let genre = optional_text("genre", input.genre.as_deref(), limits::WORD_CHARS_MAX)?;
        repeating(|| store::insert_performer(&self.db, who, (name.clone(), genre.clone()))).await
    }

    /// Edits a performer.
    pub async fn update_performer(
        &self,
        who: &Organizer,
        input: &UpdatePerformerInput,
    ) -> Result<performer::Model, CatalogueError> {
        let id = PerformerId(id_of(Kind::Performer, &input.performer_id, "performerId")?);
        let expected = expected_version(&input.expected_version)?;
        let name = input.name.as_deref().map(|name| text("name", name, limits::NAME_CHARS_MAX)).transpose()?;
        let genre = match &input.genre {
            Some(genre) => Some(optional_text("genre", Some(genre), limits::WORD_CHARS_MAX)?),
            None => None,
        };
        repeating(|| store::update_performer(&self.db, who, (id, expected), (name.clone(), genre.clone()))).await
    }

    /// Creates a layout from sections or from a seating plan.
    pub async fn create_layout(
        &self,
        who: &Organizer,
        input: &CreateLayoutInput,
    ) -> Result<(Arc<Layout>, Vec<Note>), CatalogueError> {
        let venue = VenueId(id_of(Kind::Venue, &input.venue_id, "venueId")?);
        let name = text("name", &input.name, limits::NAME_CHARS_MAX)?;
        let (draft, notes) = match (&input.sections, &input.pretix_plan) {
            (Some(sections), None) => (layout::draw(name, sections)?, Vec::new()),
            (None, Some(plan)) => plan::import(name, plan)?,
            _ => return Err(Invalid::new("sections", "give either sections or pretixPlan").into()),
        };
        let id = self.save_layout(who, venue, &draft).await?;
        let layout = self.layout(id).await?.ok_or(CatalogueError::NotFound("layoutId"))?;
        Ok((layout, notes))
    }

    /// Saves a drawn layout.
    pub async fn save_layout(
        &self,
        who: &Organizer,
        venue: VenueId,
        draft: &LayoutDraft,
    ) -> Result<LayoutId, CatalogueError> {
        repeating(|| store::insert_layout(&self.db, who, venue, draft)).await
    }

    /// Reads a seating-plan document without saving it.
    pub fn read_plan(name: String, document: &str) -> Result<(LayoutDraft, Vec<Note>), Invalid> {
        plan::import(name, document)
    }

    /// Creates an event: a draft, with all its seats and tiers.
    pub async fn create_event(
        &self,
        who: &Organizer,
        input: &CreateEventInput,
    ) -> Result<event::Model, CatalogueError> {
        self.create_popular_event(who, input, 0.0).await
    }

    /// The same, with a popularity for search, 0 being unknown.
    pub async fn create_popular_event(
        &self,
        who: &Organizer,
        input: &CreateEventInput,
        popularity: f64,
    ) -> Result<event::Model, CatalogueError> {
        let facts = rules::event(input)?;
        let venue = VenueId(id_of(Kind::Venue, &input.venue_id, "venueId")?);
        let layout = match &input.layout_id {
            Some(id) => {
                let id = LayoutId(id_of(Kind::Layout, id, "layoutId")?);
                let layout = self.layout(id).await?.filter(|layout| layout.venue == venue);
                Some(layout.ok_or(CatalogueError::NotFound("layoutId"))?)
            }
            None => None,
        };
        let performers = performer_ids(input.performer_ids.as_deref().unwrap_or_default())?;
        let place = store::Placement { venue, layout, performers, popularity };
        store::insert_event(&self.db, who, &place, &facts).await
    }

    /// Edits an event. The deltas are for the inventory to publish.
    pub async fn update_event(
        &self,
        who: &Organizer,
        input: &UpdateEventInput,
    ) -> Result<(event::Model, Vec<Arc<SeatsDelta>>), CatalogueError> {
        let id = EventId(id_of(Kind::Event, &input.event_id, "eventId")?);
        let expected = expected_version(&input.expected_version)?;
        let frame = self.frame(id).await?.filter(|frame| frame.organization == who.organization);
        let frame = frame.ok_or(CatalogueError::NotFound("eventId"))?;
        let edits = rules::event_edits(input, frame.currency)?;
        let performers = input.performer_ids.as_deref().map(performer_ids).transpose()?;
        repeating(|| store::update_event(&self.db, who, (id, expected), edits.clone(), performers.clone())).await
    }

    /// Publishes, pauses, resumes or cancels an event.
    pub async fn step_event(
        &self,
        who: &Organizer,
        (event, version): (&str, &Version),
        (step, reason): (SaleStep, Option<&str>),
    ) -> Result<event::Model, CatalogueError> {
        let id = EventId(id_of(Kind::Event, event, "eventId")?);
        let expected = expected_version(version)?;
        let reason = optional_text("reason", reason, limits::DESCRIPTION_CHARS_MAX)?;
        repeating(|| store::step_event(&self.db, who, (id, expected), (step, reason.clone()))).await
    }

    /// Takes available seats off sale, or puts them back. The deltas are for the inventory to publish.
    pub async fn block_seats(
        &self,
        who: &Organizer,
        input: &BlockSeatsInput,
    ) -> Result<(event::Model, Vec<Arc<SeatsDelta>>), CatalogueError> {
        let id = EventId(id_of(Kind::Event, &input.event_id, "eventId")?);
        let frame = self.frame(id).await?.filter(|frame| frame.organization == who.organization);
        let frame = frame.ok_or(CatalogueError::NotFound("eventId"))?;
        if input.seat_ids.is_empty() || input.seat_ids.len() > limits::BLOCK_SEATS_MAX {
            return Err(Invalid::new("seatIds", format!("1 to {} seats", limits::BLOCK_SEATS_MAX)).into());
        }
        let layout = match frame.layout {
            Some(layout) => self.layout(layout).await?,
            None => None,
        };
        let seats = seat_numbers(layout.as_deref(), input.seat_ids.iter().map(|id| id.as_str()))?;
        repeating(|| store::block_seats(&self.db, who, id, &seats, input.blocked)).await
    }

    /// Moves the dates of all of an organization's events, for demo data that must not rot.
    pub async fn shift_dates(&self, who: &Organizer, by: chrono::Duration) -> Result<(), CatalogueError> {
        let seconds = f64::from(i32::try_from(by.num_seconds()).unwrap_or(i32::MAX));
        repeating(|| store::shift_dates(&self.db, who, seconds)).await
    }

    /// Finishes drafts whose creation was cut off. Returns how many.
    pub async fn finish_drafts(&self) -> Result<usize, CatalogueError> {
        let drafts = store::unfinished_drafts(&self.db).await?;
        let count = drafts.len();
        for (event, layout, seats_wanted) in drafts {
            tracing::info!(event.id = %event, "finishing a draft whose creation was cut off");
            repeating(|| store::finish_seats(&self.db, event, layout, seats_wanted)).await?;
        }
        Ok(count)
    }
}

/// Numbers of seats by their ids, each once; an unknown or repeated one is named.
pub fn seat_numbers<'a>(layout: Option<&Layout>, ids: impl Iterator<Item = &'a str>) -> Result<BTreeSet<i32>, Invalid> {
    let mut numbers = BTreeSet::new();
    for (index, id) in ids.enumerate() {
        let at = format!("seatIds.{index}");
        let number = layout.and_then(|layout| layout.number(id));
        let number = number.ok_or_else(|| Invalid::new(&at, "this event has no such seat"))?;
        if !numbers.insert(number) {
            return Err(Invalid::new(at, "this seat is named twice"));
        }
    }
    Ok(numbers)
}

/// The UUID of a node id of the right kind.
fn id_of(kind: Kind, text: &str, field: &'static str) -> Result<uuid::Uuid, CatalogueError> {
    parse_node_id(text).filter(|(found, _)| *found == kind).map(|(_, id)| id).ok_or(CatalogueError::NotFound(field))
}

fn expected_version(version: &Version) -> Result<i64, Invalid> {
    version.number().ok_or_else(|| Invalid::new("expectedVersion", "must be a version as the server gave it"))
}

fn performer_ids(ids: &[async_graphql::ID]) -> Result<Vec<PerformerId>, CatalogueError> {
    if ids.len() > limits::PERFORMERS_MAX {
        return Err(Invalid::new("performerIds", format!("at most {} performers", limits::PERFORMERS_MAX)).into());
    }
    let mut seen = BTreeSet::new();
    let mut read = Vec::with_capacity(ids.len());
    for (index, id) in ids.iter().enumerate() {
        let id = PerformerId(id_of(Kind::Performer, id, "performerIds")?);
        if !seen.insert(id) {
            return Err(Invalid::new(format!("performerIds.{index}"), "this performer is named twice").into());
        }
        read.push(id);
    }
    Ok(read)
}

/// A one-section layout drawn as pictures of rows: `.` a seat, `w` an accessible one, `|` a gap.
#[cfg(test)]
pub(crate) fn layout_for_tests(rows: &[&str]) -> Layout {
    use parterre_schema::{RowInput, SeatInput, SectionInput};
    let row = |(index, picture): (usize, &&str)| {
        let mut seats: Vec<SeatInput> = Vec::new();
        for (number, c) in picture.char_indices() {
            if c == '|' {
                seats.last_mut().unwrap().gap_after = Some(true);
            } else {
                let accessible = Some(c == 'w');
                seats.push(SeatInput {
                    number: number.to_string(),
                    x: None,
                    y: None,
                    zone: "A".into(),
                    accessible,
                    gap_after: None,
                });
            }
        }
        RowInput { name: index.to_string(), seats }
    };
    let section = SectionInput { name: "Hall".into(), rows: rows.iter().enumerate().map(row).collect() };
    let draft = layout::draw("Hall".into(), &[section]).unwrap();
    let model = parterre_entity::layout::Model {
        id: parterre_entity::LayoutId::new(),
        venue_id: parterre_entity::VenueId::new(),
        name: draft.name.clone(),
        seat_count: i32::try_from(draft.seats.len()).unwrap(),
        section_names: draft.section_names.clone(),
        zone_names: draft.zone_names.clone(),
        geometry_hash: draft.geometry_hash(),
        created_at: chrono::DateTime::UNIX_EPOCH,
    };
    Layout::new(model, draft.seats)
}
