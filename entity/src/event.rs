//! Something at a venue at a time. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{EventId, EventState, InventoryMode, LayoutId, OrganizationId, VenueId};
use sea_orm::entity::prelude::*;

/// A row of `event`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: EventId,
    pub organization_id: OrganizationId,
    pub venue_id: VenueId,
    pub layout_id: Option<LayoutId>,
    pub slug: String,
    pub version: i64,
    pub title: String,
    pub description: Option<String>,
    pub category: Option<String>,
    pub starts_at: DateTimeUtc,
    pub on_sale_at: DateTimeUtc,
    pub off_sale_at: DateTimeUtc,
    pub state: EventState,
    pub inventory_mode: InventoryMode,
    pub seats_wanted: i32,
    pub seats_ready: bool,
    pub currency: String,
    pub hold_seconds: i32,
    pub max_seats_per_buyer: i32,
    pub forbid_single_seats: bool,
    pub admit_per_minute: Option<i32>,
    pub active_per_remaining_seat: f64,
    pub admission_seconds: i32,
    pub cancel_until_seconds_before: Option<i32>,
    pub refund_ppm: i32,
    pub resell: bool,
    pub popularity: f64,
    pub created_at: DateTimeUtc,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
