//! The keys that sign tokens: one of a file, the development secret, or a set that an identity provider publishes and
//! rotates.
//!
//! Invariant: the algorithm is the key's, never the token's; a set is read again for a key that it does not have, at most
//! once in a while, and never once a token.

use super::KeyError;
use crate::config::Config;
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, JwkSet};
use jsonwebtoken::{Algorithm, DecodingKey};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::Mutex;
use tokio::time::Instant;

/// A key and the one algorithm it is for.
pub(super) type Key = Arc<(DecodingKey, Algorithm)>;

/// Where keys come from.
#[derive(Clone)]
pub(super) enum Keys {
    /// One for all tokens.
    One(Key),
    /// A published set, by key id.
    Set(Arc<KeySet>),
}

/// A published set of keys.
pub(super) struct KeySet {
    url: String,
    client: reqwest::Client,
    known: RwLock<HashMap<String, Key>>,
    /// When it was last read, and the right to read it.
    read_at: Arc<Mutex<Option<Instant>>>,
}

/// A set is not read more often, whatever key ids tokens name.
const READ_AT_MOST_EVERY: Duration = Duration::from_secs(10);
/// A set is read again after this time: keys that were withdrawn end with it.
const READ_AT_LEAST_EVERY: Duration = Duration::from_mins(10);
/// How long the provider may take.
const READ_WITHIN: Duration = Duration::from_secs(5);

impl Keys {
    pub(super) fn of(config: &Config) -> Result<Self, KeyError> {
        if let Some(url) = &config.jwt_jwks_url {
            let client = reqwest::Client::builder().timeout(READ_WITHIN).build().map_err(KeyError::Client)?;
            let set = KeySet { url: url.clone(), client, known: RwLock::default(), read_at: Arc::default() };
            return Ok(Self::Set(Arc::new(set)));
        }
        let key = match &config.jwt_public_key_file {
            Some(file) => public_key(&std::fs::read(file)?)?,
            None => (DecodingKey::from_secret(config.jwt_secret.expose().as_bytes())?, Algorithm::HS256),
        };
        Ok(Self::One(Arc::new(key)))
    }

    /// The key that a token with this key id must be signed with.
    pub(super) async fn find(&self, key_id: Option<&str>) -> Option<Key> {
        match self {
            Self::One(key) => Some(Arc::clone(key)),
            Self::Set(set) => set.find(key_id?).await,
        }
    }
}

impl KeySet {
    async fn find(self: &Arc<Self>, key_id: &str) -> Option<Key> {
        let known = |set: &Self| set.known.read().unwrap_or_else(PoisonError::into_inner).get(key_id).cloned();
        let found = known(self);
        let mut read_at = match (&found, Arc::clone(&self.read_at).try_lock_owned()) {
            // Somebody is reading it, and this one is good meanwhile.
            (Some(_), Err(_)) => return found,
            (_, Ok(read_at)) => read_at,
            // Those who lack a key wait for the one who reads.
            (None, Err(_)) => Arc::clone(&self.read_at).lock_owned().await,
        };
        let age = read_at.map(|at| at.elapsed());
        let due = age.is_none_or(|age| age >= READ_AT_LEAST_EVERY || (found.is_none() && age >= READ_AT_MOST_EVERY));
        if due {
            *read_at = Some(Instant::now());
            let set = Arc::clone(self);
            // In a task of its own: a client who hangs up must not use up the right to read.
            let reading = tokio::spawn(async move {
                match set.read().await {
                    Ok(keys) => *set.known.write().unwrap_or_else(PoisonError::into_inner) = keys,
                    Err(error) => {
                        tracing::warn!(%error, "the keys of tokens could not be read, going on with the known ones");
                    }
                }
                drop(read_at);
            });
            drop(reading.await);
        }
        known(self)
    }

    async fn read(&self) -> Result<HashMap<String, Key>, reqwest::Error> {
        let set: JwkSet = self.client.get(&self.url).send().await?.error_for_status()?.json().await?;
        let key = |jwk: &Jwk| Some((jwk.common.key_id.clone()?, Arc::new(usable(jwk)?)));
        Ok(set.keys.iter().filter_map(key).collect())
    }
}

/// A published key and its algorithm. A shared secret is none: whoever reads the set could sign with it.
fn usable(jwk: &Jwk) -> Option<(DecodingKey, Algorithm)> {
    let algorithm = match &jwk.algorithm {
        AlgorithmParameters::OctetKeyPair(pair) if pair.curve == EllipticCurve::Ed25519 => Algorithm::EdDSA,
        AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => Algorithm::ES256,
        AlgorithmParameters::RSA(_) => Algorithm::RS256,
        _ => return None,
    };
    Some((DecodingKey::from_jwk(jwk).ok()?, algorithm))
}

fn public_key(pem: &[u8]) -> Result<(DecodingKey, Algorithm), KeyError> {
    DecodingKey::from_ed_pem(pem)
        .map(|key| (key, Algorithm::EdDSA))
        .or_else(|_| DecodingKey::from_ec_pem(pem).map(|key| (key, Algorithm::ES256)))
        .or_else(|_| DecodingKey::from_rsa_pem(pem).map(|key| (key, Algorithm::RS256)))
        .map_err(|_| KeyError::Format)
}
