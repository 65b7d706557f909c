//! What a seat of a price zone costs at an event. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::EventId;
use sea_orm::entity::prelude::*;

/// A row of `event_zone`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event_zone")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub event_id: EventId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub zone_no: i16,
    pub name: String,
    pub price_minor: i64,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
