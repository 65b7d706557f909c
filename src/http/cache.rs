//! What a cache between us and clients may do with the answer of a GET.

use super::purge;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::de::IgnoredAny;
use sha2::{Digest, Sha256};
use std::collections::HashMap;

const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
/// How long may be kept what no purge would reach.
const UNTOLD_SECONDS: u32 = 5;
const NOTHING: HeaderValue = HeaderValue::from_static("no-store");

/// Who may keep an answer, and how long.
#[derive(Clone, Copy, Debug)]
pub(super) enum Keep {
    /// Any cache, for so many seconds.
    Public(u32),
    /// The one who asked; to be asked for again each time.
    Private,
}

impl Keep {
    const fn at_most(self, seconds: u32) -> Self {
        match self {
            Self::Public(kept) if kept > seconds => Self::Public(seconds),
            keep => keep,
        }
    }

    fn header(self) -> HeaderValue {
        let Self::Public(seconds) = self else { return PRIVATE };
        // While it is fetched anew, what is a little older is good enough.
        let header = format!("public, max-age={seconds}, stale-while-revalidate={}", 2 * seconds);
        HeaderValue::from_str(&header).unwrap_or(PRIVATE)
    }
}

/// Gives an answer its ETag, and answers "not modified" to one who has it. Errors are not kept.
pub(super) async fn keep((asked, words): (&HeaderMap, &str), keep: Keep, response: Response) -> Response {
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    // Keys stay in the order of a response: errors come after data.
    let told = serde_json::from_slice::<Told>(&bytes).unwrap_or_default();
    let failed = parts.status != StatusCode::OK || told.errors.is_some();
    // What was not there may be there soon, and nobody will say so.
    let nothing = told.data.into_iter().flatten().any(|(_, field)| field.is_none())
        || std::str::from_utf8(&bytes).is_ok_and(|text| text.contains("[null") || text.contains(",null"));
    // Nor can what is named by nothing be told of.
    let tags = purge::tags(words, &bytes);
    let keep = if nothing || tags.is_empty() { keep.at_most(UNTOLD_SECONDS) } else { keep };
    parts.headers.insert(header::VARY, HeaderValue::from_static("Accept, Authorization, Origin"));
    if failed {
        parts.headers.insert(header::CACHE_CONTROL, NOTHING);
        return Response::from_parts(parts, Body::from(bytes));
    }
    parts.headers.insert(header::CACHE_CONTROL, keep.header());
    if let (Keep::Public(_), false, Ok(tags)) = (keep, tags.is_empty(), HeaderValue::from_str(&tags)) {
        parts.headers.insert(purge::TAGS, tags);
    }
    let tag = format!("\"{}\"", hex::encode(Sha256::digest(&bytes).get(..16).unwrap_or_default()));
    let known = asked.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok()).is_some_and(|tags| {
        tags.trim() == "*" || tags.split(',').any(|known| known.trim().trim_start_matches("W/") == tag)
    });
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        parts.headers.insert(header::ETAG, tag);
    }
    if known {
        parts.status = StatusCode::NOT_MODIFIED;
        parts.headers.remove(header::CONTENT_TYPE);
        return Response::from_parts(parts, Body::empty());
    }
    Response::from_parts(parts, Body::from(bytes))
}

/// What of an answer decides how long it may be kept.
#[derive(Default, serde::Deserialize)]
struct Told {
    errors: Option<IgnoredAny>,
    data: Option<HashMap<String, Option<IgnoredAny>>>,
}
