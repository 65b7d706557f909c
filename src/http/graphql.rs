//! GraphQL over HTTP: POST with JSON; GET for queries.

use super::{claims, socket, viewer};
use crate::app::App;
use crate::auth::Role;
use crate::graphql::errors::Failure;
use crate::graphql::guard::{self, Accepted, Refused};
use async_graphql::parser::types::OperationType;
use async_graphql::{Request, Response as GraphqlResponse, ServerError, Variables};
use async_graphql_axum::GraphQLProtocol;
use axum::body::Body;
use axum::extract::ws::WebSocketUpgrade;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use parterre_schema::TopLevelCode;
use serde::Deserialize;
use serde_json::json;

/// Bytes of an ordinary body.
const BODY_MAX: usize = 256 * 1024;
/// Bytes of an organizer's: layouts are large.
const ORGANIZER_BODY_MAX: usize = 16 * 1024 * 1024;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Asked {
    query: Option<String>,
    #[serde(default)]
    operation_name: Option<String>,
    #[serde(default)]
    variables: Option<serde_json::Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct AskedByGet {
    query: Option<String>,
    operation_name: Option<String>,
    variables: Option<String>,
}

pub(super) async fn post(State(app): State<App>, headers: HeaderMap, body: Body) -> Response {
    let accept = Accept::of(&headers);
    if !is_json(&headers) {
        return accept.refuse(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            TopLevelCode::BadUserInput,
            "send Content-Type: application/json",
        );
    }
    let claims = claims(&app, &headers);
    let organizer = claims.as_ref().is_some_and(|claims| claims.role == Role::Organizer);
    let limit = if organizer { ORGANIZER_BODY_MAX } else { BODY_MAX };
    let Ok(bytes) = axum::body::to_bytes(body, limit).await else {
        let message = format!("the body has at most {limit} bytes");
        return accept.refuse(StatusCode::PAYLOAD_TOO_LARGE, TopLevelCode::BadUserInput, &message);
    };
    let asked: Asked = match serde_json::from_slice(&bytes) {
        Ok(asked) => asked,
        Err(error) => {
            let message = format!("the body is not a GraphQL request as JSON: {error}");
            return accept.refuse(StatusCode::BAD_REQUEST, TopLevelCode::BadUserInput, &message);
        }
    };
    run(app, accept, claims, asked, false).await
}

pub(super) async fn get(
    State(app): State<App>,
    headers: HeaderMap,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
    protocol: Result<GraphQLProtocol, StatusCode>,
    Query(asked): Query<AskedByGet>,
) -> Response {
    match (upgrade, protocol) {
        (Ok(upgrade), Ok(protocol)) => return socket::open(app, upgrade, protocol),
        (Ok(_), Err(status)) => return status.into_response(),
        (Err(_), _) => {}
    }
    let accept = Accept::of(&headers);
    let variables = match asked.variables.as_deref().map(serde_json::from_str).transpose() {
        Ok(variables) => variables,
        Err(error) => {
            let message = format!("variables is not JSON: {error}");
            return accept.refuse(StatusCode::BAD_REQUEST, TopLevelCode::BadUserInput, &message);
        }
    };
    let claims = claims(&app, &headers);
    let asked = Asked { query: asked.query, operation_name: asked.operation_name, variables };
    run(app, accept, claims, asked, true).await
}

async fn run(
    app: App,
    accept: Accept,
    claims: Option<std::sync::Arc<crate::auth::Claims>>,
    asked: Asked,
    by_get: bool,
) -> Response {
    let Some(query) = asked.query else {
        return accept.refuse(StatusCode::BAD_REQUEST, TopLevelCode::BadUserInput, "a query is needed");
    };
    let operation_name = asked.operation_name.filter(|name| !name.is_empty());
    let accepted = match guard::accept(&query, operation_name.as_deref()) {
        Ok(accepted) => accepted,
        Err(refused) => return accept.refuse(StatusCode::BAD_REQUEST, code_of(&refused), &refused.to_string()),
    };
    match accepted.kind {
        OperationType::Mutation if by_get => {
            let mut response =
                accept.refuse(StatusCode::METHOD_NOT_ALLOWED, TopLevelCode::BadUserInput, "send mutations by POST");
            response.headers_mut().insert(header::ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        OperationType::Subscription => {
            let message = "subscribe over WebSocket (graphql-transport-ws) at this address";
            return accept.refuse(StatusCode::BAD_REQUEST, TopLevelCode::BadUserInput, message);
        }
        OperationType::Query | OperationType::Mutation => {}
    }
    let kind = if accepted.kind == OperationType::Mutation { "mutation" } else { "query" };
    let mut request = prepare(query, accepted, asked.variables);
    if let Some(claims) = claims {
        match viewer(&app, &claims).await {
            Ok(viewer) => request = request.data(viewer),
            Err(error) => return accept.fail(StatusCode::SERVICE_UNAVAILABLE, error.into()),
        }
    }
    let started = std::time::Instant::now();
    // In a task of its own: a client who hangs up does not cancel a write half way.
    let schema = app.schema.clone();
    let response = app.tasks.spawn(async move { schema.execute(request).await }).await;
    metrics::histogram!("parterre_operation_seconds", "kind" => kind).record(started.elapsed());
    match response {
        Ok(response) => accept.answer(response),
        Err(error) => accept.fail(StatusCode::INTERNAL_SERVER_ERROR, Failure::Internal(error.to_string())),
    }
}

/// A request with its parsed document.
pub(super) fn prepare(query: String, accepted: Accepted, variables: Option<serde_json::Value>) -> Request {
    let mut request = Request::new(query);
    if let Some(variables) = variables {
        request = request.variables(Variables::from_json(variables));
    }
    request.set_parsed_query(accepted.document);
    request
}

/// The code of a document's refusal.
pub(super) const fn code_of(refused: &Refused) -> TopLevelCode {
    match refused {
        Refused::Syntax(_) => TopLevelCode::ParseFailed,
        Refused::Validation(_) => TopLevelCode::ValidationFailed,
        Refused::TooComplex(_) => TopLevelCode::TooComplex,
    }
}

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

    fn refuse(self, status: StatusCode, code: TopLevelCode, message: &str) -> Response {
        let body = json!({ "errors": [{ "message": message, "extensions": { "code": code.as_str() } }] });
        // With application/json a document's own errors are told with 200.
        let about_document =
            matches!(code, TopLevelCode::ParseFailed | TopLevelCode::ValidationFailed | TopLevelCode::TooComplex);
        let status = if about_document && matches!(self, Self::Json) { StatusCode::OK } else { status };
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
