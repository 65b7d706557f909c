//! General admission: a count. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::EventId;
use sea_orm::entity::prelude::*;

/// A row of `event_tier`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event_tier")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub event_id: EventId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub tier_no: i16,
    pub name: String,
    pub price_minor: i64,
    pub capacity: i32,
    pub available: i32,
    pub held: i32,
    pub pending: i32,
    pub sold: i32,
    pub withdrawn: i32,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
