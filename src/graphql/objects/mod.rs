//! The types of the contract. A type holds a row or an id; what else it needs it loads when asked.

mod bookings;
mod events;
mod holds;
mod pages;
mod places;
mod seats;
mod waiting;

pub use bookings::{Booking, Payment, Refund, Ticket};
pub use events::{AdmissionTier, Event, PriceZone};
pub use holds::{Hold, HoldItem};
pub use pages::{
    BookingConnection, EventConnection, EventSearchConnection, EventSearchEdge, Facet, FacetBucket, HoldConnection,
    PageInfo, VenueConnection, read_page, read_search_cursor, search_cursor,
};
pub use places::{Layout, LayoutNote, Organizer, Performer, Venue};
pub use seats::{
    EventSeat, SeatChange, SeatConflict, SeatMap, SeatMapDelta, SeatMapResync, SeatMapSnapshot, SeatMapUpdate,
    TierChange, status_of,
};
pub use waiting::WaitingRoom;

use async_graphql::{ID, Interface};

/// Something with a globally unique id.
#[derive(Clone, Debug, Interface)]
#[graphql(field(name = "id", ty = "ID", desc = "Opaque; a prefix tells people the kind."))]
pub enum Node {
    Event(Event),
    Venue(Venue),
    Layout(Layout),
    Performer(Performer),
    Organizer(Organizer),
    Hold(Box<Hold>),
    Booking(Box<Booking>),
    Payment(Box<Payment>),
    Refund(Box<Refund>),
    Ticket(Box<Ticket>),
}
