//! The stage of a test: a database of its own, servers, a payment simulator, actors, and the invariants at the end.

pub mod client;
pub mod fixtures;
pub mod invariants;

pub use client::{Api, Socket};

use futures_util::FutureExt as _;
use parterre::app::App;
use parterre::auth::{Person, issue};
use parterre::config::{Config, Limits, Secret};
use parterre::db::Db;
use parterre::payment::simulator::{Settings, Simulator};
use parterre::waiting::Clock;
use parterre::{dev, http, sql, workers};
use sea_orm::ConnectionTrait;
use std::panic::AssertUnwindSafe;
use std::path::PathBuf;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// What a stage is set up with.
#[derive(Clone, Debug)]
pub struct Setup {
    pub servers: usize,
    pub redis: bool,
    pub workers: bool,
    pub checkout_wait_ms: u64,
    /// A mail server; without it messages go to a folder.
    pub smtp_url: Option<String>,
    pub limits: Limits,
    /// What waiting rooms go by.
    pub clock: Clock,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            servers: 1,
            redis: false,
            workers: true,
            checkout_wait_ms: 5_000,
            smtp_url: None,
            limits: Limits::Off,
            clock: Clock::default(),
        }
    }
}

/// A test's world.
pub struct Stage {
    pub servers: Vec<Server>,
    pub simulator: Simulator,
    pub db: Db,
    pub database: String,
    pub config: Config,
    pub folder: PathBuf,
    shutdown: CancellationToken,
}

/// A server beside the stage's own, without workers and with other settings.
pub struct Beside {
    pub app: App,
    pub url: String,
    shutdown: CancellationToken,
}

impl Beside {
    /// Ends it in order.
    pub async fn end(self) {
        self.shutdown.cancel();
        self.app.drain(Duration::from_secs(10)).await;
    }
}

/// One server process, in this process.
pub struct Server {
    pub app: App,
    pub url: String,
}

#[expect(clippy::disallowed_methods, reason = "the services of the tests are handed over in the environment")]
pub fn admin_url() -> String {
    std::env::var("PARTERRE_TEST_DATABASE_URL").expect("run the tests with ./dev test: it starts PostgreSQL and Redis")
}

#[expect(clippy::disallowed_methods, reason = "the services of the tests are handed over in the environment")]
pub fn redis_url() -> String {
    std::env::var("PARTERRE_TEST_REDIS_URL").expect("run the tests with ./dev test: it starts PostgreSQL and Redis")
}

/// What the servers warn of is printed with a test that fails.
fn show_warnings() {
    let warnings = tracing_subscriber::fmt().with_max_level(tracing::Level::WARN).with_test_writer().with_ansi(false);
    // Another test of this process was first.
    warnings.try_init().ok();
}

/// The address of another database of the tests' cluster.
pub fn url_of(database: &str) -> String {
    let admin = admin_url();
    let (server, _) = admin.rsplit_once('/').unwrap();
    format!("{server}/{database}")
}

/// Creates a database from the migrated template.
pub async fn fresh_database() -> String {
    static TEMPLATE: OnceCell<String> = OnceCell::const_new();
    let admin = Db::connect(&admin_url(), 1).await.unwrap();
    let template = TEMPLATE
        .get_or_init(|| async {
            let name = format!("template_{}", Uuid::now_v7().simple());
            admin.pool().execute_unprepared(&format!("CREATE DATABASE {name}")).await.unwrap();
            let db = Db::connect(&url_of(&name), 1).await.unwrap();
            parterre_migration::up(db.pool()).await.unwrap();
            db.pool().clone().close().await.unwrap();
            name
        })
        .await;
    let name = format!("test_{}", Uuid::now_v7().simple());
    admin.pool().execute_unprepared(&format!("CREATE DATABASE {name} TEMPLATE {template}")).await.unwrap();
    admin.pool().clone().close().await.unwrap();
    name
}

/// A copy of a test's database, which nobody is connected to for a moment.
pub async fn copy_of(database: &str) -> String {
    let admin = Db::connect(&admin_url(), 1).await.unwrap();
    let copy = format!("copy_{}", Uuid::now_v7().simple());
    eventually("nobody is connected", || async {
        let end = format!("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{database}'");
        admin.pool().execute_unprepared(&end).await.unwrap();
        admin.pool().execute_unprepared(&format!("CREATE DATABASE {copy} TEMPLATE {database}")).await.ok()
    })
    .await;
    admin.pool().clone().close().await.unwrap();
    copy
}

impl Stage {
    pub async fn new() -> Self {
        Self::with(Setup::default()).await
    }

    pub async fn with(setup: Setup) -> Self {
        parterre::install_crypto();
        show_warnings();
        let database = fresh_database().await;
        let shutdown = CancellationToken::new();
        let folder = std::env::temp_dir().join(format!("parterre-{database}"));
        let mut config = dev::default_config();
        config.database_url = url_of(&database);
        config.database_connections = 12;
        config.create_organizations = true;
        config.checkout_wait_ms = setup.checkout_wait_ms;
        config.limits = setup.limits;
        config.smtp_url = setup.smtp_url.map(Secret::new);
        config.mail_folder = Some(folder.join("mail"));
        config.redis_url = setup.redis.then(redis_url);
        config.redis_namespace = database.clone();
        let listeners: Vec<TcpListener> =
            futures_util::future::join_all((0..setup.servers).map(|_| TcpListener::bind("127.0.0.1:0")))
                .await
                .into_iter()
                .map(Result::unwrap)
                .collect();
        let first = listeners[0].local_addr().unwrap();
        let simulated = TcpListener::bind("127.0.0.1:0").await.unwrap();
        config.stripe_api_base = format!("http://{}", simulated.local_addr().unwrap());
        let simulator = Simulator::new(Settings {
            webhook_url: Some(format!("http://{first}/webhooks/payments")),
            webhook_secret: Secret::new("whsec_simulator"),
            file: None,
            public_url: config.stripe_api_base.clone(),
        });
        tokio::spawn(simulator.clone().serve(simulated, shutdown.clone()));
        let mut servers = Vec::new();
        for (number, listener) in listeners.into_iter().enumerate() {
            let mut config = config.clone();
            config.data = folder.join(number.to_string());
            servers.push(start_at(config, setup.clock.clone(), listener, setup.workers, shutdown.child_token()).await);
        }
        let db = Db::connect(&config.database_url, 6).await.unwrap();
        Self { servers, simulator, db, database, config, folder, shutdown }
    }

    /// A server beside the stage's own, with other settings.
    pub async fn beside(&self, change: impl FnOnce(&mut Config)) -> Beside {
        self.beside_at(Clock::default(), change).await
    }

    /// The same, with a clock for waiting rooms.
    pub async fn beside_at(&self, clock: Clock, change: impl FnOnce(&mut Config)) -> Beside {
        let mut config = self.config.clone();
        config.data = self.folder.join(Uuid::now_v7().to_string());
        change(&mut config);
        let shutdown = CancellationToken::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let Server { app, url } = start_at(config, clock, listener, false, shutdown.clone()).await;
        Beside { app, url, shutdown }
    }

    /// Somebody with a token, talking to the first server.
    pub fn buyer(&self, name: &str) -> Api {
        self.buyer_at(0, name)
    }

    /// Somebody with a token, talking to a server.
    pub fn buyer_at(&self, server: usize, name: &str) -> Api {
        let token = issue(&self.config, &Person::buyer(name), Duration::from_hours(1)).unwrap();
        Api::new(&self.servers[server].url, Some(token))
    }

    /// Somebody of an organization.
    pub fn organizer(&self, organization: &str) -> Api {
        let token = issue(&self.config, &Person::organizer(organization), Duration::from_hours(1)).unwrap();
        Api::new(&self.servers[0].url, Some(token))
    }

    /// Somebody without a token.
    pub fn stranger(&self) -> Api {
        Api::new(&self.servers[0].url, None)
    }

    /// One number out of the database.
    pub async fn number(&self, statement: &str) -> i64 {
        let row = self.db.pool().query_one_raw(sql!(statement)).await.unwrap().unwrap();
        row.try_get_by_index::<i64>(0).unwrap()
    }

    /// One text out of the database.
    pub async fn text(&self, statement: &str) -> String {
        let row = self.db.pool().query_one_raw(sql!(statement)).await.unwrap().unwrap();
        row.try_get_by_index::<String>(0).unwrap()
    }

    pub async fn execute(&self, statement: &str) {
        self.db.pool().execute_unprepared(statement).await.unwrap();
    }

    /// Makes every active hold overdue, as if time had passed.
    pub async fn age_holds(&self) {
        self.execute(
            "UPDATE hold SET deadline = clock_timestamp() - interval '1 second' WHERE status = 'ACTIVE';
             UPDATE event_seat SET held_until = hold.deadline FROM hold WHERE hold.id = hold_id",
        )
        .await;
    }

    /// Tells the payment simulator what to do.
    pub async fn simulate(&self, orders: serde_json::Value) {
        let url = format!("{}/faults", self.config.stripe_api_base);
        let answer = reqwest::Client::new().post(url).json(&orders).send().await.unwrap();
        assert!(answer.status().is_success(), "{orders}");
    }

    /// Calls the simulator got at an endpoint.
    pub fn calls(&self, endpoint: &str) -> u64 {
        self.simulator.ledger().calls.get(endpoint).copied().unwrap_or(0)
    }

    /// Waits until every payment and refund was tried once, and nobody is at one of them.
    pub async fn nobody_drives(&self) {
        eventually("nobody is at a payment", || async {
            let driven = self
                .number(
                    "SELECT (SELECT count(*) FROM payment WHERE lease_token IS NOT NULL OR first_sent_at IS NULL)
                          + (SELECT count(*) FROM refund WHERE lease_token IS NOT NULL OR first_sent_at IS NULL)",
                )
                .await;
            (driven == 0).then_some(())
        })
        .await;
    }

    /// Runs the payment worker of the first server by hand until a condition holds.
    pub async fn drive_until<T, F: Future<Output = Option<T>>>(&self, what: &str, mut check: impl FnMut() -> F) -> T {
        let bookings = &self.servers[0].app.services.bookings;
        eventually(what, || {
            let checked = check();
            async move {
                bookings.drive_due().await.unwrap();
                checked.await
            }
        })
        .await
    }

    /// Issues tickets by hand, until nothing is left to do.
    pub async fn issue_tickets(&self) {
        let issuer = parterre::booking::Issuer;
        eventually("tickets are issued", || async {
            (parterre::outbox::consume(&self.db, &issuer).await.unwrap() == parterre::outbox::Progress::Idle)
                .then_some(())
        })
        .await;
    }

    /// Checks every invariant at rest and takes the stage down.
    pub async fn finish(self) {
        self.rest().await;
        invariants::check(&self).await;
        self.discard().await;
    }

    /// Takes the stage down as it is.
    pub async fn discard(self) {
        self.shutdown.cancel();
        for server in self.servers {
            server.app.drain(Duration::from_secs(10)).await;
        }
        self.db.pool().clone().close().await.unwrap();
        std::fs::remove_dir_all(&self.folder).ok();
        let admin = Db::connect(&admin_url(), 1).await.unwrap();
        admin.pool().execute_unprepared(&format!("DROP DATABASE {} WITH (FORCE)", self.database)).await.unwrap();
    }

    /// Waits until no money is in flight.
    pub async fn rest_but_tickets(&self) {
        eventually("no money is in flight", || async {
            let open = self
                .number(
                    "SELECT (SELECT count(*) FROM payment WHERE next_check_at IS NOT NULL)
                          + (SELECT count(*) FROM refund WHERE next_check_at IS NOT NULL AND status <> 'SUCCEEDED')",
                )
                .await;
            (open == 0).then_some(())
        })
        .await;
    }

    /// Waits until nothing is in flight.
    pub async fn rest(&self) {
        self.rest_but_tickets().await;
        let without_tickets = "SELECT count(*) FROM booking WHERE status = 'CONFIRMED'
            AND NOT EXISTS (SELECT FROM ticket WHERE booking_id = booking.id)";
        let issued = eventually("every confirmed booking has tickets", || async {
            (self.number(without_tickets).await == 0).then_some(())
        });
        let issued = AssertUnwindSafe(issued).catch_unwind().await;
        assert!(issued.is_ok(), "tickets are missing; {}", self.feed().await);
    }

    /// Where the outbox and its consumers stand, and who holds it back.
    async fn feed(&self) -> String {
        self.text(
            "SELECT jsonb_pretty(jsonb_build_object(
                'horizon', pg_snapshot_xmin(pg_current_snapshot())::text,
                'newest', (SELECT max(xid::text::bigint) FROM outbox),
                'now', clock_timestamp(),
                'cursors', (SELECT jsonb_agg(to_jsonb(outbox_cursor)) FROM outbox_cursor),
                'set aside', (SELECT jsonb_agg(to_jsonb(outbox_quarantine)) FROM outbox_quarantine),
                'sessions', (SELECT jsonb_agg(jsonb_build_array(datname, state, xact_start, wait_event, left(query, 80)))
                             FROM pg_stat_activity WHERE backend_xid IS NOT NULL OR datname = current_database())))",
        )
        .await
    }
}

/// Starts a server in this process.
pub async fn start(config: Config, listener: TcpListener, with_workers: bool, shutdown: CancellationToken) -> Server {
    start_at(config, Clock::default(), listener, with_workers, shutdown).await
}

/// The same, with a clock for waiting rooms.
pub async fn start_at(
    config: Config,
    clock: Clock,
    listener: TcpListener,
    with_workers: bool,
    shutdown: CancellationToken,
) -> Server {
    let url = format!("http://{}", listener.local_addr().unwrap());
    let app = App::build_at(config, clock, shutdown).await.unwrap();
    if with_workers {
        workers::start(&app);
    }
    workers::start_indexer(&app);
    tokio::spawn(http::serve(app.clone(), listener));
    Server { app, url }
}

/// How long anything may take before a test gives up: a test is no measurement, and the machine may be busy.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// Waits for a condition, and fails by its name when it does not come.
pub async fn eventually<T, F: Future<Output = Option<T>>>(what: &str, check: impl FnMut() -> F) -> T {
    eventually_within(PATIENCE, what, check).await
}

/// Waits for a condition, and fails by its name when patience runs out.
pub async fn eventually_within<T, F: Future<Output = Option<T>>>(
    patience: Duration,
    what: &str,
    mut check: impl FnMut() -> F,
) -> T {
    let waiting = async {
        loop {
            if let Some(found) = check().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(patience, waiting).await.unwrap_or_else(|_| panic!("not within {patience:?}: {what}"))
}
