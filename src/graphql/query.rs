//! Every read. What does not exist, is malformed or is somebody else's is null, without an error.

use super::errors::Failure;
use super::inputs::{of_kind, search_request, status_word};
use super::objects::{
    Booking, BookingConnection, Event, EventSearchConnection, EventSearchEdge, Facet, FacetBucket, Hold,
    HoldConnection, Layout, Node, Organizer, PageInfo, Payment, Performer, Refund, SeatMap, Ticket, Venue, WaitingRoom,
    read_page, read_search_cursor, search_cursor,
};
use super::{Nullable, loaders, services, viewer, viewer_opt};
use crate::booking;
use async_graphql::{Context, ID, Object, Result};
use parterre_entity::{
    BookingId, BookingState, EventId, EventState, HoldId, HoldState, LayoutId, OrganizationId, PaymentId, PerformerId,
    RefundId, TicketId, VenueId, event,
};
use parterre_schema::{
    BookingStatus, EventFilter, EventSort, FacetField, HoldStatus, Kind, LocalId, limits, parse_node_id,
};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;
use uuid::Uuid;

/// Reads.
#[derive(Clone, Copy, Debug)]
pub struct Query;

/// An event, unless it is another organization's draft.
pub(super) async fn event_for(ctx: &Context<'_>, id: EventId) -> Result<Option<event::Model>, Failure> {
    Ok(loaders(ctx).load_one(id).await?.filter(|row| may_see(ctx, row)))
}

/// The same as it was a moment ago: for what so many ask at once that none of them may cost the database anything.
pub(super) async fn recent_event(ctx: &Context<'_>, id: EventId) -> Result<Option<Arc<event::Model>>, Failure> {
    Ok(services(ctx).catalogue.recent(id).await?.filter(|row| may_see(ctx, row)))
}

fn may_see(ctx: &Context<'_>, row: &event::Model) -> bool {
    row.state != EventState::Draft || viewer_opt(ctx).is_some_and(|viewer| viewer.is_of(row.organization_id))
}

/// Every read. What does not exist, is malformed or is somebody else's is null, without an error.
#[Object]
impl Query {
    /// Any object by its id.
    async fn node(&self, ctx: &Context<'_>, id: ID) -> Nullable<Node> {
        node(ctx, &id).await.map_err(Into::into).transpose()
    }

    /// Objects by their ids, in order; null where there is none. At most 100.
    async fn nodes(&self, ctx: &Context<'_>, ids: Vec<ID>) -> Result<Vec<Option<Node>>> {
        if ids.len() > limits::LIST_MAX {
            return Err(Failure::BadInput(format!("at most {} ids", limits::LIST_MAX)).into());
        }
        Ok(futures_util::future::try_join_all(ids.iter().map(|id| node(ctx, id))).await?)
    }

    /// Finds events: free text with typos and prefixes, filters, facets. A few seconds behind the catalogue;
    /// `SEARCH_UNAVAILABLE` while the index is being rebuilt.
    async fn search_events(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "What people typed: title, performers, venue, city, category. At most 200 characters.")] query: Option<String>,
        #[graphql(desc = "What must hold.")] filter: Option<EventFilter>,
        #[graphql(desc = "The order.", default_with = "Some(EventSort::Relevance)")] sort: Option<EventSort>,
        #[graphql(desc = "1 to 100.", default_with = "Some(20)")] first: Option<i32>,
        #[graphql(desc = "A cursor of the page before.")] after: Option<String>,
    ) -> Nullable<EventSearchConnection> {
        let asked = (query, filter, sort.unwrap_or(EventSort::Relevance));
        Some(search(ctx, asked, first, after).await.map_err(Into::into))
    }

    /// An event by exactly one of id and slug. A draft is its organization's own.
    async fn event(&self, ctx: &Context<'_>, id: Option<ID>, slug: Option<String>) -> Nullable<Event> {
        let read = async {
            match (id, slug) {
                (Some(id), None) => match of_kind(Kind::Event, &id) {
                    Some(id) => event_for(ctx, EventId(id)).await,
                    None => Ok(None),
                },
                (None, Some(slug)) => {
                    Ok(services(ctx).catalogue.event_by_slug(&slug).await?.filter(|row| may_see(ctx, row)))
                }
                _ => Err(Failure::BadInput("give either id or slug".to_owned())),
            }
        };
        read.await.map(|row| row.map(Event)).map_err(Into::into).transpose()
    }

    /// A venue.
    async fn venue(&self, ctx: &Context<'_>, id: ID) -> Nullable<Venue> {
        let id = VenueId(of_kind(Kind::Venue, &id)?);
        let row = loaders(ctx).load_one(id).await.map_err(Failure::from);
        row.map(|row| row.map(Venue)).map_err(Into::into).transpose()
    }

    /// A performer.
    async fn performer(&self, ctx: &Context<'_>, id: ID) -> Nullable<Performer> {
        let id = PerformerId(of_kind(Kind::Performer, &id)?);
        let found = services(ctx).catalogue.performers(&[id]).await.map_err(Failure::from);
        found.map(|mut found| found.remove(&id).map(Performer)).map_err(Into::into).transpose()
    }

    /// An event's seat map: from memory, approximate by contract, at most 2 seconds old. Sections that the event does not
    /// have are `BAD_USER_INPUT`.
    async fn seat_map(&self, ctx: &Context<'_>, event_id: ID, section_ids: Option<Vec<ID>>) -> Nullable<SeatMap> {
        let read = async {
            let Some(id) = of_kind(Kind::Event, &event_id).map(EventId) else { return Ok(None) };
            let Some(event) = recent_event(ctx, id).await? else { return Ok(None) };
            let Some(map) = services(ctx).seat_maps.of(id).await? else { return Ok(None) };
            let sections = wanted_sections(id, map.layout.as_deref(), section_ids)?;
            Ok::<_, Failure>(Some(SeatMap { event, layout: map.layout.clone(), view: map.view(), sections }))
        };
        read.await.map_err(Into::into).transpose()
    }

    /// A buyer's own hold, also when it ran out.
    async fn hold(&self, ctx: &Context<'_>, id: ID) -> Nullable<Hold> {
        let read = async {
            viewer(ctx)?;
            match of_kind(Kind::Hold, &id) {
                Some(id) => own_hold(ctx, HoldId(id)).await,
                None => Ok(None),
            }
        };
        read.await.map_err(Into::into).transpose()
    }

    /// A buyer's own booking by exactly one of id and code.
    async fn booking(&self, ctx: &Context<'_>, id: Option<ID>, code: Option<String>) -> Nullable<Booking> {
        let read = async {
            let viewer = viewer(ctx)?;
            match (id, code) {
                (Some(id), None) => match of_kind(Kind::Booking, &id) {
                    Some(id) => own_booking(ctx, BookingId(id)).await,
                    None => Ok(None),
                },
                (None, Some(code)) => Ok(services(ctx).bookings.by_code(&viewer.subject, &code).await?.map(Booking)),
                _ => Err(Failure::BadInput("give either id or code".to_owned())),
            }
        };
        read.await.map_err(Into::into).transpose()
    }

    /// A buyer's own bookings, newest first.
    async fn bookings(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only of this event.")] event_id: Option<ID>,
        #[graphql(desc = "Only these; null: all.")] status: Option<Vec<BookingStatus>>,
        #[graphql(desc = "1 to 100.", default_with = "Some(20)")] first: Option<i32>,
        #[graphql(desc = "A cursor of the page before.")] after: Option<String>,
    ) -> Nullable<BookingConnection> {
        let read = async {
            let viewer = viewer(ctx)?;
            let page = read_page(first, after.as_deref())?;
            let Some(event) = optional_event(event_id) else { return Ok(BookingConnection::new(Vec::new(), &page)) };
            let states: Vec<BookingState> = status.unwrap_or_default().into_iter().map(booking_state).collect();
            let reading = booking::Page { after: page.after, limit: page.limit() };
            let rows = services(ctx).bookings.of_buyer((&viewer.subject, event), &states, reading).await?;
            let mut entries = Vec::with_capacity(rows.len());
            for row in rows {
                if let Some(booking) = services(ctx).bookings.read(row.id).await? {
                    entries.push((row.id.0, Booking(booking)));
                }
            }
            Ok::<_, Failure>(BookingConnection::new(entries, &page))
        };
        Some(read.await.map_err(Into::into))
    }

    /// A buyer's own holds, newest first.
    async fn holds(
        &self,
        ctx: &Context<'_>,
        #[graphql(desc = "Only of this event.")] event_id: Option<ID>,
        #[graphql(desc = "Only these; null: all.")] status: Option<Vec<HoldStatus>>,
        #[graphql(desc = "1 to 100.", default_with = "Some(20)")] first: Option<i32>,
        #[graphql(desc = "A cursor of the page before.")] after: Option<String>,
    ) -> Nullable<HoldConnection> {
        let read = async {
            let viewer = viewer(ctx)?;
            let page = read_page(first, after.as_deref())?;
            let Some(event) = optional_event(event_id) else { return Ok(HoldConnection::new(Vec::new(), &page)) };
            let states: Vec<HoldState> = status.unwrap_or_default().into_iter().map(hold_state).collect();
            let reading = booking::Page { after: page.after, limit: page.limit() };
            let rows = services(ctx).bookings.holds_of_buyer((&viewer.subject, event), &states, reading).await?;
            let mut entries = Vec::with_capacity(rows.len());
            for row in rows {
                let items = services(ctx).bookings.items(row.id).await?;
                entries.push((row.id.0, Hold(crate::inventory::Hold { row, items })));
            }
            Ok::<_, Failure>(HoldConnection::new(entries, &page))
        };
        Some(read.await.map_err(Into::into))
    }

    /// An organization that sells.
    async fn organizer(&self, ctx: &Context<'_>, id: ID) -> Nullable<Organizer> {
        let id = OrganizationId(of_kind(Kind::Organizer, &id)?);
        let row = loaders(ctx).load_one(id).await.map_err(Failure::from);
        row.map(|row| row.map(Organizer)).map_err(Into::into).transpose()
    }

    /// A seating plan.
    async fn layout(&self, ctx: &Context<'_>, id: ID) -> Nullable<Layout> {
        let id = LayoutId(of_kind(Kind::Layout, &id)?);
        let row = loaders(ctx).load_one(id).await.map_err(Failure::from);
        row.map(|row| row.map(Layout)).map_err(Into::into).transpose()
    }

    /// Where the buyer stands in an event's waiting room. Null: not in it; join. Asking renews an admission.
    async fn waiting_room(&self, ctx: &Context<'_>, event_id: ID) -> Nullable<WaitingRoom> {
        let read = async {
            let viewer = viewer(ctx)?;
            let Some(id) = of_kind(Kind::Event, &event_id).map(EventId) else { return Ok(None) };
            if recent_event(ctx, id).await?.is_none() {
                return Ok(None);
            }
            let standing = services(ctx).waiting.find(id, &viewer.subject).await?;
            Ok::<_, Failure>(standing.map(|standing| WaitingRoom::of(id, standing)))
        };
        read.await.map_err(Into::into).transpose()
    }
}

/// The event of a filter: none given, or a well-formed one. `None`: an id that can't be any event's.
#[expect(clippy::option_option, reason = "not given and impossible are different answers")]
fn optional_event(id: Option<ID>) -> Option<Option<EventId>> {
    match id {
        None => Some(None),
        Some(id) => of_kind(Kind::Event, &id).map(|id| Some(EventId(id))),
    }
}

/// Numbers of the sections asked for.
pub(super) fn wanted_sections(
    event: EventId,
    layout: Option<&crate::catalogue::Layout>,
    ids: Option<Vec<ID>>,
) -> Result<Option<Vec<i16>>, Failure> {
    let Some(ids) = ids else { return Ok(None) };
    if ids.len() > limits::LAYOUT_SECTIONS_MAX {
        return Err(Failure::BadInput("too many sectionIds".to_owned()));
    }
    let count = layout.map_or(0, |layout| layout.drawing.section_names.len());
    let number = |id: &ID| {
        let number = LocalId::Section.decode(event, id).filter(|no| usize::try_from(*no).is_ok_and(|no| no < count));
        number.ok_or_else(|| Failure::BadInput("sectionIds has one that this event does not have".to_owned()))
    };
    ids.iter().map(number).collect::<Result<Vec<_>, _>>().map(Some)
}

async fn own_hold(ctx: &Context<'_>, id: HoldId) -> Result<Option<Hold>, Failure> {
    let Some(viewer) = viewer_opt(ctx) else { return Ok(None) };
    let hold = services(ctx).inventory.read(id).await?;
    Ok(hold.filter(|hold| hold.row.buyer == viewer.subject).map(Hold))
}

pub(super) async fn own_booking(ctx: &Context<'_>, id: BookingId) -> Result<Option<Booking>, Failure> {
    let booking = services(ctx).bookings.read(id).await?;
    Ok(booking.filter(|booking| is_own(ctx, booking)).map(Booking))
}

fn is_own(ctx: &Context<'_>, booking: &booking::Booking) -> bool {
    viewer_opt(ctx).is_some_and(|viewer| viewer.subject == booking.row.buyer)
}

async fn node(ctx: &Context<'_>, id: &ID) -> Result<Option<Node>, Failure> {
    let Some((kind, id)) = parse_node_id(id) else { return Ok(None) };
    Ok(match kind {
        Kind::Event => event_for(ctx, EventId(id)).await?.map(|row| Node::Event(Event(row))),
        Kind::Venue => loaders(ctx).load_one(VenueId(id)).await?.map(|row| Node::Venue(Venue(row))),
        Kind::Layout => loaders(ctx).load_one(LayoutId(id)).await?.map(|row| Node::Layout(Layout(row))),
        Kind::Performer => {
            let id = PerformerId(id);
            services(ctx).catalogue.performers(&[id]).await?.remove(&id).map(|row| Node::Performer(Performer(row)))
        }
        Kind::Organizer => loaders(ctx).load_one(OrganizationId(id)).await?.map(|row| Node::Organizer(Organizer(row))),
        // What is somebody's own is not looked for on behalf of nobody.
        Kind::Hold | Kind::Booking | Kind::Payment | Kind::Refund | Kind::Ticket if viewer_opt(ctx).is_none() => None,
        Kind::Hold => own_hold(ctx, HoldId(id)).await?.map(|hold| Node::Hold(Box::new(hold))),
        Kind::Booking => own_booking(ctx, BookingId(id)).await?.map(|booking| Node::Booking(Box::new(booking))),
        Kind::Payment => {
            let found = services(ctx).bookings.payment(PaymentId(id)).await?;
            found.filter(|(_, booking)| is_own(ctx, booking)).map(|(row, _)| Node::Payment(Box::new(Payment { row })))
        }
        Kind::Refund => {
            let found = services(ctx).bookings.refund(RefundId(id)).await?;
            found.filter(|(_, booking)| is_own(ctx, booking)).map(|(row, _)| Node::Refund(Box::new(Refund(row))))
        }
        Kind::Ticket => {
            let found = services(ctx).bookings.ticket(TicketId(id)).await?;
            let own = found.filter(|(_, booking)| is_own(ctx, booking));
            own.map(|(row, booking)| Node::Ticket(Box::new(Ticket { row, booking })))
        }
    })
}

const fn booking_state(status: BookingStatus) -> BookingState {
    match status {
        BookingStatus::PaymentPending => BookingState::PaymentPending,
        BookingStatus::Confirmed => BookingState::Confirmed,
        BookingStatus::Failed => BookingState::Failed,
        BookingStatus::Cancelling => BookingState::Cancelling,
        BookingStatus::Cancelled => BookingState::Cancelled,
        BookingStatus::RefundRequired => BookingState::RefundRequired,
        BookingStatus::Refunded => BookingState::Refunded,
    }
}

const fn hold_state(status: HoldStatus) -> HoldState {
    match status {
        HoldStatus::Active => HoldState::Active,
        HoldStatus::Converted => HoldState::Converted,
        HoldStatus::Released => HoldState::Released,
        HoldStatus::Expired => HoldState::Expired,
    }
}

async fn search(
    ctx: &Context<'_>,
    asked: (Option<String>, Option<EventFilter>, EventSort),
    first: Option<i32>,
    after: Option<String>,
) -> Result<EventSearchConnection, Failure> {
    let page = read_page(first, None)?;
    let after = after.as_deref().map(read_search_cursor).transpose()?;
    let is_scored = asked.2 == EventSort::Relevance
        && asked.0.as_deref().is_some_and(|text| !parterre_search::words(text).is_empty());
    let facets = ctx.look_ahead().field("facets").exists();
    let limit = usize::try_from(page.first).unwrap_or(0);
    let request = search_request(asked, (limit, after), viewer_opt(ctx), facets)?;
    let as_of = chrono::DateTime::from_timestamp(request.now, 0).unwrap_or_default();
    let found = services(ctx).discovery.search(request).await?;
    let ids: Vec<EventId> = found.hits.iter().map(|hit| EventId(hit.cursor.id)).collect();
    // All of them are known at once: nothing to gather, as the loaders would wait for.
    let rows = services(ctx).catalogue.events(&ids).await?;
    let edges: Vec<EventSearchEdge> = found
        .hits
        .iter()
        .filter_map(|hit| {
            // The index may lag: what the database hides or no longer has is left out.
            let row = rows.get(&EventId(hit.cursor.id)).filter(|row| may_see(ctx, row))?;
            let score = is_scored.then(|| f64::from(hit.score));
            Some(EventSearchEdge { cursor: search_cursor(hit.cursor), node: Event(row.clone()), score })
        })
        .collect();
    let page_info = PageInfo {
        has_next_page: found.has_more,
        has_previous_page: after.is_some(),
        start_cursor: found.hits.first().map(|hit| search_cursor(hit.cursor)),
        end_cursor: found.hits.last().map(|hit| search_cursor(hit.cursor)),
    };
    Ok(EventSearchConnection {
        nodes: edges.iter().map(|edge| edge.node.clone()).collect(),
        edges,
        page_info,
        total_count: Some(i32::try_from(found.total).unwrap_or(i32::MAX)),
        facets: if facets { facet_objects(ctx, &found.facets).await? } else { Vec::new() },
        as_of: as_of.into(),
    })
}

/// Values told of one facet, the most frequent.
const BUCKETS_MAX: usize = 50;

async fn facet_objects(ctx: &Context<'_>, facets: &parterre_search::Facets) -> Result<Vec<Facet>, Failure> {
    let top = |counts: &BTreeMap<String, u64>| {
        let mut counts: Vec<(&String, u64)> = counts.iter().map(|(value, count)| (value, *count)).collect();
        // Values ascend already, and a stable sort leaves those with the same count so.
        counts.sort_by_key(|(_, count)| Reverse(*count));
        counts.truncate(BUCKETS_MAX);
        counts.into_iter().map(|(value, count)| (value.clone(), count)).collect::<Vec<_>>()
    };
    let plain = |field: FacetField, counts: Vec<(String, u64)>| Facet {
        field,
        buckets: counts.into_iter().map(|(value, count)| bucket(value.clone(), value, count)).collect(),
    };
    let performers = top(&facets.performer);
    let ids: Vec<PerformerId> = performers.iter().filter_map(|(value, _)| uuid_of(value)).map(PerformerId).collect();
    let venues = top(&facets.venue);
    let venue_ids: Vec<VenueId> = venues.iter().filter_map(|(value, _)| uuid_of(value)).map(VenueId).collect();
    let catalogue = &services(ctx).catalogue;
    let (performer_names, venue_names) = tokio::try_join!(catalogue.performers(&ids), catalogue.venues(&venue_ids))?;
    let performer_label = |value: &str| {
        let name = uuid_of(value).and_then(|id| performer_names.get(&PerformerId(id)));
        name.map_or_else(|| value.to_owned(), |row| row.name.clone())
    };
    let venue_label = |value: &str| {
        let name = uuid_of(value).and_then(|id| venue_names.get(&VenueId(id)));
        name.map_or_else(|| value.to_owned(), |row| row.name.clone())
    };
    let statuses = facets.sale_status.iter().map(|(status, count)| (status_word(*status).to_owned(), *count)).collect();
    Ok(vec![
        plain(FacetField::City, top(&facets.city)),
        plain(FacetField::Country, top(&facets.country)),
        plain(FacetField::Category, top(&facets.category)),
        Facet {
            field: FacetField::Performer,
            buckets: performers
                .into_iter()
                .map(|(value, count)| bucket(value.clone(), performer_label(&value), count))
                .collect(),
        },
        Facet {
            field: FacetField::Venue,
            buckets: venues
                .into_iter()
                .map(|(value, count)| bucket(value.clone(), venue_label(&value), count))
                .collect(),
        },
        plain(FacetField::SaleStatus, top(&statuses)),
        plain(FacetField::Month, top(&facets.month)),
    ])
}

fn bucket(value: String, label: String, count: u64) -> FacetBucket {
    FacetBucket { value, label, count: i32::try_from(count).unwrap_or(i32::MAX) }
}

fn uuid_of(node: &str) -> Option<Uuid> {
    parse_node_id(node).map(|(_, id)| id)
}
