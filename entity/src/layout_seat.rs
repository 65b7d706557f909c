//! A place in a layout. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::LayoutId;
use sea_orm::entity::prelude::*;

/// A row of `layout_seat`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "layout_seat")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub layout_id: LayoutId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub seat_no: i32,
    pub seat_id: String,
    pub section_no: i16,
    pub row_name: String,
    pub number: String,
    pub zone_no: i16,
    pub accessible: bool,
    pub x: f64,
    pub y: f64,
    pub next_no: Option<i32>,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
