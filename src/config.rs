//! Settings: flags and environment through clap, listed by `--help`.

use clap::Args;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

/// A value that never shows itself, neither in logs nor in `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a value.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// The value, for the one who needs it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(secret)")
    }
}

impl std::str::FromStr for Secret {
    type Err = std::convert::Infallible;

    fn from_str(value: &str) -> Result<Self, Self::Err> {
        Ok(Self::new(value))
    }
}

/// What development signs tokens and tickets with. Refused when `PARTERRE_PRODUCTION` is set.
pub const DEVELOPMENT_SECRET: &str = "parterre-development-secret-not-for-production";

/// Settings of a server and its workers.
#[derive(Args, Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "switches of the command line")]
pub struct Config {
    /// PostgreSQL, for example `postgres://user@host/database`
    #[arg(long, env = "DATABASE_URL", default_value = "postgres://localhost/parterre", hide_env_values = true)]
    pub database_url: String,
    /// Connections in this process's pool, besides three for each lane
    #[arg(long, env = "DATABASE_CONNECTIONS", default_value_t = 16)]
    pub database_connections: u32,
    /// Redis; without it this process serves alone
    #[arg(long, env = "REDIS_URL", hide_env_values = true)]
    pub redis_url: Option<String>,
    /// Keeps several installations on one Redis apart
    #[arg(long, env = "REDIS_NAMESPACE", default_value = "main")]
    pub redis_namespace: String,
    /// Where to serve
    #[arg(long, env = "PARTERRE_LISTEN", default_value = "127.0.0.1:8000")]
    pub listen: SocketAddr,
    /// Where /metrics is served; off without it
    #[arg(long, env = "PARTERRE_ADMIN_LISTEN")]
    pub admin_listen: Option<SocketAddr>,
    /// Where clients reach this server
    #[arg(long, env = "PARTERRE_PUBLIC_URL", default_value = "http://127.0.0.1:8000")]
    pub public_url: String,
    /// Whether requests, holds and payments are limited: off for load tests, refused in production
    #[arg(long, env = "PARTERRE_LIMITS", value_enum, default_value_t = Limits::On)]
    pub limits: Limits,
    /// Requests a second of one address on the average, and four times as many at once
    #[arg(long, env = "PARTERRE_ADDRESS_PER_SECOND", default_value = "50")]
    pub address_per_second: NonZeroU32,
    /// Requests a second of one account on the average, and four times as many at once
    #[arg(long, env = "PARTERRE_ACCOUNT_PER_SECOND", default_value = "20")]
    pub account_per_second: NonZeroU32,
    /// Holds a second that one event is asked for on the average, as many checkouts, and twice as many at once
    #[arg(long, env = "PARTERRE_EVENT_HOLDS_PER_SECOND", default_value = "2000")]
    pub event_holds_per_second: NonZeroU32,
    /// Holds that one buyer may have at once over all events
    #[arg(long, env = "PARTERRE_HOLDS_PER_BUYER", default_value_t = 10)]
    pub holds_per_buyer: usize,
    /// Networks of proxies whose X-Forwarded-For counts, such as 10.0.0.0/8, separated by commas
    #[arg(long, env = "PARTERRE_TRUSTED_PROXIES", value_delimiter = ',')]
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// Origins of other pages that may call, such as `https://shop.example.com`, separated by commas
    #[arg(long, env = "PARTERRE_ALLOWED_ORIGINS", value_delimiter = ',')]
    pub allowed_origins: Vec<String>,
    /// The search index and other files that can be rebuilt
    #[arg(long, env = "PARTERRE_DATA", default_value = ".parterre/data")]
    pub data: PathBuf,
    /// Where the cache in front of the servers is told what is out of date: `{"tags": [ids]}` by POST
    #[arg(long, env = "CACHE_PURGE_URL", hide_env_values = true)]
    pub cache_purge_url: Option<Secret>,
    /// Refuse settings that are for development only
    #[arg(long, env = "PARTERRE_PRODUCTION")]
    pub production: bool,
    /// Secret of HS256 tokens, for development
    #[arg(long, env = "JWT_SECRET", hide_env_values = true, default_value = DEVELOPMENT_SECRET)]
    pub jwt_secret: Secret,
    /// Address of the identity provider's set of public keys (JWKS), of `EdDSA`, ES256 or RS256; replaces the secret
    #[arg(long, env = "JWT_JWKS_URL")]
    pub jwt_jwks_url: Option<String>,
    /// PEM file with the public key of `EdDSA`, ES256 or RS256 tokens; replaces the secret
    #[arg(long, env = "JWT_PUBLIC_KEY_FILE")]
    pub jwt_public_key_file: Option<PathBuf>,
    /// Who issues tokens: `iss`
    #[arg(long, env = "JWT_ISSUER", default_value = "parterre")]
    pub jwt_issuer: String,
    /// Whom tokens are for: `aud`
    #[arg(long, env = "JWT_AUDIENCE", default_value = "parterre")]
    pub jwt_audience: String,
    /// Organizations named in organizers' tokens come into being at their first use
    #[arg(long, env = "PARTERRE_CREATE_ORGANIZATIONS")]
    pub create_organizations: bool,
    /// Secret that signs ticket codes
    #[arg(long, env = "TICKET_SECRET", hide_env_values = true, default_value = DEVELOPMENT_SECRET)]
    pub ticket_secret: Secret,
    /// Secret that signs admission tokens of waiting rooms; the same for all processes
    #[arg(long, env = "ADMISSION_SECRET", hide_env_values = true, default_value = DEVELOPMENT_SECRET)]
    pub admission_secret: Secret,
    /// Base of the payment provider's API
    #[arg(long, env = "STRIPE_API_BASE", default_value = "https://api.stripe.com")]
    pub stripe_api_base: String,
    /// The payment provider's secret key
    #[arg(long, env = "STRIPE_SECRET_KEY", hide_env_values = true, default_value = "sk_simulator")]
    pub stripe_secret_key: Secret,
    /// Secrets of the payment provider's webhooks, separated by commas; two may be active
    #[arg(
        long,
        env = "STRIPE_WEBHOOK_SECRETS",
        hide_env_values = true,
        value_delimiter = ',',
        default_value = "whsec_simulator"
    )]
    pub stripe_webhook_secrets: Vec<Secret>,
    /// Reads a second, and as many writes, that the payment provider is asked for at the most
    #[arg(long, env = "STRIPE_CALLS_PER_SECOND", default_value = "80")]
    pub stripe_calls_per_second: NonZeroU32,
    /// Minutes after which a person is called about a payment whose outcome is still not known
    #[arg(long, env = "PAYMENT_ESCALATE_MINUTES", default_value_t = 15)]
    pub payment_escalate_minutes: u32,
    /// Minutes between two comparisons of our payments with the provider's list
    #[arg(long, env = "RECONCILE_EVERY_MINUTES", default_value_t = 60)]
    pub reconcile_every_minutes: u32,
    /// Mail server for messages to buyers, for example `smtps://user:password@mail.example.com`
    #[arg(long, env = "SMTP_URL", hide_env_values = true)]
    pub smtp_url: Option<Secret>,
    /// Folder that takes messages as .eml files instead of a mail server
    #[arg(long, env = "MAIL_FOLDER")]
    pub mail_folder: Option<PathBuf>,
    /// Sender of messages to buyers
    #[arg(long, env = "MAIL_FROM", default_value = "Parterre <tickets@parterre.example>")]
    pub mail_from: String,
    /// How long checkout waits for the payment before it answers `PAYMENT_PENDING`, in milliseconds
    #[arg(long, env = "CHECKOUT_WAIT_MS", default_value_t = 3_000)]
    pub checkout_wait_ms: u64,
    /// Minutes for which what was committed is kept for readers that are behind, after every consumer has had it
    #[arg(long, env = "OUTBOX_KEPT_MINUTES", default_value_t = 1_440)]
    pub outbox_kept_minutes: u32,
    /// Lanes that settle hold requests
    #[arg(long, env = "PARTERRE_LANES", default_value_t = 1)]
    pub lanes: usize,
    /// Answer introspection; off in production unless set
    #[arg(long, env = "PARTERRE_INTROSPECTION")]
    pub introspection: Option<bool>,
    /// Fill a development token into GraphiQL
    #[arg(long, env = "PARTERRE_PLAYGROUND_TOKEN")]
    pub playground_token: bool,
    /// Run the workers in this process too
    #[arg(long, env = "PARTERRE_WORKERS", default_value_t = true, action = clap::ArgAction::Set)]
    pub workers: bool,
}

/// Whether requests are limited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Limits {
    /// They are.
    On,
    /// They are not.
    Off,
}

/// Why the settings are refused.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Tokens signed with a shared secret in production.
    #[error(
        "production takes tokens signed with a key pair only: set JWT_JWKS_URL or JWT_PUBLIC_KEY_FILE, or unset PARTERRE_PRODUCTION"
    )]
    SecretTokens,
    /// No limits in production.
    #[error("production needs its limits: unset PARTERRE_LIMITS, or unset PARTERRE_PRODUCTION")]
    NoLimits,
    /// Tokens for whoever opens the page in production.
    #[error("production gives nobody a token: unset PARTERRE_PLAYGROUND_TOKEN, or unset PARTERRE_PRODUCTION")]
    TokensForAnybody,
    /// A development value in production.
    #[error("{0} still has its development value: set it, or unset PARTERRE_PRODUCTION")]
    DevelopmentValue(&'static str),
}

impl Config {
    /// Refuses what must not reach production.
    pub fn check(&self) -> Result<(), ConfigError> {
        if !self.production {
            return Ok(());
        }
        if self.limits == Limits::Off {
            return Err(ConfigError::NoLimits);
        }
        if self.playground_token {
            return Err(ConfigError::TokensForAnybody);
        }
        let development = Secret::new(DEVELOPMENT_SECRET);
        if self.jwt_public_key_file.is_none() && self.jwt_jwks_url.is_none() {
            return Err(ConfigError::SecretTokens);
        }
        if self.ticket_secret == development {
            return Err(ConfigError::DevelopmentValue("TICKET_SECRET"));
        }
        if self.admission_secret == development {
            return Err(ConfigError::DevelopmentValue("ADMISSION_SECRET"));
        }
        if self.stripe_secret_key.expose() == "sk_simulator" {
            return Err(ConfigError::DevelopmentValue("STRIPE_SECRET_KEY"));
        }
        if self.stripe_webhook_secrets.iter().any(|secret| secret.expose() == "whsec_simulator") {
            return Err(ConfigError::DevelopmentValue("STRIPE_WEBHOOK_SECRETS"));
        }
        Ok(())
    }

    /// Whether introspection is answered.
    #[must_use]
    pub fn answers_introspection(&self) -> bool {
        self.introspection.unwrap_or(!self.production)
    }
}
