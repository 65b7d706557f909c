//! Money on its way back. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{BookingId, EventId, PaymentId, RefundId, RefundReason, RefundState};
use sea_orm::entity::prelude::*;

/// A row of `refund`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "refund")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: RefundId,
    pub booking_id: BookingId,
    pub payment_id: PaymentId,
    pub event_id: EventId,
    pub operation_id: String,
    pub status: RefundState,
    pub amount_minor: i64,
    pub currency: String,
    pub reason: RefundReason,
    pub stray_of: Option<String>,
    pub provider_id: Option<String>,
    pub first_sent_at: Option<DateTimeUtc>,
    pub key_no: i16,
    pub attempts: i32,
    pub key_used_at: Option<DateTimeUtc>,
    pub missed_at: Option<DateTimeUtc>,
    pub escalated_at: Option<DateTimeUtc>,
    pub next_check_at: Option<DateTimeUtc>,
    pub lease_token: Option<Uuid>,
    pub lease_until: Option<DateTimeUtc>,
    pub created_at: DateTimeUtc,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
