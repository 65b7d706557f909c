//! The contract's enums. States that the database has too are mapped in the GraphQL room.

use async_graphql::Enum;

macro_rules! contract_enums {
    ($($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Enum, serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        pub enum $name { $($(#[$vdoc])* $variant),* }
    )*};
}

contract_enums! {
    /// What an event sells.
    InventoryMode {
        /// Seats of a layout.
        Assigned,
        /// Admissions counted by tier.
        GeneralAdmission,
        /// Both.
        Mixed,
    }
    /// Where the sale of an event stands. The first that applies, in the order CANCELLED, DRAFT, ENDED, PAUSED,
    /// SCHEDULED, SOLD_OUT, ON_SALE.
    SaleStatus {
        /// Not published: only its organization sees it.
        Draft,
        /// Published, on sale later.
        Scheduled,
        /// On sale.
        OnSale,
        /// Published, sale stopped for now by its organizer.
        Paused,
        /// On sale, nothing left, and nothing that could come back from a hold.
        SoldOut,
        /// The sale is over.
        Ended,
        /// The event will not take place; bookings are refunded.
        Cancelled,
    }
    /// How search results are ordered. Ties are broken by id.
    EventSort {
        /// Best match first; without a text, popular events first.
        Relevance,
        /// Soonest first.
        Date,
        /// Cheapest first; needs `filter.currency`.
        Price,
        /// Nearest first; needs `filter.near`.
        Distance,
    }
    /// What a facet counts by.
    FacetField {
        /// The venue's city.
        City,
        /// The venue's country, ISO 3166-1 alpha-2.
        Country,
        /// The event's category.
        Category,
        /// Performer ids.
        Performer,
        /// Venue ids.
        Venue,
        /// Sale status at the time of the query.
        SaleStatus,
        /// The venue-local month, `YYYY-MM`.
        Month,
    }
    /// One seat on a map, approximate by contract: a hold decides.
    SeatStatus {
        /// Free when the map was made.
        Available,
        /// Set aside by a hold, or being paid.
        Held,
        /// Sold.
        Sold,
        /// Off sale.
        Blocked,
    }
    /// Why a subscriber of a seat map missed something.
    SeatMapResyncReason {
        /// It read too slowly; the stream ends. Subscribe again.
        SlowConsumer,
        /// `afterVersion` is not known any more; a snapshot follows.
        VersionUnknown,
        /// The server lost its own source for a moment; a snapshot follows.
        SourceLost,
    }
    /// Where a hold stands.
    HoldStatus {
        /// Its seats are set aside until `expiresAt`.
        Active,
        /// A booking has taken its seats over.
        Converted,
        /// Given back by the buyer, or after a failed payment.
        Released,
        /// The deadline passed.
        Expired,
    }
    /// Where a booking stands. Says nothing about money by itself: see `payment` and `refunds`.
    BookingStatus {
        /// Waiting for the payment's outcome.
        PaymentPending,
        /// Paid; the seats are the buyer's.
        Confirmed,
        /// Nothing was paid and nothing is owned.
        Failed,
        /// Being undone.
        Cancelling,
        /// Undone: the seats are released. Refunds may be on their way.
        Cancelled,
        /// Money came in without seats; a refund is on its way.
        RefundRequired,
        /// The provider says the money is back.
        Refunded,
    }
    /// Where a payment stands.
    PaymentStatus {
        /// Not sent yet.
        Created,
        /// Sent to the provider.
        Authorizing,
        /// The buyer has to do something: see `nextAction`.
        RequiresAction,
        /// Money is reserved.
        Authorized,
        /// Being collected.
        Capturing,
        /// Collected.
        Captured,
        /// Declined by the provider.
        Declined,
        /// Ended without money having moved.
        Failed,
        /// The reservation is being given back.
        Voiding,
        /// The reservation was given back.
        Voided,
        /// The provider's answer is not known; it is being asked, and the seats are protected meanwhile.
        Unknown,
        /// Amount or currency do not match; a person decides.
        NeedsReview,
    }
    /// Where a refund stands.
    RefundStatus {
        /// Saved, not sent yet.
        Requested,
        /// With the provider.
        Pending,
        /// The provider says the money is back.
        Succeeded,
        /// The provider could not; another try follows.
        Failed,
    }
    /// Why money goes back.
    RefundReason {
        /// The buyer cancelled.
        BuyerCancelled,
        /// The event was cancelled.
        EventCancelled,
        /// The payment succeeded after the seats were gone.
        SeatsLost,
        /// The same seats were paid twice.
        DuplicateCharge,
        /// Anything else.
        Other,
    }
    /// Whether a ticket admits.
    TicketStatus {
        /// It does.
        Issued,
        /// It does not: its booking was cancelled.
        Revoked,
    }
    /// Which part of a booking a timeline entry is about.
    TimelineKind {
        /// The booking itself.
        Booking,
        /// Its payment.
        Payment,
        /// One of its refunds.
        Refund,
        /// Its tickets.
        Ticket,
    }
    /// Where a buyer stands in an event's waiting room.
    WaitingRoomStatus {
        /// There is no queue: hold seats without an admission token.
        OpenAccess,
        /// In the queue.
        Waiting,
        /// Let in: `admissionToken` is needed for a new hold.
        Admitted,
        /// Nothing is left, and nothing can come back.
        SoldOut,
        /// The sale is over.
        Closed,
    }
}
