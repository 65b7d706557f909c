//! Bookings as their buyer reads them.

use super::{BookingError, Bookings};
use parterre_entity::{
    BookingId, BookingState, EventId, HoldId, HoldState, PaymentId, RefundId, TicketId, booking, hold, hold_item,
    payment, refund, ticket, timeline,
};
use sea_orm::{ColumnTrait, Condition, DbErr, EntityTrait, QueryFilter, QueryOrder, QuerySelect};
use uuid::Uuid;

/// A booking with its payment.
#[derive(Clone, Debug, PartialEq)]
pub struct Booking {
    /// The row.
    pub row: booking::Model,
    /// Its payment; none for a free booking.
    pub payment: Option<payment::Model>,
}

/// A slice of a list ordered by id, newest first.
#[derive(Clone, Copy, Debug)]
pub struct Page {
    /// Entries after this id.
    pub after: Option<Uuid>,
    /// How many.
    pub limit: u64,
}

impl Bookings {
    /// A booking, whoever's it is.
    pub async fn read(&self, id: BookingId) -> Result<Option<Booking>, DbErr> {
        let Some(row) = booking::Entity::find_by_id(id).one(self.db.pool()).await? else { return Ok(None) };
        let payment = payment::Entity::find().filter(payment::Column::BookingId.eq(id)).one(self.db.pool()).await?;
        Ok(Some(Booking { row, payment }))
    }

    /// A buyer's booking by its code.
    pub async fn by_code(&self, buyer: &str, code: &str) -> Result<Option<Booking>, DbErr> {
        if code.contains('\0') {
            return Ok(None);
        }
        let row = booking::Entity::find()
            .filter(booking::Column::Code.eq(code))
            .filter(booking::Column::Buyer.eq(buyer))
            .one(self.db.pool())
            .await?;
        match row {
            Some(row) => self.read(row.id).await,
            None => Ok(None),
        }
    }

    /// A buyer's bookings, newest first.
    pub async fn of_buyer(
        &self,
        (buyer, event): (&str, Option<EventId>),
        states: &[BookingState],
        page: Page,
    ) -> Result<Vec<booking::Model>, DbErr> {
        let mut condition = Condition::all().add(booking::Column::Buyer.eq(buyer));
        if let Some(event) = event {
            condition = condition.add(booking::Column::EventId.eq(event));
        }
        if !states.is_empty() {
            condition = condition.add(booking::Column::Status.is_in(states.iter().copied()));
        }
        if let Some(after) = page.after {
            condition = condition.add(booking::Column::Id.lt(after));
        }
        booking::Entity::find()
            .filter(condition)
            .order_by_desc(booking::Column::Id)
            .limit(page.limit)
            .all(self.db.pool())
            .await
    }

    /// A buyer's holds, newest first. ACTIVE and EXPIRED are told apart by the deadline, not by the row.
    pub async fn holds_of_buyer(
        &self,
        (buyer, event): (&str, Option<EventId>),
        states: &[HoldState],
        page: Page,
    ) -> Result<Vec<hold::Model>, DbErr> {
        let now = crate::db::clock(self.db.pool()).await?;
        let mut condition = Condition::all().add(hold::Column::Buyer.eq(buyer));
        if let Some(event) = event {
            condition = condition.add(hold::Column::EventId.eq(event));
        }
        if !states.is_empty() {
            let mut any = Condition::any();
            for state in states {
                let by_row = Condition::all().add(hold::Column::Status.eq(*state));
                any = match state {
                    HoldState::Active => any.add(by_row.add(hold::Column::Deadline.gt(now))),
                    HoldState::Expired => any.add(by_row).add(
                        Condition::all()
                            .add(hold::Column::Status.eq(HoldState::Active))
                            .add(hold::Column::Deadline.lte(now)),
                    ),
                    HoldState::Converted | HoldState::Released => any.add(by_row),
                };
            }
            condition = condition.add(any);
        }
        if let Some(after) = page.after {
            condition = condition.add(hold::Column::Id.lt(after));
        }
        hold::Entity::find()
            .filter(condition)
            .order_by_desc(hold::Column::Id)
            .limit(page.limit)
            .all(self.db.pool())
            .await
    }

    /// The newest booking of a hold.
    pub async fn of_hold(&self, hold: HoldId) -> Result<Option<Booking>, DbErr> {
        let row = booking::Entity::find()
            .filter(booking::Column::HoldId.eq(hold))
            .order_by_desc(booking::Column::Id)
            .one(self.db.pool())
            .await?;
        match row {
            Some(row) => self.read(row.id).await,
            None => Ok(None),
        }
    }

    /// What a hold or its booking covers.
    pub async fn items(&self, hold: HoldId) -> Result<Vec<hold_item::Model>, DbErr> {
        hold_item::Entity::find()
            .filter(hold_item::Column::HoldId.eq(hold))
            .order_by_asc(hold_item::Column::ItemNo)
            .all(self.db.pool())
            .await
    }

    /// A booking's refunds, oldest first.
    pub async fn refunds(&self, id: BookingId) -> Result<Vec<refund::Model>, DbErr> {
        refund::Entity::find()
            .filter(refund::Column::BookingId.eq(id))
            .order_by_asc(refund::Column::Id)
            .all(self.db.pool())
            .await
    }

    /// A booking's tickets, in the order of its items.
    pub async fn tickets(&self, id: BookingId) -> Result<Vec<ticket::Model>, DbErr> {
        ticket::Entity::find()
            .filter(ticket::Column::BookingId.eq(id))
            .order_by_asc(ticket::Column::ItemNo)
            .order_by_asc(ticket::Column::AdmissionNo)
            .all(self.db.pool())
            .await
    }

    /// What happened to a booking, oldest first.
    pub async fn timeline(&self, id: BookingId) -> Result<Vec<timeline::Model>, DbErr> {
        timeline::Entity::find()
            .filter(timeline::Column::BookingId.eq(id))
            .order_by_asc(timeline::Column::EntryNo)
            .all(self.db.pool())
            .await
    }

    /// A payment and its booking.
    pub async fn payment(&self, id: PaymentId) -> Result<Option<(payment::Model, Booking)>, DbErr> {
        let Some(row) = payment::Entity::find_by_id(id).one(self.db.pool()).await? else { return Ok(None) };
        Ok(self.read(row.booking_id).await?.map(|booking| (row, booking)))
    }

    /// A refund and its booking.
    pub async fn refund(&self, id: RefundId) -> Result<Option<(refund::Model, Booking)>, DbErr> {
        let Some(row) = refund::Entity::find_by_id(id).one(self.db.pool()).await? else { return Ok(None) };
        Ok(self.read(row.booking_id).await?.map(|booking| (row, booking)))
    }

    /// A ticket and its booking.
    pub async fn ticket(&self, id: TicketId) -> Result<Option<(ticket::Model, Booking)>, DbErr> {
        let Some(row) = ticket::Entity::find_by_id(id).one(self.db.pool()).await? else { return Ok(None) };
        Ok(self.read(row.booking_id).await?.map(|booking| (row, booking)))
    }

    /// Of a cancelled event: bookings that were confirmed, those cancelled since, and those refunded.
    pub async fn cancel_progress(&self, event: EventId) -> Result<(i32, i32, i32), DbErr> {
        #[derive(sea_orm::FromQueryResult)]
        struct Row {
            bookings: i64,
            cancelled: i64,
            refunded: i64,
        }
        let row = <Row as sea_orm::FromQueryResult>::find_by_statement(crate::sql!(
            "SELECT count(*) AS bookings, count(*) FILTER (WHERE status <> 'CONFIRMED') AS cancelled,
                    count(*) FILTER (WHERE status = 'REFUNDED') AS refunded
             FROM booking WHERE event_id = $1 AND confirmed_at IS NOT NULL",
            event
        ))
        .one(self.db.pool())
        .await?;
        let count = |number: i64| i32::try_from(number).unwrap_or(i32::MAX);
        Ok(row.map_or((0, 0, 0), |row| (count(row.bookings), count(row.cancelled), count(row.refunded))))
    }

    /// The database's clock: what "now" is for a reader.
    pub async fn now(&self) -> Result<chrono::DateTime<chrono::Utc>, BookingError> {
        crate::db::clock(self.db.pool()).await.map_err(BookingError::from)
    }
}
