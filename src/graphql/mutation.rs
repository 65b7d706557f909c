//! Every write. Failures a person can meet are data in `userErrors`.

use super::errors::{Failure, Refused, UserError, not_queued};
use super::inputs::{cancel_request, checkout_request, hold_request, named};
use super::objects::{Booking, Event, Hold, Layout, LayoutNote, Performer, Venue, WaitingRoom};
use super::payloads::{
    BlockSeatsPayload, CancelEventPayload, CancelEventProgress, CancelPayload, CheckoutPayload, CreateEventPayload,
    CreateLayoutPayload, CreatePerformerPayload, CreateVenuePayload, HoldSeatsPayload, JoinWaitingRoomPayload,
    LeaveWaitingRoomPayload, PauseSalesPayload, PublishEventPayload, ReleaseHoldPayload, ResumeSalesPayload,
    UpdateEventPayload, UpdatePerformerPayload, UpdateVenuePayload, answer,
};
use super::{Nullable, loaders, services, viewer};
use crate::audit::Organizer;
use crate::catalogue::SaleStep;
use crate::input::Invalid;
use crate::inventory::Answer;
use crate::limit::Bucket;
use async_graphql::{Context, ID, Object};
use parterre_entity::{BookingFailure, BookingId, BookingState, EventId, HoldId, HoldState, event};
use parterre_schema::{
    BlockSeatsInput, CancelEventInput, CancelInput, CheckoutInput, CreateEventInput, CreateLayoutInput,
    CreatePerformerInput, CreateVenueInput, HoldSeatsInput, JoinWaitingRoomInput, Kind, LeaveWaitingRoomInput, LocalId,
    PauseSalesInput, PublishEventInput, ReleaseHoldInput, ResumeSalesInput, UpdateEventInput, UpdatePerformerInput,
    UpdateVenueInput, Version,
};

/// Writes.
#[derive(Clone, Copy, Debug)]
pub struct Mutation;

/// Acting for an organization, or FORBIDDEN.
fn organizer(ctx: &Context<'_>) -> Result<Organizer, Refused> {
    viewer(ctx)?.organizer().ok_or_else(|| UserError::forbidden().into())
}

/// Every write. Holding, paying and cancelling need a valid token of any role, the catalogue an organizer's; without a
/// valid token: UNAUTHENTICATED. Failures a person can meet are data in `userErrors`.
#[Object]
impl Mutation {
    /// Joins an event's waiting room, or keeps the place one has. OVERLOADED while the queue is away.
    async fn join_waiting_room(
        &self,
        ctx: &Context<'_>,
        input: JoinWaitingRoomInput,
    ) -> Nullable<JoinWaitingRoomPayload> {
        let joined = async {
            let viewer = viewer(ctx)?;
            let event = waiting_event(ctx, &input.event_id).await?;
            let standing = services(ctx).waiting.join(event, &viewer.subject).await.map_err(not_queued)?;
            Ok(JoinWaitingRoomPayload::of(WaitingRoom::of(event, standing)))
        };
        answer(joined.await, JoinWaitingRoomPayload::refused)
    }

    /// Leaves an event's waiting room and gives the place up, or the admission.
    async fn leave_waiting_room(
        &self,
        ctx: &Context<'_>,
        input: LeaveWaitingRoomInput,
    ) -> Nullable<LeaveWaitingRoomPayload> {
        let left = async {
            let viewer = viewer(ctx)?;
            let event = waiting_event(ctx, &input.event_id).await?;
            services(ctx).waiting.leave(event, &viewer.subject).await.map_err(not_queued)?;
            Ok(LeaveWaitingRoomPayload::default())
        };
        answer(left.await, |error| LeaveWaitingRoomPayload { user_errors: vec![error] })
    }

    /// Holds seats and admissions for the event's `holdSeconds`: all that is asked for, or nothing. The same key with the
    /// same request gives the same hold, `replayed`, even after the sale has closed. A buyer's own. An event with a
    /// waiting room asks for its admission token.
    async fn hold_seats(&self, ctx: &Context<'_>, input: HoldSeatsInput) -> Nullable<HoldSeatsPayload> {
        let held = async {
            let viewer = viewer(ctx)?;
            // What is wrong with a request for somebody else's draft must not tell that there is one.
            let (request, layout) = match hold_request(services(ctx), viewer, &input).await {
                Ok(checked) => checked,
                Err(refused) => {
                    visible_event(ctx, &input.event_id).await?;
                    return Err(refused);
                }
            };
            let (event, seats) = (request.event, request.seats.clone());
            match services(ctx).waiting.hold(request, input.admission_token.as_deref()).await? {
                Answer::Held { hold, replayed } => {
                    Ok(HoldSeatsPayload { hold: Some(Hold(hold)), replayed, user_errors: Vec::new() })
                }
                Answer::Refused(crate::inventory::Refusal::UnknownTier(tier)) => {
                    Err(unknown_tier(&input, event, tier).into())
                }
                Answer::Refused(refusal) => {
                    Err(UserError::refused_hold(refusal, (event, seats), layout.as_deref()).into())
                }
            }
        };
        answer(held.await, HoldSeatsPayload::refused)
    }

    /// Gives a hold back. One that was released or ran out is returned as it is.
    async fn release_hold(&self, ctx: &Context<'_>, input: ReleaseHoldInput) -> Nullable<ReleaseHoldPayload> {
        let released = async {
            let viewer = viewer(ctx)?;
            let id = HoldId(named(Kind::Hold, &input.hold_id, "holdId")?);
            services(ctx).waiting.release(id, &viewer.subject).await?;
            let hold = services(ctx).inventory.read(id).await?.ok_or_else(|| UserError::not_found("holdId"))?;
            Ok(ReleaseHoldPayload::of(Hold(hold)))
        };
        answer(released.await, ReleaseHoldPayload::refused)
    }

    /// Pays a hold and answers after a short wait: CONFIRMED, FAILED with the reason, or `PAYMENT_PENDING` when the
    /// payment's outcome is not known yet; then ask again or subscribe to `bookingUpdated`. A hold that has a booking
    /// already answers with it, `replayed`.
    async fn checkout(&self, ctx: &Context<'_>, input: CheckoutInput) -> Nullable<CheckoutPayload> {
        let paid = async {
            let viewer = viewer(ctx)?;
            let request = checkout_request(viewer, &input)?;
            if let Some(limiter) = &services(ctx).limiter {
                limiter.take(&[Bucket::Payment(viewer.subject.clone(), request.hold)]).await?;
                let hold = services(ctx).inventory.row(request.hold).await?;
                if let Some(hold) = hold.filter(|hold| hold.buyer == viewer.subject) {
                    limiter.take(&[Bucket::Checkouts(hold.event_id)]).await?;
                }
            }
            let checked_out = services(ctx).bookings.checkout(&request).await?;
            let (id, replayed) = checked_out.map_err(UserError::refused_checkout)?;
            let booking = read_booking(ctx, id).await?;
            if let (Some(limiter), BookingState::Confirmed) = (&services(ctx).limiter, booking.0.row.status) {
                // What is paid is no hold any more.
                limiter.let_go(&viewer.subject, request.hold).await;
            }
            let user_errors = failure_of(ctx, &booking).await?.into_iter().collect();
            Ok(CheckoutPayload { booking: Some(booking), replayed, user_errors })
        };
        answer(paid.await, CheckoutPayload::refused)
    }

    /// Cancels a confirmed booking under its terms: tickets are revoked, the refund is on its way, the seats are released.
    /// CANCELLED says nothing about money: `refunds` does.
    async fn cancel(&self, ctx: &Context<'_>, input: CancelInput) -> Nullable<CancelPayload> {
        let cancelled = async {
            let viewer = viewer(ctx)?;
            let request = cancel_request(viewer, &input)?;
            let (id, replayed) = services(ctx).bookings.cancel(&request).await?.map_err(UserError::refused_cancel)?;
            Ok(CancelPayload { booking: Some(read_booking(ctx, id).await?), replayed, user_errors: Vec::new() })
        };
        answer(cancelled.await, CancelPayload::refused)
    }

    /// Creates a venue of one's organization.
    async fn create_venue(&self, ctx: &Context<'_>, input: CreateVenueInput) -> Nullable<CreateVenuePayload> {
        let made = async {
            let who = organizer(ctx)?;
            Ok(CreateVenuePayload::of(Venue(services(ctx).catalogue.create_venue(&who, &input).await?)))
        };
        answer(made.await, CreateVenuePayload::refused)
    }

    /// Creates a new immutable layout of one's venue.
    async fn create_layout(&self, ctx: &Context<'_>, input: CreateLayoutInput) -> Nullable<CreateLayoutPayload> {
        let made = async {
            let who = organizer(ctx)?;
            let (layout, notes) = services(ctx).catalogue.create_layout(&who, &input).await?;
            let row = loaders(ctx).load_one(layout.id).await?.ok_or_else(|| UserError::not_found("layoutId"))?;
            let notes = notes.into_iter().map(LayoutNote::from).collect();
            Ok(CreateLayoutPayload { layout: Some(Layout(row)), notes, user_errors: Vec::new() })
        };
        answer(made.await, CreateLayoutPayload::refused)
    }

    /// Edits one's venue. Its time zone never changes.
    async fn update_venue(&self, ctx: &Context<'_>, input: UpdateVenueInput) -> Nullable<UpdateVenuePayload> {
        let edited = async {
            let who = organizer(ctx)?;
            Ok(UpdateVenuePayload::of(Venue(services(ctx).catalogue.update_venue(&who, &input).await?)))
        };
        answer(edited.await, UpdateVenuePayload::refused)
    }

    /// Edits a performer that one's organization created.
    async fn update_performer(
        &self,
        ctx: &Context<'_>,
        input: UpdatePerformerInput,
    ) -> Nullable<UpdatePerformerPayload> {
        let edited = async {
            let who = organizer(ctx)?;
            Ok(UpdatePerformerPayload::of(Performer(services(ctx).catalogue.update_performer(&who, &input).await?)))
        };
        answer(edited.await, UpdatePerformerPayload::refused)
    }

    /// Creates a performer.
    async fn create_performer(
        &self,
        ctx: &Context<'_>,
        input: CreatePerformerInput,
    ) -> Nullable<CreatePerformerPayload> {
        let made = async {
            let who = organizer(ctx)?;
            Ok(CreatePerformerPayload::of(Performer(services(ctx).catalogue.create_performer(&who, &input).await?)))
        };
        answer(made.await, CreatePerformerPayload::refused)
    }

    /// Creates an event with all its seats and tiers: a draft, seen by its organization only.
    async fn create_event(&self, ctx: &Context<'_>, input: CreateEventInput) -> Nullable<CreateEventPayload> {
        let made = async {
            let who = organizer(ctx)?;
            Ok(CreateEventPayload::of(Event(services(ctx).catalogue.create_event(&who, &input).await?)))
        };
        answer(made.await, CreateEventPayload::refused)
    }

    /// Edits an event. Prices and rules hold for new holds; what is held or sold keeps its own.
    async fn update_event(&self, ctx: &Context<'_>, input: UpdateEventInput) -> Nullable<UpdateEventPayload> {
        let edited = async {
            let who = organizer(ctx)?;
            let (row, deltas) = services(ctx).catalogue.update_event(&who, &input).await?;
            services(ctx).inventory.publish(deltas);
            Ok(UpdateEventPayload::of(Event(row)))
        };
        answer(edited.await, UpdateEventPayload::refused)
    }

    /// Shows a draft to everyone and sells it inside its sale window.
    async fn publish_event(&self, ctx: &Context<'_>, input: PublishEventInput) -> Nullable<PublishEventPayload> {
        let step = (SaleStep::Publish, input.reason.as_deref());
        answer(
            step_event(ctx, (&input.event_id, &input.expected_version), step).await.map(PublishEventPayload::of),
            PublishEventPayload::refused,
        )
    }

    /// Stops new holds. Holds and bookings that exist go on.
    async fn pause_sales(&self, ctx: &Context<'_>, input: PauseSalesInput) -> Nullable<PauseSalesPayload> {
        let step = (SaleStep::Pause, input.reason.as_deref());
        answer(
            step_event(ctx, (&input.event_id, &input.expected_version), step).await.map(PauseSalesPayload::of),
            PauseSalesPayload::refused,
        )
    }

    /// Ends a pause.
    async fn resume_sales(&self, ctx: &Context<'_>, input: ResumeSalesInput) -> Nullable<ResumeSalesPayload> {
        let step = (SaleStep::Resume, input.reason.as_deref());
        answer(
            step_event(ctx, (&input.event_id, &input.expected_version), step).await.map(ResumeSalesPayload::of),
            ResumeSalesPayload::refused,
        )
    }

    /// Calls an event off for good: nothing is sold from then on, and every confirmed booking is refunded in full,
    /// whatever its terms.
    async fn cancel_event(&self, ctx: &Context<'_>, input: CancelEventInput) -> Nullable<CancelEventPayload> {
        let step = (SaleStep::Cancel, input.reason.as_deref());
        let cancelled = async {
            let event = step_event(ctx, (&input.event_id, &input.expected_version), step).await?;
            services(ctx).bookings.waker().wake();
            let (bookings, cancelled, refunded) = services(ctx).bookings.cancel_progress(event.0.id).await?;
            let progress = CancelEventProgress { bookings, cancelled, refunded };
            Ok(CancelEventPayload { event: Some(event), progress: Some(progress), user_errors: Vec::new() })
        };
        answer(cancelled.await, CancelEventPayload::refused)
    }

    /// Takes available seats off sale, or puts blocked ones back. All of them, or none and the list of those in the way.
    async fn block_seats(&self, ctx: &Context<'_>, input: BlockSeatsInput) -> Nullable<BlockSeatsPayload> {
        let blocked = async {
            let who = organizer(ctx)?;
            match services(ctx).catalogue.block_seats(&who, &input).await {
                Ok((row, deltas)) => {
                    services(ctx).inventory.publish(deltas);
                    Ok(BlockSeatsPayload::of(Event(row)))
                }
                Err(crate::catalogue::CatalogueError::SeatsTaken(conflicts)) => {
                    let event = EventId(named(Kind::Event, &input.event_id, "eventId")?);
                    let frame = services(ctx).catalogue.frame(event).await?;
                    let layout = match frame.and_then(|frame| frame.layout) {
                        Some(id) => services(ctx).catalogue.layout(id).await?,
                        None => None,
                    };
                    let refusal = crate::inventory::Refusal::SeatsUnavailable(conflicts);
                    Err(UserError::refused_hold(refusal, (event, Vec::new()), layout.as_deref()).into())
                }
                Err(error) => Err(error.into()),
            }
        };
        answer(blocked.await, BlockSeatsPayload::refused)
    }
}

/// The admission that names a tier which the event does not have.
fn unknown_tier(input: &HoldSeatsInput, event: EventId, tier: i16) -> UserError {
    let id = LocalId::Tier.encode(event, tier);
    let admissions = input.admissions.as_deref().unwrap_or_default();
    let index = admissions.iter().position(|admission| admission.tier_id == id).unwrap_or(0);
    Invalid::new(format!("admissions.{index}.tierId"), "this event has no such tier").into()
}

async fn step_event(
    ctx: &Context<'_>,
    (event, version): (&ID, &Version),
    step: (SaleStep, Option<&str>),
) -> Result<Event, Refused> {
    let who = organizer(ctx)?;
    Ok(Event(services(ctx).catalogue.step_event(&who, (event, version), step).await?))
}

async fn visible_event(ctx: &Context<'_>, id: &ID) -> Result<event::Model, Refused> {
    let id = EventId(named(Kind::Event, id, "eventId")?);
    let row = super::query::event_for(ctx, id).await?;
    row.ok_or_else(|| UserError::not_found("eventId").into())
}

/// The event of a waiting room, from memory: many wait.
async fn waiting_event(ctx: &Context<'_>, id: &ID) -> Result<EventId, Refused> {
    let id = EventId(named(Kind::Event, id, "eventId")?);
    let seen = super::query::recent_event(ctx, id).await?.is_some();
    if seen { Ok(id) } else { Err(UserError::not_found("eventId").into()) }
}

async fn read_booking(ctx: &Context<'_>, id: BookingId) -> Result<Booking, Refused> {
    let booking = services(ctx).bookings.read(id).await?;
    Ok(Booking(booking.ok_or_else(|| Failure::Internal(format!("booking {id} is gone")))?))
}

/// Why a failed booking failed, as an error beside it.
async fn failure_of(ctx: &Context<'_>, booking: &Booking) -> Result<Option<UserError>, Refused> {
    use parterre_schema::UserErrorCode as Code;
    let row = &booking.0.row;
    let Some(failure) = row.failure.filter(|_| row.status == BookingState::Failed) else { return Ok(None) };
    let hold_error = |code: Code, message: &str| UserError::basic(code, message, &["input", "holdId"]);
    Ok(Some(match failure {
        BookingFailure::Declined | BookingFailure::CaptureFailed => {
            let hold = services(ctx).inventory.read(row.hold_id).await?;
            let still_active = hold.is_some_and(|hold| hold.status_at(crate::clock::now()) == HoldState::Active);
            let code = booking.0.payment.as_ref().and_then(|payment| payment.decline_code.clone());
            UserError::declined(code, still_active)
        }
        BookingFailure::HoldExpired | BookingFailure::Abandoned => {
            hold_error(Code::HoldExpired, "the hold ran out before the payment was done, nothing was charged")
        }
        BookingFailure::HoldReleased => {
            hold_error(Code::HoldNotActive, "the hold was released before the payment was done, nothing was charged")
        }
        BookingFailure::AmountMismatch => hold_error(
            Code::HoldNotActive,
            "the payment did not match the price; whatever was charged is given back, hold seats again",
        ),
        BookingFailure::EventCancelled => hold_error(Code::SaleNotOpen, "the event was cancelled, nothing was charged"),
    }))
}
