//! The catalogue's reads: by id, by list, by page. Pages are cut by id, so they stay put under change.

use super::{Catalogue, Frame, Layout, Seat};
use crate::db::Single;
use crate::sql;
use parterre_entity::{
    EventId, EventState, LayoutId, OrganizationId, PerformerId, VenueId, event, event_performer, event_tier,
    event_zone, layout, layout_seat, organization, performer, venue,
};
use parterre_schema::Currency;
use sea_orm::{
    ColumnTrait, Condition, ConnectionTrait, DbErr, EntityTrait, FromQueryResult, QueryFilter, QueryOrder, QuerySelect,
};
use std::collections::HashMap;
use std::sync::Arc;
use uuid::Uuid;

/// A slice of a list ordered by id, newest first.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Entries after this id.
    pub after: Option<Uuid>,
    /// How many, one more than shown to see whether there are more.
    pub limit: u64,
}

/// Which events of an organization.
#[derive(Clone, Copy, Debug, Default)]
pub struct EventFilter {
    /// Drafts too: for the organization itself.
    pub drafts: bool,
}

/// What an organization has, by name.
#[derive(Clone, Debug, Default)]
pub struct Names {
    /// Venues.
    pub venues: HashMap<String, VenueId>,
    /// Performers.
    pub performers: HashMap<String, Uuid>,
    /// Layouts by venue and name.
    pub layouts: HashMap<(VenueId, String), LayoutId>,
    /// Events and whether they are published.
    pub events: HashMap<String, (EventId, bool)>,
}

impl Catalogue {
    /// A layout, from memory where possible.
    pub async fn layout(&self, id: LayoutId) -> Result<Option<Arc<Layout>>, DbErr> {
        if let Some(layout) = self.layouts.get(&id).await {
            return Ok(Some(layout));
        }
        let Some(row) = layout::Entity::find_by_id(id).one(self.db.pool()).await? else { return Ok(None) };
        let seats = layout_seat::Entity::find()
            .filter(layout_seat::Column::LayoutId.eq(id))
            .order_by_asc(layout_seat::Column::SeatNo)
            .all(self.db.pool())
            .await?;
        let seats = seats
            .into_iter()
            .map(|seat| Seat {
                seat_id: seat.seat_id,
                section: seat.section_no,
                row: seat.row_name,
                number: seat.number,
                zone: seat.zone_no,
                accessible: seat.accessible,
                x: seat.x,
                y: seat.y,
                next: seat.next_no,
            })
            .collect();
        let layout = Arc::new(Layout::new(row, seats));
        self.layouts.insert(id, Arc::clone(&layout)).await;
        Ok(Some(layout))
    }

    /// The rows of a venue's layouts.
    pub async fn layouts_of(&self, venue: VenueId) -> Result<Vec<layout::Model>, DbErr> {
        layout::Entity::find()
            .filter(layout::Column::VenueId.eq(venue))
            .order_by_asc(layout::Column::Id)
            .limit(100)
            .all(self.db.pool())
            .await
    }

    /// Layout rows by id, without their seats.
    pub async fn layout_rows(&self, ids: &[LayoutId]) -> Result<HashMap<LayoutId, layout::Model>, DbErr> {
        let rows =
            layout::Entity::find().filter(layout::Column::Id.is_in(ids.iter().copied())).all(self.db.pool()).await?;
        Ok(rows.into_iter().map(|row| (row.id, row)).collect())
    }

    /// What of an event never changes, from memory where possible.
    pub async fn frame(&self, id: EventId) -> Result<Option<Frame>, DbErr> {
        if let Some(frame) = self.frames.get(&id).await {
            return Ok(Some(frame));
        }
        let Some(row) = event::Entity::find_by_id(id).one(self.db.pool()).await? else { return Ok(None) };
        let currency = Currency::from_code(&row.currency)
            .ok_or_else(|| DbErr::Type(format!("unknown currency {}", row.currency)))?;
        let frame = Frame { organization: row.organization_id, layout: row.layout_id, currency };
        self.frames.insert(id, frame.clone()).await;
        Ok(Some(frame))
    }

    /// An event's tiers as they were at most two seconds ago: what is available of them says a seat map.
    pub async fn recent_tiers(&self, id: EventId) -> Result<Arc<Vec<event_tier::Model>>, Arc<DbErr>> {
        let read = async { Ok::<_, DbErr>(Arc::new(self.tiers(&[id]).await?.remove(&id).unwrap_or_default())) };
        self.recent_tiers.try_get_with(id, read).await
    }

    /// An event as it was at most two seconds ago, drafts too: for those whom many ask at once.
    pub async fn recent(&self, id: EventId) -> Result<Option<Arc<event::Model>>, Arc<DbErr>> {
        let read = async { Ok::<_, DbErr>(self.events(&[id]).await?.remove(&id).map(Arc::new)) };
        self.recent.try_get_with(id, read).await
    }

    /// Events by id.
    pub async fn events(&self, ids: &[EventId]) -> Result<HashMap<EventId, event::Model>, DbErr> {
        let rows =
            event::Entity::find().filter(event::Column::Id.is_in(ids.iter().copied())).all(self.db.pool()).await?;
        Ok(rows.into_iter().map(|row| (row.id, row)).collect())
    }

    /// An event by its slug.
    pub async fn event_by_slug(&self, slug: &str) -> Result<Option<event::Model>, DbErr> {
        if slug.contains('\0') {
            return Ok(None);
        }
        event::Entity::find().filter(event::Column::Slug.eq(slug)).one(self.db.pool()).await
    }

    /// Events of an organization.
    pub async fn events_of(
        &self,
        organization: OrganizationId,
        filter: EventFilter,
        page: Page,
    ) -> Result<Vec<event::Model>, DbErr> {
        let mut condition = Condition::all().add(event::Column::OrganizationId.eq(organization));
        if !filter.drafts {
            condition = condition.add(event::Column::State.ne(EventState::Draft));
        }
        if let Some(after) = page.after {
            condition = condition.add(event::Column::Id.lt(after));
        }
        event::Entity::find()
            .filter(condition)
            .order_by_desc(event::Column::Id)
            .limit(page.limit)
            .all(self.db.pool())
            .await
    }

    /// Venues of an organization.
    pub async fn venues_of(&self, organization: OrganizationId, page: Page) -> Result<Vec<venue::Model>, DbErr> {
        let mut condition = Condition::all().add(venue::Column::OrganizationId.eq(organization));
        if let Some(after) = page.after {
            condition = condition.add(venue::Column::Id.lt(after));
        }
        venue::Entity::find()
            .filter(condition)
            .order_by_desc(venue::Column::Id)
            .limit(page.limit)
            .all(self.db.pool())
            .await
    }

    /// Venues by id.
    pub async fn venues(&self, ids: &[VenueId]) -> Result<HashMap<VenueId, venue::Model>, DbErr> {
        let rows =
            venue::Entity::find().filter(venue::Column::Id.is_in(ids.iter().copied())).all(self.db.pool()).await?;
        Ok(rows.into_iter().map(|row| (row.id, row)).collect())
    }

    /// Performers by id.
    pub async fn performers(&self, ids: &[PerformerId]) -> Result<HashMap<PerformerId, performer::Model>, DbErr> {
        let rows = performer::Entity::find()
            .filter(performer::Column::Id.is_in(ids.iter().copied()))
            .all(self.db.pool())
            .await?;
        Ok(rows.into_iter().map(|row| (row.id, row)).collect())
    }

    /// Organizations by id.
    pub async fn organizations(
        &self,
        ids: &[OrganizationId],
    ) -> Result<HashMap<OrganizationId, organization::Model>, DbErr> {
        let rows = organization::Entity::find()
            .filter(organization::Column::Id.is_in(ids.iter().copied()))
            .all(self.db.pool())
            .await?;
        Ok(rows.into_iter().map(|row| (row.id, row)).collect())
    }

    /// The bills of events, each in order.
    pub async fn bills(&self, ids: &[EventId]) -> Result<HashMap<EventId, Vec<performer::Model>>, DbErr> {
        let bill = event_performer::Entity::find()
            .filter(event_performer::Column::EventId.is_in(ids.iter().copied()))
            .order_by_asc(event_performer::Column::EventId)
            .order_by_asc(event_performer::Column::Position)
            .all(self.db.pool())
            .await?;
        let performers = self.performers(&bill.iter().map(|row| row.performer_id).collect::<Vec<_>>()).await?;
        let mut bills: HashMap<EventId, Vec<performer::Model>> = HashMap::new();
        for row in bill {
            bills.entry(row.event_id).or_default().extend(performers.get(&row.performer_id).cloned());
        }
        Ok(bills)
    }

    /// Price zones of events, each in order.
    pub async fn zones(&self, ids: &[EventId]) -> Result<HashMap<EventId, Vec<event_zone::Model>>, DbErr> {
        let rows = event_zone::Entity::find()
            .filter(event_zone::Column::EventId.is_in(ids.iter().copied()))
            .order_by_asc(event_zone::Column::ZoneNo)
            .all(self.db.pool())
            .await?;
        Ok(grouped(rows, |row| row.event_id))
    }

    /// Tiers of events, each in order.
    pub async fn tiers(&self, ids: &[EventId]) -> Result<HashMap<EventId, Vec<event_tier::Model>>, DbErr> {
        let rows = event_tier::Entity::find()
            .filter(event_tier::Column::EventId.is_in(ids.iter().copied()))
            .order_by_asc(event_tier::Column::TierNo)
            .all(self.db.pool())
            .await?;
        Ok(grouped(rows, |row| row.event_id))
    }

    /// How much of each event may still be sold: available, held and pending.
    pub async fn remaining(&self, ids: &[EventId]) -> Result<HashMap<EventId, i64>, DbErr> {
        #[derive(FromQueryResult)]
        struct Row {
            event_id: EventId,
            remaining: i64,
        }
        let ids: Vec<Uuid> = ids.iter().map(|id| id.0).collect();
        let rows = Row::find_by_statement(sql!(
            "SELECT event_id, sum(remaining)::bigint AS remaining FROM event_counter WHERE event_id = ANY ($1) GROUP BY event_id",
            ids
        ))
        .all(self.db.pool())
        .await?;
        Ok(rows.into_iter().map(|row| (row.event_id, row.remaining)).collect())
    }

    /// What is left of the events that are on sale now, the newest sales first, at most so many.
    pub async fn stock(&self, at_most: i64) -> Result<Vec<(EventId, i64)>, DbErr> {
        #[derive(FromQueryResult)]
        struct Row {
            id: EventId,
            remaining: i64,
        }
        let rows = Row::find_by_statement(sql!(
            "SELECT event.id, (SELECT coalesce(sum(remaining), 0)::bigint FROM event_counter WHERE event_id = event.id) AS remaining
             FROM event WHERE state = 'PUBLISHED' AND on_sale_at <= clock_timestamp() AND off_sale_at > clock_timestamp()
             ORDER BY on_sale_at DESC LIMIT $1",
            at_most
        ))
        .all(self.db.pool())
        .await?;
        Ok(rows.into_iter().map(|row| (row.id, row.remaining)).collect())
    }

    /// The organization of a name; made if `create` says so.
    pub async fn organization_named(&self, name: &str, create: bool) -> Result<Option<OrganizationId>, DbErr> {
        if create {
            self.db
                .pool()
                .execute_raw(sql!(
                    "INSERT INTO organization (id, name) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                    OrganizationId::new(),
                    name
                ))
                .await?;
        }
        let row = Single::<OrganizationId>::find_by_statement(sql!(
            "SELECT id AS value FROM organization WHERE name = $1",
            name
        ))
        .one(self.db.pool())
        .await?;
        Ok(row.map(|row| row.value))
    }
}

fn grouped<T>(rows: Vec<T>, event: impl Fn(&T) -> EventId) -> HashMap<EventId, Vec<T>> {
    let mut groups: HashMap<EventId, Vec<T>> = HashMap::new();
    for row in rows {
        groups.entry(event(&row)).or_default().push(row);
    }
    groups
}

impl Catalogue {
    /// An organization's event of a title.
    pub async fn event_titled(&self, organization: OrganizationId, title: &str) -> Result<Option<event::Model>, DbErr> {
        event::Entity::find()
            .filter(event::Column::OrganizationId.eq(organization))
            .filter(event::Column::Title.eq(title))
            .one(self.db.pool())
            .await
    }

    /// An organization's venue of a name.
    pub async fn venue_named(&self, organization: OrganizationId, name: &str) -> Result<Option<VenueId>, DbErr> {
        let row = venue::Entity::find()
            .filter(venue::Column::OrganizationId.eq(organization))
            .filter(venue::Column::Name.eq(name))
            .one(self.db.pool())
            .await?;
        Ok(row.map(|row| row.id))
    }

    /// What an organization has, by name: for seeding.
    pub async fn names_of(&self, organization: OrganizationId) -> Result<Names, DbErr> {
        let venues =
            venue::Entity::find().filter(venue::Column::OrganizationId.eq(organization)).all(self.db.pool()).await?;
        let venue_ids: Vec<VenueId> = venues.iter().map(|row| row.id).collect();
        let performers = performer::Entity::find()
            .filter(performer::Column::OrganizationId.eq(organization))
            .all(self.db.pool())
            .await?;
        let layouts =
            layout::Entity::find().filter(layout::Column::VenueId.is_in(venue_ids)).all(self.db.pool()).await?;
        let events =
            event::Entity::find().filter(event::Column::OrganizationId.eq(organization)).all(self.db.pool()).await?;
        Ok(Names {
            venues: venues.into_iter().map(|row| (row.name, row.id)).collect(),
            performers: performers.into_iter().map(|row| (row.name, row.id.0)).collect(),
            layouts: layouts.into_iter().map(|row| ((row.venue_id, row.name), row.id)).collect(),
            events: events.into_iter().map(|row| (row.title, (row.id, row.state != EventState::Draft))).collect(),
        })
    }
}
