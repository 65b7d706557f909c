//! Persisted queries, as Apollo's clients ask for them: a hash instead of the document, and the document once when the
//! hash is not known. What is kept is this process's own and may be forgotten: then the client sends it again.

use super::graphql::{Asked, Refusal};
use axum::http::StatusCode;
use parterre_schema::TopLevelCode;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::sync::Arc;

/// Documents by their SHA-256, in hex.
#[derive(Clone, Debug)]
pub struct PersistedQueries {
    documents: moka::sync::Cache<String, Arc<str>>,
}

/// Bytes of documents kept.
const KEPT_BYTES: u64 = 8 * 1024 * 1024;

impl Default for PersistedQueries {
    fn default() -> Self {
        let weight = |_: &String, document: &Arc<str>| u32::try_from(document.len() + 512).unwrap_or(u32::MAX);
        Self { documents: moka::sync::Cache::builder().max_capacity(KEPT_BYTES).weigher(weight).build() }
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Persisted {
    version: u32,
    sha256_hash: String,
}

impl PersistedQueries {
    /// Keeps a document that may be asked for by its hash from now on.
    pub(super) fn keep(&self, document: &str) {
        self.documents.insert(hex::encode(Sha256::digest(document)), document.into());
    }

    /// The document that is asked for, by itself or by its hash; and whether it is to be kept, if it is a good one.
    pub(super) fn document(&self, asked: &mut Asked) -> Result<(String, bool), Refusal> {
        let bad = |message: &str| Refusal::new(StatusCode::BAD_REQUEST, TopLevelCode::BadUserInput, message);
        let query = asked.query.take();
        let named = asked.extensions.as_mut().and_then(|extensions| extensions.get_mut("persistedQuery"));
        let Some(named) = named.map(serde_json::Value::take).filter(|named| !named.is_null()) else {
            return query.map(|query| (query, false)).ok_or_else(|| bad("a query is needed"));
        };
        let named: Persisted = serde_json::from_value(named)
            .map_err(|_| bad("persistedQuery needs version 1 and the document's sha256Hash"))?;
        if named.version != 1 {
            return Err(bad("persistedQuery has version 1"));
        }
        match query {
            Some(query) if hex::encode(Sha256::digest(&query)) == named.sha256_hash => Ok((query, true)),
            Some(_) => Err(bad("sha256Hash is not the hash of the query")),
            // The message is what clients of this protocol look for.
            None => {
                self.documents.get(&named.sha256_hash).map(|document| (document.to_string(), false)).ok_or_else(|| {
                    let code = TopLevelCode::PersistedQueryNotFound;
                    Refusal::new(StatusCode::BAD_REQUEST, code, "PersistedQueryNotFound").about_document()
                })
            }
        }
    }
}
