//! Holds once they exist: their end by release or by time.

use super::counters;
use super::rules::HoldRequest;
use super::shift::{Items, Shift, shift};
use crate::bus::SeatsDelta;
use crate::db::{self, CommitError, Db, MayRepeat, Transaction};
use crate::outbox::{self, Change, Topic};
use crate::sql;
use chrono::{DateTime, Utc};
use parterre_entity::{EventId, HoldId, HoldState};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use std::sync::Arc;

/// What may happen to a hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldEvent {
    /// Its seats go to a booking.
    Convert,
    /// The buyer gives it back, or its payment failed.
    Release,
    /// Its deadline has passed.
    Expire,
    /// Money came in late and exactly its seats were still free.
    ConfirmLate,
}

/// A step that a hold in this state can't take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a hold that is {from} can't {event:?}")]
pub struct InvalidTransition {
    /// Where it stands.
    pub from: HoldState,
    /// What was to happen.
    pub event: HoldEvent,
}

/// The hold's state machine, every pair spelled out.
pub const fn next(from: HoldState, event: HoldEvent) -> Result<HoldState, InvalidTransition> {
    use HoldEvent as E;
    use HoldState as S;
    match (from, event) {
        (S::Active, E::Convert) | (S::Expired | S::Released, E::ConfirmLate) => Ok(S::Converted),
        // A failed capture releases the hold that it had converted.
        (S::Active | S::Converted, E::Release) => Ok(S::Released),
        (S::Active, E::Expire) => Ok(S::Expired),
        (S::Converted | S::Released | S::Expired, E::Convert | E::Expire)
        | (S::Released | S::Expired, E::Release)
        | (S::Active | S::Converted, E::ConfirmLate) => Err(InvalidTransition { from, event }),
    }
}

/// A hold's row, locked.
#[derive(Clone, Debug, FromQueryResult)]
#[expect(missing_docs, reason = "the columns are commented in the migration")]
pub struct LockedHold {
    pub id: HoldId,
    pub event_id: EventId,
    pub buyer: String,
    pub status: HoldState,
    pub deadline: DateTime<Utc>,
    pub total_minor: i64,
    pub currency: String,
}

impl LockedHold {
    /// Where it stands at a time: an ACTIVE hold past its deadline is EXPIRED, whether or not a worker has come by.
    #[must_use]
    pub fn status_at(&self, now: DateTime<Utc>) -> HoldState {
        if self.status == HoldState::Active && self.deadline <= now { HoldState::Expired } else { self.status }
    }
}

/// Locks a hold's row.
pub async fn lock(tx: &Transaction, hold: HoldId) -> Result<Option<LockedHold>, DbErr> {
    LockedHold::find_by_statement(sql!(
        "SELECT id, event_id, buyer, status, deadline, total_minor, currency FROM hold WHERE id = $1 FOR NO KEY UPDATE",
        hold
    ))
    .one(&**tx)
    .await
}

/// Moves a locked hold and says so in the outbox. Its items are `shift`'s matter.
pub async fn step(tx: &Transaction, hold: &LockedHold, event: HoldEvent) -> Result<(), DbErr> {
    let to = next(hold.status, event).map_err(|error| DbErr::Custom(error.to_string()))?;
    let written = tx
        .execute_raw(sql!(
            "UPDATE hold SET status = $2 WHERE id = $1 AND status = $3",
            hold.id,
            to.as_str(),
            hold.status.as_str()
        ))
        .await?
        .rows_affected();
    super::batch::expect_rows("holds moved", 1, written)?;
    outbox::append(&**tx, &[told(hold.event_id, hold.id, to)]).await
}

/// What the outbox is told of a hold.
fn told(event: EventId, hold: HoldId, to: HoldState) -> Change {
    Change {
        topic: Topic::Hold,
        event: Some(event),
        subject: Some(hold.0),
        payload: serde_json::json!({ "to": to.as_str() }),
    }
}

/// Why a hold was not released.
#[derive(Debug, thiserror::Error)]
pub enum ReleaseError {
    /// No such hold, or another buyer's.
    #[error("no such hold")]
    NotFound,
    /// A booking has taken it over.
    #[error("the hold is converted")]
    Converted,
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbErr),
    /// The commit failed.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl MayRepeat for ReleaseError {
    fn may_repeat(&self) -> bool {
        match self {
            Self::Database(error) | Self::Commit(CommitError::RolledBack(error)) => db::may_repeat(error),
            Self::NotFound | Self::Converted | Self::Commit(CommitError::Unknown(_)) => false,
        }
    }
}

/// What a buyer's key was used for: the fingerprint of the request, and the hold it made.
pub(super) async fn known_key(db: &Db, request: &HoldRequest) -> Result<Option<(String, HoldId)>, DbErr> {
    #[derive(FromQueryResult)]
    struct Known {
        fingerprint: String,
        result_id: HoldId,
    }
    let known = Known::find_by_statement(sql!(
        "SELECT fingerprint, result_id FROM idempotency
         WHERE event_id = $1 AND buyer = $2 AND operation = 'hold' AND key = $3",
        request.event,
        request.buyer.clone(),
        request.key.clone()
    ))
    .one(db.pool())
    .await?;
    Ok(known.map(|row| (row.fingerprint, row.result_id)))
}

/// Gives a buyer's hold back. One that ended already is left as it is.
pub(super) async fn release(db: &Db, hold: HoldId, buyer: &str) -> Result<Vec<Arc<SeatsDelta>>, ReleaseError> {
    let tx = db.begin("hold_release").await?;
    let row = lock(&tx, hold).await?.filter(|row| row.buyer == buyer).ok_or(ReleaseError::NotFound)?;
    match row.status {
        HoldState::Active => {}
        HoldState::Converted => return Err(ReleaseError::Converted),
        HoldState::Released | HoldState::Expired => {
            tx.rollback().await?;
            return Ok(Vec::new());
        }
    }
    let event = if row.status_at(db::clock(&*tx).await?) == HoldState::Expired {
        HoldEvent::Expire
    } else {
        HoldEvent::Release
    };
    let deltas = end(&tx, &row, event).await?;
    tx.commit().await?;
    Ok(deltas)
}

async fn end(tx: &Transaction, hold: &LockedHold, event: HoldEvent) -> Result<Vec<Arc<SeatsDelta>>, DbErr> {
    step(tx, hold, event).await?;
    let items = Items { event: hold.event_id, hold: hold.id, booking: None };
    // A release takes what is still there: fewer rows are normal.
    let bump = shift(tx, &[items], Shift::Release).await?.unwrap_or_default();
    counters::bump(tx, bump).await
}

/// Holds a pass of the expiry worker ends at the most.
const EXPIRED_A_PASS: i64 = 200;

/// Ends overdue holds, a batch of them. It only tidies: a claim never waits for it. Returns how many were ended.
///
/// All in one transaction, which passes by those that somebody else is at; if that fails, each in its own, so that one
/// that can't be ended does not keep the others from ending.
pub(super) async fn expire_some(db: &Db) -> Result<(usize, Vec<Arc<SeatsDelta>>), ReleaseError> {
    match db::repeating(|| expire_batch(db)).await {
        Ok(ended) => return Ok(ended),
        Err(ReleaseError::Database(error)) if !db::is_connection(&error) => {
            tracing::warn!(%error, "overdue holds could not be ended together, ending them one by one");
        }
        Err(error) => return Err(error),
    }
    let overdue = db::Single::<HoldId>::find_by_statement(sql!(
        "SELECT id AS value FROM hold WHERE status = 'ACTIVE' AND deadline <= (SELECT clock_timestamp())
         ORDER BY deadline LIMIT $1",
        EXPIRED_A_PASS
    ))
    .all(db.pool())
    .await?;
    let (mut ended, mut deltas) = (0, Vec::new());
    for hold in overdue.into_iter().map(|row| row.value) {
        match db::repeating(|| expire_one(db, hold)).await {
            Ok(Some(found)) => {
                ended += 1;
                deltas.extend(found);
            }
            Ok(None) => {}
            Err(error) => tracing::warn!(hold.id = %hold, %error, "an overdue hold could not be ended yet"),
        }
    }
    Ok((ended, deltas))
}

async fn expire_batch(db: &Db) -> Result<(usize, Vec<Arc<SeatsDelta>>), ReleaseError> {
    #[derive(FromQueryResult)]
    struct Overdue {
        id: HoldId,
        event_id: EventId,
    }
    let tx = db.begin("holds_expire").await?;
    let overdue = Overdue::find_by_statement(sql!(
        "SELECT id, event_id FROM hold WHERE status = 'ACTIVE' AND deadline <= (SELECT clock_timestamp())
         ORDER BY deadline LIMIT $1 FOR NO KEY UPDATE SKIP LOCKED",
        EXPIRED_A_PASS
    ))
    .all(&*tx)
    .await?;
    if overdue.is_empty() {
        tx.rollback().await?;
        return Ok((0, Vec::new()));
    }
    let written = tx
        .execute_raw(sql!(
            "UPDATE hold SET status = 'EXPIRED' WHERE id = ANY ($1) AND status = 'ACTIVE'",
            overdue.iter().map(|hold| hold.id.0).collect::<Vec<_>>()
        ))
        .await?
        .rows_affected();
    super::batch::expect_rows("holds expired", overdue.len(), written)?;
    let items: Vec<Items> =
        overdue.iter().map(|hold| Items { event: hold.event_id, hold: hold.id, booking: None }).collect();
    // Seats that someone else has by now are left alone: it never says that they are not all there.
    let bump = shift(&tx, &items, Shift::Release).await?.unwrap_or_default();
    let told = overdue.iter().map(|hold| told(hold.event_id, hold.id, HoldState::Expired)).collect();
    let deltas = counters::bump_and_tell(&tx, bump, told).await?;
    tx.commit().await?;
    Ok((overdue.len(), deltas))
}

/// Ends a hold if it is overdue and nobody else is at it.
pub(super) async fn expire_one(db: &Db, hold: HoldId) -> Result<Option<Vec<Arc<SeatsDelta>>>, ReleaseError> {
    let tx = db.begin("hold_expire").await?;
    let row = LockedHold::find_by_statement(sql!(
        "SELECT id, event_id, buyer, status, deadline, total_minor, currency FROM hold
         WHERE id = $1 AND status = 'ACTIVE' FOR NO KEY UPDATE SKIP LOCKED",
        hold
    ))
    .one(&*tx)
    .await?;
    let Some(row) = row else {
        tx.rollback().await?;
        return Ok(None);
    };
    if row.status_at(db::clock(&*tx).await?) != HoldState::Expired {
        tx.rollback().await?;
        return Ok(None);
    }
    let deltas = end(&tx, &row, HoldEvent::Expire).await?;
    tx.commit().await?;
    Ok(Some(deltas))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_is_decided() {
        use HoldState::{Active, Converted, Expired, Released};
        let events = [HoldEvent::Convert, HoldEvent::Release, HoldEvent::Expire, HoldEvent::ConfirmLate];
        let table = [
            (Active, [Some(Converted), Some(Released), Some(Expired), None]),
            (Converted, [None, Some(Released), None, None]),
            (Released, [None, None, None, Some(Converted)]),
            (Expired, [None, None, None, Some(Converted)]),
        ];
        assert_eq!(table.map(|(state, _)| state).as_slice(), HoldState::ALL);
        for (state, expected) in table {
            assert_eq!(events.map(|event| next(state, event).ok()), expected, "{state}");
        }
    }
}
