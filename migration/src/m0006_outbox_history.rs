//! In which cluster the last removed row of the outbox was.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName, Debug)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(include_str!("m0006_outbox_history.sql")).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared("ALTER TABLE outbox_removed DROP COLUMN system_identifier, DROP COLUMN timeline")
            .await
            .map(drop)
    }
}
