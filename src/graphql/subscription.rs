//! Streams. Each sends where things stand first, then what changes, and ends with the server.

use super::errors::Failure;
use super::inputs::of_kind;
use super::objects::{
    Booking, SeatChange, SeatMapDelta, SeatMapResync, SeatMapSnapshot, SeatMapUpdate, TierChange, WaitingRoom,
    status_of,
};
use super::query::{event_for, own_booking, waiting_event, wanted_sections};
use super::{services, viewer};
use crate::bus::Hint;
use crate::seatmap::{Move, Projection};
use crate::waiting::{Standing, WaitingError};
use async_graphql::{Context, ID, Result, Subscription as GraphqlSubscription};
use futures_util::{Stream, StreamExt};
use parterre_entity::{BookingId, EventId, event};
use parterre_schema::scalars::SeatMapVersion;
use parterre_schema::{Kind, LocalId, SeatMapResyncReason};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::RecvError;

/// Streams.
#[derive(Clone, Copy, Debug)]
pub struct Subscription;

/// One message for a refused id, whether it is unknown or somebody else's.
fn refused() -> Failure {
    Failure::BadInput("there is no such object".to_owned())
}

/// Streams. Each sends where things stand first, then what changes.
#[GraphqlSubscription]
impl Subscription {
    /// An event's seat map: a snapshot first, then deltas, at most ten a second, each starting at the version of the
    /// message before. Public, from memory, approximate by contract.
    async fn seat_map_changed<'ctx>(
        &self,
        ctx: &Context<'ctx>,
        #[graphql(desc = "The event.")] event_id: ID,
        #[graphql(desc = "Only these sections; null: all.")] section_ids: Option<Vec<ID>>,
        #[graphql(desc = "The last version you have: what you missed follows, or a snapshot.")] after_version: Option<
            SeatMapVersion,
        >,
    ) -> Result<impl Stream<Item = Result<SeatMapUpdate>> + 'ctx> {
        let id = EventId(of_kind(Kind::Event, &event_id).ok_or_else(refused)?);
        let event = event_for(ctx, id).await?.ok_or_else(refused)?;
        let map = services(ctx).seat_maps.of(id).await.map_err(Failure::from)?.ok_or_else(refused)?;
        let sections = wanted_sections(id, map.layout.as_deref(), section_ids)?;
        let watch = Watch { event, map, sections, after: after_version };
        let shutdown = services(ctx).shutdown.clone();
        Ok(watch.stream(ctx.clone()).take_until(shutdown.cancelled_owned()))
    }

    /// A buyer's own booking: as it is now, then whenever it, its payment, refunds or tickets change.
    async fn booking_updated<'ctx>(
        &self,
        ctx: &Context<'ctx>,
        id: ID,
    ) -> Result<impl Stream<Item = Result<Booking>> + 'ctx> {
        viewer(ctx)?;
        let id = BookingId(of_kind(Kind::Booking, &id).ok_or_else(refused)?);
        let mut hints = services(ctx).bus.subscribe();
        let first = own_booking(ctx, id).await?.ok_or_else(refused)?;
        let ctx = ctx.clone();
        let shutdown = services(&ctx).shutdown.clone();
        let stream = async_stream::stream! {
            yield Ok(first);
            loop {
                let concerned = match hints.recv().await {
                    Ok(Hint::Booking(changed)) => changed == id,
                    Ok(Hint::Gap) | Err(RecvError::Lagged(_)) => true,
                    Ok(Hint::Seats(_) | Hint::Admitted { .. } | Hint::AdmissionEnded(_)) => false,
                    Err(RecvError::Closed) => break,
                };
                if !concerned {
                    continue;
                }
                match own_booking(&ctx, id).await {
                    Ok(Some(booking)) => yield Ok(booking),
                    Ok(None) => break,
                    Err(failure) => {
                        yield Err(failure.into());
                        break;
                    }
                }
            }
        };
        Ok(stream.take_until(shutdown.cancelled_owned()))
    }

    /// Where the buyer stands in an event's waiting room: now, then whenever that changes; at once when let in. Renews the
    /// admission for as long as it is open. Join first.
    async fn waiting_room_updated<'ctx>(
        &self,
        ctx: &Context<'ctx>,
        event_id: ID,
    ) -> Result<impl Stream<Item = Result<WaitingRoom>> + 'ctx> {
        let viewer = viewer(ctx)?.clone();
        let id = EventId(of_kind(Kind::Event, &event_id).ok_or_else(refused)?);
        if !waiting_event(ctx, id).await? {
            return Err(refused().into());
        }
        let waiting = services(ctx).waiting.clone();
        let shutdown = services(ctx).shutdown.clone();
        let stream = async_stream::stream! {
            let mut told: Option<Standing> = None;
            loop {
                // Listening begins before looking, so that no admission is missed between the two.
                let watcher = waiting.watch(id, &viewer.subject).await;
                let pause = match waiting.find(id, &viewer.subject).await {
                    Ok(Some(standing)) => {
                        let pause = standing.poll_after;
                        if told.as_ref().is_none_or(|told| standing.differs(told)) {
                            yield Ok(WaitingRoom::of(id, standing.clone()));
                            told = Some(standing);
                        }
                        pause
                    }
                    Ok(None) => {
                        let message = "you are not in this event's waiting room: join it, then subscribe again";
                        yield Err(Failure::BadInput(message.to_owned()).into());
                        break;
                    }
                    // A queue that is away may come back with everyone in it.
                    Err(WaitingError::Queue(_)) => Duration::from_secs(1),
                    Err(error) => {
                        yield Err(Failure::from(error).into());
                        break;
                    }
                };
                match watcher {
                    Ok(Some(mut watcher)) => watcher.changed(pause).await,
                    Ok(None) | Err(_) => tokio::time::sleep(pause).await,
                }
            }
        };
        Ok(stream.take_until(shutdown.cancelled_owned()))
    }
}

/// One who watches a map.
struct Watch {
    event: event::Model,
    map: Arc<Projection>,
    sections: Option<Vec<i16>>,
    after: Option<SeatMapVersion>,
}

impl Watch {
    fn stream(self, ctx: Context<'_>) -> impl Stream<Item = Result<SeatMapUpdate>> + '_ {
        async_stream::stream! {
            let resumed = self.after.as_ref().and_then(|after| Some((after, self.map.watch_after(&after.0)?)));
            let (mut version, mut moves) = if let Some((after, (missed, moves))) = resumed {
                let delta = self.delta(after, &missed);
                let version = delta.as_ref().map_or_else(|| after.clone(), |delta| delta.version.clone());
                if let Some(delta) = delta {
                    yield Ok(SeatMapUpdate::Delta(delta));
                }
                (version, moves)
            } else {
                let (view, moves) = self.map.watch();
                yield self.snapshot(&ctx, &view).await;
                (SeatMapVersion(view.version), moves)
            };
            loop {
                match moves.recv().await {
                    Ok(told) => {
                        if let Some(delta) = self.delta(&version, &told) {
                            version = delta.version.clone();
                            yield Ok(SeatMapUpdate::Delta(delta));
                        }
                    }
                    Err(RecvError::Lagged(_)) => {
                        metrics::counter!("parterre_seatmap_resyncs_total", "reason" => "slow_consumer").increment(1);
                        let reason = SeatMapResyncReason::SlowConsumer;
                        yield Ok(SeatMapUpdate::Resync(SeatMapResync { version: version.clone(), reason }));
                        break;
                    }
                    Err(RecvError::Closed) => break,
                }
            }
        }
    }

    async fn snapshot(&self, ctx: &Context<'_>, view: &crate::seatmap::View) -> Result<SeatMapUpdate> {
        let of = (self.map.layout.as_ref(), view);
        let snapshot = SeatMapSnapshot::new(ctx, &self.event, of, self.sections.as_deref()).await?;
        Ok(SeatMapUpdate::Snapshot(snapshot))
    }

    /// What of a move this watcher asked for; none if there is nothing.
    fn delta(&self, from: &SeatMapVersion, told: &Move) -> Option<SeatMapDelta> {
        let layout = self.map.layout.as_ref();
        let wanted = |section: i16| self.sections.as_ref().is_none_or(|list| list.contains(&section));
        let changes: Vec<SeatChange> = told
            .seats
            .iter()
            .filter(|(_, section, _)| wanted(*section))
            .map(|(seat, section, letter)| SeatChange {
                seat_id: ID(layout.map_or_else(|| seat.to_string(), |layout| layout.seat_id(*seat))),
                section_id: LocalId::Section.encode(self.event.id, *section),
                status: status_of(*letter),
            })
            .collect();
        let tier_changes: Vec<TierChange> = told
            .tiers
            .iter()
            .map(|(tier, available)| TierChange {
                tier_id: LocalId::Tier.encode(self.event.id, *tier),
                available: *available,
            })
            .collect();
        if (changes.is_empty() && tier_changes.is_empty()) || *from.0 == told.version {
            return None;
        }
        let to = (SeatMapVersion(told.version.clone()), told.as_of_ms);
        Some(SeatMapDelta::new(from.clone(), to, changes, tier_changes))
    }
}
