//! Watching a seat map. The executor judges who asks and answers first; what follows is the same for all who asked the
//! same thing, so it is rendered once and shared.

use super::objects::{SeatChange, SeatMapDelta, SeatMapResync, SeatMapSnapshot, SeatMapUpdate, TierChange, status_of};
use crate::seatmap::{Move, Projection};
use async_graphql::{Context, ID, Result};
use parterre_entity::{EventId, event};
use parterre_schema::scalars::SeatMapVersion;
use parterre_schema::{LocalId, SeatMapResyncReason};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::broadcast::{Receiver, error::RecvError};

/// An update for the executor to render as a subscription asks for it: it is answered with this and nothing else.
#[derive(Debug)]
pub struct Render(pub(super) SeatMapUpdate);

/// Where a subscription that has answered first leaves what is to follow.
#[derive(Debug, Default)]
pub struct Handover(Mutex<Option<MapWatch>>);

impl Handover {
    pub(super) fn leave(&self, watch: MapWatch) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(watch);
    }

    /// What is to follow, if anything is.
    pub fn take(&self) -> Option<MapWatch> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// One who watches a map.
#[derive(Debug)]
pub struct MapWatch {
    event: EventId,
    map: Arc<Projection>,
    sections: Option<Vec<i16>>,
    /// The last version told.
    version: SeatMapVersion,
    moves: Receiver<Arc<Move>>,
    _counted: Counted,
}

/// One more who watches, for the metrics.
#[derive(Debug)]
struct Counted;

impl Counted {
    fn more() -> Self {
        metrics::gauge!("parterre_seatmap_watchers").increment(1.0);
        Self
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        metrics::gauge!("parterre_seatmap_watchers").decrement(1.0);
    }
}

/// What comes next.
#[derive(Debug)]
pub enum Next {
    /// Something that was asked for changed.
    Moved {
        /// The version told before.
        from: SeatMapVersion,
        /// What changed.
        told: Arc<Move>,
    },
    /// So much was missed that only a new subscription helps. Nothing comes after it.
    TooSlow(Render),
}

impl MapWatch {
    /// Begins after a version that somebody has, if it is known, and else with the whole map. The first update, if there is
    /// one, and what to go on with.
    pub(super) async fn begin(
        ctx: &Context<'_>,
        (event, map): (&event::Model, Arc<Projection>),
        sections: Option<Vec<i16>>,
        after: Option<SeatMapVersion>,
    ) -> Result<(Option<SeatMapUpdate>, Self)> {
        let resumed = after.and_then(|after| Some((map.watch_after(&after.0)?, after)));
        if let Some(((missed, moves), version)) = resumed {
            let mut watch = Self { event: event.id, map, sections, version, moves, _counted: Counted::more() };
            let first = watch.concerns(&missed).then(|| watch.delta(&watch.version, &missed).0);
            if first.is_some() {
                watch.version = SeatMapVersion(missed.version);
            }
            return Ok((first, watch));
        }
        let (view, moves) = map.watch();
        let snapshot = SeatMapSnapshot::new(ctx, event, (map.layout.as_ref(), &view), sections.as_deref()).await?;
        let version = SeatMapVersion(view.version);
        let watch = Self { event: event.id, map, sections, version, moves, _counted: Counted::more() };
        Ok((Some(SeatMapUpdate::Snapshot(snapshot)), watch))
    }

    /// Waits for what comes next. None: the map is not kept any more.
    pub async fn next(&mut self) -> Option<Next> {
        loop {
            match self.moves.recv().await {
                Ok(told) if self.concerns(&told) => {
                    let to = SeatMapVersion(told.version.clone());
                    let from = std::mem::replace(&mut self.version, to);
                    return Some(Next::Moved { from, told });
                }
                Ok(_) => {}
                Err(RecvError::Lagged(_)) => {
                    metrics::counter!("parterre_seatmap_resyncs_total", "reason" => "slow_consumer").increment(1);
                    let reason = SeatMapResyncReason::SlowConsumer;
                    let resync = SeatMapResync { version: self.version.clone(), reason };
                    return Some(Next::TooSlow(Render(SeatMapUpdate::Resync(resync))));
                }
                Err(RecvError::Closed) => return None,
            }
        }
    }

    fn wants(&self, section: i16) -> bool {
        self.sections.as_ref().is_none_or(|list| list.contains(&section))
    }

    /// Whether there is something in a move that was asked for.
    fn concerns(&self, told: &Move) -> bool {
        let changed = !told.tiers.is_empty() || told.seats.iter().any(|(_, section, _)| self.wants(*section));
        changed && self.version.0 != told.version
    }

    /// A move as this watcher sees it.
    #[must_use]
    pub fn delta(&self, from: &SeatMapVersion, told: &Move) -> Render {
        let layout = self.map.layout.as_ref();
        let seats = told.seats.iter().filter(|(_, section, _)| self.wants(*section));
        let change = |(seat, section, letter): &(i32, i16, char)| SeatChange {
            seat_id: ID(layout.map_or_else(|| seat.to_string(), |layout| layout.seat_id(*seat))),
            section_id: LocalId::Section.encode(self.event, *section),
            status: status_of(*letter),
        };
        let tier = |(tier, available): &(i16, i32)| TierChange {
            tier_id: LocalId::Tier.encode(self.event, *tier),
            available: *available,
        };
        let to = (SeatMapVersion(told.version.clone()), told.as_of_ms);
        let (changes, tiers) = (seats.map(change).collect(), told.tiers.iter().map(tier).collect());
        Render(SeatMapUpdate::Delta(SeatMapDelta::new(from.clone(), to, changes, tiers)))
    }
}
