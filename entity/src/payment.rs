//! The money side of one booking. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{BookingId, EventId, PaymentId, PaymentState, PaymentStep};
use sea_orm::entity::prelude::*;

/// A row of `payment`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "payment")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: PaymentId,
    pub booking_id: BookingId,
    pub event_id: EventId,
    pub operation_id: String,
    pub status: PaymentState,
    pub unknown_step: Option<PaymentStep>,
    pub amount_minor: i64,
    pub currency: String,
    pub payment_method: String,
    pub return_url: Option<String>,
    pub provider_id: Option<String>,
    pub first_sent_at: Option<DateTimeUtc>,
    pub capture_before: Option<DateTimeUtc>,
    pub key_no: i16,
    pub attempts: i32,
    pub unknown_since: Option<DateTimeUtc>,
    pub key_used_at: Option<DateTimeUtc>,
    pub captured_minor: Option<i64>,
    pub captured_currency: Option<String>,
    pub give_back: bool,
    pub escalated_at: Option<DateTimeUtc>,
    pub missed_at: Option<DateTimeUtc>,
    pub next_check_at: Option<DateTimeUtc>,
    pub lease_token: Option<Uuid>,
    pub lease_until: Option<DateTimeUtc>,
    pub decline_code: Option<String>,
    pub next_action: Option<Json>,
    pub created_at: DateTimeUtc,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
