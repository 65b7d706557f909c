//! The edge: HTTP and WebSocket in, GraphQL out, and the few things that are not GraphQL.
//!
//! Invariants: an operation runs in a task of its own, so that a client who hangs up does not cancel a write half way;
//! a document is judged before it is executed. No rule of the box office is here.

mod graphql;
mod limits;
mod origin;
mod page;
mod socket;
mod sse;
mod streams;
mod webhooks;

pub use socket::OpenSockets;

use crate::app::App;
use crate::auth::{Claims, Role};
use crate::graphql::Viewer;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use parterre_entity::{LayoutId, OrganizationId};
use parterre_schema::{Kind, parse_node_id};
use sea_orm::DbErr;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// Every route of the public port.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/graphql", post(graphql::post).get(graphql::get))
        .route("/graphql/stream", post(sse::post).get(sse::get))
        .route_layer(middleware::from_fn_with_state(app.clone(), limits::limit))
        .route("/graphiql", get(page::graphiql))
        .route("/playground", get(page::to_graphiql))
        .route("/playground/{*file}", get(page::file))
        .route("/", get(page::home))
        .route("/schema.graphql", get(sdl))
        .route("/layouts/{id}/{file}", get(geometry))
        .route("/webhooks/payments", post(webhooks::receive))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .with_state(app)
}

/// Serves until the app's shutdown token is cancelled.
pub async fn serve(app: App, listener: TcpListener) -> std::io::Result<()> {
    let shutdown = app.shutdown.clone();
    axum::serve(listener, router(app).into_make_service_with_connect_info::<SocketAddr>())
        .with_graceful_shutdown(async move { shutdown.cancelled().await })
        .await
}

async fn sdl() -> Response {
    ([(header::CONTENT_TYPE, "application/graphql; charset=utf-8")], crate::graphql::sdl()).into_response()
}

async fn ready(State(app): State<App>) -> Response {
    if app.shutdown.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "shutting down").into_response();
    }
    match crate::db::clock(app.db.pool()).await {
        Ok(_) => "ready".into_response(),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer").into_response(),
    }
}

/// A layout's geometry, immutable: the hash is part of the address.
async fn geometry(State(app): State<App>, Path((id, file)): Path<(String, String)>) -> Response {
    let id = parse_node_id(&id).filter(|(kind, _)| *kind == Kind::Layout).map(|(_, id)| LayoutId(id));
    let hash = file.strip_suffix(".json");
    let (Some(id), Some(hash)) = (id, hash) else { return StatusCode::NOT_FOUND.into_response() };
    match app.services.catalogue.layout(id).await {
        Ok(Some(layout)) if layout.geometry_hash == hash => (
            [
                (header::CONTENT_TYPE, "application/json"),
                (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            ],
            layout.drawing.geometry(),
        )
            .into_response(),
        Ok(_) => StatusCode::NOT_FOUND.into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(20);

/// A body of at most so many bytes, or the status that says why not.
async fn read_bytes(body: Body, limit: usize) -> Result<Bytes, StatusCode> {
    match tokio::time::timeout(BODY_WITHIN, axum::body::to_bytes(body, limit)).await {
        Ok(read) => read.map_err(|_| StatusCode::PAYLOAD_TOO_LARGE),
        Err(_) => Err(StatusCode::REQUEST_TIMEOUT),
    }
}

/// What a bearer token in the headers says, if it is valid.
async fn claims(app: &App, headers: &HeaderMap) -> Option<std::sync::Arc<Claims>> {
    let token = bearer(headers.get(header::AUTHORIZATION)?.to_str().ok()?)?;
    app.tokens.read(token).await.ok()
}

/// The token of an Authorization header.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, token) = header.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Who is asking. An organizer's organization is found by its id or its name.
async fn viewer(app: &App, claims: &Claims) -> Result<Viewer, DbErr> {
    let organization = match (&claims.role, &claims.org) {
        (Role::Organizer, Some(org)) => organization(app, org).await?,
        _ => None,
    };
    let plain = |address: &String| !address.chars().any(char::is_control) && address.chars().count() <= 200;
    let email = claims.email.clone().filter(|_| claims.email_verified).filter(plain);
    Ok(Viewer { subject: claims.sub.clone(), role: claims.role, organization, email })
}

async fn organization(app: &App, org: &str) -> Result<Option<OrganizationId>, DbErr> {
    match parse_node_id(org) {
        Some((Kind::Organizer, id)) => {
            let known = app.services.catalogue.organizations(&[OrganizationId(id)]).await?;
            Ok(known.into_keys().next())
        }
        _ if org.contains('\0') => Ok(None),
        _ => app.services.catalogue.organization_named(org, app.config.create_organizations).await,
    }
}
