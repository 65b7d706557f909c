//! Development: everything on one machine with one command, and services for the tests.

mod cluster;

pub use cluster::{Cluster, ClusterError, Durability};

use crate::app::App;
use crate::auth::{Person, issue};
use crate::config::{Config, Secret};
use crate::payment::simulator::{Settings, Simulator};
use crate::{db, http, seed, shutdown, workers};
use anyhow::Context as _;
use clap::Parser;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, Stdio};
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

/// Where everything private of a checkout lives.
fn home() -> PathBuf {
    PathBuf::from(".parterre")
}

/// The settings that apply when nobody says otherwise.
#[must_use]
pub fn default_config() -> Config {
    #[derive(Parser)]
    struct Defaults {
        #[command(flatten)]
        config: Config,
    }
    Defaults::parse_from(["parterre"]).config
}

/// Starts everything, prints how to use it, and ends it with Ctrl-C.
#[expect(clippy::disallowed_methods, reason = "whether DATABASE_URL is set decides if a private cluster is started")]
pub async fn run(mut config: Config) -> anyhow::Result<()> {
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!("cannot listen on {}: stop whoever does, or choose another address with PARTERRE_LISTEN", config.listen)
    })?;
    let cluster = if std::env::var("DATABASE_URL").is_ok() {
        None
    } else {
        let cluster = Cluster::start(&home().join("postgres"), cluster::Durability::Durable)?;
        cluster.create_database("parterre")?;
        config.database_url = cluster.url("parterre");
        Some(cluster)
    };
    // Ctrl-C counts from here on, also while the demo data is being made: nothing may be left running.
    let started = CancellationToken::new();
    let result = tokio::select! {
        result = serve(config, listener, started.clone()) => result,
        () = interrupted_early(&started) => Ok(()),
    };
    if let Some(cluster) = cluster {
        cluster.stop()?;
    }
    result
}

/// Ctrl-C before everything is up; afterwards the server ends in order by itself.
async fn interrupted_early(started: &CancellationToken) {
    tokio::select! {
        () = shutdown::signal() => {}
        () = started.cancelled() => std::future::pending().await,
    }
}

async fn serve(mut config: Config, listener: TcpListener, started: CancellationToken) -> anyhow::Result<()> {
    config.listen = listener.local_addr()?;
    config.public_url = format!("http://{}", config.listen);
    config.create_organizations = true;
    config.playground_token = true;
    if config.smtp_url.is_none() {
        config.mail_folder.get_or_insert_with(|| home().join("mail"));
    }
    let token = CancellationToken::new();
    let simulator = simulator(&mut config, &token).await?;
    let database = db::Db::connect(&config.database_url, 2).await?;
    parterre_migration::up(database.pool()).await.context("migrating")?;
    let app = App::build(config, token.clone()).await?;
    seed::run(&app).await?;
    let event = seed::theatre(&app).await?;
    app.demo_event.get_or_init(|| event);
    workers::start(&app);
    workers::start_indexer(&app);
    workers::start_tidying(&app);
    let server = tokio::spawn(http::serve(app.clone(), listener));
    welcome(&app)?;
    started.cancel();
    tokio::select! {
        () = shutdown::signal() => shutdown::end(app, server).await,
        ended = simulator => ended??,
    }
    Ok(())
}

/// Starts the payment simulator and points the settings to it, unless they name a provider.
async fn simulator(
    config: &mut Config,
    token: &CancellationToken,
) -> anyhow::Result<tokio::task::JoinHandle<std::io::Result<()>>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = format!("http://{}", listener.local_addr()?);
    std::fs::create_dir_all(home())?;
    let settings = Settings {
        webhook_url: Some(format!("{}/webhooks/payments", config.public_url)),
        webhook_secret: Secret::new("whsec_simulator"),
        file: Some(home().join("simulator.json")),
        public_url: address.clone(),
    };
    if config.stripe_secret_key.expose() == "sk_simulator" {
        config.stripe_api_base = address;
    }
    Ok(tokio::spawn(Simulator::new(settings).serve(listener, token.clone())))
}

#[expect(clippy::print_stdout, reason = "what a newcomer reads first")]
fn welcome(app: &App) -> anyhow::Result<()> {
    let day = Duration::from_hours(720);
    let url = &app.config.public_url;
    let buyer = issue(&app.config, &Person::buyer("mina"), day)?;
    let organizer = issue(&app.config, &Person::organizer("ACME"), day)?;
    let event = app.demo_event.get().context("there is no demo event")?;
    let mail =
        app.config.mail_folder.as_deref().map_or_else(|| "your mail server".into(), |it| it.display().to_string());
    let query =
        format!(r#"{{"query":"{{ seatMap(eventId: \"{event}\") {{ event {{ title }} availableCount version }} }}"}}"#);
    println!(
        "\nParterre is running.\n\n  \
         Box office  {url}/           (each tab is another buyer)\n  \
         GraphiQL    {url}/graphiql   (the example operations are in its tabs, with a buyer's token)\n  \
         GraphQL     {url}/graphql\n  \
         Schema      {url}/schema.graphql\n\n  \
         A buyer's token (mina):\n  {buyer}\n\n  \
         An organizer's token (ACME):\n  {organizer}\n\n  \
         Try it:\n  curl -s {url}/graphql -H 'Content-Type: application/json' -H 'Authorization: Bearer {buyer}' -d '{query}'\n\n\
         Messages to buyers go to {mail}.\n\n\
         Ctrl-C ends everything; the data stays in .parterre/.\n"
    );
    Ok(())
}

/// Stops the private cluster, if it runs.
pub async fn down() -> anyhow::Result<()> {
    for name in ["postgres", "test"] {
        let folder = home().join(name);
        if folder.exists() {
            Cluster::of(&folder)?.stop()?;
        }
    }
    Ok(())
}

/// The address of the private cluster's database.
pub fn database_url() -> anyhow::Result<String> {
    Ok(Cluster::of(&home().join("postgres"))?.url("parterre"))
}

/// Runs a command with a private PostgreSQL and Redis, and ends with its exit code.
pub async fn with_services(folder: &Path, command: &[String]) -> anyhow::Result<ExitCode> {
    let cluster = Cluster::start(folder, cluster::Durability::Fast)?;
    let result = run_with(&cluster, command).await;
    cluster.stop()?;
    result
}

/// A private Redis that keeps nothing, until it is dropped.
#[derive(Debug)]
pub struct Redis {
    process: tokio::process::Child,
    /// Where it is.
    pub url: String,
}

impl Redis {
    /// Starts one on a free port.
    pub async fn start() -> anyhow::Result<Self> {
        let port = free_port().await?;
        let process = Command::new("redis-server")
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"])
            .stdout(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("redis-server can't be started; install it (Debian: apt-get install redis-server)")?;
        Ok(Self { process, url: format!("redis://127.0.0.1:{port}/") })
    }

    /// Ends it.
    pub async fn stop(mut self) {
        // It is killed when dropped at the latest.
        self.process.kill().await.ok();
    }
}

async fn run_with(cluster: &Cluster, command: &[String]) -> anyhow::Result<ExitCode> {
    let redis = Redis::start().await?;
    let (program, arguments) = command.split_first().context("a command is needed")?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("PARTERRE_TEST_DATABASE_URL", cluster.url("postgres"))
        .env("PARTERRE_TEST_REDIS_URL", &redis.url)
        .spawn()
        .with_context(|| format!("{program} can't be started"))?;
    let status = tokio::select! {
        status = child.wait() => status?,
        () = shutdown::signal() => { child.kill().await.ok(); return Ok(ExitCode::FAILURE) }
    };
    redis.stop().await;
    let code = status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(1);
    Ok(ExitCode::from(code))
}

async fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0").await?.local_addr()?.port())
}
