//! What mutations answer with: the object, if it went well, and what went wrong as data.

use super::errors::{Refused, UserError};
use super::objects::{Booking, Event, Hold, Layout, LayoutNote, Performer, Venue, WaitingRoom};
use async_graphql::{Result, SimpleObject};

/// Data, or an error of the field.
#[expect(clippy::unnecessary_wraps, reason = "a payload is nullable in the contract")]
pub(super) fn answer<T>(result: Result<T, Refused>, refused: impl FnOnce(UserError) -> T) -> Option<Result<T>> {
    Some(match result {
        Ok(payload) => Ok(payload),
        Err(Refused::User(error)) => Ok(refused(error)),
        Err(Refused::Top(failure)) => Err(failure.into()),
    })
}

macro_rules! payloads {
    ($($(#[$doc:meta])* $name:ident { $(#[$fdoc:meta])* $field:ident: $object:ty })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, SimpleObject)]
        pub struct $name {
            $(#[$fdoc])*
            pub $field: Option<$object>,
            /// What went wrong; empty if all went well.
            pub user_errors: Vec<UserError>,
        }

        impl $name {
            pub(super) fn of($field: $object) -> Self {
                Self { $field: Some($field), user_errors: Vec::new() }
            }

            pub(super) fn refused(error: UserError) -> Self {
                Self { $field: None, user_errors: vec![error] }
            }
        }
    )*};
}

payloads! {
    /// The answer to joinWaitingRoom.
    JoinWaitingRoomPayload {
        /// Where the buyer stands now.
        waiting_room: WaitingRoom
    }
    /// The answer to releaseHold.
    ReleaseHoldPayload {
        /// The hold as it is now.
        hold: Hold
    }
    /// The answer to createVenue.
    CreateVenuePayload {
        /// The venue.
        venue: Venue
    }
    /// The answer to updateVenue.
    UpdateVenuePayload {
        /// The venue as it is now.
        venue: Venue
    }
    /// The answer to createPerformer.
    CreatePerformerPayload {
        /// The performer.
        performer: Performer
    }
    /// The answer to updatePerformer.
    UpdatePerformerPayload {
        /// The performer as it is now.
        performer: Performer
    }
    /// The answer to createEvent.
    CreateEventPayload {
        /// The event, a draft.
        event: Event
    }
    /// The answer to updateEvent.
    UpdateEventPayload {
        /// The event as it is now.
        event: Event
    }
    /// The answer to publishEvent.
    PublishEventPayload {
        /// The event as it is now.
        event: Event
    }
    /// The answer to pauseSales.
    PauseSalesPayload {
        /// The event as it is now.
        event: Event
    }
    /// The answer to resumeSales.
    ResumeSalesPayload {
        /// The event as it is now.
        event: Event
    }
    /// The answer to blockSeats.
    BlockSeatsPayload {
        /// The event.
        event: Event
    }
}

/// The answer to leaveWaitingRoom.
#[derive(Clone, Debug, Default, SimpleObject)]
pub struct LeaveWaitingRoomPayload {
    /// What went wrong; empty if all went well.
    pub user_errors: Vec<UserError>,
}

macro_rules! replayed_payloads {
    ($($(#[$doc:meta])* $name:ident { $(#[$fdoc:meta])* $field:ident: $object:ty })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, SimpleObject)]
        pub struct $name {
            $(#[$fdoc])*
            pub $field: Option<$object>,
            /// Whether an earlier request had this result already.
            pub replayed: bool,
            /// What went wrong; empty if all went well.
            pub user_errors: Vec<UserError>,
        }

        impl $name {
            pub(super) fn refused(error: UserError) -> Self {
                Self { $field: None, replayed: false, user_errors: vec![error] }
            }
        }
    )*};
}

replayed_payloads! {
    /// The answer to holdSeats.
    HoldSeatsPayload {
        /// All that was asked for; null if anything was in the way.
        hold: Hold
    }
    /// The answer to checkout. After a decline it has both the booking, FAILED, and the error.
    CheckoutPayload {
        /// The booking as it is after a short wait.
        booking: Booking
    }
    /// The answer to cancel.
    CancelPayload {
        /// The booking as it is now.
        booking: Booking
    }
}

/// The answer to createLayout.
#[derive(Clone, Debug, SimpleObject)]
pub struct CreateLayoutPayload {
    /// The layout.
    pub layout: Option<Layout>,
    /// What an import changed or left out.
    pub notes: Vec<LayoutNote>,
    /// What went wrong; empty if all went well.
    pub user_errors: Vec<UserError>,
}

impl CreateLayoutPayload {
    pub(super) fn refused(error: UserError) -> Self {
        Self { layout: None, notes: Vec::new(), user_errors: vec![error] }
    }
}

/// The answer to cancelEvent.
#[derive(Clone, Debug, SimpleObject)]
pub struct CancelEventPayload {
    /// The event as it is now.
    pub event: Option<Event>,
    /// How far undoing its bookings has come.
    pub progress: Option<CancelEventProgress>,
    /// What went wrong; empty if all went well.
    pub user_errors: Vec<UserError>,
}

impl CancelEventPayload {
    pub(super) fn refused(error: UserError) -> Self {
        Self { event: None, progress: None, user_errors: vec![error] }
    }
}

/// How far undoing a cancelled event's bookings has come.
#[derive(Clone, Copy, Debug, SimpleObject)]
pub struct CancelEventProgress {
    /// Bookings that were confirmed.
    pub bookings: i32,
    /// Of those, cancelled.
    pub cancelled: i32,
    /// Of those, refunded.
    pub refunded: i32,
}
