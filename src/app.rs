//! Everything built once: the parts of a process, wired by hand.

use crate::auth::{KeyError, Tokens};
use crate::booking::{self, Bookings};
use crate::bus::{Bus, BusError, MemoryBus, RedisBus};
use crate::catalogue::Catalogue;
use crate::config::{Config, ConfigError, Limits};
use crate::db::{Db, Unreachable};
use crate::discovery::Discovery;
use crate::graphql::guard::Documents;
use crate::graphql::{ApiSchema, Services, schema};
use crate::http::{Geometries, OpenStreams, PackedMaps, PersistedQueries, Purger};
use crate::inventory::{Inventory, Lanes, NoLanes};
use crate::limit::{Limiter, Rate, Rates};
use crate::notification::{self, Mailer, Transport, TransportError};
use crate::payment::Stripe;
use crate::sales::Sales;
use crate::seatmap::{SeatMaps, Snapshots};
use crate::waiting::{self, Clock, MemoryQueue, Queue, RedisQueue, WaitingRooms};
use crate::wake::Wake;
use std::num::NonZeroU32;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// A process's parts, shared: every request has them.
#[derive(Clone)]
pub struct App(Arc<Parts>);

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

/// What a process is made of.
pub struct Parts {
    /// Its settings.
    pub config: Arc<Config>,
    /// The database.
    pub db: Db,
    /// What resolvers call.
    pub services: Services,
    /// The API.
    pub schema: ApiSchema,
    /// Reads tokens.
    pub tokens: Tokens,
    /// Where tasks run that must not be dropped half way.
    pub tasks: TaskTracker,
    /// Counts requests by address and account, unless that is off.
    pub limiter: Option<Limiter>,
    /// How many sockets and event streams each account and address has open.
    pub open_streams: OpenStreams,
    /// Documents that passed the guard.
    pub documents: Documents,
    /// Whether the database answered a moment ago.
    pub readiness: moka::future::Cache<(), bool>,
    /// Seat maps as HTTP serves them.
    pub packed_maps: PackedMaps,
    /// Geometry files as HTTP serves them.
    pub geometries: Geometries,
    /// Documents by their hashes.
    pub persisted: PersistedQueries,
    /// Sends messages to buyers, if there is where to.
    pub mailer: Option<Mailer>,
    /// Tells the cache in front of us what is out of date, if there is one.
    pub purger: Option<Arc<Purger>>,
    /// Ends everything.
    pub shutdown: CancellationToken,
    /// Changes with every commit that wrote to the outbox: wakes everyone who reads it.
    pub outbox_wake: Wake,
    /// Wakes the one who looks at webhooks.
    pub webhook_wake: Wake,
    /// In development: the event that the playground's examples are about.
    pub demo_event: Arc<OnceLock<String>>,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").field("config", &self.config).finish_non_exhaustive()
    }
}

/// Why a process can't start. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The database is away.
    #[error(transparent)]
    Database(#[from] Unreachable),
    /// The lanes can't start.
    #[error(transparent)]
    Lanes(#[from] NoLanes),
    /// Redis is away.
    #[error("cannot reach Redis: {0}; start it, or unset REDIS_URL to serve alone")]
    Bus(#[from] BusError),
    /// The keys can't be used.
    #[error(transparent)]
    Keys(#[from] KeyError),
    /// The settings are refused.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// Messages can't be sent that way.
    #[error(transparent)]
    Mail(#[from] TransportError),
    /// Admission tokens can't be signed.
    #[error("ADMISSION_SECRET can't be used: {0}")]
    Admission(#[from] jsonwebtoken::errors::Error),
    /// The payment adapter can't be built.
    #[error("the payment adapter can't be built: {0}")]
    Payment(reqwest::Error),
    /// The cache can't be told.
    #[error("CACHE_PURGE_URL can't be used: {0}")]
    Cache(reqwest::Error),
}

/// What counts requests; shared through Redis if there is one.
fn limiter(config: &Config) -> Result<Option<Limiter>, BusError> {
    if config.limits == Limits::Off {
        return Ok(None);
    }
    let nonzero = |number: u32| NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN);
    let slowly = |each: u64, burst: u32| Rate { each: Duration::from_secs(each), burst: nonzero(burst) };
    let rates = Rates {
        address: Rate::per_second(config.address_per_second, nonzero(4)),
        account: Rate::per_second(config.account_per_second, nonzero(4)),
        reports: slowly(1, 10),
        event: Rate::per_second(config.event_holds_per_second, nonzero(2)),
        buyer: slowly(2, 15),
        payment: slowly(5, 8),
    };
    match &config.redis_url {
        Some(url) => {
            let shared = Limiter::shared(rates, url, &config.redis_namespace);
            shared.map(Some).map_err(|error| BusError(error.to_string()))
        }
        None => Ok(Some(Limiter::new(rates))),
    }
}

/// Who waits; in Redis if there is one.
fn queue(config: &Config, clock: Clock) -> Result<Arc<dyn Queue>, BusError> {
    Ok(match &config.redis_url {
        Some(url) => {
            let shared = RedisQueue::new(url, &config.redis_namespace, clock);
            Arc::new(shared.map_err(|error| BusError(error.to_string()))?)
        }
        None => Arc::new(MemoryQueue::new(clock)),
    })
}

impl App {
    /// Builds the parts of a process: connects, starts the lanes and the listeners, but no workers and no server.
    pub async fn build(config: Config, shutdown: CancellationToken) -> Result<Self, StartError> {
        Self::build_at(config, Clock::default(), shutdown).await
    }

    /// The same, with waiting rooms by a clock of the caller's.
    pub async fn build_at(config: Config, clock: Clock, shutdown: CancellationToken) -> Result<Self, StartError> {
        config.check()?;
        let tasks = TaskTracker::new();
        let db = Db::connect(&config.database_url, config.database_connections).await?;
        let bus: Arc<dyn Bus> = match &config.redis_url {
            Some(url) => Arc::new(RedisBus::connect(url, &config.redis_namespace, shutdown.clone()).await?),
            None => Arc::new(MemoryBus::default()),
        };
        let (outbox_wake, payment_wake) = (Wake::default(), Wake::default());
        let catalogue = Catalogue::new(db.clone());
        let lanes = Lanes::start(config.lanes, &config.database_url, &bus, &outbox_wake, &tasks).await?;
        let inventory = Arc::new(Inventory::new(&db, &bus, &outbox_wake, lanes));
        let provider = Arc::new(
            Stripe::new(&config.stripe_api_base, config.stripe_secret_key.clone(), config.stripe_calls_per_second)
                .map_err(StartError::Payment)?,
        );
        let bookings = Bookings::new(booking::Parts {
            db: db.clone(),
            bus: Arc::clone(&bus),
            inventory: Arc::clone(&inventory),
            provider,
            tasks: tasks.clone(),
            wake: payment_wake,
            checkout_wait: Duration::from_millis(config.checkout_wait_ms),
        });
        let snapshots = config.redis_url.as_deref().map(|url| Snapshots::new(url, &config.redis_namespace));
        let snapshots = snapshots.transpose().map_err(|error| BusError(error.to_string()))?;
        let seat_maps = SeatMaps::start(db.clone(), catalogue.clone(), (&*bus, snapshots), &tasks, &shutdown);
        let limiter = limiter(&config)?;
        let waiting = WaitingRooms::start(waiting::Parts {
            db: db.clone(),
            catalogue: catalogue.clone(),
            inventory: Arc::clone(&inventory),
            bus: Arc::clone(&bus),
            queue: queue(&config, clock)?,
            secret: config.admission_secret.clone(),
            limiter: limiter.clone(),
            holds_max: config.holds_per_buyer,
            tasks: tasks.clone(),
            shutdown: shutdown.clone(),
        })?;
        let mailer = match Transport::of(&config)? {
            Some(transport) => Some(Mailer::new(notification::Parts {
                db: db.clone(),
                bookings: bookings.clone(),
                catalogue: catalogue.clone(),
                transport,
                from: config.mail_from.clone(),
                ticket_secret: config.ticket_secret.clone(),
            })?),
            None => None,
        };
        let purger = config.cache_purge_url.as_ref().map(|url| Purger::new(url.expose()));
        let purger = purger.transpose().map_err(StartError::Cache)?.map(Arc::new);
        let discovery = Discovery::open(db.clone(), &config.data);
        let services = Services {
            catalogue,
            inventory,
            bookings,
            sales: Sales::new(db.clone()),
            seat_maps,
            waiting,
            limiter: limiter.clone(),
            discovery,
            bus,
            ticket_secret: config.ticket_secret.clone(),
            shutdown: shutdown.clone(),
        };
        let schema = schema(services.clone(), config.answers_introspection());
        let tokens = Tokens::new(&config)?;
        let documents = Documents::new(config.answers_introspection());
        Ok(Self(Arc::new(Parts {
            config: Arc::new(config),
            db,
            services,
            schema,
            tokens,
            tasks,
            limiter,
            open_streams: OpenStreams::default(),
            documents,
            readiness: moka::future::Cache::builder().time_to_live(Duration::from_secs(1)).build(),
            packed_maps: PackedMaps::default(),
            geometries: Geometries::default(),
            persisted: PersistedQueries::default(),
            mailer,
            purger,
            shutdown,
            outbox_wake,
            webhook_wake: Wake::default(),
            demo_event: Arc::default(),
        })))
    }

    /// Waits for tasks that must not be dropped half way, after everything was told to end. Writes get this long.
    pub async fn drain(self, at_most: Duration) {
        let tasks = self.tasks.clone();
        // The lanes end when the last who could ask is gone.
        drop(self);
        tasks.close();
        if tokio::time::timeout(at_most, tasks.wait()).await.is_err() {
            tracing::warn!("some tasks did not end in time");
        }
    }
}
