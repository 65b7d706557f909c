//! Pages for people: the box office and GraphiQL, offline, out of the binary.

use crate::app::App;
use crate::auth::{Person, issue};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Redirect, Response};
use parterre_entity::EventId;
use parterre_schema::{Kind, node_id, parse_node_id};
use rust_embed::RustEmbed;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use uuid::Uuid;

/// The built playground, committed beside its sources.
#[derive(RustEmbed)]
#[folder = "playground/dist"]
struct Built;

/// The operations that fill GraphiQL's tabs; the tests run the same files.
#[derive(RustEmbed)]
#[folder = "playground/operations"]
struct Operations;

/// Nothing but what we serve, and our own sockets; pictures may stand in the page.
const ONLY_OURS: HeaderValue = HeaderValue::from_static(
    "default-src 'self'; img-src 'self' data:; connect-src 'self' ws: wss:; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
);

#[derive(Deserialize)]
pub(super) struct Opened {
    event: Option<String>,
}

/// The box office for a buyer; in development each tab that opens it is a buyer of its own, and may look over the
/// organizer's shoulder.
pub(super) async fn home(State(app): State<App>, Query(opened): Query<Opened>) -> Response {
    let Some(page) = Built::get("demo.html") else { return StatusCode::NOT_FOUND.into_response() };
    let guest = async || {
        let name = format!("guest-{}", &Uuid::new_v4().simple().to_string()[..8]);
        let token = issue(&app.config, &Person::buyer(&name), Duration::from_hours(24)).ok()?;
        let event = opened.event.as_ref().or_else(|| app.demo_event.get());
        let organizer = match event {
            Some(event) => organizer_of(&app, event).await,
            None => None,
        };
        Some(json!({ "name": name, "token": token, "event": app.demo_event.get(), "organizer": organizer }))
    };
    let settings = if app.config.playground_token { guest().await } else { None };
    let settings = settings.unwrap_or_else(|| json!({}));
    let html = fill(&page.data, &settings);
    (
        [(header::CONTENT_SECURITY_POLICY, ONLY_OURS), (header::CACHE_CONTROL, HeaderValue::from_static("no-store"))],
        html,
    )
        .into_response()
}

/// A token of an event's organizer, for development.
async fn organizer_of(app: &App, event: &str) -> Option<String> {
    let (_, id) = parse_node_id(event).filter(|(kind, _)| *kind == Kind::Event)?;
    let event = app.services.catalogue.recent(EventId(id)).await.ok()??;
    let organizer = Person::organizer(node_id(Kind::Organizer, event.organization_id).as_str());
    issue(&app.config, &organizer, Duration::from_hours(24)).ok()
}

/// A page with its settings.
fn fill(page: &[u8], settings: &Value) -> Html<String> {
    // Inside a script element: "<" must not be able to end it.
    let settings = settings.to_string().replace('<', "\\u003c");
    Html(String::from_utf8_lossy(page).replace("\"__PARTERRE_SETTINGS__\"", &settings))
}

pub(super) async fn to_graphiql() -> Redirect {
    Redirect::to("/graphiql")
}

/// GraphiQL with the example operations in tabs and, in development, a buyer's token filled in.
pub(super) async fn graphiql(State(app): State<App>) -> Response {
    let Some(page) = Built::get("index.html") else { return StatusCode::NOT_FOUND.into_response() };
    let token = app
        .config
        .playground_token
        .then(|| issue(&app.config, &Person::buyer("mina"), Duration::from_hours(24)).ok())
        .flatten();
    let mut names: Vec<String> = Operations::iter().map(std::borrow::Cow::into_owned).collect();
    names.sort();
    let demo_event = app.demo_event.get().map_or("evt_demo", String::as_str);
    let tabs: Vec<String> = names
        .iter()
        .filter_map(|name| Some(String::from_utf8_lossy(&Operations::get(name)?.data).replace("evt_demo", demo_event)))
        .collect();
    let html = fill(&page.data, &json!({ "token": token, "tabs": tabs }));
    ([(header::CACHE_CONTROL, "no-store")], html).into_response()
}

pub(super) async fn file(Path(path): Path<String>) -> Response {
    let Some(file) = Built::get(&path) else { return StatusCode::NOT_FOUND.into_response() };
    let kind = match path.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("ttf") => "font/ttf",
        Some("woff2") => "font/woff2",
        _ => "application/octet-stream",
    };
    let cached = "public, max-age=31536000, immutable";
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, cached)], file.data.into_owned()).into_response()
}
