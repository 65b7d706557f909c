//! The counters that let a reader see what it missed: one a section, one for the tiers of an event together.
//!
//! Invariant: counters are the last rows a transaction locks, in key order, so their values have no gaps and follow the
//! order of commits. Everybody who changes a section waits for them, so between them and the commit nothing is written but
//! what tells of it; an edit of an event may write more, and keeps those who wait for its counters waiting.

use crate::bus::{SeatsDelta, SectionDelta, TiersDelta};
use crate::db::Transaction;
use crate::outbox::{self, Change, Topic};
use crate::sql;
use parterre_entity::EventId;
use sea_orm::{DbErr, FromQueryResult};
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// The counter of an event's tiers.
pub const TIERS: i16 = -1;

/// A seat's change for readers: number, status letter, and the deadline in milliseconds when held, else 0.
pub type SeatChange = (i32, char, i64);

/// What a transaction changed for readers, gathered until its end: whoever has one must hand it to `bump` just before the
/// commit, or roll back.
#[derive(Debug, Default)]
#[must_use = "readers never see what is not handed to `bump` before the commit"]
pub struct Bump {
    sections: BTreeMap<(EventId, i16), (Vec<SeatChange>, i32)>,
    tiers: BTreeMap<EventId, (Vec<(i16, i32)>, i32)>,
}

impl Bump {
    /// A seat changed; `remaining` is by how much the seats that may still be sold changed with it.
    pub(super) fn seat(&mut self, event: EventId, section: i16, change: SeatChange, remaining: i32) {
        let (changes, sum) = self.sections.entry((event, section)).or_default();
        changes.push(change);
        *sum += remaining;
    }

    /// A tier's count changed.
    pub(super) fn tier(&mut self, event: EventId, tier: i16, available: i32, remaining: i32) {
        let (changes, sum) = self.tiers.entry(event).or_default();
        changes.push((tier, available));
        *sum += remaining;
    }

    /// Both as one step for readers: of what changed twice they see how it ended.
    pub fn then(mut self, later: Self) -> Self {
        for (key, (changes, remaining)) in later.sections {
            let (known, sum) = self.sections.entry(key).or_default();
            known.retain(|(seat, ..)| changes.iter().all(|(changed, ..)| changed != seat));
            known.extend(changes);
            *sum += remaining;
        }
        for (event, (changes, remaining)) in later.tiers {
            let (known, sum) = self.tiers.entry(event).or_default();
            known.retain(|(tier, _)| changes.iter().all(|(changed, _)| changed != tier));
            known.extend(changes);
            *sum += remaining;
        }
        self
    }
}

/// Moves the counters and writes one outbox row an event. Returns what to publish after the commit.
pub async fn bump(tx: &Transaction, bump: Bump) -> Result<Vec<Arc<SeatsDelta>>, DbErr> {
    bump_and_tell(tx, bump, Vec::new()).await
}

/// The same, with further changes for the outbox.
pub(super) async fn bump_and_tell(
    tx: &Transaction,
    bump: Bump,
    mut changes: Vec<Change>,
) -> Result<Vec<Arc<SeatsDelta>>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        event_id: EventId,
        section_no: i16,
        version: i64,
    }
    let mut moves: BTreeMap<(Uuid, i16), i32> =
        bump.sections.iter().map(|((event, section), (_, remaining))| ((event.0, *section), *remaining)).collect();
    moves.extend(bump.tiers.iter().map(|(event, (_, remaining))| ((event.0, TIERS), *remaining)));
    if moves.is_empty() {
        outbox::append(&**tx, &changes).await?;
        return Ok(Vec::new());
    }
    let expected = moves.len();
    let events: Vec<Uuid> = moves.keys().map(|key| key.0).collect();
    let sections: Vec<i16> = moves.keys().map(|key| key.1).collect();
    let remaining: Vec<i32> = moves.into_values().collect();
    let rows = Row::find_by_statement(sql!(
        "WITH locked AS MATERIALIZED (
             SELECT counter.event_id, counter.section_no, moved.remaining
             FROM unnest($1::uuid[], $2::smallint[], $3::int[]) AS moved (event_id, section_no, remaining)
             CROSS JOIN LATERAL (
                 SELECT event_id, section_no FROM event_counter AS counter
                 WHERE counter.event_id = moved.event_id AND counter.section_no = moved.section_no
                 FOR NO KEY UPDATE) AS counter)
         UPDATE event_counter AS counter SET version = version + 1, remaining = counter.remaining + locked.remaining
         FROM locked WHERE counter.event_id = locked.event_id AND counter.section_no = locked.section_no
         RETURNING counter.event_id, counter.section_no, counter.version",
        events,
        sections,
        remaining
    ))
    .all(&**tx)
    .await?;
    super::batch::expect_rows("counters moved", expected, u64::try_from(rows.len()).unwrap_or(u64::MAX))?;
    let versions: BTreeMap<(EventId, i16), i64> =
        rows.into_iter().map(|row| ((row.event_id, row.section_no), row.version)).collect();
    let deltas = deltas(bump, &versions);
    for delta in &deltas {
        changes.push(Change {
            topic: Topic::Seats,
            event: Some(delta.event),
            subject: None,
            payload: serde_json::to_value(&**delta).map_err(|error| DbErr::Json(error.to_string()))?,
        });
    }
    outbox::append(&**tx, &changes).await?;
    Ok(deltas)
}

fn deltas(bump: Bump, versions: &BTreeMap<(EventId, i16), i64>) -> Vec<Arc<SeatsDelta>> {
    let version = |event, section| versions.get(&(event, section)).copied().unwrap_or_default();
    let mut by_event: BTreeMap<EventId, SeatsDelta> = BTreeMap::new();
    for ((event, section), (seats, _)) in bump.sections {
        let delta = by_event.entry(event).or_insert_with(|| SeatsDelta { event, sections: Vec::new(), tiers: None });
        delta.sections.push(SectionDelta { section, version: version(event, section), seats });
    }
    for (event, (available, _)) in bump.tiers {
        let delta = by_event.entry(event).or_insert_with(|| SeatsDelta { event, sections: Vec::new(), tiers: None });
        delta.tiers = Some(TiersDelta { version: version(event, TIERS), available });
    }
    by_event.into_values().map(Arc::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_twice_is_told_once_as_it_ended() {
        let event = EventId::new();
        let (mut first, mut second) = (Bump::default(), Bump::default());
        first.seat(event, 1, (7, 'H', 0), 0);
        first.seat(event, 1, (8, 'H', 0), 0);
        first.tier(event, 2, 5, -1);
        second.seat(event, 1, (7, 'S', 0), -1);
        second.seat(event, 3, (9, 'S', 0), -1);
        second.tier(event, 2, 4, -1);
        let both = first.then(second);
        assert_eq!(both.sections[&(event, 1)], (vec![(8, 'H', 0), (7, 'S', 0)], -1));
        assert_eq!(both.sections[&(event, 3)], (vec![(9, 'S', 0)], -1));
        assert_eq!(both.tiers[&event], (vec![(2, 4)], -2));
    }
}
