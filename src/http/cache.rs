//! What a cache between us and clients may do with the answer of a GET.

use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};

/// As fresh as seat statuses are: an answer may contain some.
const PUBLIC: HeaderValue = HeaderValue::from_static("public, max-age=2, stale-while-revalidate=5");
const PRIVATE: HeaderValue = HeaderValue::from_static("private, no-cache");
const NOTHING: HeaderValue = HeaderValue::from_static("no-store");

/// Gives an answer its ETag, and answers "not modified" to one who has it. Errors are not kept.
pub(super) async fn keep(asked: &HeaderMap, public: bool, response: Response) -> Response {
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
    parts.headers.insert(header::CACHE_CONTROL, if public { PUBLIC } else { PRIVATE });
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
