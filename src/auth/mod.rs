//! Who is asking: bearer tokens read and, for development, made.
//!
//! Invariants: the algorithm is fixed by the configured key, never by the token; `iss`, `aud`, `exp` and `sub` are
//! required; a token that is not valid is no token.

mod keys;

use crate::config::{Config, Secret};
use jsonwebtoken::{Algorithm, EncodingKey, Header, Validation, decode, decode_header, encode};
use keys::Keys;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// What a person may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Holds, pays, cancels.
    #[default]
    Buyer,
    /// Runs an organization's catalogue.
    Organizer,
    /// Runs the installation.
    Admin,
}

/// What a token says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Claims {
    /// Who.
    pub sub: String,
    /// By whom.
    pub iss: String,
    /// For whom: one, or a list that we are in.
    pub aud: serde_json::Value,
    /// Until when, Unix seconds.
    pub exp: i64,
    /// What.
    #[serde(default)]
    pub role: Role,
    /// An organizer's organization: its id or its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub org: Option<String>,
    /// Where messages go.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub email: Option<String>,
    /// Whether somebody checked that.
    #[serde(default)]
    pub email_verified: bool,
}

/// Why a token is not accepted. Deliberately says no more to the caller than that.
#[derive(Debug, thiserror::Error)]
#[error("the token is not valid")]
pub struct BadToken;

/// Why the keys can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file can't be read.
    #[error("JWT_PUBLIC_KEY_FILE can't be read: {0}")]
    File(#[from] std::io::Error),
    /// The file is no key we know.
    #[error("JWT_PUBLIC_KEY_FILE is not a PEM public key of EdDSA, ES256 or RS256")]
    Format,
    /// The set of keys can't be asked for.
    #[error("JWT_JWKS_URL can't be asked: {0}")]
    Client(#[source] reqwest::Error),
    /// The secret is no key.
    #[error("JWT_SECRET can't be used: {0}")]
    Secret(#[from] jsonwebtoken::errors::Error),
}

/// Reads tokens.
#[derive(Clone)]
pub struct Tokens {
    keys: Keys,
    issuer: Arc<str>,
    audience: Arc<str>,
    seen: moka::sync::Cache<String, Arc<Claims>>,
}

impl std::fmt::Debug for Tokens {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tokens").field("issuer", &self.issuer).finish_non_exhaustive()
    }
}

/// How far a token's clock may be off.
const LEEWAY_SECONDS: u64 = 5;
/// The longest `sub` that is taken.
const SUBJECT_CHARS_MAX: usize = 200;

impl Tokens {
    /// By the configured keys.
    pub fn new(config: &Config) -> Result<Self, KeyError> {
        let keys = Keys::of(config)?;
        let seen = moka::sync::Cache::builder().max_capacity(100_000).time_to_live(Duration::from_mins(5)).build();
        Ok(Self {
            keys,
            issuer: config.jwt_issuer.as_str().into(),
            audience: config.jwt_audience.as_str().into(),
            seen,
        })
    }

    /// What a token says, if it is valid now. The signature of a token is checked once in a while.
    pub async fn read(&self, token: &str) -> Result<Arc<Claims>, BadToken> {
        if let Some(claims) = self.seen.get(token) {
            let leeway = i64::try_from(LEEWAY_SECONDS).unwrap_or(0);
            return if crate::clock::now().timestamp() < claims.exp.saturating_add(leeway) {
                Ok(claims)
            } else {
                Err(BadToken)
            };
        }
        let header = decode_header(token).map_err(|_| BadToken)?;
        let key = self.keys.find(header.kid.as_deref()).await.ok_or(BadToken)?;
        let mut validation = Validation::new(key.1);
        validation.leeway = LEEWAY_SECONDS;
        validation.set_audience(&[&self.audience]);
        validation.set_issuer(&[&self.issuer]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        let claims = decode::<Claims>(token, &key.0, &validation).map_err(|_| BadToken)?.claims;
        let plain = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        if !plain(&claims.sub) || claims.sub.chars().count() > SUBJECT_CHARS_MAX {
            return Err(BadToken);
        }
        let claims = Arc::new(claims);
        self.seen.insert(token.to_owned(), Arc::clone(&claims));
        Ok(claims)
    }
}

/// A token of a person, signed with the development secret.
pub fn issue(config: &Config, who: &Person, valid_for: Duration) -> Result<String, KeyError> {
    let valid_seconds = i64::try_from(valid_for.as_secs()).unwrap_or(i64::MAX / 2);
    let claims = Claims {
        sub: who.subject.clone(),
        iss: config.jwt_issuer.clone(),
        aud: config.jwt_audience.as_str().into(),
        exp: crate::clock::now().timestamp() + valid_seconds,
        role: who.role,
        org: who.organization.clone(),
        email: Some(format!("{}@example.com", who.subject)),
        email_verified: true,
    };
    sign(&config.jwt_secret, &claims)
}

fn sign(secret: &Secret, claims: &Claims) -> Result<String, KeyError> {
    let key = EncodingKey::from_secret(secret.expose().as_bytes())?;
    Ok(encode(&Header::new(Algorithm::HS256), claims, &key)?)
}

/// Whom a token is for.
#[derive(Clone, Debug)]
pub struct Person {
    /// Who.
    pub subject: String,
    /// What.
    pub role: Role,
    /// An organizer's organization.
    pub organization: Option<String>,
}

impl Person {
    /// A buyer.
    pub fn buyer(subject: impl Into<String>) -> Self {
        Self { subject: subject.into(), role: Role::Buyer, organization: None }
    }

    /// Somebody of an organization.
    pub fn organizer(organization: impl Into<String>) -> Self {
        let organization = organization.into();
        Self { subject: format!("organizer@{organization}"), role: Role::Organizer, organization: Some(organization) }
    }
}
