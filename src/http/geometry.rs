//! A layout's geometry: immutable, since its hash is part of its address, so it is prepared once and cached for a year.

use super::encoded::{Encoded, Encoding};
use crate::app::App;
use crate::catalogue::Layout;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use parterre_entity::LayoutId;
use parterre_schema::{Kind, parse_node_id};
use std::sync::Arc;

/// Files that were asked for of late.
#[derive(Clone, Debug)]
pub struct Geometries {
    files: moka::sync::Cache<LayoutId, Arc<Encoded>>,
}

/// Seats of the layouts whose files are kept: about a hundred bytes each, and less again in each encoding.
const KEPT_SEATS: u64 = 1_000_000;

impl Default for Geometries {
    fn default() -> Self {
        let weight = |_: &LayoutId, file: &Arc<Encoded>| u32::try_from(file.len() / 100).unwrap_or(u32::MAX);
        Self { files: moka::sync::Cache::builder().max_capacity(KEPT_SEATS).weigher(weight).build() }
    }
}

const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

pub(super) async fn get(
    State(app): State<App>,
    Path((id, file)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    let id = parse_node_id(&id).filter(|(kind, _)| *kind == Kind::Layout).map(|(_, id)| LayoutId(id));
    let nothing = || (StatusCode::NOT_FOUND, [(header::CACHE_CONTROL, "no-store")]).into_response();
    let (Some(id), Some(hash)) = (id, file.strip_suffix(".json")) else { return nothing() };
    let layout = match app.services.catalogue.layout(id).await {
        Ok(Some(layout)) if layout.geometry_hash == hash => layout,
        Ok(_) => return nothing(),
        Err(_) => return StatusCode::SERVICE_UNAVAILABLE.into_response(),
    };
    let encoding = Encoding::of(&headers);
    // The first time it is some megabytes of work.
    let prepare = move || {
        let make = |layout: &Layout| Arc::new(Encoded::new(layout.drawing.geometry().into_bytes()));
        app.geometries.files.get_with(id, || make(&layout)).response(encoding, "application/json")
    };
    let Ok(mut response) = tokio::task::spawn_blocking(prepare).await else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let told = response.headers_mut();
    told.insert(header::CACHE_CONTROL, CACHE);
    told.insert(header::VARY, HeaderValue::from_static("Accept-Encoding, Origin"));
    response
}
