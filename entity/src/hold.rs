//! Seats and admissions set aside for one buyer until a deadline. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{EventId, HoldId, HoldState};
use sea_orm::entity::prelude::*;

/// A row of `hold`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "hold")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: HoldId,
    pub event_id: EventId,
    pub buyer: String,
    pub status: HoldState,
    pub deadline: DateTimeUtc,
    pub total_minor: i64,
    pub currency: String,
    pub created_at: DateTimeUtc,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
