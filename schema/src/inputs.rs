//! The inputs of the contract. Optional fields are nullable; a null is read as the default.

use crate::enums::{InventoryMode, SaleStatus};
use crate::scalars::{CurrencyCode, Date, DateTime, Decimal, TimeZone, Version};
use async_graphql::{ID, InputObject};

/// Narrows a search. Values of one list are alternatives; different fields must all hold.
#[derive(Clone, Debug, Default, InputObject)]
pub struct EventFilter {
    /// City names as in facets.
    pub cities: Option<Vec<String>>,
    /// ISO 3166-1 alpha-2.
    pub country_codes: Option<Vec<String>>,
    /// Category names as in facets.
    pub categories: Option<Vec<String>>,
    /// Venues.
    pub venue_ids: Option<Vec<ID>>,
    /// Performers.
    pub performer_ids: Option<Vec<ID>>,
    /// First local date of the venue, inclusive.
    pub date_from: Option<Date>,
    /// Last local date of the venue, inclusive.
    pub date_to: Option<Date>,
    /// Without it, drafts, ended and cancelled events are left out.
    pub sale_status: Option<Vec<SaleStatus>>,
    /// Around a place.
    pub near: Option<NearInput>,
    /// The event has something at this price or above. Needs `currency`.
    pub price_min: Option<Decimal>,
    /// The event has something at this price or below. Needs `currency`.
    pub price_max: Option<Decimal>,
    /// Only events priced in this currency.
    pub currency: Option<CurrencyCode>,
}

/// A circle on the earth.
#[derive(Clone, Debug, InputObject)]
pub struct NearInput {
    /// Degrees, -90 to 90.
    pub latitude: f64,
    /// Degrees, -180 to 180.
    pub longitude: f64,
    /// Kilometres, above 0 and up to 20,038 (half the earth's circumference).
    pub radius_km: f64,
}

/// Any mix of seats, admissions and one best-available request: all of it is held, or nothing.
#[derive(Clone, Debug, InputObject)]
pub struct HoldSeatsInput {
    /// The event.
    pub event_id: ID,
    /// Yours: the same key with the same request gives the same hold, however often it is sent. 1 to 128 characters.
    pub idempotency_key: String,
    /// Seats by their `seatId`, in any order.
    pub seat_ids: Option<Vec<ID>>,
    /// General admission.
    pub admissions: Option<Vec<AdmissionInput>>,
    /// Let the server choose seats.
    pub best_available: Option<BestAvailableInput>,
    /// From the waiting room, where the event has one.
    pub admission_token: Option<String>,
}

/// Some admissions of one tier.
#[derive(Clone, Debug, InputObject)]
pub struct AdmissionInput {
    /// The tier.
    pub tier_id: ID,
    /// How many, 1 to 100.
    pub quantity: i32,
}

/// Seats chosen by the server: best row first, side by side, leaving no single seat where another choice exists.
#[derive(Clone, Debug, InputObject)]
pub struct BestAvailableInput {
    /// How many, 1 to 100.
    pub quantity: i32,
    /// Only in these price zones.
    pub price_zone_ids: Option<Vec<ID>>,
    /// Only in these sections.
    pub section_ids: Option<Vec<ID>>,
    /// How many of them must be accessible. Accessible seats are never chosen unasked.
    #[graphql(default_with = "Some(0)")]
    pub accessible_count: Option<i32>,
    /// Side by side. Off, the group may be split.
    #[graphql(default_with = "Some(true)")]
    pub adjacent: Option<bool>,
}

/// Gives a hold back.
#[derive(Clone, Debug, InputObject)]
pub struct ReleaseHoldInput {
    /// Your hold.
    pub hold_id: ID,
}

/// Pays a hold.
#[derive(Clone, Debug, InputObject)]
pub struct CheckoutInput {
    /// Your hold.
    pub hold_id: ID,
    /// Yours: the same key with the same hold and payment method gives the same booking. 1 to 128 characters.
    pub idempotency_key: String,
    /// A token of the payment provider, never card data.
    pub payment_method: String,
    /// Where the provider sends the buyer after a redirect.
    pub return_url: Option<String>,
    /// Where the confirmation goes.
    pub contact_email: Option<String>,
    /// BCP 47, for messages.
    pub locale: Option<String>,
}

/// Cancels a booking under its terms.
#[derive(Clone, Debug, InputObject)]
pub struct CancelInput {
    /// Your booking.
    pub booking_id: ID,
    /// Yours. 1 to 128 characters.
    pub idempotency_key: String,
    /// Refuse if the booking has changed since.
    pub expected_version: Option<Version>,
    /// Kept in the booking's timeline.
    pub reason: Option<String>,
}

/// Joins an event's waiting room.
#[derive(Clone, Debug, InputObject)]
pub struct JoinWaitingRoomInput {
    /// The event.
    pub event_id: ID,
}

/// Leaves an event's waiting room.
#[derive(Clone, Debug, InputObject)]
pub struct LeaveWaitingRoomInput {
    /// The event.
    pub event_id: ID,
}

/// A new place.
#[derive(Clone, Debug, InputObject)]
pub struct CreateVenueInput {
    /// Its name.
    pub name: String,
    /// Its city.
    pub city: String,
    /// ISO 3166-1 alpha-2.
    pub country_code: String,
    /// Decides the local dates of its events; can't be changed later.
    pub time_zone: TimeZone,
    /// Degrees; with longitude or not at all.
    pub latitude: Option<f64>,
    /// Degrees; with latitude or not at all.
    pub longitude: Option<f64>,
}

/// Edits a venue. Null or absent: unchanged.
#[derive(Clone, Debug, InputObject)]
pub struct UpdateVenueInput {
    /// Your venue.
    pub venue_id: ID,
    /// The version you saw.
    pub expected_version: Version,
    /// Its name.
    pub name: Option<String>,
    /// Its city.
    pub city: Option<String>,
    /// ISO 3166-1 alpha-2.
    pub country_code: Option<String>,
    /// Degrees.
    pub latitude: Option<f64>,
    /// Degrees.
    pub longitude: Option<f64>,
}

/// A new performer.
#[derive(Clone, Debug, InputObject)]
pub struct CreatePerformerInput {
    /// Its name.
    pub name: String,
    /// Free text.
    pub genre: Option<String>,
}

/// Edits a performer. Null or absent: unchanged; `""` clears the genre.
#[derive(Clone, Debug, InputObject)]
pub struct UpdatePerformerInput {
    /// A performer your organization created.
    pub performer_id: ID,
    /// The version you saw.
    pub expected_version: Version,
    /// Its name.
    pub name: Option<String>,
    /// Free text.
    pub genre: Option<String>,
}

/// A new immutable layout: sections, or a seating-plan document, one of the two.
#[derive(Clone, Debug, InputObject)]
pub struct CreateLayoutInput {
    /// Your venue.
    pub venue_id: ID,
    /// Its name.
    pub name: String,
    /// Sections, in order.
    pub sections: Option<Vec<SectionInput>>,
    /// A pretix seating-plan document, as JSON text.
    pub pretix_plan: Option<String>,
}

/// A block of rows.
#[derive(Clone, Debug, InputObject)]
pub struct SectionInput {
    /// Unique in the layout.
    pub name: String,
    /// Front to back: the best row first.
    pub rows: Vec<RowInput>,
}

/// A row of seats.
#[derive(Clone, Debug, InputObject)]
pub struct RowInput {
    /// Unique in the section.
    pub name: String,
    /// In the order of adjacency.
    pub seats: Vec<SeatInput>,
}

/// A seat.
#[derive(Clone, Debug, InputObject)]
pub struct SeatInput {
    /// Unique in the row.
    pub number: String,
    /// In any unit, the same in the whole layout; with y or not at all.
    pub x: Option<f64>,
    /// In any unit; with x or not at all.
    pub y: Option<f64>,
    /// The price zone's name.
    pub zone: String,
    /// A place for a wheelchair.
    #[graphql(default_with = "Some(false)")]
    pub accessible: Option<bool>,
    /// An aisle follows: the next seat is no neighbour.
    #[graphql(default_with = "Some(false)")]
    pub gap_after: Option<bool>,
}

/// A new event, a draft until it is published.
#[derive(Clone, Debug, InputObject)]
pub struct CreateEventInput {
    /// Your venue.
    pub venue_id: ID,
    /// A layout of the venue; needed for assigned seats, forbidden for general admission only.
    pub layout_id: Option<ID>,
    /// Its title.
    pub title: String,
    /// Free text.
    pub description: Option<String>,
    /// One word or two, as in facets.
    pub category: Option<String>,
    /// The bill, in order.
    pub performer_ids: Option<Vec<ID>>,
    /// When it starts.
    pub starts_at: DateTime,
    /// When the sale opens.
    pub on_sale_at: DateTime,
    /// When the sale closes.
    pub off_sale_at: DateTime,
    /// What is sold.
    pub inventory_mode: InventoryMode,
    /// A price for every zone of the layout.
    pub zone_prices: Option<Vec<ZonePriceInput>>,
    /// General admission.
    pub tiers: Option<Vec<TierInput>>,
    /// Of every price.
    pub currency: CurrencyCode,
    /// How long a hold lasts, 1 to 86,400 seconds.
    #[graphql(default_with = "Some(480)")]
    pub hold_seconds: Option<i32>,
    /// Seats and admissions that one buyer may have, 1 to 1,000.
    #[graphql(default_with = "Some(8)")]
    pub max_seats_per_buyer: Option<i32>,
    /// Refuse picks that leave one seat alone between others.
    #[graphql(default_with = "Some(false)")]
    pub forbid_single_seats: Option<bool>,
    /// A queue before the sale.
    pub waiting_room: Option<WaitingRoomInput>,
    /// The terms.
    pub cancellation: Option<CancellationPolicyInput>,
}

/// What seats of a price zone cost.
#[derive(Clone, Debug, InputObject)]
pub struct ZonePriceInput {
    /// The zone's name in the layout.
    pub zone: String,
    /// In the event's currency.
    pub price: Decimal,
}

/// A count of admissions at one price.
#[derive(Clone, Debug, InputObject)]
pub struct TierInput {
    /// Unique in the event.
    pub name: String,
    /// In the event's currency.
    pub price: Decimal,
    /// How many, 1 to 1,000,000.
    pub capacity: i32,
}

/// How a waiting room lets people in.
#[derive(Clone, Debug, InputObject)]
pub struct WaitingRoomInput {
    /// People a minute, 1 to 1,000,000.
    pub admit_per_minute: i32,
    /// Shoppers inside at once for each seat that is left.
    #[graphql(default_with = "Some(1.5)")]
    pub active_per_remaining_seat: Option<f64>,
    /// How long an admitted shopper may stay, 60 to 86,400; the token itself is short and renewed.
    #[graphql(default_with = "Some(600)")]
    pub admission_seconds: Option<i32>,
}

/// Omitted: cancellation until the start, 100 %, resold. Rounding: per booking, half-even, in minor units.
#[derive(Clone, Debug, InputObject)]
pub struct CancellationPolicyInput {
    /// A buyer may cancel until so many seconds before the start; null: until the start.
    pub allowed_until_seconds_before_start: Option<i32>,
    /// Share given back, "0" to "100", up to four decimals.
    #[graphql(default_with = r#"Some(Decimal("100".into()))"#)]
    pub refund_percent: Option<Decimal>,
    /// Whether cancelled seats go back on sale.
    #[graphql(default_with = "Some(true)")]
    pub resell: Option<bool>,
}

/// Edits an event. Null or absent: unchanged; `""` and `[]` clear; a nested object replaces the whole object, defaults
/// included; `zonePrices` and `tiers` match by name, unnamed ones stay, a new tier name adds one.
#[derive(Clone, Debug, InputObject)]
pub struct UpdateEventInput {
    /// Your event.
    pub event_id: ID,
    /// The version you saw.
    pub expected_version: Version,
    /// Its title.
    pub title: Option<String>,
    /// Free text.
    pub description: Option<String>,
    /// As in facets.
    pub category: Option<String>,
    /// The whole bill.
    pub performer_ids: Option<Vec<ID>>,
    /// When it starts.
    pub starts_at: Option<DateTime>,
    /// When the sale opens.
    pub on_sale_at: Option<DateTime>,
    /// When the sale closes.
    pub off_sale_at: Option<DateTime>,
    /// For new holds.
    pub hold_seconds: Option<i32>,
    /// For new holds.
    pub max_seats_per_buyer: Option<i32>,
    /// For new holds.
    pub forbid_single_seats: Option<bool>,
    /// For new holds.
    pub zone_prices: Option<Vec<ZonePriceInput>>,
    /// A capacity below what is taken is `INVALID_INPUT`.
    pub tiers: Option<Vec<TierInput>>,
    /// Switches the queue on or changes it.
    pub waiting_room: Option<WaitingRoomInput>,
    /// For new bookings.
    pub cancellation: Option<CancellationPolicyInput>,
}

macro_rules! event_steps {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, InputObject)]
        pub struct $name {
            /// Your event.
            pub event_id: ID,
            /// The version you saw.
            pub expected_version: Version,
            /// Kept in the audit.
            pub reason: Option<String>,
        }
    )*};
}

event_steps! {
    /// Shows a draft to everyone.
    PublishEventInput
    /// Stops new holds; holds and bookings that exist go on.
    PauseSalesInput
    /// Ends a pause.
    ResumeSalesInput
    /// Cancels the event for good and refunds every confirmed booking in full.
    CancelEventInput
}

/// Takes available seats off sale, or puts them back.
#[derive(Clone, Debug, InputObject)]
pub struct BlockSeatsInput {
    /// Your event.
    pub event_id: ID,
    /// Up to 10,000 seats.
    pub seat_ids: Vec<ID>,
    /// True: off sale. False: back.
    pub blocked: bool,
}
