//! The state columns. The values are the database's text; transitions are rules of the nouns.

use sea_orm::{DeriveActiveEnum, EnumIter};
use serde::{Deserialize, Serialize};

macro_rules! states {
    ($($(#[$doc:meta])* $name:ident { $($variant:ident = $text:literal),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, EnumIter, DeriveActiveEnum, Serialize, Deserialize)]
        #[sea_orm(rs_type = "String", db_type = "Text")]
        pub enum $name {
            $(
                #[doc = $text]
                #[sea_orm(string_value = $text)]
                #[serde(rename = $text)]
                $variant,
            )*
        }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// The database's text, which is also the contract's word where the contract has one.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

states! {
    /// The organizer's say over an event's sale; the sale window and the stock decide the rest.
    EventState {
        Draft = "DRAFT",
        Published = "PUBLISHED",
        Paused = "PAUSED",
        Cancelled = "CANCELLED",
    }
    /// What an event sells.
    InventoryMode {
        Assigned = "ASSIGNED",
        GeneralAdmission = "GENERAL_ADMISSION",
        Mixed = "MIXED",
    }
    /// The inventory row of one seat. A HELD one past its `held_until` is free.
    SeatState {
        Available = "AVAILABLE",
        Held = "HELD",
        Pending = "PENDING",
        Sold = "SOLD",
        Blocked = "BLOCKED",
    }
    /// A hold as its row says. An ACTIVE one past its deadline reads as EXPIRED.
    HoldState {
        Active = "ACTIVE",
        Converted = "CONVERTED",
        Released = "RELEASED",
        Expired = "EXPIRED",
    }
    /// What became of one item of a hold.
    ItemState {
        Held = "HELD",
        Pending = "PENDING",
        Sold = "SOLD",
        Returned = "RETURNED",
        Withdrawn = "WITHDRAWN",
    }
    /// Who owns what: never says anything about money by itself.
    BookingState {
        PaymentPending = "PAYMENT_PENDING",
        Confirmed = "CONFIRMED",
        Failed = "FAILED",
        Cancelling = "CANCELLING",
        Cancelled = "CANCELLED",
        RefundRequired = "REFUND_REQUIRED",
        Refunded = "REFUNDED",
    }
    /// Why a FAILED booking failed.
    BookingFailure {
        Declined = "DECLINED",
        HoldExpired = "HOLD_EXPIRED",
        HoldReleased = "HOLD_RELEASED",
        EventCancelled = "EVENT_CANCELLED",
        Abandoned = "ABANDONED",
        CaptureFailed = "CAPTURE_FAILED",
        AmountMismatch = "AMOUNT_MISMATCH",
    }
    /// Where the money of one booking is.
    PaymentState {
        Created = "CREATED",
        Authorizing = "AUTHORIZING",
        RequiresAction = "REQUIRES_ACTION",
        Authorized = "AUTHORIZED",
        Capturing = "CAPTURING",
        Captured = "CAPTURED",
        Declined = "DECLINED",
        Failed = "FAILED",
        Voiding = "VOIDING",
        Voided = "VOIDED",
        Unknown = "UNKNOWN",
        NeedsReview = "NEEDS_REVIEW",
    }
    /// A call to the provider whose outcome may be unknown.
    PaymentStep {
        Authorize = "AUTHORIZE",
        Capture = "CAPTURE",
        Void = "VOID",
    }
    /// Where money on its way back is.
    RefundState {
        Requested = "REQUESTED",
        Pending = "PENDING",
        Succeeded = "SUCCEEDED",
        Failed = "FAILED",
    }
    /// Why money goes back.
    RefundReason {
        BuyerCancelled = "BUYER_CANCELLED",
        EventCancelled = "EVENT_CANCELLED",
        SeatsLost = "SEATS_LOST",
        DuplicateCharge = "DUPLICATE_CHARGE",
        Other = "OTHER",
    }
    /// Whether a ticket admits.
    TicketState {
        Issued = "ISSUED",
        Revoked = "REVOKED",
    }
    /// Which state machine a timeline entry is of.
    TimelineKind {
        Booking = "BOOKING",
        Payment = "PAYMENT",
        Refund = "REFUND",
        Ticket = "TICKET",
    }
}
