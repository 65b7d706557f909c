//! What a message says, gathered as any reader would.

use super::store::{Outcome, Waiting};
use super::words::Language;
use super::{Kind, Mailer};
use crate::booking::ticket_code;
use crate::catalogue::Layout;
use lettre::message::Mailbox;
use parterre_entity::{BookingState, RefundId, TicketState, booking, event, event_tier, hold_item, ticket, venue};
use parterre_schema::Currency;
use sea_orm::DbErr;
use std::sync::Arc;

/// Everything a message says.
#[derive(Clone, Debug)]
pub(super) struct Facts {
    pub(super) kind: Kind,
    pub(super) language: Language,
    pub(super) to: Mailbox,
    pub(super) booking_code: String,
    pub(super) title: String,
    /// The venue's local time, for people.
    pub(super) starts: String,
    pub(super) venue: String,
    pub(super) lines: Vec<Line>,
    /// What was paid.
    pub(super) total: String,
    /// Tickets that admit; only with a confirmation.
    pub(super) tickets: Vec<Admission>,
    /// What goes back, or went.
    pub(super) refund: Option<String>,
    /// Why it was cancelled, if that was not the buyer's wish.
    pub(super) reason: Option<&'static str>,
}

impl Facts {
    pub(super) fn subject(&self) -> String {
        self.language.subject(self.kind, &self.title)
    }

    pub(super) const fn greeting(&self) -> &'static str {
        self.language.greeting(self.kind)
    }
}

/// A line of the bill.
#[derive(Clone, Debug)]
pub(super) struct Line {
    pub(super) what: String,
    pub(super) quantity: i32,
    pub(super) price: String,
}

/// A ticket.
#[derive(Clone, Debug)]
pub(super) struct Admission {
    pub(super) what: String,
    pub(super) code: String,
}

/// What is needed to name an item.
struct Names {
    language: Language,
    layout: Option<Arc<Layout>>,
    tiers: Vec<event_tier::Model>,
}

impl Names {
    fn of(&self, seat: Option<i32>, tier: Option<i16>) -> String {
        if let Some(seat) = seat {
            let layout = self.layout.as_ref();
            let place = layout.and_then(|layout| layout.seat(seat));
            return match (place, layout) {
                (Some(place), Some(layout)) => {
                    let section = usize::try_from(place.section).unwrap_or(usize::MAX);
                    let section = layout.drawing.section_names.get(section).map_or("", String::as_str);
                    self.language.seat(section, &place.row, &place.number)
                }
                _ => String::new(),
            };
        }
        let found = self.tiers.iter().find(|row| Some(row.tier_no) == tier);
        found.map_or_else(String::new, |row| row.name.clone())
    }
}

/// Gathers it, or says why there is nothing to send.
pub(super) async fn gather(mailer: &Mailer, waiting: &Waiting) -> Result<Result<Facts, Outcome>, DbErr> {
    let gone = |what: &str| DbErr::RecordNotFound(what.to_owned());
    let booking = mailer.bookings.read(waiting.booking).await?.ok_or_else(|| gone("booking"))?.row;
    if waiting.kind == Kind::Confirmed && booking.status != BookingState::Confirmed {
        return Ok(Err(Outcome::Overtaken));
    }
    let Some(address) = &booking.contact_email else { return Ok(Err(Outcome::NoAddress)) };
    let Ok(to) = address.parse() else {
        return Ok(Err(Outcome::Refused("the address can't be read".to_owned())));
    };
    let event = mailer.catalogue.events(&[booking.event_id]).await?.remove(&booking.event_id);
    let event = event.ok_or_else(|| gone("event"))?;
    let venue = mailer.catalogue.venues(&[event.venue_id]).await?.remove(&event.venue_id);
    let venue = venue.ok_or_else(|| gone("venue"))?;
    let language = Language::of(booking.locale.as_deref());
    let names = Names {
        language,
        layout: match event.layout_id {
            Some(id) => mailer.catalogue.layout(id).await?,
            None => None,
        },
        tiers: mailer.catalogue.tiers(&[event.id]).await?.remove(&event.id).unwrap_or_default(),
    };
    let items = mailer.bookings.items(booking.hold_id).await?;
    let tickets = match waiting.kind {
        Kind::Confirmed => mailer.bookings.tickets(booking.id).await?,
        Kind::Cancelled | Kind::Refunded => Vec::new(),
    };
    let refund = refunded(mailer, waiting, &booking).await?;
    Ok(Ok(facts(mailer, waiting, (to, language), (&booking, &event, &venue), (&names, &items, &tickets), refund)))
}

/// What the booking's refunds come to, or the one that arrived.
async fn refunded(mailer: &Mailer, waiting: &Waiting, booking: &booking::Model) -> Result<Option<String>, DbErr> {
    let refunds = mailer.bookings.refunds(booking.id).await?;
    let one = RefundId(waiting.subject);
    let counted = refunds.iter().filter(|refund| match waiting.kind {
        Kind::Refunded => refund.id == one,
        Kind::Confirmed | Kind::Cancelled => refund.status != parterre_entity::RefundState::Failed,
    });
    let counted: Vec<_> = counted.collect();
    let sum: i64 = counted.iter().map(|refund| refund.amount_minor).sum();
    Ok(counted.first().map(|refund| money(&refund.currency, sum)))
}

fn facts(
    mailer: &Mailer,
    waiting: &Waiting,
    (to, language): (Mailbox, Language),
    (booking, event, venue): (&booking::Model, &event::Model, &venue::Model),
    (names, items, tickets): (&Names, &[hold_item::Model], &[ticket::Model]),
    refund: Option<String>,
) -> Facts {
    let zone: chrono_tz::Tz = venue.time_zone.parse().unwrap_or(chrono_tz::UTC);
    let line = |item: &hold_item::Model| Line {
        what: names.of(item.seat_no, item.tier_no),
        quantity: item.quantity,
        price: money(&booking.currency, item.unit_minor.saturating_mul(item.quantity.into())),
    };
    let admission = |ticket: &ticket::Model| Admission {
        what: names.of(ticket.seat_no, ticket.tier_no),
        code: ticket_code(&mailer.ticket_secret, ticket.id),
    };
    let called_off = event.state == parterre_entity::EventState::Cancelled;
    Facts {
        kind: waiting.kind,
        language,
        to,
        booking_code: booking.code.clone(),
        title: event.title.clone(),
        starts: language.local_time(event.starts_at.with_timezone(&zone)),
        venue: format!("{}, {}", venue.name, venue.city),
        lines: items.iter().map(line).collect(),
        total: money(&booking.currency, booking.total_minor),
        tickets: tickets.iter().filter(|ticket| ticket.status == TicketState::Issued).map(admission).collect(),
        refund,
        reason: called_off.then(|| language.called_off()),
    }
}

fn money(currency: &str, minor: i64) -> String {
    Currency::from_code(currency).map_or_else(String::new, |known| format!("{} {currency}", known.decimal(minor).0))
}
