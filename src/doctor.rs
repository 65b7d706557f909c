//! `parterre doctor`: whether everything that a server needs is there, and what to do where it is not.

use crate::auth::Tokens;
use crate::config::Config;
use crate::db::{self, Db};
use sea_orm::FromQueryResult as _;
use std::time::Duration;

/// One thing that was looked at.
#[derive(Debug)]
pub struct Finding {
    /// What.
    pub what: &'static str,
    /// How it is, or what is wrong and what to do.
    pub told: Result<String, String>,
}

/// How long each may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(12);
/// The oldest PostgreSQL that does.
const POSTGRES_MIN: i64 = 140_000;

/// Looks at everything; nothing is changed.
pub async fn examine(config: &Config) -> Vec<Finding> {
    let finding = |what, told| Finding { what, told };
    vec![
        finding("settings", config.check().map(|()| "fine".to_owned()).map_err(|error| error.to_string())),
        finding("PostgreSQL", within(postgres(config)).await),
        finding("Redis", within(redis(config)).await),
        finding("payment provider", within(provider(config)).await),
        finding("keys of tokens", within(keys(config)).await),
        finding("messages", within(mail(config)).await),
        finding("data folder", folder(config)),
    ]
}

async fn within(look: impl Future<Output = Result<String, String>>) -> Result<String, String> {
    tokio::time::timeout(ANSWER_WITHIN, look)
        .await
        .unwrap_or_else(|_| Err(format!("no answer within {ANSWER_WITHIN:?}: look at the network between")))
}

async fn postgres(config: &Config) -> Result<String, String> {
    let db = Db::connect(&config.database_url, 1).await.map_err(|error| error.to_string())?;
    let look = async {
        let version = db::Single::<i64>::find_by_statement(crate::sql!(
            "SELECT current_setting('server_version_num')::bigint AS value"
        ));
        let version = version.one(db.pool()).await?.map_or(0, |row| row.value);
        let pending = parterre_migration::pending(db.pool()).await?;
        let theirs = db::clock(db.pool()).await?;
        Ok::<_, sea_orm::DbErr>((version, pending, (crate::clock::now() - theirs).num_milliseconds().abs()))
    };
    let (version, pending, apart_ms) = look.await.map_err(|error| format!("{error}: look at the role's rights"))?;
    if version < POSTGRES_MIN {
        return Err(format!("version {version} is too old: 14 or later is needed"));
    }
    if pending > 0 {
        return Err(format!("{pending} migrations are not applied: run parterre migrate"));
    }
    if apart_ms > 2_000 {
        return Err(format!("its clock and ours are {apart_ms} ms apart: synchronize them"));
    }
    Ok(format!("version {}, migrated, clocks {apart_ms} ms apart", version / 10_000))
}

async fn redis(config: &Config) -> Result<String, String> {
    let Some(url) = &config.redis_url else { return Ok("not set: this process serves alone".to_owned()) };
    let ask = async {
        let mut connection = redis::Client::open(url.as_str())?.get_multiplexed_async_connection().await?;
        redis::cmd("PING").query_async::<String>(&mut connection).await
    };
    ask.await
        .map(|_| "answers".to_owned())
        .map_err(|error| format!("{error}: start it, or unset REDIS_URL to serve alone"))
}

async fn provider(config: &Config) -> Result<String, String> {
    let url = format!("{}/v1/payment_intents?limit=1", config.stripe_api_base);
    let request = reqwest::Client::new().get(url).bearer_auth(config.stripe_secret_key.expose());
    let answer = request.send().await.map_err(|error| format!("{error}: look at STRIPE_API_BASE and the network"))?;
    match answer.status().as_u16() {
        200 => Ok("answers and takes the key".to_owned()),
        401 | 403 => Err("it does not take the key: look at STRIPE_SECRET_KEY".to_owned()),
        status => Err(format!("it answers {status}: look at STRIPE_API_BASE")),
    }
}

async fn keys(config: &Config) -> Result<String, String> {
    Tokens::new(config).map_err(|error| error.to_string())?;
    let Some(url) = &config.jwt_jwks_url else { return Ok("can be read".to_owned()) };
    let answer = reqwest::get(url).await.and_then(reqwest::Response::error_for_status);
    let set: serde_json::Value = match answer {
        Ok(answer) => answer.json().await.map_err(|error| format!("JWT_JWKS_URL answers with no key set: {error}"))?,
        Err(error) => return Err(format!("{error}: look at JWT_JWKS_URL")),
    };
    match set.get("keys").and_then(serde_json::Value::as_array) {
        Some(keys) if !keys.is_empty() => Ok(format!("{} published", keys.len())),
        _ => Err("JWT_JWKS_URL publishes no keys".to_owned()),
    }
}

async fn mail(config: &Config) -> Result<String, String> {
    match crate::notification::Transport::of(config).map_err(|error| error.to_string())? {
        None => Ok("not sent: set SMTP_URL, or MAIL_FOLDER for files".to_owned()),
        Some(transport) => transport.test().await,
    }
}

fn folder(config: &Config) -> Result<String, String> {
    let test = config.data.join("doctor");
    let write = || {
        std::fs::create_dir_all(&config.data)?;
        std::fs::write(&test, b"")?;
        std::fs::remove_file(&test)
    };
    write()
        .map(|()| format!("{} can be written", config.data.display()))
        .map_err(|error| format!("{}: {error}; give the process a folder with PARTERRE_DATA", config.data.display()))
}

/// Whether the server of these settings is ready, asked over its own port.
pub async fn is_ready(config: &Config) -> Result<(), String> {
    let mut address = config.listen;
    if address.ip().is_unspecified() {
        address.set_ip(std::net::Ipv4Addr::LOCALHOST.into());
    }
    let answer = tokio::time::timeout(ANSWER_WITHIN, reqwest::get(format!("http://{address}/readyz"))).await;
    match answer {
        Ok(Ok(answer)) if answer.status().is_success() => Ok(()),
        Ok(Ok(answer)) => Err(format!("not ready: {}", answer.text().await.unwrap_or_default())),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err("no answer".to_owned()),
    }
}
