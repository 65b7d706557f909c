//! One attempt to buy a hold. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{BookingFailure, BookingId, BookingState, EventId, HoldId};
use sea_orm::entity::prelude::*;

/// A row of `booking`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "booking")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: BookingId,
    pub code: String,
    pub hold_id: HoldId,
    pub event_id: EventId,
    pub buyer: String,
    pub version: i64,
    pub status: BookingState,
    pub total_minor: i64,
    pub currency: String,
    pub cancel_until: DateTimeUtc,
    pub refund_ppm: i32,
    pub resell: bool,
    pub contact_email: Option<String>,
    pub locale: Option<String>,
    pub failure: Option<BookingFailure>,
    pub created_at: DateTimeUtc,
    pub confirmed_at: Option<DateTimeUtc>,
    pub cancelled_at: Option<DateTimeUtc>,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
