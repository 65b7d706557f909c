//! What a venue, a performer and an event must be. Pure: no database, no clock.

use crate::input::{Invalid, instant, optional_text, text, within};
use chrono::{DateTime, Utc};
use parterre_entity::{EventState, InventoryMode};
use parterre_schema as words;
use parterre_schema::money::{Currency, fixed_point};
use parterre_schema::{
    CancellationPolicyInput, CreateEventInput, CreateVenueInput, Decimal, TierInput, UpdateEventInput,
    WaitingRoomInput, ZonePriceInput, limits,
};
use std::collections::HashSet;

/// A checked venue.
#[derive(Clone, Debug, PartialEq)]
pub struct VenueFacts {
    /// Its name.
    pub name: String,
    /// Its city.
    pub city: String,
    /// ISO 3166-1 alpha-2.
    pub country_code: String,
    /// IANA name.
    pub time_zone: String,
    /// Latitude and longitude in degrees.
    pub place: Option<(f64, f64)>,
}

/// Checks a new venue.
pub fn venue(input: &CreateVenueInput) -> Result<VenueFacts, Invalid> {
    Ok(VenueFacts {
        name: text("name", &input.name, limits::NAME_CHARS_MAX)?,
        city: text("city", &input.city, limits::NAME_CHARS_MAX)?,
        country_code: country_code(&input.country_code)?,
        time_zone: input
            .time_zone
            .zone()
            .map(|zone| zone.name().to_owned())
            .ok_or_else(|| Invalid::new("timeZone", "must be an IANA time zone name, such as Europe/Berlin"))?,
        place: place(input.latitude, input.longitude)?,
    })
}

/// Two upper-case letters.
pub fn country_code(code: &str) -> Result<String, Invalid> {
    let well_formed = code.len() == 2 && code.bytes().all(|byte| byte.is_ascii_uppercase());
    well_formed
        .then(|| code.to_owned())
        .ok_or_else(|| Invalid::new("countryCode", "must be two capital letters of ISO 3166-1, such as DE"))
}

/// Both coordinates or none, in degrees.
pub fn place(latitude: Option<f64>, longitude: Option<f64>) -> Result<Option<(f64, f64)>, Invalid> {
    match (latitude, longitude) {
        (None, None) => Ok(None),
        (Some(latitude), _) if !(-90.0..=90.0).contains(&latitude) => {
            Err(Invalid::new("latitude", "must be between -90 and 90 degrees"))
        }
        (_, Some(longitude)) if !(-180.0..=180.0).contains(&longitude) => {
            Err(Invalid::new("longitude", "must be between -180 and 180 degrees"))
        }
        (Some(latitude), Some(longitude)) => Ok(Some((latitude, longitude))),
        (Some(_), None) => Err(Invalid::new("longitude", "must be given with latitude")),
        (None, Some(_)) => Err(Invalid::new("latitude", "must be given with longitude")),
    }
}

/// A price of a zone or tier by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Price {
    /// The zone's name.
    pub name: String,
    /// In minor units.
    pub minor: i64,
}

/// A tier by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tier {
    /// Unique in the event.
    pub name: String,
    /// In minor units.
    pub minor: i64,
    /// Admissions.
    pub capacity: i32,
}

/// How people are let in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WaitingRoom {
    /// People a minute.
    pub admit_per_minute: i32,
    /// Shoppers for each seat that is left.
    pub active_per_remaining_seat: f64,
    /// How long an admitted shopper may stay.
    pub admission_seconds: i32,
}

/// The terms of cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cancellation {
    /// So long before the start at the latest; none: until the start.
    pub until_seconds_before: Option<i32>,
    /// Share given back, in millionths.
    pub refund_ppm: i32,
    /// Whether the seats go back on sale.
    pub resell: bool,
}

impl Default for Cancellation {
    fn default() -> Self {
        Self { until_seconds_before: None, refund_ppm: 1_000_000, resell: true }
    }
}

/// When an event is, and when it is sold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The start.
    pub starts_at: DateTime<Utc>,
    /// The sale opens.
    pub on_sale_at: DateTime<Utc>,
    /// The sale closes.
    pub off_sale_at: DateTime<Utc>,
}

impl Schedule {
    /// Of an event.
    #[must_use]
    pub const fn of(event: &parterre_entity::event::Model) -> Self {
        Self { starts_at: event.starts_at, on_sale_at: event.on_sale_at, off_sale_at: event.off_sale_at }
    }
}

/// A checked new event, but for what its layout has to say.
#[derive(Clone, Debug, PartialEq)]
pub struct EventFacts {
    pub title: String,
    pub description: Option<String>,
    pub category: Option<String>,
    pub schedule: Schedule,
    pub mode: InventoryMode,
    pub currency: Currency,
    pub zone_prices: Vec<Price>,
    pub tiers: Vec<Tier>,
    pub hold_seconds: i32,
    pub max_seats_per_buyer: i32,
    pub forbid_single_seats: bool,
    pub waiting_room: Option<WaitingRoom>,
    pub cancellation: Cancellation,
}

/// Checks a new event.
pub fn event(input: &CreateEventInput) -> Result<EventFacts, Invalid> {
    let mode = match input.inventory_mode {
        words::InventoryMode::Assigned => InventoryMode::Assigned,
        words::InventoryMode::GeneralAdmission => InventoryMode::GeneralAdmission,
        words::InventoryMode::Mixed => InventoryMode::Mixed,
    };
    let currency = Currency::from_code(&input.currency)
        .ok_or_else(|| Invalid::new("currency", "must be an ISO 4217 code of a currency with a minor unit"))?;
    let (sells_seats, sells_tiers) = sells(mode);
    if sells_seats != input.layout_id.is_some() {
        let message = if sells_seats { "assigned seats need a layout" } else { "general admission has no layout" };
        return Err(Invalid::new("layoutId", message));
    }
    let tiers = tiers(input.tiers.as_deref().unwrap_or_default(), currency)?;
    if sells_tiers == tiers.is_empty() {
        let message = if sells_tiers { "general admission needs a tier" } else { "assigned seating has no tiers" };
        return Err(Invalid::new("tiers", message));
    }
    let zone_prices = zone_prices(input.zone_prices.as_deref().unwrap_or_default(), currency)?;
    if !sells_seats && !zone_prices.is_empty() {
        return Err(Invalid::new("zonePrices", "general admission has no zones"));
    }
    Ok(EventFacts {
        title: text("title", &input.title, limits::NAME_CHARS_MAX)?,
        description: optional_text("description", input.description.as_deref(), limits::DESCRIPTION_CHARS_MAX)?,
        category: optional_text("category", input.category.as_deref(), limits::WORD_CHARS_MAX)?,
        schedule: schedule(Schedule {
            starts_at: instant("startsAt", &input.starts_at)?,
            on_sale_at: instant("onSaleAt", &input.on_sale_at)?,
            off_sale_at: instant("offSaleAt", &input.off_sale_at)?,
        })?,
        mode,
        currency,
        zone_prices,
        tiers,
        hold_seconds: hold_seconds(input.hold_seconds.unwrap_or(480))?,
        max_seats_per_buyer: max_seats_per_buyer(input.max_seats_per_buyer.unwrap_or(8))?,
        forbid_single_seats: input.forbid_single_seats.unwrap_or(false),
        waiting_room: input.waiting_room.as_ref().map(waiting_room).transpose()?,
        cancellation: input.cancellation.as_ref().map(cancellation).transpose()?.unwrap_or_default(),
    })
}

/// Whether a mode sells seats, and tiers.
#[must_use]
pub const fn sells(mode: InventoryMode) -> (bool, bool) {
    match mode {
        InventoryMode::Assigned => (true, false),
        InventoryMode::GeneralAdmission => (false, true),
        InventoryMode::Mixed => (true, true),
    }
}

/// The sale opens before it closes.
pub fn schedule(schedule: Schedule) -> Result<Schedule, Invalid> {
    if schedule.on_sale_at < schedule.off_sale_at {
        Ok(schedule)
    } else {
        Err(Invalid::new("offSaleAt", "must be after onSaleAt"))
    }
}

fn hold_seconds(seconds: i32) -> Result<i32, Invalid> {
    within("holdSeconds", seconds, 1, 86_400)
}

fn max_seats_per_buyer(seats: i32) -> Result<i32, Invalid> {
    within("maxSeatsPerBuyer", seats, 1, 1_000)
}

fn price(path: &str, amount: &Decimal, currency: Currency) -> Result<i64, Invalid> {
    currency.minor(amount).map_err(|error| Invalid::new(path, format!("the price {error} (in {})", currency.code())))
}

/// Prices by zone, each zone once.
pub fn zone_prices(prices: &[ZonePriceInput], currency: Currency) -> Result<Vec<Price>, Invalid> {
    if prices.len() > limits::LAYOUT_SECTIONS_MAX {
        return Err(Invalid::new("zonePrices", format!("at most {} zones", limits::LAYOUT_SECTIONS_MAX)));
    }
    let mut seen = HashSet::new();
    let read = |(index, input): (usize, &ZonePriceInput)| {
        let name = text(format!("zonePrices.{index}.zone"), &input.zone, limits::NAME_CHARS_MAX)?;
        if !seen.insert(name.clone()) {
            return Err(Invalid::new(format!("zonePrices.{index}.zone"), "this zone is named twice"));
        }
        let minor = price(&format!("zonePrices.{index}.price"), &input.price, currency)?;
        Ok(Price { name, minor })
    };
    prices.iter().enumerate().map(read).collect()
}

/// Tiers, each name once.
pub fn tiers(tiers: &[TierInput], currency: Currency) -> Result<Vec<Tier>, Invalid> {
    if tiers.len() > limits::TIERS_MAX {
        return Err(Invalid::new("tiers", format!("at most {} tiers", limits::TIERS_MAX)));
    }
    let mut seen = HashSet::new();
    let read = |(index, input): (usize, &TierInput)| {
        let name = text(format!("tiers.{index}.name"), &input.name, limits::NAME_CHARS_MAX)?;
        if !seen.insert(name.clone()) {
            return Err(Invalid::new(format!("tiers.{index}.name"), "this tier is named twice"));
        }
        let minor = price(&format!("tiers.{index}.price"), &input.price, currency)?;
        let capacity = within(format!("tiers.{index}.capacity"), input.capacity, 1, limits::TIER_CAPACITY_MAX)?;
        Ok(Tier { name, minor, capacity })
    };
    tiers.iter().enumerate().map(read).collect()
}

fn waiting_room(input: &WaitingRoomInput) -> Result<WaitingRoom, Invalid> {
    let active = input.active_per_remaining_seat.unwrap_or(1.5);
    if !(active.is_finite() && (0.01..=1000.0).contains(&active)) {
        return Err(Invalid::new("waitingRoom.activePerRemainingSeat", "must be between 0.01 and 1000"));
    }
    Ok(WaitingRoom {
        admit_per_minute: within("waitingRoom.admitPerMinute", input.admit_per_minute, 1, 1_000_000)?,
        active_per_remaining_seat: active,
        admission_seconds: within("waitingRoom.admissionSeconds", input.admission_seconds.unwrap_or(600), 60, 86_400)?,
    })
}

fn cancellation(input: &CancellationPolicyInput) -> Result<Cancellation, Invalid> {
    let until = input.allowed_until_seconds_before_start;
    let hundred = Decimal("100".to_owned());
    let percent = input.refund_percent.as_ref().unwrap_or(&hundred);
    let refund_ppm = fixed_point(percent, 4)
        .map_err(|error| Invalid::new("cancellation.refundPercent", format!("{error}; up to four decimals")))?;
    let refund_ppm = i32::try_from(refund_ppm)
        .ok()
        .filter(|ppm| *ppm <= 1_000_000)
        .ok_or_else(|| Invalid::new("cancellation.refundPercent", "must be between 0 and 100"))?;
    Ok(Cancellation {
        until_seconds_before: until
            .map(|seconds| within("cancellation.allowedUntilSecondsBeforeStart", seconds, 0, i32::MAX))
            .transpose()?,
        refund_ppm,
        resell: input.resell.unwrap_or(true),
    })
}

/// The edits of an event that do not need its inventory: what is `None` stays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EventEdits {
    pub title: Option<String>,
    pub description: Option<Option<String>>,
    pub category: Option<Option<String>>,
    pub hold_seconds: Option<i32>,
    pub max_seats_per_buyer: Option<i32>,
    pub forbid_single_seats: Option<bool>,
    pub zone_prices: Option<Vec<Price>>,
    pub tiers: Option<Vec<Tier>>,
    pub waiting_room: Option<WaitingRoom>,
    pub cancellation: Option<Cancellation>,
    pub starts_at: Option<DateTime<Utc>>,
    pub on_sale_at: Option<DateTime<Utc>>,
    pub off_sale_at: Option<DateTime<Utc>>,
}

/// Checks an edit of an event in this currency.
pub fn event_edits(input: &UpdateEventInput, currency: Currency) -> Result<EventEdits, Invalid> {
    let clearable = |path: &str, value: &Option<String>, chars_max| match value {
        Some(value) => optional_text(path, Some(value), chars_max).map(Some),
        None => Ok(None),
    };
    Ok(EventEdits {
        title: input.title.as_deref().map(|title| text("title", title, limits::NAME_CHARS_MAX)).transpose()?,
        description: clearable("description", &input.description, limits::DESCRIPTION_CHARS_MAX)?,
        category: clearable("category", &input.category, limits::WORD_CHARS_MAX)?,
        hold_seconds: input.hold_seconds.map(hold_seconds).transpose()?,
        max_seats_per_buyer: input.max_seats_per_buyer.map(max_seats_per_buyer).transpose()?,
        forbid_single_seats: input.forbid_single_seats,
        zone_prices: input.zone_prices.as_deref().map(|input| zone_prices(input, currency)).transpose()?,
        tiers: input.tiers.as_deref().map(|input| tiers(input, currency)).transpose()?,
        waiting_room: input.waiting_room.as_ref().map(waiting_room).transpose()?,
        cancellation: input.cancellation.as_ref().map(cancellation).transpose()?,
        starts_at: input.starts_at.as_ref().map(|at| instant("startsAt", at)).transpose()?,
        on_sale_at: input.on_sale_at.as_ref().map(|at| instant("onSaleAt", at)).transpose()?,
        off_sale_at: input.off_sale_at.as_ref().map(|at| instant("offSaleAt", at)).transpose()?,
    })
}

/// A step an organizer takes with an event's sale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SaleStep {
    /// Show it and sell it.
    Publish,
    /// Stop new holds.
    Pause,
    /// End a pause.
    Resume,
    /// Call it off.
    Cancel,
}

/// The state after a step, or what is wrong with taking it now.
pub fn next(state: EventState, step: SaleStep) -> Result<EventState, &'static str> {
    use EventState::{Cancelled, Draft, Paused, Published};
    match (state, step) {
        (Draft, SaleStep::Publish) | (Paused, SaleStep::Resume) => Ok(Published),
        (Published, SaleStep::Pause) => Ok(Paused),
        (Draft | Published | Paused, SaleStep::Cancel) => Ok(Cancelled),
        (Published | Paused, SaleStep::Publish) => Err("the event is published already"),
        (Draft, SaleStep::Pause | SaleStep::Resume) => Err("the event is a draft: publish it first"),
        (Paused, SaleStep::Pause) => Err("the sale is paused already"),
        (Published, SaleStep::Resume) => Err("the sale is not paused"),
        (Cancelled, SaleStep::Publish | SaleStep::Pause | SaleStep::Resume | SaleStep::Cancel) => {
            Err("the event is cancelled")
        }
    }
}

/// Where an event's sale stands, for readers.
#[must_use]
pub fn sale_status(state: EventState, schedule: Schedule, remaining: i64, now: DateTime<Utc>) -> words::SaleStatus {
    use words::SaleStatus;
    match state {
        EventState::Cancelled => SaleStatus::Cancelled,
        EventState::Draft => SaleStatus::Draft,
        EventState::Published | EventState::Paused if schedule.off_sale_at <= now => SaleStatus::Ended,
        EventState::Paused => SaleStatus::Paused,
        EventState::Published if now < schedule.on_sale_at => SaleStatus::Scheduled,
        EventState::Published if remaining == 0 => SaleStatus::SoldOut,
        EventState::Published => SaleStatus::OnSale,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_from_every_state_is_decided() {
        use EventState::{Cancelled, Draft, Paused, Published};
        let table = [
            (Draft, [Some(Published), None, None, Some(Cancelled)]),
            (Published, [None, Some(Paused), None, Some(Cancelled)]),
            (Paused, [None, None, Some(Published), Some(Cancelled)]),
            (Cancelled, [None, None, None, None]),
        ];
        for (state, after) in table {
            let steps = [SaleStep::Publish, SaleStep::Pause, SaleStep::Resume, SaleStep::Cancel];
            for (step, expected) in steps.into_iter().zip(after) {
                assert_eq!(next(state, step).ok(), expected, "{state} {step:?}");
            }
        }
    }

    #[test]
    fn the_first_status_that_applies_is_told() {
        use words::SaleStatus as S;
        let at = |seconds| DateTime::from_timestamp(seconds, 0).unwrap();
        let schedule = Schedule { starts_at: at(300), on_sale_at: at(100), off_sale_at: at(200) };
        let status = |state, remaining, now| sale_status(state, schedule, remaining, at(now));
        assert_eq!(status(EventState::Published, 1, 99), S::Scheduled);
        assert_eq!(status(EventState::Published, 0, 99), S::Scheduled);
        assert_eq!(status(EventState::Published, 1, 100), S::OnSale);
        assert_eq!(status(EventState::Published, 0, 199), S::SoldOut);
        assert_eq!(status(EventState::Published, 0, 200), S::Ended);
        assert_eq!(status(EventState::Paused, 0, 99), S::Paused);
        assert_eq!(status(EventState::Paused, 1, 200), S::Ended);
        assert_eq!(status(EventState::Draft, 1, 200), S::Draft);
        assert_eq!(status(EventState::Cancelled, 1, 200), S::Cancelled);
    }
}
