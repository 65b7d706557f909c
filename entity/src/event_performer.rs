//! The bill of an event. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{EventId, PerformerId};
use sea_orm::entity::prelude::*;

/// A row of `event_performer`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "event_performer")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub event_id: EventId,
    #[sea_orm(primary_key, auto_increment = false)]
    pub position: i16,
    pub performer_id: PerformerId,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
