//! One admission. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{BookingId, EventId, TicketId, TicketState};
use sea_orm::entity::prelude::*;

/// A row of `ticket`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "ticket")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: TicketId,
    pub booking_id: BookingId,
    pub event_id: EventId,
    pub item_no: i16,
    pub admission_no: i16,
    pub seat_no: Option<i32>,
    pub tier_no: Option<i16>,
    pub status: TicketState,
    pub created_at: DateTimeUtc,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
