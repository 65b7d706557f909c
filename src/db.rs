//! The connection pool and the only way to open a transaction: with a name, a lock time-out and a known id.
//!
//! Invariants: nothing is awaited inside a transaction but the database; a transaction that is dropped rolls back; a
//! connection that comes back from the pool is outside any transaction, whatever its last borrower did.

use sea_orm::sqlx::{self, Executor};
use sea_orm::{
    AccessMode, ConnectOptions, ConnectionTrait, Database, DatabaseConnection, DatabaseTransaction, DbErr,
    FromQueryResult, IsolationLevel, RuntimeErr, TransactionTrait,
};
use std::time::{Duration, Instant};

/// A statement by hand with its values: `sql!("SELECT $1", 1)`.
#[macro_export]
macro_rules! sql {
    ($text:expr $(, $value:expr)* $(,)?) => {
        sea_orm::Statement::from_sql_and_values(
            sea_orm::DbBackend::Postgres,
            $text,
            [$(sea_orm::Value::from($value)),*],
        )
    };
}

/// A result of one column, named `value`.
#[derive(Debug, FromQueryResult)]
pub struct Single<T: sea_orm::TryGetable> {
    /// The column.
    pub value: T,
}

/// A condition that is always true, and makes the commit of a single statement not wait for the disk: for what may be
/// forgotten in a crash, such as who was at something and when it is looked at again.
pub const MAY_BE_LOST: &str = "(SELECT set_config('synchronous_commit', 'off', true)) IS NOT NULL";

/// The pool.
#[derive(Clone, Debug)]
pub struct Db {
    pool: DatabaseConnection,
}

/// Why the database can't be used, in words that say what to do.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot reach PostgreSQL: {0}; start it, or set DATABASE_URL to a running one (./dev run starts a private one by itself)"
)]
pub struct Unreachable(#[source] DbErr);

impl Db {
    /// Connects. Every session gives up waiting for a lock, or sitting idle in a transaction, by itself.
    pub async fn connect(url: &str, connections_max: u32) -> Result<Self, Unreachable> {
        let mut options = ConnectOptions::new(url);
        options
            .max_connections(connections_max)
            .min_connections(1)
            .connect_timeout(Duration::from_secs(5))
            .acquire_timeout(Duration::from_secs(10))
            .sqlx_logging(false)
            .test_before_acquire(false)
            .map_sqlx_postgres_opts(|options| {
                options.options([
                    ("idle_in_transaction_session_timeout", "5s"),
                    ("lock_timeout", "5s"),
                    ("statement_timeout", "30s"),
                    ("client_min_messages", "error"),
                    ("application_name", "parterre"),
                    ("jit", "off"),
                ])
            })
            .map_sqlx_postgres_before_acquire(|connection, _| {
                // A BEGIN whose future was dropped leaves the session in a transaction that nobody knows of. It also shows
                // whether the connection is still one, and so is done here and not on its way back. Without the BEGIN,
                // PostgreSQL's log would have a warning of each.
                Box::pin(async move { connection.execute("BEGIN; ROLLBACK").await.map(|_| true) })
            });
        let pool = Database::connect(options).await.map_err(Unreachable)?;
        Ok(Self { pool })
    }

    /// For single statements outside a transaction.
    #[must_use]
    pub const fn pool(&self) -> &DatabaseConnection {
        &self.pool
    }

    /// Opens a write transaction. Its statements wait at most a second for a lock, and find rows through indexes: what
    /// the planner knows of a table that grows fast is old, and it would rather read all of it. So there is one plan for
    /// each, made once.
    #[expect(clippy::disallowed_methods, reason = "this is the transaction helper")]
    pub async fn begin(&self, name: &'static str) -> Result<Transaction, DbErr> {
        let started = Instant::now();
        let inner = self.pool.begin().await?;
        let statement = sql!(format!(
            "/* {name} */ SELECT pg_current_xact_id()::text AS value, set_config('lock_timeout', '1s', true), \
             set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), \
             set_config('enable_seqscan', 'off', true), set_config('plan_cache_mode', 'force_generic_plan', true)"
        ));
        let xid = Single::<String>::find_by_statement(statement)
            .one(&inner)
            .await?
            .ok_or_else(|| DbErr::RecordNotFound("transaction id".to_owned()))?
            .value;
        Ok(Transaction { inner, name, xid, started, pool: self.pool.clone() })
    }

    /// Opens a read-only snapshot: everything read in it is of one moment.
    pub async fn snapshot(&self) -> Result<DatabaseTransaction, DbErr> {
        self.pool.begin_with_config(Some(IsolationLevel::RepeatableRead), Some(AccessMode::ReadOnly)).await
    }
}

/// An open write transaction.
#[derive(Debug)]
pub struct Transaction {
    inner: DatabaseTransaction,
    name: &'static str,
    xid: String,
    started: Instant,
    pool: DatabaseConnection,
}

impl std::ops::Deref for Transaction {
    type Target = DatabaseTransaction;

    fn deref(&self) -> &DatabaseTransaction {
        &self.inner
    }
}

/// How a commit that did not say so ended.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// It did not happen.
    #[error("the transaction was rolled back: {0}")]
    RolledBack(#[source] DbErr),
    /// The connection was lost, and so was the way to ask.
    #[error("whether the transaction committed is not known: {0}")]
    Unknown(#[source] DbErr),
}

impl CommitError {
    /// What happened to the connection or the statement, for those who try again either way.
    #[must_use]
    pub fn into_cause(self) -> DbErr {
        match self {
            Self::RolledBack(cause) | Self::Unknown(cause) => cause,
        }
    }
}

impl Transaction {
    /// Commits. If the reply is lost, the truth is asked for on another connection, by the transaction's id.
    pub async fn commit(self) -> Result<(), CommitError> {
        let Self { inner, name, xid, started, pool } = self;
        let result = inner.commit().await;
        metrics::histogram!("parterre_transaction_seconds", "name" => name).record(started.elapsed());
        match result {
            Ok(()) => Ok(()),
            Err(error) if sql_state(&error).is_some() && !is_connection(&error) => Err(CommitError::RolledBack(error)),
            Err(error) => learn_outcome(&pool, name, &xid, error).await,
        }
    }

    /// Rolls back, and says so at once instead of when the connection is next used.
    pub async fn rollback(self) -> Result<(), DbErr> {
        self.inner.rollback().await
    }
}

async fn learn_outcome(pool: &DatabaseConnection, name: &str, xid: &str, lost: DbErr) -> Result<(), CommitError> {
    tracing::warn!(transaction = name, xid, error = %lost, "the reply to a commit was lost, asking for its outcome");
    for _ in 0..50 {
        let asked = Single::<Option<String>>::find_by_statement(sql!(
            "SELECT pg_xact_status($1::text::xid8) AS value",
            xid.to_owned()
        ))
        .one(pool)
        .await;
        match asked.ok().flatten().and_then(|row| row.value).as_deref() {
            Some("committed") => return Ok(()),
            Some("aborted") => return Err(CommitError::RolledBack(lost)),
            Some("in progress" | _) | None => tokio::time::sleep(Duration::from_millis(100)).await,
        }
    }
    Err(CommitError::Unknown(lost))
}

/// The five-character SQLSTATE of a failed statement, if the server answered at all.
#[must_use]
pub fn sql_state(error: &DbErr) -> Option<String> {
    driver_error(error)?.code().map(std::borrow::Cow::into_owned)
}

/// The constraint or index a failed statement broke.
#[must_use]
pub fn constraint(error: &DbErr) -> Option<&str> {
    driver_error(error)?.constraint()
}

fn driver_error(error: &DbErr) -> Option<&dyn sqlx::error::DatabaseError> {
    match error {
        DbErr::Query(RuntimeErr::SqlxError(cause))
        | DbErr::Exec(RuntimeErr::SqlxError(cause))
        | DbErr::Conn(RuntimeErr::SqlxError(cause)) => cause.as_database_error(),
        _ => None,
    }
}

/// Whether the same transaction may succeed if it is run again: a serialization failure, a deadlock, a lock that was
/// not had in time, or two first uses of one idempotency key that met.
#[must_use]
pub fn may_repeat(error: &DbErr) -> bool {
    match sql_state(error).as_deref() {
        Some("40001" | "40P01" | "55P03") => true,
        Some("23505") => constraint(error) == Some("idempotency_pkey"),
        _ => false,
    }
}

/// Whether the connection or the server failed, and not the statement: it says nothing about what was asked.
#[must_use]
pub fn is_connection(error: &DbErr) -> bool {
    match sql_state(error) {
        // Connection exceptions, lack of resources, operator intervention, an idle transaction that was ended.
        Some(state) => ["08", "53", "57", "25P03"].iter().any(|class| state.starts_with(class)),
        None => match error {
            DbErr::ConnectionAcquire(_) => true,
            DbErr::Conn(RuntimeErr::Internal(_)) => true,
            DbErr::Query(RuntimeErr::SqlxError(cause))
            | DbErr::Exec(RuntimeErr::SqlxError(cause))
            | DbErr::Conn(RuntimeErr::SqlxError(cause)) => matches!(
                **cause,
                sqlx::Error::Io(_)
                    | sqlx::Error::Tls(_)
                    | sqlx::Error::Protocol(_)
                    | sqlx::Error::PoolTimedOut
                    | sqlx::Error::PoolClosed
                    | sqlx::Error::WorkerCrashed
            ),
            _ => false,
        },
    }
}

/// Passes the gates of events that are about to be read for a sale. Many may be inside at once.
///
/// Row locks alone are not fair: newcomers with `FOR SHARE` overtake an organizer who waits to pause the sale. A waiting
/// exclusive advisory lock stops them.
pub async fn share_gates(transaction: &Transaction, events: Vec<uuid::Uuid>) -> Result<(), DbErr> {
    transaction
        .execute_raw(sql!(
            "SELECT pg_advisory_xact_lock_shared(hashtextextended(id::text, 0)) FROM unnest($1::uuid[]) AS wanted (id)",
            events
        ))
        .await
        .map(drop)
}

/// Closes the gate of an event: waits for those inside, and later ones wait for us.
pub async fn close_gate(transaction: &Transaction, event: uuid::Uuid) -> Result<(), DbErr> {
    transaction
        .execute_raw(sql!("SELECT pg_advisory_xact_lock(hashtextextended($1::uuid::text, 0))", event))
        .await
        .map(drop)
}

/// How often a transaction is run again before its caller hears of it.
pub const REPEATS_MAX: u32 = 5;

/// How hard a long job works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as it can.
    Full,
    /// A tenth of the time, so that what people wait for hardly notices.
    Gentle,
}

impl Pace {
    /// Rests after a piece of the job that took so long.
    pub async fn rest_after(self, piece: Duration) {
        if self == Self::Gentle {
            tokio::time::sleep(piece * 9).await;
        }
    }
}

/// A short random pause that grows with each repeat, so that two that met part ways.
pub async fn jitter(repeat: u32) {
    let ceiling_ms = 5_u64 << repeat.min(6);
    tokio::time::sleep(Duration::from_millis(rand::random_range(1..=ceiling_ms))).await;
}

/// Errors that may be cured by running the whole transaction again.
pub trait MayRepeat {
    /// Whether this one may.
    fn may_repeat(&self) -> bool;
}

impl MayRepeat for DbErr {
    fn may_repeat(&self) -> bool {
        may_repeat(self)
    }
}

/// Runs a transaction, and again while it fails for a reason that passes.
pub async fn repeating<T, E, F>(mut run: impl FnMut() -> F) -> Result<T, E>
where
    E: MayRepeat,
    F: Future<Output = Result<T, E>>,
{
    let mut repeat = 0;
    loop {
        match run().await {
            Err(error) if error.may_repeat() && repeat < REPEATS_MAX => {
                repeat += 1;
                jitter(repeat).await;
            }
            result => return result,
        }
    }
}

/// The database's clock, read in a statement of its own: after every lock taken so far.
pub async fn clock(connection: &impl ConnectionTrait) -> Result<chrono::DateTime<chrono::Utc>, DbErr> {
    Single::find_by_statement(sql!("SELECT clock_timestamp() AS value"))
        .one(connection)
        .await?
        .map(|row| row.value)
        .ok_or_else(|| DbErr::RecordNotFound("clock".to_owned()))
}
