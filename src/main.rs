//! The one binary: its roles are subcommands.

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};
use parterre::app::App;
use parterre::auth::{Person, issue};
use parterre::booking::{Decided, Decision};
use parterre::config::{Config, Secret};
use parterre::outbox::{self, Lag};
use parterre::payment::simulator::{Settings, Simulator};
use parterre::{db, dev, graphql, http, telemetry, workers};
use parterre_entity::PaymentId;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A box office behind one GraphQL API.
#[derive(Parser)]
#[command(version, about)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Everything for development: a private PostgreSQL, demo data, the payment simulator, workers and the server
    Dev(Config),
    /// The server
    Serve(Config),
    /// Workers without a server
    Worker(Config),
    /// Apply database migrations
    Migrate(Config),
    /// Fill the database with demo data, once
    Seed(Config),
    /// Build the search index anew
    Reindex(Config),
    /// Check every invariant and list what breaks one; fails if anything does
    Audit(Config),
    /// Compare payments with the provider's list and repair what differs
    Reconcile(ReconcileArgs),
    /// Payments that a person has to look at
    Payments(PaymentsArgs),
    /// List the consumers of the outbox and how far behind they are, or forget one that was switched off for good
    Outbox(OutboxArgs),
    /// Measure a server on a private PostgreSQL and Redis
    Bench(parterre::bench::Options),
    /// Print the GraphQL schema
    Schema(SchemaArgs),
    /// Look whether everything that a server needs is there, and say what to do where it is not
    Doctor(Config),
    /// Whether the server on this machine is ready, for containers
    Healthcheck(Config),
    /// Print a token signed with the development secret
    Token(TokenArgs),
    /// Organizations
    Org(OrgArgs),
    /// The payment provider to develop and test against
    Simulator(SimulatorArgs),
    /// Run a command with a private PostgreSQL and Redis, for tests
    #[command(hide = true)]
    WithServices(WithServicesArgs),
    /// Stop the private PostgreSQL of `dev`
    #[command(hide = true)]
    Down,
    /// Print the address of the private PostgreSQL of `dev`
    #[command(hide = true)]
    DatabaseUrl,
}

#[derive(Args)]
struct SchemaArgs {
    /// Print the table of error codes instead
    #[arg(long)]
    errors: bool,
}

#[derive(Args)]
struct TokenArgs {
    #[command(subcommand)]
    who: Who,
    /// Secret to sign with
    #[arg(long, env = "JWT_SECRET", hide_env_values = true, default_value = parterre::config::DEVELOPMENT_SECRET, global = true)]
    jwt_secret: Secret,
}

#[derive(Subcommand)]
enum Who {
    /// A buyer, by any name
    Buyer {
        /// The `sub`
        name: String,
    },
    /// Somebody of an organization, by the organization's name
    Organizer {
        /// The organization
        organization: String,
    },
}

#[derive(Args)]
struct ReconcileArgs {
    /// Hours back from now
    #[arg(long, default_value_t = 48)]
    hours: u32,
    #[command(flatten)]
    config: Config,
}

#[derive(Args)]
struct PaymentsArgs {
    #[command(subcommand)]
    what: PaymentsCommand,
}

#[derive(Subcommand)]
enum PaymentsCommand {
    /// List payments whose amount at the provider is not the booking's, or decide about one of them
    Review {
        /// The payment's id, as listed; without it, all are listed
        payment: Option<uuid::Uuid>,
        /// What to do about it
        #[arg(long, value_enum, requires = "payment")]
        decide: Option<Decide>,
        /// Why, for the trail
        #[arg(long, requires = "decide")]
        reason: Option<String>,
        /// Who decides, for the trail
        #[arg(long, env = "USER", default_value = "admin")]
        by: String,
        #[command(flatten)]
        config: Box<Config>,
    },
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum Decide {
    /// Whatever money moved goes back; the booking ends without seats
    GiveBack,
    /// It was put right at the provider: settle it by what is there now
    LookAgain,
}

#[derive(Args)]
struct OutboxArgs {
    /// The consumer to forget: nothing is kept for it any more
    #[arg(long)]
    forget: Option<String>,
    #[command(flatten)]
    config: Config,
}

#[derive(Args)]
struct OrgArgs {
    #[command(subcommand)]
    what: OrgCommand,
}

#[derive(Subcommand)]
enum OrgCommand {
    /// Create an organization and print its id
    Create {
        /// Its name
        name: String,
        #[command(flatten)]
        config: Box<Config>,
    },
}

#[derive(Args)]
struct SimulatorArgs {
    /// Where to serve
    #[arg(long, env = "SIMULATOR_LISTEN", default_value = "127.0.0.1:8001")]
    listen: SocketAddr,
    /// Where webhooks go
    #[arg(long, env = "SIMULATOR_WEBHOOK_URL")]
    webhook_url: Option<String>,
    /// What signs them
    #[arg(long, env = "SIMULATOR_WEBHOOK_SECRET", hide_env_values = true, default_value = "whsec_simulator")]
    webhook_secret: Secret,
    /// Where the ledger is kept
    #[arg(long, env = "SIMULATOR_LEDGER")]
    ledger: Option<PathBuf>,
}

#[derive(Args)]
struct WithServicesArgs {
    /// The folder of the private cluster
    #[arg(long, default_value = ".parterre/test")]
    folder: PathBuf,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required = true)]
    command: Vec<String>,
}

/// Settings that may be given as a file, by `NAME_FILE`: orchestrators hand secrets over so.
const SECRETS: [&str; 8] = [
    "DATABASE_URL",
    "REDIS_URL",
    "JWT_SECRET",
    "TICKET_SECRET",
    "ADMISSION_SECRET",
    "STRIPE_SECRET_KEY",
    "STRIPE_WEBHOOK_SECRETS",
    "SMTP_URL",
];

/// Starts over with the secrets that were given as files in the environment; comes back if there are none.
fn read_secret_files() -> anyhow::Result<()> {
    let mut command = std::process::Command::new(std::env::current_exe()?);
    command.args(std::env::args_os().skip(1));
    let mut found = false;
    for name in SECRETS {
        let by_file = format!("{name}_FILE");
        let Some(path) = std::env::var_os(&by_file) else { continue };
        anyhow::ensure!(std::env::var_os(name).is_none(), "{name} and {by_file} are both set: unset one");
        let secret = std::fs::read_to_string(&path)
            .with_context(|| format!("{by_file} names {}, which can't be read", path.display()))?;
        command.env(name, secret.trim_end_matches(['\r', '\n'])).env_remove(by_file);
        found = true;
    }
    if found { Err(std::os::unix::process::CommandExt::exec(&mut command).into()) } else { Ok(()) }
}

fn main() -> ExitCode {
    if let Err(error) = read_secret_files() {
        return fail(&error);
    }
    parterre::install_crypto();
    telemetry::init();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    match runtime.block_on(run(Cli::parse().command)) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

/// One line that says what is wrong and what to do.
#[expect(clippy::print_stderr, reason = "the command line's own answer")]
fn fail(error: &anyhow::Error) -> ExitCode {
    let mut told = Vec::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if !told.iter().any(|earlier: &String| earlier.contains(&cause)) {
            told.push(cause);
        }
    }
    eprintln!("parterre: {}", told.join(": "));
    ExitCode::FAILURE
}

#[expect(clippy::print_stdout, reason = "the command line's own answers")]
async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Dev(config) => dev::run(config).await?,
        Command::Serve(config) => serve(config).await?,
        Command::Worker(config) => work(config).await?,
        Command::Migrate(config) => {
            parterre_migration::up(connect(&config).await?.pool()).await.context("migrating")?;
        }
        Command::Seed(config) => seed(config).await?,
        Command::Reindex(config) => {
            let app = App::build(config, CancellationToken::new()).await?;
            println!("{} events indexed", app.services.discovery.rebuild().await?);
        }
        Command::Reconcile(args) => reconcile(args).await?,
        Command::Audit(config) => return audit(&config).await,
        Command::Payments(PaymentsArgs { what }) => review(what).await?,
        Command::Outbox(args) => consumers(args).await?,
        Command::Bench(options) => parterre::bench::run(options).await?,
        Command::Schema(SchemaArgs { errors: true }) => print!("{}", graphql::error_table()),
        Command::Schema(SchemaArgs { errors: false }) => print!("{}", graphql::sdl()),
        Command::Doctor(config) => return Ok(doctor(&config).await),
        Command::Healthcheck(config) => parterre::doctor::is_ready(&config).await.map_err(anyhow::Error::msg)?,
        Command::Token(args) => println!("{}", token(&args)?),
        Command::Org(OrgArgs { what: OrgCommand::Create { name, config } }) => {
            let app = App::build(*config, CancellationToken::new()).await?;
            let id = app
                .services
                .catalogue
                .organization_named(&name, true)
                .await?
                .context("the organization is not there")?;
            println!("{}", parterre_schema::node_id(parterre_schema::Kind::Organizer, id).as_str());
        }
        Command::Simulator(args) => simulate(args).await?,
        Command::WithServices(args) => return dev::with_services(&args.folder, &args.command).await,
        Command::Down => dev::down().await?,
        Command::DatabaseUrl => println!("{}", dev::database_url()?),
    }
    Ok(ExitCode::SUCCESS)
}

#[expect(clippy::print_stdout, reason = "the command line's own answer")]
async fn consumers(args: OutboxArgs) -> anyhow::Result<()> {
    let db = connect(&args.config).await?;
    if let Some(consumer) = args.forget {
        anyhow::ensure!(
            outbox::forget(&db, &consumer).await?,
            "no consumer is named {consumer}: `parterre outbox` lists them"
        );
    }
    for Lag { consumer, seconds } in outbox::lags(&db).await? {
        println!("{consumer:<16} {seconds:>10.1} s behind");
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the command line's own answer")]
async fn reconcile(args: ReconcileArgs) -> anyhow::Result<()> {
    let app = App::build(args.config, CancellationToken::new()).await?;
    let now = app.services.bookings.now().await?;
    let report = app.services.bookings.reconcile(now - chrono::Duration::hours(args.hours.into()), now).await?;
    while app.services.bookings.drive_due().await? > 0 {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    for note in report
        .repaired
        .iter()
        .map(|note| format!("repaired: {note}"))
        .chain(report.unexplained.iter().map(|note| format!("look at: {note}")))
    {
        println!("{note}");
    }
    println!(
        "{} woken, {} repaired, {} for a person to look at",
        report.woken,
        report.repaired.len(),
        report.unexplained.len()
    );
    app.shutdown.cancel();
    app.drain(Duration::from_secs(20)).await;
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the command line's own answer")]
async fn review(what: PaymentsCommand) -> anyhow::Result<()> {
    let PaymentsCommand::Review { payment, decide, reason, by, config } = what;
    let app = App::build(*config, CancellationToken::new()).await?;
    let bookings = &app.services.bookings;
    match (payment, decide) {
        (Some(id), Some(decide)) => {
            let decision = match decide {
                Decide::GiveBack => Decision::GiveBack,
                Decide::LookAgain => Decision::LookAgain,
            };
            let reason = reason.context("say why with --reason: it is kept in the audit trail")?;
            bookings.decide(PaymentId(id), &Decided { decision, actor: by, reason }).await?;
            println!("decided; the payment worker does the rest");
        }
        (Some(_), None) => anyhow::bail!("say what to do with --decide give-back or --decide look-again"),
        (None, _) => {
            let reviews = bookings.reviews().await?;
            for review in &reviews {
                let found = match &review.found {
                    Ok(intent) => format!("{:?} of {} {}", intent.standing, intent.amount_minor, intent.currency),
                    Err(error) => format!("something that can't be read now: {error}"),
                };
                println!(
                    "{} booking {}: should be {} {} in minor units, the provider has {found}",
                    review.payment, review.booking_code, review.amount_minor, review.currency
                );
            }
            println!("{} to decide", reviews.len());
        }
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "the command line's own answer")]
async fn doctor(config: &Config) -> ExitCode {
    let findings = parterre::doctor::examine(config).await;
    for finding in &findings {
        match &finding.told {
            Ok(told) => println!("ok       {:<17} {told}", finding.what),
            Err(told) => println!("problem  {:<17} {told}", finding.what),
        }
    }
    if findings.iter().all(|finding| finding.told.is_ok()) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// What is in flight gets a minute.
const AUDIT_GRACE_SECONDS: i64 = 60;

#[expect(clippy::print_stdout, reason = "the command line's own answer")]
async fn audit(config: &Config) -> anyhow::Result<ExitCode> {
    let grace = chrono::Duration::seconds(AUDIT_GRACE_SECONDS);
    let violations = parterre::auditor::check(&connect(config).await?, grace, parterre::db::Pace::Full).await?;
    for violation in &violations {
        println!("{}: {}", violation.invariant, violation.what);
    }
    println!("{} violations", violations.len());
    Ok(if violations.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn connect(config: &Config) -> anyhow::Result<db::Db> {
    Ok(db::Db::connect(&config.database_url, 2).await?)
}

async fn seed(config: Config) -> anyhow::Result<()> {
    let app = App::build(config, CancellationToken::new()).await?;
    parterre::seed::run(&app).await
}

async fn serve(config: Config) -> anyhow::Result<()> {
    let shutdown = CancellationToken::new();
    let listener = bind(config.listen).await?;
    let admin = match config.admin_listen {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let app = App::build(config, shutdown.clone()).await?;
    parterre_migration::up(app.db.pool()).await.context("migrating")?;
    if app.config.workers {
        workers::start(&app);
    }
    workers::start_indexer(&app);
    workers::start_tidying(&app);
    if let Some(listener) = admin {
        telemetry::serve_metrics(listener, &shutdown)?;
    }
    tracing::info!(address = %app.config.listen, "serving");
    let server = tokio::spawn(http::serve(app.clone(), listener));
    parterre::shutdown::signal().await;
    parterre::shutdown::end(app, server).await;
    Ok(())
}

async fn work(config: Config) -> anyhow::Result<()> {
    let admin = match config.admin_listen {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let app = App::build(config, CancellationToken::new()).await?;
    if let Some(listener) = admin {
        telemetry::serve_metrics(listener, &app.shutdown)?;
    }
    workers::start(&app);
    tracing::info!("working");
    parterre::shutdown::signal().await;
    app.shutdown.cancel();
    app.drain(Duration::from_secs(20)).await;
    Ok(())
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("cannot listen on {address}: stop whoever does, or choose another address with PARTERRE_LISTEN")
    })
}

fn token(args: &TokenArgs) -> anyhow::Result<String> {
    let person = match &args.who {
        Who::Buyer { name } => Person::buyer(name),
        Who::Organizer { organization } => Person::organizer(organization),
    };
    let mut config = dev::default_config();
    config.jwt_secret = args.jwt_secret.clone();
    Ok(issue(&config, &person, Duration::from_hours(720))?)
}

async fn simulate(args: SimulatorArgs) -> anyhow::Result<()> {
    let listener = bind(args.listen).await?;
    let settings = Settings {
        webhook_url: args.webhook_url,
        webhook_secret: args.webhook_secret,
        file: args.ledger,
        public_url: format!("http://{}", listener.local_addr()?),
    };
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(Simulator::new(settings).serve(listener, shutdown.clone()));
    parterre::shutdown::signal().await;
    shutdown.cancel();
    serving.await??;
    Ok(())
}
