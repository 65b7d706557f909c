//! The closed lists of failure codes. Clients switch on a code, never on a message.

use async_graphql::Enum;

/// What went wrong with a mutation, as data in its payload's `userErrors`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Enum)]
pub enum UserErrorCode {
    /// A field is missing, malformed, out of range, or contradicts another. `field` says which one.
    InvalidInput,
    /// No such thing, or it is somebody else's: the two look the same.
    NotFound,
    /// This mutation is for another role, such as organizers.
    Forbidden,
    /// Somebody edited it since `expectedVersion`. Read it again and decide anew.
    StaleVersion,
    /// This idempotency key was used for another request. Use a new key.
    IdempotencyKeyReused,
    /// The event is not selling now: not yet, not any more, paused or cancelled.
    SaleNotOpen,
    /// Too few are left in the tier, or for best available, now.
    SoldOut,
    /// At least one of the seats is not free. Nothing was held; the error lists the seats in the way.
    SeatsUnavailable,
    /// More than a buyer may have at once.
    LimitExceeded,
    /// This event has a waiting room: join it and hand in the admission token.
    AdmissionRequired,
    /// The hold's deadline has passed.
    HoldExpired,
    /// The hold was released, or a booking has taken it over.
    HoldNotActive,
    /// The payment provider declined the payment method. The hold may still be active.
    PaymentDeclined,
    /// The payment provider does not answer. The hold stays; try again in a moment.
    PaymentUnavailable,
    /// The pick would leave a single seat between others, which this event does not allow.
    SingleSeatLeft,
    /// The booking can't be cancelled: the terms do not allow it, or its payment is not settled yet.
    NotCancellable,
    /// Too much at once. Repeat the same request with the same key after `retryAfterMs`.
    Overloaded,
}

/// `errors[].extensions.code` of a failed document or field: only ever one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TopLevelCode {
    /// The document is not GraphQL.
    ParseFailed,
    /// The document does not fit the schema.
    ValidationFailed,
    /// An argument or a variable is malformed or out of range.
    BadUserInput,
    /// A valid token is needed.
    Unauthenticated,
    /// This Origin may not connect.
    Forbidden,
    /// The document asks for more than the limits allow.
    TooComplex,
    /// No document is stored under this hash: send it along once.
    PersistedQueryNotFound,
    /// Too many requests. `retryAfterMs` says when to try again.
    RateLimited,
    /// The search index is being rebuilt. Everything else works.
    SearchUnavailable,
    /// A part of the system does not answer. `retryAfterMs` says when to try again.
    ServiceUnavailable,
    /// Our fault. `traceId` names it in our logs.
    Internal,
}

impl TopLevelCode {
    /// The word on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ParseFailed => "GRAPHQL_PARSE_FAILED",
            Self::ValidationFailed => "GRAPHQL_VALIDATION_FAILED",
            Self::BadUserInput => "BAD_USER_INPUT",
            Self::Unauthenticated => "UNAUTHENTICATED",
            Self::Forbidden => "FORBIDDEN",
            Self::TooComplex => "QUERY_TOO_COMPLEX",
            Self::PersistedQueryNotFound => "PERSISTED_QUERY_NOT_FOUND",
            Self::RateLimited => "RATE_LIMITED",
            Self::SearchUnavailable => "SEARCH_UNAVAILABLE",
            Self::ServiceUnavailable => "SERVICE_UNAVAILABLE",
            Self::Internal => "INTERNAL",
        }
    }
}
