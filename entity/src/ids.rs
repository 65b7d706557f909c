//! One newtype an id, so that a hold can't be passed for a booking. All are UUIDv7: ascending in time of creation.

use sea_orm::DeriveValueType;
use serde::{Deserialize, Serialize};
use std::fmt;
use uuid::Uuid;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, DeriveValueType)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new id, later than all before it.
            #[must_use]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl Default for $name {
            fn default() -> Self {
                Self::new()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl From<$name> for Uuid {
            fn from(id: $name) -> Self {
                id.0
            }
        }

        impl sea_orm::TryFromU64 for $name {
            fn try_from_u64(_: u64) -> Result<Self, sea_orm::DbErr> {
                Err(sea_orm::DbErr::ConvertFromU64(stringify!($name)))
            }
        }
    )*};
}

ids! {
    /// Who sells.
    OrganizationId,
    /// A place.
    VenueId,
    /// Who is on stage.
    PerformerId,
    /// An immutable seating plan.
    LayoutId,
    /// Something at a venue at a time.
    EventId,
    /// Seats set aside until a deadline.
    HoldId,
    /// One attempt to buy a hold.
    BookingId,
    /// The money side of a booking.
    PaymentId,
    /// Money on its way back.
    RefundId,
    /// One admission.
    TicketId,
}
