//! Leases: who may call the provider about a payment or a refund now. They limit who calls, never whose fact counts.
//!
//! Invariants: a lease is judged by the database's clock; it outlasts one call and is renewed while its holder lives, so
//! that what a dead process left is taken up soon.

use crate::db::{Db, MAY_BE_LOST};
use crate::sql;
use parterre_entity::{PaymentId, RefundId};
use sea_orm::{ConnectionTrait, DbErr};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};
use uuid::Uuid;

/// How long a lease lasts: longer than one call of the provider.
const LEASE_SECONDS: f64 = 12.0;
/// How often it is renewed.
const RENEW_EVERY: Duration = Duration::from_secs(4);

/// What a lease is of.
#[derive(Clone, Copy, Debug)]
pub enum Leased {
    /// A payment.
    Payment(PaymentId),
    /// A refund.
    Refund(RefundId),
}

impl Leased {
    const fn row(self) -> (&'static str, Uuid) {
        match self {
            Self::Payment(id) => ("payment", id.0),
            Self::Refund(id) => ("refund", id.0),
        }
    }
}

/// A lease that is held.
#[derive(Debug)]
pub struct Lease {
    db: Db,
    of: Leased,
    token: Uuid,
    /// Whatever happens to its holder, it is not renewed any more.
    stop: DropGuard,
    renewing: JoinHandle<()>,
}

impl Lease {
    /// Takes the lease of something that is due and that nobody is at.
    pub async fn take(db: &Db, of: Leased) -> Result<Option<Self>, DbErr> {
        let token = Uuid::now_v7();
        let (table, id) = of.row();
        let statement = format!(
            "UPDATE {table} SET lease_token = $2, lease_until = clock_timestamp() + make_interval(secs => $3)
             WHERE id = $1 AND next_check_at <= clock_timestamp()
               AND (lease_until IS NULL OR lease_until <= clock_timestamp()) AND {MAY_BE_LOST}"
        );
        if db.pool().execute_raw(sql!(statement, id, token, LEASE_SECONDS)).await?.rows_affected() == 0 {
            return Ok(None);
        }
        let stop = CancellationToken::new();
        let renewing = tokio::spawn(renew(db.clone(), of, token, stop.clone()));
        Ok(Some(Self { db: db.clone(), of, token, stop: stop.drop_guard(), renewing }))
    }

    /// Gives it back.
    pub async fn release(self) -> Result<(), DbErr> {
        let Self { db, of, token, stop, renewing } = self;
        drop(stop);
        drop(renewing.await);
        let (table, id) = of.row();
        let statement = format!(
            "UPDATE {table} SET lease_token = NULL, lease_until = NULL WHERE id = $1 AND lease_token = $2 AND {MAY_BE_LOST}"
        );
        db.pool().execute_raw(sql!(statement, id, token)).await.map(drop)
    }
}

async fn renew(db: Db, of: Leased, token: Uuid, stop: CancellationToken) {
    let (table, id) = of.row();
    let statement = format!(
        "UPDATE {table} SET lease_until = clock_timestamp() + make_interval(secs => $3)
         WHERE id = $1 AND lease_token = $2 AND {MAY_BE_LOST}"
    );
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            () = tokio::time::sleep(RENEW_EVERY) => {}
        }
        match db.pool().execute_raw(sql!(&statement, id, token, LEASE_SECONDS)).await {
            // It ran out, and somebody else has it.
            Ok(done) if done.rows_affected() == 0 => return,
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, table, "a lease could not be renewed"),
        }
    }
}
