//! A place. The columns are commented in the migration.
#![expect(missing_docs, reason = "each column is commented in the migration")]

use crate::{OrganizationId, VenueId};
use sea_orm::entity::prelude::*;

/// A row of `venue`.
#[derive(Clone, Debug, PartialEq, DeriveEntityModel)]
#[sea_orm(table_name = "venue")]
pub struct Model {
    #[sea_orm(primary_key, auto_increment = false)]
    pub id: VenueId,
    pub organization_id: OrganizationId,
    pub version: i64,
    pub name: String,
    pub city: String,
    pub country_code: String,
    pub time_zone: String,
    pub latitude: Option<f64>,
    pub longitude: Option<f64>,
    pub created_at: DateTimeUtc,
}

/// Joins are written where they are used.
#[derive(Copy, Clone, Debug, EnumIter, DeriveRelation)]
pub enum Relation {}

impl ActiveModelBehavior for ActiveModel {}
