//! The database's shape: DDL with every table, column and state commented, and the one way to apply it.
//!
//! Invariant: migrations run one at a time in the whole database, under an advisory lock, so that any number of
//! processes may start at once.

use sea_orm_migration::prelude::*;
use sea_orm_migration::sea_orm::{ConnectionTrait, DatabaseConnection, TransactionTrait};

mod m0001_box_office;
mod m0002_money;
mod m0003_waiting_room;
mod m0004_sales;
mod m0005_retention;
mod m0006_outbox_history;

/// All migrations, oldest first.
#[derive(Debug)]
pub struct Migrator;

#[async_trait::async_trait]
impl MigratorTrait for Migrator {
    fn migrations() -> Vec<Box<dyn MigrationTrait>> {
        vec![
            Box::new(m0001_box_office::Migration),
            Box::new(m0002_money::Migration),
            Box::new(m0003_waiting_room::Migration),
            Box::new(m0004_sales::Migration),
            Box::new(m0005_retention::Migration),
            Box::new(m0006_outbox_history::Migration),
        ]
    }
}

/// The advisory lock that serializes migrations. The number is `"parterre"` folded to 32 bits: any constant would do.
const MIGRATION_LOCK: i64 = 0x7061_7274;

/// Applies every pending migration. Waits for another process that is applying them.
pub async fn up(db: &DatabaseConnection) -> Result<(), DbErr> {
    locked(db, Direction::Up).await
}

/// Takes every migration back, newest first. For tests and development: all data is lost.
pub async fn down(db: &DatabaseConnection) -> Result<(), DbErr> {
    locked(db, Direction::Down).await
}

/// How many migrations are not applied.
pub async fn pending(db: &DatabaseConnection) -> Result<usize, DbErr> {
    // Before the first there is no table of those that were.
    let applied = Migrator::get_applied_migrations(db).await.map_or(0, |applied| applied.len());
    Ok(Migrator::migrations().len().saturating_sub(applied))
}

enum Direction {
    Up,
    Down,
}

/// The lock lives as long as its transaction, so a crash frees it; the migrations run on the same connection.
async fn locked(db: &DatabaseConnection, direction: Direction) -> Result<(), DbErr> {
    #[expect(clippy::disallowed_methods, reason = "this crate comes before the transaction helper")]
    let transaction = db.begin().await?;
    transaction.execute_unprepared(&format!("SELECT pg_advisory_xact_lock({MIGRATION_LOCK})")).await?;
    match direction {
        Direction::Up => Migrator::up(&transaction, None).await?,
        Direction::Down => Migrator::down(&transaction, None).await?,
    }
    transaction.commit().await
}
