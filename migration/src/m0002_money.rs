//! Money under uncertainty: keys that grow old, people who decide, jobs that take turns, messages sent once.

use sea_orm_migration::prelude::*;

#[derive(DeriveMigrationName, Debug)]
pub(crate) struct Migration;

#[async_trait::async_trait]
impl MigrationTrait for Migration {
    async fn up(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager.get_connection().execute_unprepared(include_str!("m0002_money.sql")).await.map(drop)
    }

    async fn down(&self, manager: &SchemaManager) -> Result<(), DbErr> {
        manager
            .get_connection()
            .execute_unprepared(
                "DROP TABLE notification, job;
                 DROP INDEX payment_due, payment_due_unknown;
                 CREATE INDEX payment_due ON payment (next_check_at) WHERE next_check_at IS NOT NULL;
                 ALTER TABLE refund DROP COLUMN stray_of;
                 DROP INDEX payment_review, payment_unknown, payment_event, payment_created;
                 ALTER TABLE refund DROP COLUMN key_used_at, DROP COLUMN missed_at, DROP COLUMN escalated_at;
                 ALTER TABLE payment DROP COLUMN key_used_at, DROP COLUMN captured_minor, DROP COLUMN captured_currency,
                     DROP COLUMN give_back, DROP COLUMN escalated_at;
                 UPDATE booking SET failure = 'CAPTURE_FAILED' WHERE failure = 'AMOUNT_MISMATCH';
                 ALTER TABLE booking DROP CONSTRAINT booking_failure_check;
                 ALTER TABLE booking ADD CONSTRAINT booking_failure_check CHECK (failure IN
                     ('DECLINED', 'HOLD_EXPIRED', 'HOLD_RELEASED', 'EVENT_CANCELLED', 'ABANDONED', 'CAPTURE_FAILED'))",
            )
            .await
            .map(drop)
    }
}
