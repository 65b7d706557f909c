//! Bookings, payments, refunds, tickets.

use super::events::{currency, percent, tier};
use super::holds::{event, seat};
use super::{AdmissionTier, Event, EventSeat, Hold, HoldItem};
use crate::booking::{self, refund_now};
use crate::graphql::errors::Failure;
use crate::graphql::{Nullable, services};
use crate::payment::NextAction;
use async_graphql::{Context, ID, Object, Result, SimpleObject};
use parterre_entity::{self as rows, BookingState, EventState, PaymentState, RefundState, TicketState};
use parterre_schema as words;
use parterre_schema::scalars::{DateTime, Decimal, Money, Version};
use parterre_schema::{Kind, node_id};

/// One attempt to buy a hold.
#[derive(Clone, Debug)]
pub struct Booking(pub booking::Booking);

fn booking_status(state: BookingState) -> words::BookingStatus {
    use words::BookingStatus as S;
    match state {
        BookingState::PaymentPending => S::PaymentPending,
        BookingState::Confirmed => S::Confirmed,
        BookingState::Failed => S::Failed,
        BookingState::Cancelling => S::Cancelling,
        BookingState::Cancelled => S::Cancelled,
        BookingState::RefundRequired => S::RefundRequired,
        BookingState::Refunded => S::Refunded,
    }
}

/// A hold turned into something paid. Who owns seats, what was paid and what goes back are told apart.
#[Object]
impl Booking {
    /// `bkg_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Booking, self.0.row.id)
    }

    /// What people read out at the door.
    async fn code(&self) -> &str {
        &self.0.row.code
    }

    /// Counts its changes: hand it back as `expectedVersion`.
    async fn version(&self) -> Version {
        self.0.row.version.into()
    }

    /// Where it stands.
    async fn status(&self) -> words::BookingStatus {
        booking_status(self.0.row.status)
    }

    /// Of which event.
    async fn event(&self, ctx: &Context<'_>) -> Result<Event> {
        event(ctx, self.0.row.event_id).await
    }

    /// What it was made of.
    async fn hold(&self, ctx: &Context<'_>) -> Nullable<Hold> {
        let found = services(ctx).inventory.read(self.0.row.hold_id).await.map_err(Failure::from);
        found.map(|found| found.map(Hold)).map_err(Into::into).transpose()
    }

    /// Whether it can be cancelled now, under the terms frozen at checkout.
    async fn cancellation(&self, ctx: &Context<'_>) -> Nullable<CancellationTerms> {
        let row = &self.0.row;
        if row.status != BookingState::Confirmed {
            return None;
        }
        let terms = async || {
            let event = services(ctx).catalogue.recent(row.event_id).await?;
            let state = event.map_or(EventState::Published, |event| event.state);
            let refund = refund_now(row, state, crate::clock::now());
            let is_called_off = state == EventState::Cancelled;
            Ok::<_, Failure>(CancellationTerms {
                allowed: refund.is_some(),
                until: Some(row.cancel_until.into()),
                refund_percent: percent(if is_called_off { 1_000_000 } else { row.refund_ppm }),
                refund_now: match refund {
                    Some(minor) => Some(currency(&row.currency)?.money(minor)),
                    None => None,
                },
            })
        };
        Some(terms().await.map_err(Into::into))
    }

    /// What it covers.
    async fn items(&self, ctx: &Context<'_>) -> Result<Vec<HoldItem>> {
        let items = services(ctx).bookings.items(self.0.row.hold_id).await.map_err(Failure::from)?;
        Ok(items.into_iter().map(HoldItem).collect())
    }

    /// What it costs.
    async fn total(&self) -> Result<Money> {
        Ok(currency(&self.0.row.currency)?.money(self.0.row.total_minor))
    }

    /// Its payment; null for a free booking.
    async fn payment(&self) -> Option<Payment> {
        self.0.payment.clone().map(|row| Payment { row })
    }

    /// Money on its way back, oldest first.
    async fn refunds(&self, ctx: &Context<'_>) -> Result<Vec<Refund>> {
        let refunds = services(ctx).bookings.refunds(self.0.row.id).await.map_err(Failure::from)?;
        Ok(refunds.into_iter().map(Refund).collect())
    }

    /// One for each admission; a moment after the booking is confirmed.
    async fn tickets(&self, ctx: &Context<'_>) -> Result<Vec<Ticket>> {
        let tickets = services(ctx).bookings.tickets(self.0.row.id).await.map_err(Failure::from)?;
        Ok(tickets.into_iter().map(|row| Ticket { row, booking: self.0.clone() }).collect())
    }

    /// Every transition with its time and cause, oldest first.
    async fn timeline(&self, ctx: &Context<'_>) -> Result<Vec<TimelineEntry>> {
        let entries = services(ctx).bookings.timeline(self.0.row.id).await.map_err(Failure::from)?;
        Ok(entries.into_iter().map(Into::into).collect())
    }

    /// When it was made.
    async fn created_at(&self) -> DateTime {
        self.0.row.created_at.into()
    }

    /// When it was paid.
    async fn confirmed_at(&self) -> Option<DateTime> {
        self.0.row.confirmed_at.map(Into::into)
    }

    /// When it was cancelled.
    async fn cancelled_at(&self) -> Option<DateTime> {
        self.0.row.cancelled_at.map(Into::into)
    }
}

/// What a cancellation now would mean.
#[derive(Clone, Debug, SimpleObject)]
pub struct CancellationTerms {
    /// Whether it is allowed now.
    pub allowed: bool,
    /// Until when it is.
    pub until: Option<DateTime>,
    /// Share given back.
    pub refund_percent: Decimal,
    /// What would go back now.
    pub refund_now: Option<Money>,
}

/// The money side of a booking.
#[derive(Clone, Debug)]
pub struct Payment {
    /// The row.
    pub row: rows::payment::Model,
}

fn payment_status(state: PaymentState) -> words::PaymentStatus {
    use words::PaymentStatus as S;
    match state {
        PaymentState::Created => S::Created,
        PaymentState::Authorizing => S::Authorizing,
        PaymentState::RequiresAction => S::RequiresAction,
        PaymentState::Authorized => S::Authorized,
        PaymentState::Capturing => S::Capturing,
        PaymentState::Captured => S::Captured,
        PaymentState::Declined => S::Declined,
        PaymentState::Failed => S::Failed,
        PaymentState::Voiding => S::Voiding,
        PaymentState::Voided => S::Voided,
        PaymentState::Unknown => S::Unknown,
        PaymentState::NeedsReview => S::NeedsReview,
    }
}

/// The money side of one booking.
#[Object]
impl Payment {
    /// `pay_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Payment, self.row.id)
    }

    /// Where it stands.
    async fn status(&self) -> words::PaymentStatus {
        payment_status(self.row.status)
    }

    /// What is paid.
    async fn amount(&self) -> Result<Money> {
        Ok(currency(&self.row.currency)?.money(self.row.amount_minor))
    }

    /// Ours, also in the provider's metadata.
    async fn operation_id(&self) -> &str {
        &self.row.operation_id
    }

    /// Since when the provider's answer is not known.
    async fn unknown_since(&self) -> Option<DateTime> {
        self.row.unknown_since.map(Into::into)
    }

    /// When the provider is asked next.
    async fn next_check_at(&self) -> Option<DateTime> {
        self.row.next_check_at.map(Into::into)
    }

    /// The provider's word for why it declined.
    async fn decline_code(&self) -> Option<&str> {
        self.row.decline_code.as_deref()
    }

    /// What the buyer has to do, while the status is `REQUIRES_ACTION`.
    async fn next_action(&self, ctx: &Context<'_>) -> Nullable<PaymentAction> {
        let action = self.row.next_action.clone().filter(|_| self.row.status == PaymentState::RequiresAction)?;
        let read = async {
            let action: NextAction =
                serde_json::from_value(action).map_err(|error| Failure::Internal(error.to_string()))?;
            let booking = services(ctx).bookings.read(self.row.booking_id).await?;
            let hold = match booking {
                Some(booking) => services(ctx).inventory.read(booking.row.hold_id).await?,
                None => None,
            };
            Ok::<_, Failure>(hold.map(|hold| PaymentAction {
                redirect_url: action.redirect_url,
                client_secret: action.client_secret,
                expires_at: hold.row.deadline.into(),
            }))
        };
        read.await.map_err(Into::into).transpose()
    }
}

/// What the buyer has to do before the hold's deadline.
#[derive(Clone, Debug, SimpleObject)]
pub struct PaymentAction {
    /// Go there, or
    pub redirect_url: Option<String>,
    /// hand this to the provider's own library.
    pub client_secret: Option<String>,
    /// Before then.
    pub expires_at: DateTime,
}

/// Money on its way back.
#[derive(Clone, Debug)]
pub struct Refund(pub rows::refund::Model);

/// Money on its way back.
#[Object]
impl Refund {
    /// `rfd_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Refund, self.0.id)
    }

    /// Where it stands.
    async fn status(&self) -> words::RefundStatus {
        match self.0.status {
            RefundState::Requested => words::RefundStatus::Requested,
            RefundState::Pending => words::RefundStatus::Pending,
            RefundState::Succeeded => words::RefundStatus::Succeeded,
            RefundState::Failed => words::RefundStatus::Failed,
        }
    }

    /// How much.
    async fn amount(&self) -> Result<Money> {
        Ok(currency(&self.0.currency)?.money(self.0.amount_minor))
    }

    /// Why.
    async fn reason(&self) -> words::RefundReason {
        use rows::RefundReason as R;
        match self.0.reason {
            R::BuyerCancelled => words::RefundReason::BuyerCancelled,
            R::EventCancelled => words::RefundReason::EventCancelled,
            R::SeatsLost => words::RefundReason::SeatsLost,
            R::DuplicateCharge => words::RefundReason::DuplicateCharge,
            R::Other => words::RefundReason::Other,
        }
    }

    /// When it was saved.
    async fn created_at(&self) -> DateTime {
        self.0.created_at.into()
    }
}

/// One admission.
#[derive(Clone, Debug)]
pub struct Ticket {
    /// The row.
    pub row: rows::ticket::Model,
    /// Its booking.
    pub booking: booking::Booking,
}

/// One admission.
#[Object]
impl Ticket {
    /// `tkt_…`
    pub async fn id(&self) -> ID {
        node_id(Kind::Ticket, self.row.id)
    }

    /// Whether it admits.
    async fn status(&self) -> words::TicketStatus {
        match self.row.status {
            TicketState::Issued => words::TicketStatus::Issued,
            TicketState::Revoked => words::TicketStatus::Revoked,
        }
    }

    /// Its seat, or
    async fn seat(&self, ctx: &Context<'_>) -> Nullable<EventSeat> {
        let number = self.row.seat_no?;
        let letter = (self.row.status == TicketState::Issued).then_some('S');
        Some(seat(ctx, self.row.event_id, number, letter).await.map_err(Into::into))
    }

    /// its tier.
    async fn tier(&self, ctx: &Context<'_>) -> Nullable<AdmissionTier> {
        let no = self.row.tier_no?;
        tier(ctx, self.row.event_id, no).await.map_err(Into::into).transpose()
    }

    /// Of which booking.
    async fn booking(&self) -> Booking {
        Booking(self.booking.clone())
    }

    /// For which event.
    async fn event(&self, ctx: &Context<'_>) -> Result<Event> {
        event(ctx, self.row.event_id).await
    }

    /// What it is admitted by: signed, unguessable.
    async fn code(&self, ctx: &Context<'_>) -> String {
        booking::ticket_code(&services(ctx).ticket_secret, self.row.id)
    }

    /// The code as a QR code: an SVG document.
    async fn qr_svg(&self, ctx: &Context<'_>) -> String {
        booking::qr_svg(&booking::ticket_code(&services(ctx).ticket_secret, self.row.id))
    }
}

/// One transition of a booking or its money.
#[derive(Clone, Debug, SimpleObject)]
pub struct TimelineEntry {
    /// When.
    pub at: DateTime,
    /// Of what.
    pub kind: words::TimelineKind,
    /// From where; null at the beginning.
    pub from: Option<String>,
    /// To where.
    pub to: String,
    /// What caused it, in a word.
    pub cause: String,
    /// More, for people.
    pub detail: Option<String>,
}

impl From<rows::timeline::Model> for TimelineEntry {
    fn from(row: rows::timeline::Model) -> Self {
        let kind = match row.kind {
            rows::TimelineKind::Booking => words::TimelineKind::Booking,
            rows::TimelineKind::Payment => words::TimelineKind::Payment,
            rows::TimelineKind::Refund => words::TimelineKind::Refund,
            rows::TimelineKind::Ticket => words::TimelineKind::Ticket,
        };
        Self { at: row.at.into(), kind, from: row.from_state, to: row.to_state, cause: row.cause, detail: row.detail }
    }
}
