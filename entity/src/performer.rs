//! Who is on stage. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{OrganizationId, PerformerId};
use sea_orm::entity::prelude::*;

/// A row of `performer`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "performer")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: PerformerId,
    pub organization_id: OrganizationId,
    pub version: i64,
    pub name: String,
    pub genre: Option<String>,
    pub created_at: DateTimeUtc,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
