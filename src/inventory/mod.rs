//! The one writer of seat and tier state, and of holds.
//!
//! Invariants: a seat of an event has at most one live owner; a group is held whole or not at all; a hold's deadline
//! never moves; a tier's counts are the sums of its items. The transaction that gives seats away is `batch.rs`; who
//! gets what is decided in `rules.rs`, which knows no database and no clock. This room does not know of money.

mod batch;
mod best;
mod counters;
mod holds;
mod lanes;
mod late;
mod retention;
mod rules;
mod shift;
mod stock;

pub use batch::lock_quota;
pub use best::{Best, nearest};
pub use counters::{Bump, TIERS, bump};
pub use holds::{HoldEvent, InvalidTransition, LockedHold, ReleaseError, lock, next, step};
pub use lanes::{LaneError, Lanes, NoLanes};
pub use late::{Gone, sell_late};
pub use retention::{HOLDS_KEPT, KEYS_KEPT, Swept};
pub use rules::{Conflict, Granted, HoldRequest, NewHold, Outcome, Refusal, SeatRow};
pub use shift::{Items, NotAllHeld, Shift, shift};
pub use stock::{
    BelowTaken, TierSpec, block_seats, clear_tiers, create_seats, create_section_counters, create_tiers, set_tiers,
};

use crate::bus::{Bus, SeatsDelta};
use crate::db::{Db, repeating};
use crate::wake::Wake;
use chrono::{DateTime, Utc};
use parterre_entity::{EventId, HoldId, HoldState, ItemState, hold, hold_item};
use sea_orm::{ColumnTrait, DbErr, EntityTrait, QueryFilter, QueryOrder};
use std::sync::Arc;

/// A hold and its items.
#[derive(Clone, Debug, PartialEq)]
pub struct Hold {
    /// The row.
    pub row: hold::Model,
    /// What it covers, seats first, ascending.
    pub items: Vec<hold_item::Model>,
}

impl Hold {
    /// Where it stands at a time.
    #[must_use]
    pub fn status_at(&self, now: DateTime<Utc>) -> HoldState {
        match self.row.status {
            HoldState::Active if self.row.deadline <= now => HoldState::Expired,
            status => status,
        }
    }
}

/// How a hold request ended.
#[derive(Clone, Debug)]
pub enum Answer {
    /// All of it is held.
    Held {
        /// The hold.
        hold: Hold,
        /// Whether an earlier request with this key had made it.
        replayed: bool,
    },
    /// Nothing is held.
    Refused(Refusal),
}

/// Why a hold request has no answer.
#[derive(Debug, thiserror::Error)]
pub enum HoldError {
    /// The lane could not decide.
    #[error(transparent)]
    Lane(#[from] LaneError),
    /// Reading the hold failed.
    #[error(transparent)]
    Database(#[from] DbErr),
}

/// Holds: made, released, expired, read.
#[derive(Debug)]
pub struct Inventory {
    db: Db,
    bus: Arc<dyn Bus>,
    outbox: Wake,
    lanes: Lanes,
}

impl Inventory {
    /// With the lanes of this process.
    #[must_use]
    pub fn new(db: &Db, bus: &Arc<dyn Bus>, outbox: &Wake, lanes: Lanes) -> Self {
        Self { db: db.clone(), bus: Arc::clone(bus), outbox: outbox.clone(), lanes }
    }

    /// Holds all that is asked for, or nothing.
    pub async fn hold(&self, request: HoldRequest) -> Result<Answer, HoldError> {
        let (event, id, buyer) = (request.event, request.hold, request.buyer.clone());
        metrics::counter!("parterre_hold_attempts_total").increment(1);
        let started = std::time::Instant::now();
        let asked = self.lanes.ask(request).await;
        metrics::histogram!("parterre_hold_seconds").record(started.elapsed());
        let (outcome, at) = asked?;
        match outcome {
            Outcome::Held(new) => {
                metrics::counter!("parterre_holds_total", "outcome" => "held").increment(1);
                Ok(Answer::Held { hold: as_written(event, id, buyer, new, at), replayed: false })
            }
            Outcome::Replayed(id) => {
                metrics::counter!("parterre_holds_total", "outcome" => "replayed").increment(1);
                let hold = self.read(id).await?.ok_or_else(|| DbErr::RecordNotFound(format!("hold {id}")))?;
                Ok(Answer::Held { hold, replayed: true })
            }
            Outcome::Refused(refusal) => {
                if let Refusal::SeatsUnavailable(conflicts) | Refusal::SoldOut(conflicts) = &refusal {
                    let count = u64::try_from(conflicts.len().max(1)).unwrap_or(u64::MAX);
                    metrics::counter!("parterre_hold_conflicts_total").increment(count);
                }
                metrics::counter!("parterre_holds_total", "outcome" => "refused").increment(1);
                Ok(Answer::Refused(refusal))
            }
        }
    }

    /// What an earlier request with the same key got, if there was one. Looks, and asks no lane.
    pub async fn replay(&self, request: &HoldRequest) -> Result<Option<Answer>, HoldError> {
        let Some((fingerprint, hold)) = holds::known_key(&self.db, request).await? else { return Ok(None) };
        if fingerprint != request.fingerprint {
            return Ok(Some(Answer::Refused(Refusal::KeyReused)));
        }
        let hold = self.read(hold).await?.ok_or_else(|| DbErr::RecordNotFound(format!("hold {hold}")))?;
        Ok(Some(Answer::Held { hold, replayed: true }))
    }

    /// A hold without its items, whoever's it is.
    pub async fn row(&self, id: HoldId) -> Result<Option<hold::Model>, DbErr> {
        hold::Entity::find_by_id(id).one(self.db.pool()).await
    }

    /// A hold with its items, whoever's it is.
    pub async fn read(&self, id: HoldId) -> Result<Option<Hold>, DbErr> {
        let Some(row) = self.row(id).await? else { return Ok(None) };
        let items = hold_item::Entity::find()
            .filter(hold_item::Column::HoldId.eq(id))
            .order_by_asc(hold_item::Column::ItemNo)
            .all(self.db.pool())
            .await?;
        Ok(Some(Hold { row, items }))
    }

    /// Gives a buyer's hold back; one that ended already stays as it is.
    pub async fn release(&self, hold: HoldId, buyer: &str) -> Result<(), ReleaseError> {
        let deltas = repeating(|| holds::release(&self.db, hold, buyer)).await?;
        self.publish(deltas);
        Ok(())
    }

    /// Ends a batch of overdue holds. Returns how many.
    pub async fn expire_some(&self) -> Result<usize, ReleaseError> {
        let (ended, deltas) = holds::expire_some(&self.db).await?;
        self.publish(deltas);
        metrics::counter!("parterre_holds_expired_total").increment(u64::try_from(ended).unwrap_or(0));
        Ok(ended)
    }

    /// Ends one hold if it is overdue and nobody else is at it.
    pub async fn expire(&self, hold: HoldId) -> Result<bool, ReleaseError> {
        let deltas = repeating(|| holds::expire_one(&self.db, hold)).await?;
        let ended = deltas.is_some();
        self.publish(deltas.unwrap_or_default());
        Ok(ended)
    }

    /// Removes some keys of holds that are older than `kept`, which is never less than `KEYS_KEPT` outside of tests.
    pub async fn forget_keys(&self, kept: chrono::Duration) -> Result<Swept, DbErr> {
        retention::forget_keys(&self.db, kept).await
    }

    /// Removes some holds that ended without a booking more than `kept` ago.
    pub async fn forget_holds(&self, kept: chrono::Duration) -> Result<Swept, DbErr> {
        retention::forget_holds(&self.db, kept).await
    }

    /// Tells everyone of a committed change.
    pub fn publish(&self, deltas: Vec<Arc<SeatsDelta>>) {
        lanes::publish(&*self.bus, &self.outbox, deltas);
    }
}

/// The hold just granted, as its rows read.
fn as_written(event: EventId, id: HoldId, buyer: String, new: NewHold, at: DateTime<Utc>) -> Hold {
    let items = (0_i16..)
        .zip(&new.items)
        .map(|(item_no, item)| hold_item::Model {
            hold_id: id,
            item_no,
            event_id: event,
            seat_no: item.seat,
            tier_no: item.tier,
            quantity: item.quantity,
            unit_minor: item.unit_minor,
            state: ItemState::Held,
        })
        .collect();
    let row = hold::Model {
        id,
        event_id: event,
        buyer,
        status: HoldState::Active,
        deadline: new.deadline,
        total_minor: new.total_minor,
        currency: new.currency,
        created_at: at,
    };
    Hold { row, items }
}
