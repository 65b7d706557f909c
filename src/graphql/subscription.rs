//! Streams. Each sends where things stand first, then what changes, and ends with the server.

use super::errors::Failure;
use super::inputs::of_kind;
use super::objects::{Booking, SeatMapUpdate, WaitingRoom};
use super::query::{own_booking, recent_event, wanted_sections};
use super::watch::{Handover, MapWatch, Render};
use super::{services, viewer};
use crate::bus::Hint;
use crate::waiting::{Standing, WaitingError};
use async_graphql::{Context, ID, Result, Subscription as GraphqlSubscription};
use futures_util::stream::BoxStream;
use futures_util::{Stream, StreamExt, stream};
use parterre_entity::{BookingId, EventId};
use parterre_schema::Kind;
use parterre_schema::scalars::SeatMapVersion;
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
    ) -> Result<BoxStream<'ctx, Result<SeatMapUpdate>>> {
        if let Some(Render(update)) = ctx.data_opt::<Render>() {
            return Ok(stream::iter([Ok(update.clone())]).boxed());
        }
        let id = EventId(of_kind(Kind::Event, &event_id).ok_or_else(refused)?);
        let event = recent_event(ctx, id).await?.ok_or_else(refused)?;
        let map = services(ctx).seat_maps.of(id).await.map_err(Failure::from)?.ok_or_else(refused)?;
        let sections = wanted_sections(id, map.layout.as_deref(), section_ids)?;
        let (first, watch) = MapWatch::begin(ctx, (&event, map), sections, after_version).await?;
        // What follows is told by whoever carries the stream.
        let carrier = ctx.data_opt::<Arc<Handover>>();
        carrier.ok_or_else(|| Failure::Internal("a map is watched and nobody carries it".to_owned()))?.leave(watch);
        Ok(stream::iter(first).map(Ok).boxed())
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
        if recent_event(ctx, id).await?.is_none() {
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
