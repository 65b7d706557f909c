//! From the contract's inputs to the nouns' requests.

use super::errors::{Failure, Refused, UserError};
use super::{Services, Viewer};
use crate::booking::{CancelRequest, CheckoutRequest};
use crate::catalogue::{Layout, seat_numbers};
use crate::input::{Invalid, key, optional_text, text, within};
use crate::inventory::{Best, HoldRequest};
use async_graphql::ID;
use parterre_entity::{BookingId, EventId, HoldId};
use parterre_schema::money::Currency;
use parterre_schema::{
    BestAvailableInput, CancelInput, CheckoutInput, EventFilter, EventSort, HoldSeatsInput, Kind, LocalId, SaleStatus,
    limits, parse_node_id,
};
use parterre_search as search;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// The UUID of a node id of a kind, or `NOT_FOUND` at a field.
pub(super) fn named(kind: Kind, id: &ID, field: &str) -> Result<Uuid, Refused> {
    of_kind(kind, id).ok_or_else(|| UserError::not_found(field).into())
}

/// The UUID of a node id, if it is of this kind.
pub(super) fn of_kind(kind: Kind, id: &ID) -> Option<Uuid> {
    parse_node_id(id).filter(|(found, _)| *found == kind).map(|(_, id)| id)
}

/// A checked hold request, and the event's layout for naming seats.
pub(super) async fn hold_request(
    services: &Services,
    viewer: &Viewer,
    input: &HoldSeatsInput,
) -> Result<(HoldRequest, Option<Arc<Layout>>), Refused> {
    let event = EventId(named(Kind::Event, &input.event_id, "eventId")?);
    let key = key(&input.idempotency_key)?;
    let frame = services.catalogue.frame(event).await?.ok_or_else(|| UserError::not_found("eventId"))?;
    let layout = match frame.layout {
        Some(id) => services.catalogue.layout(id).await?,
        None => None,
    };
    let seat_ids = input.seat_ids.as_deref().unwrap_or_default();
    if seat_ids.len() > limits::HOLD_SEATS_MAX {
        return Err(Invalid::new("seatIds", format!("at most {} seats", limits::HOLD_SEATS_MAX)).into());
    }
    let seats: Vec<i32> = seat_numbers(layout.as_deref(), seat_ids.iter().map(|id| id.as_str()))?.into_iter().collect();
    let tiers = admissions(event, input)?;
    let best = input.best_available.as_ref().map(|input| best(event, layout.as_deref(), input)).transpose()?;
    if seats.is_empty() && tiers.is_empty() && best.is_none() {
        return Err(Invalid::new("", "ask for seats, admissions or best available").into());
    }
    let fingerprint = fingerprint(&format!("{seats:?}{tiers:?}{best:?}"));
    let request = HoldRequest {
        hold: HoldId::new(),
        event,
        buyer: viewer.subject.clone(),
        key,
        fingerprint,
        seats,
        tiers,
        best,
        layout: layout.clone(),
    };
    Ok((request, layout))
}

fn fingerprint(asked: &str) -> String {
    hex::encode(Sha256::digest(asked.as_bytes()))
}

fn admissions(event: EventId, input: &HoldSeatsInput) -> Result<Vec<(i16, i32)>, Invalid> {
    let wanted = input.admissions.as_deref().unwrap_or_default();
    if wanted.len() > limits::TIERS_MAX {
        return Err(Invalid::new("admissions", format!("at most {} tiers", limits::TIERS_MAX)));
    }
    let mut tiers = BTreeMap::new();
    for (index, admission) in wanted.iter().enumerate() {
        let at = format!("admissions.{index}");
        let tier = LocalId::Tier.decode(event, &admission.tier_id);
        let tier = tier.ok_or_else(|| Invalid::new(format!("{at}.tierId"), "this event has no such tier"))?;
        let quantity = within(format!("{at}.quantity"), admission.quantity, 1, limits::HOLD_QUANTITY_MAX)?;
        if tiers.insert(tier, quantity).is_some() {
            return Err(Invalid::new(format!("{at}.tierId"), "this tier is named twice"));
        }
    }
    Ok(tiers.into_iter().collect())
}

fn best(event: EventId, layout: Option<&Layout>, input: &BestAvailableInput) -> Result<Best, Invalid> {
    let layout = layout.ok_or_else(|| Invalid::new("bestAvailable", "this event has no seats"))?;
    let quantity = within("bestAvailable.quantity", input.quantity, 1, limits::HOLD_QUANTITY_MAX)?;
    let accessible = within("bestAvailable.accessibleCount", input.accessible_count.unwrap_or(0), 0, quantity)?;
    let local = |ids: &Option<Vec<ID>>, kind: LocalId, count: usize, field: &str| match ids.as_deref() {
        None | Some([]) => Ok(None),
        Some(ids) if ids.len() > limits::LAYOUT_SECTIONS_MAX => {
            Err(Invalid::new(format!("bestAvailable.{field}"), "too many"))
        }
        Some(ids) => {
            let mut numbers = Vec::with_capacity(ids.len());
            for (index, id) in ids.iter().enumerate() {
                let number = kind.decode(event, id).filter(|no| usize::try_from(*no).is_ok_and(|no| no < count));
                let number = number.ok_or_else(|| {
                    Invalid::new(format!("bestAvailable.{field}.{index}"), "this event has no such one")
                })?;
                numbers.push(number);
            }
            numbers.sort_unstable();
            numbers.dedup();
            Ok(Some(numbers))
        }
    };
    Ok(Best {
        quantity,
        zones: local(&input.price_zone_ids, LocalId::Zone, layout.drawing.zone_names.len(), "priceZoneIds")?,
        sections: local(&input.section_ids, LocalId::Section, layout.drawing.section_names.len(), "sectionIds")?,
        accessible,
        adjacent: input.adjacent.unwrap_or(true),
    })
}

/// A checked checkout.
pub(super) fn checkout_request(viewer: &Viewer, input: &CheckoutInput) -> Result<CheckoutRequest, Refused> {
    let hold = HoldId(named(Kind::Hold, &input.hold_id, "holdId")?);
    let key = key(&input.idempotency_key)?;
    let payment_method = text("paymentMethod", &input.payment_method, limits::NAME_CHARS_MAX)?;
    let return_url = optional_text("returnUrl", input.return_url.as_deref(), limits::URL_CHARS_MAX)?;
    if return_url.as_ref().is_some_and(|url| !url.starts_with("https://") && !url.starts_with("http://")) {
        return Err(Invalid::new("returnUrl", "must be an http or https URL").into());
    }
    let contact_email = optional_text("contactEmail", input.contact_email.as_deref(), limits::NAME_CHARS_MAX)?;
    if contact_email.as_ref().is_some_and(|address| !is_address(address)) {
        return Err(Invalid::new("contactEmail", "must be an e-mail address").into());
    }
    Ok(CheckoutRequest {
        hold,
        buyer: viewer.subject.clone(),
        key,
        fingerprint: fingerprint(&format!("{hold}{payment_method}")),
        payment_method,
        return_url,
        contact_email: contact_email.or_else(|| viewer.email.clone()),
        locale: optional_text("locale", input.locale.as_deref(), limits::WORD_CHARS_MAX)?,
    })
}

/// Something, one @, a domain with a dot, no blanks: the rest is for the mail server to say.
fn is_address(text: &str) -> bool {
    let Some((local, domain)) = text.split_once('@') else { return false };
    let plain = !text.chars().any(char::is_whitespace) && !domain.contains('@');
    plain && !local.is_empty() && domain.contains('.') && !domain.starts_with('.') && !domain.ends_with('.')
}

/// A checked cancellation.
pub(super) fn cancel_request(viewer: &Viewer, input: &CancelInput) -> Result<CancelRequest, Refused> {
    let booking = BookingId(named(Kind::Booking, &input.booking_id, "bookingId")?);
    let expected = input.expected_version.as_ref().map(|version| {
        version.number().ok_or_else(|| Invalid::new("expectedVersion", "must be a version as the server gave it"))
    });
    Ok(CancelRequest {
        booking,
        buyer: viewer.subject.clone(),
        key: key(&input.idempotency_key)?,
        fingerprint: fingerprint(&booking.to_string()),
        expected_version: expected.transpose()?,
        reason: optional_text("reason", input.reason.as_deref(), limits::DESCRIPTION_CHARS_MAX)?,
    })
}

/// A checked search.
pub(super) fn search_request(
    (query, filter, sort): (Option<String>, Option<EventFilter>, EventSort),
    page: (usize, Option<search::Cursor>),
    viewer: Option<&Viewer>,
    facets: bool,
) -> Result<search::Request, Failure> {
    let bad = |message: String| Failure::BadInput(message);
    let text = query.unwrap_or_default();
    if text.chars().count() > limits::SEARCH_CHARS_MAX {
        return Err(bad(format!("query must have at most {} characters", limits::SEARCH_CHARS_MAX)));
    }
    let filter = search_filter(filter.unwrap_or_default())?;
    let sort = match sort {
        EventSort::Relevance => search::Sort::Relevance,
        EventSort::Date => search::Sort::Date,
        EventSort::Price if filter.currency.is_none() => {
            return Err(bad("sorting by price needs filter.currency".to_owned()));
        }
        EventSort::Price => search::Sort::Price,
        EventSort::Distance if filter.near.is_none() => {
            return Err(bad("sorting by distance needs filter.near".to_owned()));
        }
        EventSort::Distance => search::Sort::Distance,
    };
    let drafts_of = viewer.and_then(Viewer::organizer).map(|organizer| organizer.organization.0);
    Ok(search::Request {
        text,
        filter,
        sort,
        after: page.1,
        limit: page.0,
        now: crate::clock::now().timestamp(),
        drafts_of,
        facets,
    })
}

fn search_filter(filter: EventFilter) -> Result<search::Filter, Failure> {
    let bad = |message: &str| Failure::BadInput(message.to_owned());
    let list = |values: Option<Vec<String>>, name: &str| {
        let values = values.unwrap_or_default();
        let fits = values.len() <= limits::LIST_MAX
            && values.iter().all(|value| value.chars().count() <= limits::NAME_CHARS_MAX);
        if fits { Ok(values) } else { Err(bad(&format!("filter.{name} is too long"))) }
    };
    let ids =
        |values: Option<Vec<ID>>, name: &str| list(values.map(|ids| ids.into_iter().map(|id| id.0).collect()), name);
    let day = |date: Option<parterre_schema::Date>, name: &str| {
        date.map(|date| {
            date.day()
                .map(crate::discovery::day_number)
                .ok_or_else(|| bad(&format!("filter.{name} must be YYYY-MM-DD")))
        })
        .transpose()
    };
    let currency = filter
        .currency
        .map(|code| Currency::from_code(&code).ok_or_else(|| bad("filter.currency is not a currency")))
        .transpose()?;
    let price = |amount: Option<parterre_schema::Decimal>, name: &str| match (amount, currency) {
        (None, _) => Ok(None),
        (Some(_), None) => Err(bad("a price filter needs filter.currency")),
        (Some(amount), Some(currency)) => {
            currency.minor(&amount).map(Some).map_err(|error| bad(&format!("filter.{name} {error}")))
        }
    };
    let near = filter.near.map(|near| {
        let inside = (-90.0..=90.0).contains(&near.latitude)
            && (-180.0..=180.0).contains(&near.longitude)
            && near.radius_km > 0.0
            && near.radius_km <= 20_038.0;
        let circle = search::Near { latitude: near.latitude, longitude: near.longitude, radius_km: near.radius_km };
        inside
            .then_some(circle)
            .ok_or_else(|| bad("filter.near must be a place on the earth and a radius up to 20038 km"))
    });
    Ok(search::Filter {
        cities: list(filter.cities, "cities")?,
        country_codes: list(filter.country_codes, "countryCodes")?,
        categories: list(filter.categories, "categories")?,
        venue_ids: ids(filter.venue_ids, "venueIds")?,
        performer_ids: ids(filter.performer_ids, "performerIds")?,
        day_from: day(filter.date_from, "dateFrom")?,
        day_to: day(filter.date_to, "dateTo")?,
        sale_status: filter
            .sale_status
            .filter(|list| !list.is_empty())
            .map(|list| list.into_iter().map(status).collect()),
        near: near.transpose()?,
        price_min: price(filter.price_min, "priceMin")?,
        price_max: price(filter.price_max, "priceMax")?,
        currency: currency.map(|currency| currency.code().to_owned()),
    })
}

const fn status(status: SaleStatus) -> search::SaleStatus {
    match status {
        SaleStatus::Draft => search::SaleStatus::Draft,
        SaleStatus::Scheduled => search::SaleStatus::Scheduled,
        SaleStatus::OnSale => search::SaleStatus::OnSale,
        SaleStatus::Paused => search::SaleStatus::Paused,
        SaleStatus::SoldOut => search::SaleStatus::SoldOut,
        SaleStatus::Ended => search::SaleStatus::Ended,
        SaleStatus::Cancelled => search::SaleStatus::Cancelled,
    }
}

/// The contract's word for a status of the index.
pub(super) const fn status_word(status: search::SaleStatus) -> &'static str {
    match status {
        search::SaleStatus::Cancelled => "CANCELLED",
        search::SaleStatus::Draft => "DRAFT",
        search::SaleStatus::Ended => "ENDED",
        search::SaleStatus::Paused => "PAUSED",
        search::SaleStatus::Scheduled => "SCHEDULED",
        search::SaleStatus::SoldOut => "SOLD_OUT",
        search::SaleStatus::OnSale => "ON_SALE",
    }
}
