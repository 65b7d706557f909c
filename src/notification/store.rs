//! The rows of messages: made once, taken up, done with.

use super::Kind;
use crate::db::{Db, Transaction};
use crate::outbox::Position;
use crate::sql;
use parterre_entity::BookingId;
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use uuid::Uuid;

/// A message that was taken up.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    pub(super) id: Uuid,
    pub(super) booking: BookingId,
    pub(super) kind: Kind,
    /// The booking, or the refund.
    pub(super) subject: Uuid,
    pub(super) attempts: i32,
}

/// What became of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The mail server accepted it, or it is in the folder.
    Sent,
    /// The buyer left no address.
    NoAddress,
    /// The booking moved on: its tickets admit nobody any more.
    Overtaken,
    /// It will never be accepted.
    Refused(String),
    /// It may be accepted later.
    Later(String),
}

impl Outcome {
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Sent => "SENT",
            Self::NoAddress => "NO_ADDRESS",
            Self::Overtaken => "OVERTAKEN",
            Self::Refused(_) => "REFUSED",
            Self::Later(_) => "WAITING",
        }
    }
}

/// How long a transition is news: whoever switches messages on later does not write to every buyer there ever was.
const NEWS_DAYS: i32 = 3;

/// Saves messages to be sent, but for those that were saved before or are no news any more.
pub(super) async fn insert(tx: &Transaction, messages: &[(Kind, Uuid, Uuid, Position)]) -> Result<(), DbErr> {
    if messages.is_empty() {
        return Ok(());
    }
    tx.execute_raw(sql!(
        "INSERT INTO notification (id, booking_id, kind, subject_id, status, next_try_at)
         SELECT new.id, booking_id, kind, subject_id, 'WAITING', clock_timestamp()
         FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::uuid[], $5::text[], $6::bigint[])
             AS new (id, booking_id, kind, subject_id, told_xid, told_id)
         CROSS JOIN LATERAL (SELECT FROM outbox WHERE xid = told_xid::xid8 AND outbox.id = told_id
                             AND created_at > clock_timestamp() - make_interval(days => $7)) AS news
         ON CONFLICT (kind, subject_id) DO NOTHING",
        messages.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>(),
        messages.iter().map(|(_, booking, ..)| *booking).collect::<Vec<_>>(),
        messages.iter().map(|(kind, ..)| kind.as_str().to_owned()).collect::<Vec<_>>(),
        messages.iter().map(|(_, _, subject, _)| *subject).collect::<Vec<_>>(),
        messages.iter().map(|(.., told)| told.xid.to_string()).collect::<Vec<_>>(),
        messages.iter().map(|(.., told)| told.id).collect::<Vec<_>>(),
        NEWS_DAYS
    ))
    .await
    .map(drop)
}

/// Messages taken up at once, and sent together.
const BATCH: i64 = 4;
/// How long whoever took a message up has it for itself: longer than sending takes.
const TAKEN_SECONDS: f64 = 120.0;

/// Takes up messages that are due.
pub(super) async fn take_due(db: &Db) -> Result<Vec<Waiting>, DbErr> {
    #[derive(FromQueryResult)]
    struct Taken {
        id: Uuid,
        booking_id: BookingId,
        kind: String,
        subject_id: Uuid,
        attempts: i32,
    }
    let rows = Taken::find_by_statement(sql!(
        "UPDATE notification SET attempts = attempts + 1, next_try_at = clock_timestamp() + make_interval(secs => $2)
         WHERE id IN (SELECT id FROM notification WHERE next_try_at <= (SELECT clock_timestamp())
                      ORDER BY next_try_at LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED)
         RETURNING id, booking_id, kind, subject_id, attempts",
        BATCH,
        TAKEN_SECONDS
    ))
    .all(db.pool())
    .await?;
    let waiting = rows.into_iter().filter_map(|row| {
        let kind = Kind::parse(&row.kind)?;
        Some(Waiting { id: row.id, booking: row.booking_id, kind, subject: row.subject_id, attempts: row.attempts })
    });
    Ok(waiting.collect())
}

/// Tries before a message is given up: the last ones an hour apart, some three days in all.
const TRIES_MAX: i32 = 80;

/// Writes down what became of a message.
pub(super) async fn finish(db: &Db, waiting: &Waiting, outcome: Outcome) -> Result<(), DbErr> {
    let outcome = match outcome {
        Outcome::Later(error) if waiting.attempts >= TRIES_MAX => Outcome::Refused(error),
        other => other,
    };
    let name = outcome.name();
    let error = match outcome {
        Outcome::Refused(error) | Outcome::Later(error) => Some(error),
        Outcome::Sent | Outcome::NoAddress | Outcome::Overtaken => None,
    };
    let again_seconds = (name == "WAITING").then(|| 2_f64.powi(waiting.attempts.clamp(1, 12)).min(3_600.0));
    db.pool()
        .execute_raw(sql!(
            "UPDATE notification SET status = $2, error = $3,
                next_try_at = clock_timestamp() + make_interval(secs => $4),
                sent_at = CASE WHEN $2 = 'SENT' THEN clock_timestamp() END
             WHERE id = $1 AND status = 'WAITING'",
            waiting.id,
            name,
            error,
            again_seconds
        ))
        .await
        .map(drop)
}
