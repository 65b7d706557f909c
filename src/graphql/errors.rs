//! The one table from failures to what clients see. Exhaustive: a new failure must choose its code here.

#![expect(missing_docs, reason = "the derived interface has methods that nobody can document")]

use super::objects::SeatConflict;
use super::{Nullable, services};
use crate::booking::{BookingError, CancelRefusal, CheckoutRefusal};
use crate::catalogue::{CatalogueError, Layout};
use crate::db::CommitError;
use crate::discovery::DiscoveryError;
use crate::input::Invalid;
use crate::inventory::nearest;
use crate::inventory::{Conflict, HoldError, LaneError, Refusal, ReleaseError};
use crate::limit::TooOften;
use crate::waiting::{EntryError, WaitingError};
use async_graphql::{Context, Error, ErrorExtensions, ID, Interface, Object};
use parterre_entity::{EventId, SeatState};
use parterre_schema::scalars::{DateTime, Version};
use parterre_schema::{LocalId, SeatStatus, TopLevelCode, UserErrorCode};
use sea_orm::DbErr;
use std::sync::Arc;

/// A failure of the document or of a field: `errors[]`.
#[derive(Debug)]
pub enum Failure {
    /// No valid token.
    Unauthenticated,
    /// An argument is wrong.
    BadInput(String),
    /// Too many requests of a kind.
    RateLimited {
        /// When to try again.
        retry_after_ms: u64,
    },
    /// There is no search index now.
    SearchUnavailable,
    /// A part of the system does not answer.
    Unavailable {
        /// When to try again.
        retry_after_ms: i32,
    },
    /// Our fault; the cause goes to the log.
    Internal(String),
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        let coded = |code: TopLevelCode, message: &str| {
            Self::new(message).extend_with(|_, extensions| extensions.set("code", code.as_str()))
        };
        match failure {
            Failure::Unauthenticated => coded(TopLevelCode::Unauthenticated, "a valid bearer token is needed"),
            Failure::BadInput(message) => coded(TopLevelCode::BadUserInput, &message),
            Failure::RateLimited { retry_after_ms } => {
                coded(TopLevelCode::RateLimited, "too many requests of this kind, wait a moment")
                    .extend_with(|_, extensions| extensions.set("retryAfterMs", retry_after_ms))
            }
            Failure::SearchUnavailable => coded(
                TopLevelCode::SearchUnavailable,
                "search is being rebuilt, everything else works; try again in a moment",
            ),
            Failure::Unavailable { retry_after_ms } => {
                coded(TopLevelCode::ServiceUnavailable, "the service is not available, try again in a moment")
                    .extend_with(|_, extensions| extensions.set("retryAfterMs", retry_after_ms))
            }
            Failure::Internal(cause) => {
                let trace_id = crate::telemetry::trace_id();
                tracing::error!(trace_id, cause, "a request failed");
                coded(TopLevelCode::Internal, "something went wrong on our side")
                    .extend_with(|_, extensions| extensions.set("traceId", trace_id))
            }
        }
    }
}

/// Whether a database error means that the database is away, so that trying again helps.
fn database(error: &DbErr) -> Failure {
    if crate::db::is_connection(error) {
        return Failure::Unavailable { retry_after_ms: 1_000 };
    }
    Failure::Internal(error.to_string())
}

impl From<DbErr> for Failure {
    fn from(error: DbErr) -> Self {
        database(&error)
    }
}

impl From<Arc<DbErr>> for Failure {
    fn from(error: Arc<DbErr>) -> Self {
        database(&error)
    }
}

impl From<BookingError> for Failure {
    fn from(error: BookingError) -> Self {
        match error {
            BookingError::Database(cause) | BookingError::Commit(CommitError::RolledBack(cause)) => cause.into(),
            BookingError::Commit(CommitError::Unknown(_)) => Self::Unavailable { retry_after_ms: 1_000 },
        }
    }
}

impl From<TooOften> for Failure {
    fn from(too_often: TooOften) -> Self {
        Self::RateLimited { retry_after_ms: too_often.retry_after_ms() }
    }
}

impl From<WaitingError> for Failure {
    fn from(error: WaitingError) -> Self {
        match error {
            WaitingError::Queue(_) => Self::Unavailable { retry_after_ms: QUEUE_AWAY_RETRY_MS },
            WaitingError::Database(cause) => cause.into(),
            WaitingError::Token(cause) => Self::Internal(cause.to_string()),
        }
    }
}

impl From<DiscoveryError> for Failure {
    fn from(error: DiscoveryError) -> Self {
        match error {
            DiscoveryError::Unavailable => Self::SearchUnavailable,
        }
    }
}

/// When to try again while the queue of a waiting room is away.
const QUEUE_AWAY_RETRY_MS: i32 = 2_000;

/// When to try again while the payment provider is down.
const PROVIDER_DOWN_RETRY_MS: i32 = 2_000;

macro_rules! user_errors {
    ($($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $type:ty),* $(,)? })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug)]
        pub struct $name {
            common: Common,
            $($field: $type,)*
        }

        $(#[$doc])*
        #[Object]
        impl $name {
            /// What to switch on.
            async fn code(&self) -> UserErrorCode {
                self.common.code
            }

            /// For people: what is wrong and what to do.
            async fn message(&self) -> &str {
                &self.common.message
            }

            /// The path of the input at fault, from the argument on.
            async fn field(&self) -> Option<&Vec<String>> {
                self.common.field.as_ref()
            }

            $(
                $(#[$fdoc])*
                async fn $field(&self) -> &$type {
                    &self.$field
                }
            )*
        }
    )*};
}

#[derive(Clone, Debug)]
struct Common {
    code: UserErrorCode,
    message: String,
    field: Option<Vec<String>>,
}

user_errors! {
    /// A failure that needs no more than its code.
    BasicError {}
    /// The provider declined the payment method.
    PaymentDeclinedError {
        /// The provider's word for why.
        decline_code: Option<String>,
        /// Whether another payment method may be tried with the same hold.
        hold_still_active: bool,
    }
    /// More than one buyer may have.
    LimitExceededError {
        /// What one buyer may have.
        limit: i32,
    }
    /// Somebody edited it meanwhile.
    StaleVersionError {
        /// The version now.
        current_version: Version,
    }
    /// Too much at once, or a part of the system is away: repeat the same request with the same key.
    RetryLaterError {
        /// Wait so long before.
        retry_after_ms: i32,
    }
}

/// Seats or admissions that were in the way. Nothing was held.
#[derive(Clone, Debug)]
pub struct SeatsUnavailableError {
    common: Common,
    conflicts: Vec<SeatConflict>,
    instead: Instead,
}

/// What to offer to one who did not get what was asked for.
#[derive(Clone, Debug)]
enum Instead {
    /// Nothing.
    Nothing,
    /// These seats.
    Seats(EventId, Vec<i32>),
    /// The nearest seats like these that are free on the map, if anybody wants to know.
    Like(EventId, Vec<i32>),
}

/// Seats or admissions that were in the way. Nothing was held.
#[Object]
impl SeatsUnavailableError {
    /// What to switch on.
    async fn code(&self) -> UserErrorCode {
        self.common.code
    }

    /// For people: what is wrong and what to do.
    async fn message(&self) -> &str {
        &self.common.message
    }

    /// The path of the input at fault, from the argument on.
    async fn field(&self) -> Option<&Vec<String>> {
        self.common.field.as_ref()
    }

    /// Each seat or tier in the way, and when it may be free again.
    async fn conflicts(&self) -> &Vec<SeatConflict> {
        &self.conflicts
    }

    /// As many seats like those asked for, side by side, the nearest that were free a moment ago. Null: there are none.
    async fn alternative_seat_ids(&self, ctx: &Context<'_>) -> Nullable<Vec<ID>> {
        let found = async {
            let (event, wanted) = match &self.instead {
                Instead::Nothing => return Ok(None),
                Instead::Seats(event, wanted) | Instead::Like(event, wanted) => (*event, wanted),
            };
            let Some(map) = services(ctx).seat_maps.of(event).await.map_err(Failure::from)? else { return Ok(None) };
            let Some(layout) = map.layout.as_deref() else { return Ok(None) };
            let seats = match &self.instead {
                Instead::Like(..) => {
                    let view = map.view();
                    nearest(layout, &|seat| view.letter(seat) == Some('A'), wanted)
                }
                Instead::Nothing | Instead::Seats(..) => Some(wanted.clone()),
            };
            Ok::<_, Failure>(seats.map(|seats| seats.into_iter().map(|seat| ID(layout.seat_id(seat))).collect()))
        };
        found.await.map_err(Into::into).transpose()
    }
}

/// A failure as data. Clients switch on `code` and keep a default branch.
#[derive(Clone, Debug, Interface)]
#[graphql(
    field(name = "code", ty = "UserErrorCode", desc = "What to switch on."),
    field(name = "message", ty = "&str", desc = "For people: what is wrong and what to do."),
    field(name = "field", ty = "Option<&Vec<String>>", desc = "The path of the input at fault, from the argument on.")
)]
pub enum UserError {
    Basic(BasicError),
    SeatsUnavailable(SeatsUnavailableError),
    PaymentDeclined(PaymentDeclinedError),
    LimitExceeded(LimitExceededError),
    StaleVersion(StaleVersionError),
    RetryLater(RetryLaterError),
}

fn common(code: UserErrorCode, message: impl Into<String>, field: &[&str]) -> Common {
    let field = (!field.is_empty()).then(|| field.iter().map(|part| (*part).to_owned()).collect());
    Common { code, message: message.into(), field }
}

impl UserError {
    pub(super) fn basic(code: UserErrorCode, message: impl Into<String>, field: &[&str]) -> Self {
        Self::Basic(BasicError { common: common(code, message, field) })
    }

    pub(super) fn not_found(field: &str) -> Self {
        Self::basic(UserErrorCode::NotFound, "there is no such object", &["input", field])
    }

    pub(super) fn forbidden() -> Self {
        Self::basic(UserErrorCode::Forbidden, "this needs an organizer's token", &[])
    }

    pub(super) fn stale(current: i64) -> Self {
        let message = "it was edited meanwhile, read it again and decide anew";
        let common = common(UserErrorCode::StaleVersion, message, &["input", "expectedVersion"]);
        Self::StaleVersion(StaleVersionError { common, current_version: current.into() })
    }

    pub(super) fn retry_later(code: UserErrorCode, message: &str, retry_after_ms: i32) -> Self {
        Self::RetryLater(RetryLaterError { common: common(code, message, &[]), retry_after_ms })
    }

    pub(super) fn declined(decline_code: Option<String>, hold_still_active: bool) -> Self {
        let message = if hold_still_active {
            "the payment was declined, try another payment method while the hold lasts"
        } else {
            "the payment was declined, and the hold is over: hold seats again"
        };
        let common = common(UserErrorCode::PaymentDeclined, message, &["input", "paymentMethod"]);
        Self::PaymentDeclined(PaymentDeclinedError { common, decline_code, hold_still_active })
    }

    fn conflicts(
        (code, message, field): (UserErrorCode, &str, &str),
        conflicts: Vec<SeatConflict>,
        instead: Instead,
    ) -> Self {
        let common = common(code, message, &["input", field]);
        Self::SeatsUnavailable(SeatsUnavailableError { common, conflicts, instead })
    }

    /// Why a hold of these seats was refused.
    pub(super) fn refused_hold(
        refusal: Refusal,
        (event, wanted): (EventId, Vec<i32>),
        layout: Option<&Layout>,
    ) -> Self {
        let shown =
            |conflicts: Vec<Conflict>| conflicts.into_iter().map(|conflict| shown(conflict, event, layout)).collect();
        match refusal {
            Refusal::EventNotFound => Self::not_found("eventId"),
            Refusal::SaleNotOpen => {
                Self::basic(UserErrorCode::SaleNotOpen, "this event is not selling now", &["input", "eventId"])
            }
            Refusal::UnknownTier(_) => {
                Self::basic(UserErrorCode::InvalidInput, "this event has no such tier", &["input", "admissions"])
            }
            Refusal::KeyReused => key_reused(),
            Refusal::Limit { max } => {
                let message = format!("one buyer may have at most {max} seats of this event");
                Self::LimitExceeded(LimitExceededError {
                    common: common(UserErrorCode::LimitExceeded, message, &["input"]),
                    limit: max,
                })
            }
            Refusal::SeatsUnavailable(conflicts) => Self::conflicts(
                (UserErrorCode::SeatsUnavailable, "some of these seats are not free, nothing was held", "seatIds"),
                shown(conflicts),
                if wanted.is_empty() { Instead::Nothing } else { Instead::Like(event, wanted) },
            ),
            Refusal::SingleSeatLeft { alone, instead } => Self::conflicts(
                (
                    UserErrorCode::SingleSeatLeft,
                    "this would leave a single seat between others, which this event does not allow: take the one beside too, or other seats",
                    "seatIds",
                ),
                shown(
                    alone
                        .into_iter()
                        .map(|seat| Conflict::Seat { seat, status: SeatState::Available, free_at: None })
                        .collect(),
                ),
                Instead::Seats(event, instead),
            ),
            Refusal::SoldOut(conflicts) => {
                let field = if conflicts.is_empty() { "bestAvailable" } else { "admissions" };
                let message = "too few are left, nothing was held";
                Self::conflicts((UserErrorCode::SoldOut, message, field), shown(conflicts), Instead::Nothing)
            }
            Refusal::TooLarge => Self::basic(UserErrorCode::InvalidInput, "the total is too large", &["input"]),
        }
    }

    /// Why a checkout was refused.
    pub(super) fn refused_checkout(refusal: CheckoutRefusal) -> Self {
        match refusal {
            CheckoutRefusal::HoldNotFound => Self::not_found("holdId"),
            CheckoutRefusal::KeyReused => key_reused(),
            CheckoutRefusal::HoldExpired => {
                Self::basic(UserErrorCode::HoldExpired, "the hold ran out, hold seats again", &["input", "holdId"])
            }
            CheckoutRefusal::HoldNotActive => {
                Self::basic(UserErrorCode::HoldNotActive, "the hold is not active any more", &["input", "holdId"])
            }
            CheckoutRefusal::EventCancelled => {
                Self::basic(UserErrorCode::SaleNotOpen, "the event was cancelled", &["input", "holdId"])
            }
            CheckoutRefusal::ProviderDown => Self::retry_later(
                UserErrorCode::PaymentUnavailable,
                "the payment provider does not answer now, your hold stays: try again in a moment",
                PROVIDER_DOWN_RETRY_MS,
            ),
            CheckoutRefusal::AmountNotPayable => Self::basic(
                UserErrorCode::InvalidInput,
                "the payment provider can't collect this amount in this currency",
                &["input", "holdId"],
            ),
        }
    }

    /// Why a cancellation was refused.
    pub(super) fn refused_cancel(refusal: CancelRefusal) -> Self {
        let not_cancellable =
            |message: String| Self::basic(UserErrorCode::NotCancellable, message, &["input", "bookingId"]);
        match refusal {
            CancelRefusal::NotFound => Self::not_found("bookingId"),
            CancelRefusal::KeyReused => key_reused(),
            CancelRefusal::Stale { current } => Self::stale(current),
            CancelRefusal::NotSettled => {
                not_cancellable("its payment is not settled yet, try again in a moment".to_owned())
            }
            CancelRefusal::NothingToCancel => not_cancellable("there is nothing to cancel".to_owned()),
            CancelRefusal::TooLate { until } => {
                not_cancellable(format!("its terms allowed cancellation until {}", until.to_rfc3339()))
            }
        }
    }
}

impl From<Invalid> for UserError {
    fn from(invalid: Invalid) -> Self {
        let field = Some(invalid.field);
        Self::Basic(BasicError {
            common: Common { code: UserErrorCode::InvalidInput, message: invalid.message, field },
        })
    }
}

fn key_reused() -> UserError {
    let message = "this key was used for another request, use a new one";
    UserError::basic(UserErrorCode::IdempotencyKeyReused, message, &["input", "idempotencyKey"])
}

#[expect(clippy::needless_pass_by_value, reason = "a conflict is shown once")]
fn shown(conflict: Conflict, event: EventId, layout: Option<&Layout>) -> SeatConflict {
    match conflict {
        Conflict::Seat { seat, status, free_at } => SeatConflict {
            seat_id: layout.map(|layout| ID(layout.seat_id(seat))),
            tier_id: None,
            status: Some(match status {
                SeatState::Available => SeatStatus::Available,
                SeatState::Held | SeatState::Pending => SeatStatus::Held,
                SeatState::Sold => SeatStatus::Sold,
                SeatState::Blocked => SeatStatus::Blocked,
            }),
            available: None,
            available_again_at: free_at.map(DateTime::from),
        },
        Conflict::Tier { tier, available } => SeatConflict {
            seat_id: None,
            tier_id: Some(LocalId::Tier.encode(event, tier)),
            status: None,
            available: Some(available),
            available_again_at: None,
        },
    }
}

/// A mutation's failure: for its payload, or for the top level.
#[derive(Debug)]
pub(super) enum Refused {
    /// Data.
    User(UserError),
    /// An error of the field.
    Top(Failure),
}

impl<T: Into<Failure>> From<T> for Refused {
    fn from(failure: T) -> Self {
        Self::Top(failure.into())
    }
}

/// Why nobody could be put in line, or taken out.
pub(super) fn not_queued(error: WaitingError) -> Refused {
    match error {
        WaitingError::Queue(_) => {
            let message = "the queue is not available now, try again in a moment";
            Refused::User(UserError::retry_later(UserErrorCode::Overloaded, message, QUEUE_AWAY_RETRY_MS))
        }
        error => Refused::Top(error.into()),
    }
}

impl From<EntryError> for Refused {
    fn from(error: EntryError) -> Self {
        match error {
            EntryError::AdmissionRequired => {
                let message =
                    "this event has a waiting room: join it, and hand in the admission token once you are let in";
                Self::User(UserError::basic(UserErrorCode::AdmissionRequired, message, &["input", "admissionToken"]))
            }
            EntryError::TooOften(too_often) => Self::Top(too_often.into()),
            EntryError::TooManyHolds { max } => {
                let message = format!("you hold seats of {max} events: check out or release some of them first");
                Self::User(UserError::LimitExceeded(LimitExceededError {
                    common: common(UserErrorCode::LimitExceeded, message, &["input"]),
                    limit: i32::try_from(max).unwrap_or(i32::MAX),
                }))
            }
            EntryError::Database(cause) => Self::Top(cause.into()),
            EntryError::Hold(cause) => cause.into(),
        }
    }
}

/// The database is away or overloaded: the same request with the same key may be repeated.
fn overloaded(retry_after_ms: i32) -> Refused {
    let message = "too much at once, repeat the same request with the same key";
    Refused::User(UserError::retry_later(UserErrorCode::Overloaded, message, retry_after_ms))
}

fn commit(error: CommitError) -> Refused {
    match error {
        CommitError::RolledBack(cause) => write_failed(cause),
        CommitError::Unknown(_) => overloaded(1_000),
    }
}

fn write_failed(error: DbErr) -> Refused {
    if crate::db::may_repeat(&error) { overloaded(500) } else { Refused::Top(error.into()) }
}

impl From<CatalogueError> for Refused {
    fn from(error: CatalogueError) -> Self {
        match error {
            CatalogueError::Invalid(invalid) => Self::User(invalid.into()),
            CatalogueError::NotFound(field) => Self::User(UserError::not_found(field)),
            CatalogueError::Stale { current } => Self::User(UserError::stale(current)),
            CatalogueError::SeatsTaken(conflicts) => {
                // Without the layout at hand seats are named by number; the mutation names them by id.
                let nowhere = (EventId::default(), Vec::new());
                Self::User(UserError::refused_hold(Refusal::SeatsUnavailable(conflicts), nowhere, None))
            }
            CatalogueError::Database(cause) => write_failed(cause),
            CatalogueError::Commit(cause) => commit(cause),
        }
    }
}

impl From<HoldError> for Refused {
    fn from(error: HoldError) -> Self {
        match error {
            HoldError::Lane(LaneError::Overloaded { retry_after_ms }) => overloaded(retry_after_ms),
            HoldError::Lane(LaneError::Unknown) => overloaded(1_000),
            HoldError::Lane(LaneError::Failed(cause)) => Self::Top(Failure::Internal(cause)),
            HoldError::Database(cause) => Self::Top(cause.into()),
        }
    }
}

impl From<ReleaseError> for Refused {
    fn from(error: ReleaseError) -> Self {
        match error {
            ReleaseError::NotFound => Self::User(UserError::not_found("holdId")),
            ReleaseError::Converted => {
                let message = "a booking has taken this hold over";
                Self::User(UserError::basic(UserErrorCode::HoldNotActive, message, &["input", "holdId"]))
            }
            ReleaseError::Database(cause) => write_failed(cause),
            ReleaseError::Commit(cause) => commit(cause),
        }
    }
}

impl From<Invalid> for Refused {
    fn from(invalid: Invalid) -> Self {
        Self::User(invalid.into())
    }
}

impl From<UserError> for Refused {
    fn from(error: UserError) -> Self {
        Self::User(error)
    }
}
