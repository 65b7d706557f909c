//! Every transition of a booking and its money. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{BookingId, TimelineKind};
use sea_orm::entity::prelude::*;

/// A row of `timeline`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "timeline")]
pub struct Model {
    pub booking_id: BookingId,
    #[sea_orm(primary_key, auto_increment = true)]
    pub entry_no: i64,
    pub at: DateTimeUtc,
    pub kind: TimelineKind,
    pub from_state: Option<String>,
    pub to_state: String,
    pub cause: String,
    pub detail: Option<String>,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
