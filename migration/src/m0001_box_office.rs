//! The first shape: catalogue, inventory, bookings and money, tickets, outbox and inbox.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName, Debug)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(include_str!("m0001_box_office.sql")).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(
                "DROP TABLE audit, webhook_inbox, outbox_quarantine, outbox_cursor, outbox, timeline, ticket, refund,
                 payment, booking, idempotency, hold_item, hold, event_quota, event_counter, event_tier, event_seat,
                 event_zone, event_performer, event, layout_seat, layout, performer, venue, organization",
            )
            .await
            .map(drop)
    }
}
