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

macro_rules! codes {
    ($($(#[doc = $doc:literal])* $name:ident = $word:literal,)*) => {
        /// `errors[].extensions.code` of a failed document or field: only ever one of these.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum TopLevelCode {
            $($(#[doc = $doc])* $name,)*
        }

        impl TopLevelCode {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$name),*];

            /// The word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $word,)*
                }
            }

            /// What it means and what to do.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self {
                    $(Self::$name => concat!($($doc),*),)*
                }
            }
        }
    };
}

codes! {
    /// The document is not GraphQL.
    ParseFailed = "GRAPHQL_PARSE_FAILED",
    /// The document does not fit the schema.
    ValidationFailed = "GRAPHQL_VALIDATION_FAILED",
    /// An argument or a variable is malformed or out of range.
    BadUserInput = "BAD_USER_INPUT",
    /// A valid token is needed.
    Unauthenticated = "UNAUTHENTICATED",
    /// This Origin may not connect.
    Forbidden = "FORBIDDEN",
    /// The document asks for more than the limits allow.
    TooComplex = "QUERY_TOO_COMPLEX",
    /// No document is stored under this hash: send it along once.
    PersistedQueryNotFound = "PERSISTED_QUERY_NOT_FOUND",
    /// Too many requests. `retryAfterMs` says when to try again.
    RateLimited = "RATE_LIMITED",
    /// The search index is being rebuilt. Everything else works.
    SearchUnavailable = "SEARCH_UNAVAILABLE",
    /// A part of the system does not answer. `retryAfterMs` says when to try again.
    ServiceUnavailable = "SERVICE_UNAVAILABLE",
    /// Our fault. `traceId` names it in our logs.
    Internal = "INTERNAL",
}
