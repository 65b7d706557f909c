//! What a hold covers, with its price. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{EventId, HoldId, ItemState};
use sea_orm::entity::prelude::*;

/// A row of `hold_item`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "hold_item")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub hold_id: HoldId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub item_no: i16,
    pub event_id: EventId,
    pub seat_no: Option<i32>,
    pub tier_no: Option<i16>,
    pub quantity: i32,
    pub unit_minor: i64,
    pub state: ItemState,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
