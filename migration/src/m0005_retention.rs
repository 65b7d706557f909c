//! Retention: what is removed after a while, and how far that has come.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName, Debug)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(include_str!("m0005_retention.sql")).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(
                "DROP TABLE hold_sweep, outbox_removed;
                 ALTER TABLE event_sales RESET (fillfactor);
                 CREATE INDEX event_sales_stale ON event_sales (event_id) WHERE marked > counted",
            )
            .await
            .map(drop)
    }
}
