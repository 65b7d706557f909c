//! Which pages may talk to us: those we serve, and those on the list. Programs send no Origin and may.

use crate::config::Config;
use axum::http::{HeaderMap, header};

/// What one from elsewhere is told.
pub(super) const REFUSED: &str = "this Origin may not connect: add it to PARTERRE_ALLOWED_ORIGINS";

/// Whether a request comes from where it may.
pub(super) fn is_allowed(config: &Config, headers: &HeaderMap) -> bool {
    let Some(origin) = headers.get(header::ORIGIN) else { return true };
    let Ok(origin) = origin.to_str() else { return false };
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let same = origin.split_once("://").is_some_and(|(_, address)| Some(address) == host);
    same || origin == config.public_url.trim_end_matches('/') || config.allowed_origins.iter().any(|one| one == origin)
}
