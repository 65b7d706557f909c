//! What the index knows of an event.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A place in the outbox: the newest row that a document, or the whole index, reflects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Position {
    /// Transaction id.
    pub xid: u64,
    /// Row id.
    pub id: i64,
}

/// The organizer's say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaleState {
    /// Its organization sees it.
    Draft,
    /// Sold inside the sale window.
    Published,
    /// Published, no new holds.
    Paused,
    /// Called off.
    Cancelled,
}

impl SaleState {
    pub(crate) const fn number(self) -> u64 {
        match self {
            Self::Draft => 0,
            Self::Published => 1,
            Self::Paused => 2,
            Self::Cancelled => 3,
        }
    }
}

/// An event as it is indexed.
#[derive(Clone, Debug, PartialEq)]
pub struct EventDocument {
    /// The event.
    pub id: Uuid,
    /// The newest outbox row about it that this reflects.
    pub position: Position,
    /// Whose it is.
    pub organization: Uuid,
    /// Its title.
    pub title: String,
    /// Free text.
    pub description: String,
    /// As in facets.
    pub category: Option<String>,
    /// Names on the bill.
    pub performers: Vec<String>,
    /// Their ids, as facet values.
    pub performer_ids: Vec<String>,
    /// Its venue's name.
    pub venue: String,
    /// Its venue's id, as a facet value.
    pub venue_id: String,
    /// Its venue's city.
    pub city: String,
    /// ISO 3166-1 alpha-2.
    pub country_code: String,
    /// The venue-local day, in days since 1970-01-01.
    pub local_day: i64,
    /// The venue-local month, `YYYY-MM`.
    pub month: String,
    /// The start, Unix seconds.
    pub starts_at: i64,
    /// The sale opens, Unix seconds.
    pub on_sale_at: i64,
    /// The sale closes, Unix seconds.
    pub off_sale_at: i64,
    /// The organizer's say.
    pub state: SaleState,
    /// Whether anything is available, held or pending.
    pub has_stock: bool,
    /// ISO 4217.
    pub currency: String,
    /// Cheapest, in minor units.
    pub price_min: i64,
    /// Dearest, in minor units.
    pub price_max: i64,
    /// Latitude and longitude in degrees.
    pub place: Option<(f64, f64)>,
    /// Larger is more wanted.
    pub popularity: f64,
}

impl EventDocument {
    /// Whether another one differs in nothing but its position.
    #[must_use]
    pub fn says_the_same_as(&self, other: &Self) -> bool {
        Self { position: other.position, ..self.clone() } == *other
    }
}
