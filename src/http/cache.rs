//! What a cache between us and clients may do with the answer of a GET.

use super::purge;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
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
    fn header(self) -> HeaderValue {
        let Self::Public(seconds) = self else { return PRIVATE };
        // While it is fetched anew, what is a little older is good enough.
        let header = format!("public, max-age={seconds}, stale-while-revalidate={}", 2 * seconds);
        HeaderValue::from_str(&header).unwrap_or(PRIVATE)
    }
}

/// Gives an answer its ETag, and answers "not modified" to one who has it. Errors are not kept.
pub(super) async fn keep(asked: (&HeaderMap, &str), keep: Keep, response: Response) -> Response {
    let (asked, variables) = asked;
    let (mut parts, body) = response.into_parts();
    let Ok(bytes) = axum::body::to_bytes(body, usize::MAX).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    // Keys stay in the order of a response: errors come after data.
    let failed = parts.status != StatusCode::OK
        || serde_json::from_slice::<Failed>(&bytes).is_ok_and(|told| told.errors.is_some());
    parts.headers.insert(header::VARY, HeaderValue::from_static("Accept, Authorization, Origin"));
    if failed {
        parts.headers.insert(header::CACHE_CONTROL, NOTHING);
        return Response::from_parts(parts, Body::from(bytes));
    }
    parts.headers.insert(header::CACHE_CONTROL, keep.header());
    if let (Keep::Public(_), Ok(tags)) = (keep, HeaderValue::from_str(&purge::tags(variables, &bytes))) {
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

#[derive(serde::Deserialize)]
struct Failed {
    errors: Option<serde::de::IgnoredAny>,
}
