//! An immutable seating plan. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{LayoutId, VenueId};
use sea_orm::entity::prelude::*;

/// A row of `layout`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "layout")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: LayoutId,
    pub venue_id: VenueId,
    pub name: String,
    pub seat_count: i32,
    pub section_names: Vec<String>,
    pub zone_names: Vec<String>,
    pub geometry_hash: String,
    pub created_at: DateTimeUtc,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
