//! Subscriptions over WebSocket.

use super::graphql::{code_of, prepare, with_code};
use super::{bearer, viewer};
use crate::app::App;
use crate::graphql::guard;
use async_graphql::http::ALL_WEBSOCKET_PROTOCOLS;
use async_graphql::parser::types::OperationType;
use async_graphql::{Data, Executor, Request, Response as GraphqlResponse, ServerError};
use async_graphql_axum::{GraphQLProtocol, GraphQLWebSocket};
use axum::extract::ws::WebSocketUpgrade;
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use parterre_schema::TopLevelCode;
use std::sync::Arc;

/// Bytes of one message from a client.
const MESSAGE_MAX: usize = 64 * 1024;

pub(super) fn open(app: App, upgrade: WebSocketUpgrade, protocol: GraphQLProtocol) -> Response {
    let upgrade = upgrade.protocols(ALL_WEBSOCKET_PROTOCOLS).read_buffer_size(4 * 1024).max_message_size(MESSAGE_MAX);
    upgrade.on_upgrade(move |socket| async move {
        let on_init = app.clone();
        let executor = Subscriptions { app: app.clone() };
        let serving = GraphQLWebSocket::new(socket, executor, protocol)
            .on_connection_init(move |payload| authenticate(on_init, payload))
            .serve();
        tokio::select! {
            () = serving => {}
            () = app.shutdown.cancelled() => {}
        }
    })
}

/// Reads the token of `connection_init`: `{"authorization": "Bearer …"}`. None is fine: maps are public.
async fn authenticate(app: App, payload: serde_json::Value) -> async_graphql::Result<Data> {
    let mut data = Data::default();
    let header =
        payload.get("authorization").or_else(|| payload.get("Authorization")).and_then(serde_json::Value::as_str);
    if let Some(header) = header {
        let token = bearer(header).ok_or_else(|| async_graphql::Error::new("authorization must be a bearer token"))?;
        let claims = app.tokens.read(token).map_err(|error| async_graphql::Error::new(error.to_string()))?;
        let viewer =
            viewer(&app, &claims).await.map_err(|_| async_graphql::Error::new("the database does not answer"))?;
        data.insert(viewer);
    }
    Ok(data)
}

/// Runs subscriptions only, after the guard.
#[derive(Clone)]
struct Subscriptions {
    app: App,
}

fn refused(code: TopLevelCode, message: impl Into<String>) -> GraphqlResponse {
    let mut error = ServerError::new(message, None);
    error.extensions.get_or_insert_default().set("code", code.as_str());
    GraphqlResponse::from_errors(vec![error])
}

impl Executor for Subscriptions {
    async fn execute(&self, _: Request) -> GraphqlResponse {
        refused(TopLevelCode::BadUserInput, "send queries and mutations over HTTP")
    }

    fn execute_stream(&self, request: Request, session: Option<Arc<Data>>) -> BoxStream<'static, GraphqlResponse> {
        let only = |response| futures_util::stream::once(std::future::ready(response)).boxed();
        let accepted = match guard::accept(&request.query, request.operation_name.as_deref()) {
            Ok(accepted) => accepted,
            Err(error) => return only(refused(code_of(&error), error.to_string())),
        };
        if accepted.kind != OperationType::Subscription {
            return only(refused(TopLevelCode::BadUserInput, "send queries and mutations over HTTP"));
        }
        let variables = serde_json::to_value(&request.variables).ok();
        let prepared = prepare(request.query, accepted, variables);
        let stream = self.app.schema.execute_stream_with_session_data(prepared, session.unwrap_or_default());
        stream
            .map(|mut response| {
                response.errors = response.errors.into_iter().map(with_code).collect();
                response
            })
            .boxed()
    }
}
