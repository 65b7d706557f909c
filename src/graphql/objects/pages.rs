//! Connections: pages cut by an opaque cursor.

use super::{Booking, Event, Hold, Venue};
use crate::graphql::errors::Failure;
use async_graphql::SimpleObject;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use parterre_schema::scalars::DateTime;
use parterre_schema::{FacetField, limits};
use uuid::Uuid;

/// Where a page stands.
#[derive(Clone, Debug, Default, SimpleObject)]
pub struct PageInfo {
    /// Whether entries follow.
    pub has_next_page: bool,
    /// Whether entries precede.
    pub has_previous_page: bool,
    /// Of the first entry.
    pub start_cursor: Option<String>,
    /// Of the last entry: hand it back as `after`.
    pub end_cursor: Option<String>,
}

macro_rules! connections {
    ($($(#[$doc:meta])* $connection:ident, $edge:ident, $node:ty;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, SimpleObject)]
        pub struct $connection {
            /// With cursors.
            pub edges: Vec<$edge>,
            /// Without.
            pub nodes: Vec<$node>,
            /// Where this page stands.
            pub page_info: PageInfo,
        }

        /// An entry and its place.
        #[derive(Clone, Debug, SimpleObject)]
        pub struct $edge {
            /// Its place.
            pub cursor: String,
            /// The entry.
            pub node: $node,
        }

        impl $connection {
            /// A page of what was read: one entry more than asked for, if there are more.
            #[must_use]
            pub fn new(mut entries: Vec<(Uuid, $node)>, page: &PageArgs) -> Self {
                let limit = usize::try_from(page.first).unwrap_or(usize::MAX);
                let has_next_page = entries.len() > limit;
                entries.truncate(limit);
                let edges: Vec<$edge> =
                    entries.into_iter().map(|(id, node)| $edge { cursor: cursor(id), node }).collect();
                let page_info = PageInfo {
                    has_next_page,
                    has_previous_page: page.after.is_some(),
                    start_cursor: edges.first().map(|edge| edge.cursor.clone()),
                    end_cursor: edges.last().map(|edge| edge.cursor.clone()),
                };
                Self { nodes: edges.iter().map(|edge| edge.node.clone()).collect(), edges, page_info }
            }
        }
    )*};
}

connections! {
    /// Events, newest first.
    EventConnection, EventEdge, Event;
    /// Venues, newest first.
    VenueConnection, VenueEdge, Venue;
    /// Bookings, newest first.
    BookingConnection, BookingEdge, Booking;
    /// Holds, newest first.
    HoldConnection, HoldEdge, Hold;
}

/// Events that match a search.
#[derive(Clone, Debug, SimpleObject)]
pub struct EventSearchConnection {
    /// With cursors and scores.
    pub edges: Vec<EventSearchEdge>,
    /// Without.
    pub nodes: Vec<Event>,
    /// Where this page stands.
    pub page_info: PageInfo,
    /// All that match.
    pub total_count: Option<i32>,
    /// Counts over all that match.
    pub facets: Vec<Facet>,
    /// Sale status was derived for this time; the index is a few seconds behind the catalogue.
    pub as_of: DateTime,
}

/// An event and how well it matches.
#[derive(Clone, Debug, SimpleObject)]
pub struct EventSearchEdge {
    /// Its place.
    pub cursor: String,
    /// The event.
    pub node: Event,
    /// How well the text matches; null without a text. Comparable within one answer only.
    pub score: Option<f64>,
}

/// Counts by one field.
#[derive(Clone, Debug, SimpleObject)]
pub struct Facet {
    /// The field.
    pub field: FacetField,
    /// Most frequent first.
    pub buckets: Vec<FacetBucket>,
}

/// A value and how many match.
#[derive(Clone, Debug, SimpleObject)]
pub struct FacetBucket {
    /// For the filter.
    pub value: String,
    /// For people.
    pub label: String,
    /// How many.
    pub count: i32,
}

/// Checked page arguments.
#[derive(Clone, Debug)]
pub struct PageArgs {
    /// Entries wanted.
    pub first: i32,
    /// After this id.
    pub after: Option<Uuid>,
}

impl PageArgs {
    /// Entries to read: one more than wanted.
    #[must_use]
    pub fn limit(&self) -> u64 {
        u64::try_from(self.first).unwrap_or(0) + 1
    }
}

fn cursor(id: Uuid) -> String {
    URL_SAFE_NO_PAD.encode(id.as_bytes())
}

/// Reads page arguments; null is the default.
pub fn read_page(first: Option<i32>, after: Option<&str>) -> Result<PageArgs, Failure> {
    let first = first.unwrap_or(limits::PAGE_DEFAULT);
    if !(1..=limits::PAGE_MAX).contains(&first) {
        return Err(Failure::BadInput(format!("first must be between 1 and {}", limits::PAGE_MAX)));
    }
    let after = after.map(|text| {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok().and_then(|bytes| Uuid::from_slice(&bytes).ok());
        bytes.ok_or_else(|| Failure::BadInput("after must be a cursor as the server gave it".to_owned()))
    });
    Ok(PageArgs { first, after: after.transpose()? })
}

/// A search hit's place as text.
#[must_use]
pub fn search_cursor(cursor: parterre_search::Cursor) -> String {
    let mut bytes = cursor.key.to_be_bytes().to_vec();
    bytes.extend(cursor.tolerant.to_be_bytes());
    bytes.extend(cursor.id.as_bytes());
    URL_SAFE_NO_PAD.encode(bytes)
}

/// And back.
pub fn read_search_cursor(text: &str) -> Result<parterre_search::Cursor, Failure> {
    let bad = || Failure::BadInput("after must be a cursor as the server gave it".to_owned());
    let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| bad())?;
    let (key, bytes) = bytes.split_first_chunk::<8>().ok_or_else(bad)?;
    let (tolerant, id) = bytes.split_first_chunk::<2>().ok_or_else(bad)?;
    Ok(parterre_search::Cursor {
        key: i64::from_be_bytes(*key),
        id: Uuid::from_slice(id).map_err(|_| bad())?,
        tolerant: u16::from_be_bytes(*tolerant),
    })
}
