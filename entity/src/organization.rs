//! Who sells. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::OrganizationId;
use sea_orm::entity::prelude::*;

/// A row of `organization`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "organization")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: OrganizationId,
    pub name: String,
    pub created_at: DateTimeUtc,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
