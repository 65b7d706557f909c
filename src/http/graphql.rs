//! GraphQL over HTTP: POST with JSON; GET for queries.

use super::limits::PeerAddress;
use super::{cache, claims, discard, limits, origin, read_bytes, socket, viewer};
use crate::app::App;
use crate::auth::{Claims, Role};
use crate::graphql::cost_of;
use crate::graphql::errors::Failure;
use crate::graphql::guard::{self, Accepted, Flaw, Refused};
use crate::limit::{Bucket, TooOften};
use crate::telemetry::carry;
use async_graphql::parser::types::{ExecutableDocument, OperationType};
use async_graphql::{Request, Response as GraphqlResponse, ServerError, Variables, value};
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use parterre_schema::TopLevelCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Bytes of an ordinary body.
const BODY_MAX: usize = 256 * 1024;
/// Bytes of an organizer's: layouts are large.
const ORGANIZER_BODY_MAX: usize = 16 * 1024 * 1024;

/// A GraphQL request as JSON.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Asked {
    pub(super) query: Option<String>,
    #[serde(default)]
    pub(super) operation_name: Option<String>,
    #[serde(default)]
    pub(super) variables: Option<serde_json::Value>,
    /// An object; of what is in it, `persistedQuery` is read.
    #[serde(default)]
    pub(super) extensions: Option<serde_json::Value>,
}

impl Asked {
    /// Whether each part is of its type.
    pub(super) fn check(self) -> Result<Self, String> {
        let object =
            |value: &Option<serde_json::Value>| value.as_ref().is_none_or(|value| value.is_object() || value.is_null());
        if !object(&self.variables) {
            return Err("variables must be an object".to_owned());
        }
        if !object(&self.extensions) {
            return Err("extensions must be an object".to_owned());
        }
        Ok(self)
    }
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskedByGet {
    query: Option<String>,
    operation_name: Option<String>,
    variables: Option<String>,
    extensions: Option<String>,
}

impl TryFrom<AskedByGet> for Asked {
    type Error = String;

    fn try_from(asked: AskedByGet) -> Result<Self, String> {
        let read = |name: &str, text: Option<String>| {
            let given = text.filter(|text| !text.is_empty());
            given
                .map(|text| serde_json::from_str(&text))
                .transpose()
                .map_err(|error| format!("{name} is not JSON: {error}"))
        };
        let (variables, extensions) = (read("variables", asked.variables)?, read("extensions", asked.extensions)?);
        Self { query: asked.query, operation_name: asked.operation_name, variables, extensions }.check()
    }
}

/// Why a request is refused.
#[derive(Debug)]
pub(super) struct Refusal {
    /// Of a client that wants statuses to mean something.
    pub(super) status: StatusCode,
    pub(super) code: TopLevelCode,
    pub(super) flaws: Vec<Flaw>,
    /// Whether it is about the document or its variables: with `application/json` such are told with 200.
    about_document: bool,
}

impl Refusal {
    pub(super) fn new(status: StatusCode, code: TopLevelCode, message: impl Into<String>) -> Self {
        let flaws = vec![Flaw { message: message.into(), locations: Vec::new() }];
        Self { status, code, flaws, about_document: false }
    }

    pub(super) fn about_document(self) -> Self {
        Self { about_document: true, ..self }
    }

    /// As errors of GraphQL.
    pub(super) fn errors(&self) -> Vec<Value> {
        let error = |flaw: &Flaw| {
            let mut error = json!({ "message": flaw.message, "extensions": { "code": self.code.as_str() } });
            if let (false, Some(fields)) = (flaw.locations.is_empty(), error.as_object_mut()) {
                let locations = flaw.locations.iter().map(|(line, column)| json!({ "line": line, "column": column }));
                fields.insert("locations".to_owned(), locations.collect());
            }
            error
        };
        self.flaws.iter().map(error).collect()
    }
}

impl From<Refused> for Refusal {
    fn from(refused: Refused) -> Self {
        let code = match refused {
            Refused::Syntax(_) => TopLevelCode::ParseFailed,
            Refused::Validation(_) | Refused::Invalid(_) => TopLevelCode::ValidationFailed,
            Refused::Variables(_) => TopLevelCode::BadUserInput,
            Refused::TooComplex(_) => TopLevelCode::TooComplex,
        };
        let message = refused.to_string();
        let refusal = Self::new(StatusCode::BAD_REQUEST, code, message).about_document();
        match refused {
            Refused::Invalid(flaws) => Self { flaws, ..refusal },
            _ => refusal,
        }
    }
}

/// Reads a request's body, of a size that its sender may send.
pub(super) async fn read_body(headers: &HeaderMap, claims: Option<&Claims>, body: Body) -> Result<Asked, Refusal> {
    let bad = |status, message: String| Refusal::new(status, TopLevelCode::BadUserInput, message);
    if !is_json(headers) {
        return Err(bad(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json".to_owned()));
    }
    let organizer = claims.is_some_and(|claims| claims.role == Role::Organizer);
    let limit = if organizer { ORGANIZER_BODY_MAX } else { BODY_MAX };
    let too_large = || bad(StatusCode::PAYLOAD_TOO_LARGE, format!("the body has at most {limit} bytes"));
    let told = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<usize>().ok());
    if told.is_some_and(|told| told > limit) {
        discard(body).await;
        return Err(too_large());
    }
    let bytes = read_bytes(body, limit).await.map_err(|status| match status {
        StatusCode::REQUEST_TIMEOUT => bad(status, "the body took too long to arrive".to_owned()),
        _ => too_large(),
    })?;
    // A list would be read as the fields in their order.
    if bytes.trim_ascii_start().first().is_some_and(|first| *first != b'{') {
        return Err(bad(StatusCode::BAD_REQUEST, "a request is one JSON object; batches are not taken".to_owned()));
    }
    let asked: Asked = serde_json::from_slice(&bytes)
        .map_err(|error| bad(StatusCode::BAD_REQUEST, format!("the body is not a GraphQL request as JSON: {error}")))?;
    asked.check().map_err(|message| bad(StatusCode::BAD_REQUEST, message))
}

pub(super) async fn post(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let accept = Accept::of(&headers);
    if !origin::is_allowed(&app.config, &headers) {
        return accept.refuse(&Refusal::new(StatusCode::FORBIDDEN, TopLevelCode::Forbidden, origin::REFUSED));
    }
    let claims = claims(&app, &headers).await;
    match read_body(&headers, claims.as_deref(), body).await {
        Ok(asked) => run(app, accept, claims, asked, false).await,
        Err(refusal) => accept.refuse(&refusal),
    }
}

pub(super) async fn get(
    State(app): State<App>,
    PeerAddress(address): PeerAddress,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    Query(asked): Query<AskedByGet>,
) -> Response {
    let accept = Accept::of(&headers);
    if !origin::is_allowed(&app.config, &headers) {
        return accept.refuse(&Refusal::new(StatusCode::FORBIDDEN, TopLevelCode::Forbidden, origin::REFUSED));
    }
    if let Ok(upgrade) = upgrade {
        return socket::open(app, upgrade, address);
    }
    let claims = claims(&app, &headers).await;
    let public = claims.is_none();
    let words = [&asked.query, &asked.variables].map(|text| text.as_deref().unwrap_or_default()).join(" ");
    match Asked::try_from(asked) {
        Ok(asked) => {
            let response = run(app, accept, claims, asked, true).await;
            let fresh = response.extensions().get::<Fresh>().filter(|_| public);
            let keep = fresh.map_or(cache::Keep::Private, |Fresh(seconds)| cache::Keep::Public(*seconds));
            cache::keep((&headers, &words), keep, response).await
        }
        Err(message) => accept.refuse(&Refusal::new(StatusCode::BAD_REQUEST, TopLevelCode::BadUserInput, message)),
    }
}

/// The document that is asked for and what it may be, its cost with all that it lists.
pub(super) async fn judge(app: &App, asked: &mut Asked) -> Result<(String, Accepted), Refusal> {
    let (query, keep) = app.persisted.document(asked)?;
    let operation_name = asked.operation_name.as_deref().filter(|name| !name.is_empty());
    let mut accepted = app.documents.accept(&query, operation_name, asked.variables.as_ref())?;
    if !accepted.maps.is_empty() {
        accepted.cost = cost_of(&app.services, &accepted).await.map_err(|_| {
            let message = "the database does not answer, try again in a moment";
            Refusal::new(StatusCode::SERVICE_UNAVAILABLE, TopLevelCode::ServiceUnavailable, message)
        })?;
        guard::check_cost(accepted.cost)?;
    }
    if keep {
        app.persisted.keep(&query);
    }
    Ok((query, accepted))
}

async fn run(
    app: App,
    accept: Accept,
    claims: Option<std::sync::Arc<Claims>>,
    mut asked: Asked,
    by_get: bool,
) -> Response {
    let (query, accepted) = match judge(&app, &mut asked).await {
        Ok(judged) => judged,
        Err(refusal) => return accept.refuse(&refusal),
    };
    match accepted.kind {
        OperationType::Mutation if by_get => {
            let message = "send mutations by POST";
            let refusal = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, TopLevelCode::BadUserInput, message);
            let mut response = accept.refuse(&refusal);
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        OperationType::Subscription => {
            let message = "subscribe over WebSocket (graphql-transport-ws) at this address, or at /graphql/stream";
            return accept.refuse(&Refusal::new(StatusCode::BAD_REQUEST, TopLevelCode::BadUserInput, message));
        }
        OperationType::Query | OperationType::Mutation => {}
    }
    // Reports are apart from sales, so that whoever reads them all day can still sell.
    if let (Some(limiter), Some(claims), true) = (&app.limiter, &claims, accepted.is_report)
        && let Err(too_often) = limiter.take(&[Bucket::Reports(claims.sub.clone())]).await
    {
        return limits::refuse(too_often);
    }
    let (cost, fresh) = (accepted.cost, Fresh(accepted.fresh_seconds));
    let kind = if accepted.kind == OperationType::Mutation { "mutation" } else { "query" };
    let mut request = prepare(query, &accepted.document, asked.variables);
    if let Some(claims) = claims {
        match viewer(&app, &claims).await {
            Ok(viewer) => request = request.data(viewer),
            Err(error) => return accept.fail(StatusCode::SERVICE_UNAVAILABLE, error.into()),
        }
    }
    let started = std::time::Instant::now();
    // In a task of its own: a client who hangs up does not cancel a write half way.
    let schema = app.schema.clone();
    let response = app.tasks.spawn(carry(async move { schema.execute(request).await })).await;
    metrics::histogram!("parterre_operation_seconds", "kind" => kind).record(started.elapsed());
    match response {
        Ok(response) => {
            let cost = value!({ "requested": cost, "allowed": guard::COST_MAX });
            let mut response = accept.answer(response.extension("cost", cost));
            response.extensions_mut().insert(fresh);
            response
        }
        Err(error) => accept.fail(StatusCode::INTERNAL_SERVER_ERROR, Failure::Internal(error.to_string())),
    }
}

/// A request with its parsed document.
pub(super) fn prepare(query: String, document: &ExecutableDocument, variables: Option<serde_json::Value>) -> Request {
    let mut request = Request::new(query);
    if let Some(variables) = variables {
        request = request.variables(Variables::from_json(variables));
    }
    request.set_parsed_query(document.clone());
    request
}

/// How many seconds the answer of an operation may be kept by anybody.
#[derive(Clone, Copy)]
struct Fresh(u32);

fn is_json(headers: &HeaderMap) -> bool {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    value.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Which of the two media types the client wants, which decides what statuses mean.
#[derive(Clone, Copy)]
enum Accept {
    /// `application/graphql-response+json`: a refused document is a 4xx.
    Graphql,
    /// `application/json`: whatever is well-formed GraphQL is a 200.
    Json,
}

impl Accept {
    fn of(headers: &HeaderMap) -> Self {
        let value = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if value.contains("application/graphql-response+json") { Self::Graphql } else { Self::Json }
    }

    const fn content_type(self) -> HeaderValue {
        match self {
            Self::Graphql => HeaderValue::from_static("application/graphql-response+json; charset=utf-8"),
            Self::Json => HeaderValue::from_static("application/json; charset=utf-8"),
        }
    }

    fn refuse(self, refusal: &Refusal) -> Response {
        let body = json!({ "errors": refusal.errors() });
        let ok = refusal.about_document && matches!(self, Self::Json);
        let status = if ok { StatusCode::OK } else { refusal.status };
        (status, [(header::CONTENT_TYPE, self.content_type())], body.to_string()).into_response()
    }

    /// A failure that is not about the document, told as any field's would be.
    fn fail(self, status: StatusCode, failure: Failure) -> Response {
        let error: async_graphql::Error = failure.into();
        let body = json!({ "errors": [{ "message": error.message, "extensions": error.extensions }] });
        (status, [(header::CONTENT_TYPE, self.content_type())], body.to_string()).into_response()
    }

    fn answer(self, mut response: GraphqlResponse) -> Response {
        let refused = response.data == async_graphql::Value::Null
            && !response.errors.is_empty()
            && response.errors.iter().all(|error| error.path.is_empty());
        response.errors = response.errors.into_iter().map(with_code).collect();
        if let Some(too_often) = limited(&response) {
            return limits::refuse(too_often);
        }
        let status = if refused && matches!(self, Self::Graphql) { StatusCode::BAD_REQUEST } else { StatusCode::OK };
        // A document that was not executed has no data, not even null. Keys stay in the order they were asked for.
        let body = if refused {
            serde_json::to_string(&json!({ "errors": response.errors }))
        } else {
            serde_json::to_string(&response)
        };
        (status, [(header::CONTENT_TYPE, self.content_type())], body.unwrap_or_default()).into_response()
    }
}

/// How long to wait, if nothing came of an operation but that it was asked for too often.
fn limited(response: &GraphqlResponse) -> Option<TooOften> {
    let nothing = match &response.data {
        async_graphql::Value::Null => true,
        async_graphql::Value::Object(fields) => fields.values().all(|field| *field == async_graphql::Value::Null),
        _ => false,
    };
    let wait = |error: &ServerError| {
        let extensions = error.extensions.as_ref()?;
        let code = extensions.get("code")?;
        let limited = *code == async_graphql::Value::from(TopLevelCode::RateLimited.as_str());
        let wait = extensions.get("retryAfterMs").and_then(|wait| wait.clone().into_json().ok()?.as_u64());
        limited.then(|| Duration::from_millis(wait.unwrap_or(1_000)))
    };
    let waits: Option<Vec<Duration>> = response.errors.iter().map(wait).collect();
    waits?.into_iter().max().filter(|_| nothing).map(|retry_after| TooOften { retry_after })
}

/// Every error has a code: those of the library are about the document or its variables.
pub(super) fn with_code(mut error: ServerError) -> ServerError {
    let coded = error.extensions.as_ref().is_some_and(|extensions| extensions.get("code").is_some());
    if !coded {
        let about_values =
            error.message.contains("Invalid value") || error.message.contains("variable") || !error.path.is_empty();
        let code = if about_values { TopLevelCode::BadUserInput } else { TopLevelCode::ValidationFailed };
        error.extensions.get_or_insert_default().set("code", code.as_str());
    }
    error
}
