//! What organizers and admins wrote. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::OrganizationId;
use sea_orm::entity::prelude::*;

/// A row of `audit`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "audit")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = true)]
    pub id: i64,
    pub at: DateTimeUtc,
    pub actor: String,
    pub organization_id: Option<OrganizationId>,
    pub action: String,
    pub subject_id: Uuid,
    pub detail: Json,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
