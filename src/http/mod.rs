//! The edge: HTTP and WebSocket in, GraphQL out, and the few things that are not GraphQL.
//!
//! Invariants: an operation runs in a task of its own, so that a client who hangs up does not cancel a write half way;
//! a document is judged before it is executed. No rule of the box office is here.

mod cache;
mod encoded;
mod geometry;
mod graphql;
mod limits;
mod map;
mod origin;
mod page;
mod persisted;
mod purge;
mod serve;
mod socket;
mod sse;
mod streams;
mod trace;
mod webhooks;

pub use geometry::Geometries;
pub use map::PackedMaps;
pub use persisted::PersistedQueries;
pub use purge::Purger;
pub use serve::serve;
pub use streams::OpenStreams;

use crate::app::App;
use crate::auth::{Claims, Role};
use crate::graphql::Viewer;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use parterre_entity::OrganizationId;
use parterre_schema::{Kind, parse_node_id};
use sea_orm::DbErr;
use std::sync::LazyLock;
use std::time::Duration;
use tower_http::cors::{AllowOrigin, CorsLayer};

/// Every route of the public port.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/graphql", post(graphql::post).get(graphql::get))
        .route("/graphql/stream", post(sse::post).get(sse::get))
        .route("/schema.graphql", get(sdl))
        .route("/events/{id}/seat-map", get(map::get))
        .route("/layouts/{id}/{file}", get(geometry::get))
        .route_layer(middleware::from_fn_with_state(app.clone(), limits::limit))
        .layer(cors(&app))
        .route("/graphiql", get(page::graphiql))
        .route("/playground", get(page::to_graphiql))
        .route("/playground/{*file}", get(page::file))
        .route("/", get(page::home))
        .route("/webhooks/payments", post(webhooks::receive))
        .route("/healthz", get(|| async { "ok" }))
        .route("/readyz", get(ready))
        .layer(middleware::from_fn(trace::follow))
        .with_state(app)
}

/// Other pages on the list may call, with the headers that clients send.
fn cors(app: &App) -> CorsLayer {
    let app = app.clone();
    CorsLayer::new()
        .allow_origin(AllowOrigin::predicate(move |_, parts| origin::is_allowed(&app.config, &parts.headers)))
        .allow_methods([Method::GET, Method::POST])
        .allow_headers([
            header::ACCEPT,
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            header::IF_NONE_MATCH,
            HeaderName::from_static("apollo-require-preflight"),
            HeaderName::from_static("apollographql-client-name"),
            HeaderName::from_static("apollographql-client-version"),
            HeaderName::from_static("traceparent"),
            HeaderName::from_static("x-request-id"),
        ])
        .expose_headers([header::ETAG, header::RETRY_AFTER, HeaderName::from_static("x-request-id"), map::VERSION])
        .max_age(Duration::from_mins(10))
}

async fn sdl() -> Response {
    static SDL: LazyLock<Bytes> = LazyLock::new(|| crate::graphql::sdl().into());
    ([(header::CONTENT_TYPE, "application/graphql; charset=utf-8")], SDL.clone()).into_response()
}

async fn ready(State(app): State<App>) -> Response {
    if app.shutdown.is_cancelled() {
        return (StatusCode::SERVICE_UNAVAILABLE, "shutting down").into_response();
    }
    // Asked of the database once a second, however often it is asked of us.
    let look = async { crate::db::clock(app.db.pool()).await.is_ok() };
    if app.readiness.get_with((), look).await {
        return "ready".into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer").into_response()
}

/// How long a body may take to arrive.
const BODY_WITHIN: Duration = Duration::from_secs(20);

/// Takes some of a body that nobody wants: one who is still sending does not see an answer.
async fn discard(body: Body) {
    const ENOUGH: usize = 1024 * 1024;
    const LONG_ENOUGH: Duration = Duration::from_millis(500);
    // What it was, or whether it was too much, is of no interest.
    drop(tokio::time::timeout(LONG_ENOUGH, axum::body::to_bytes(body, ENOUGH)).await);
}

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
    let claims = app.tokens.read(token).await.ok()?;
    crate::telemetry::asked_by(&claims.sub);
    Some(claims)
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
