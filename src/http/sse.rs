//! Subscriptions as server-sent events, by the graphql-sse protocol in its distinct connections mode: one request, one
//! stream of `next` events, then `complete`.
//!
//! Source: PROTOCOL.md of the graphql-sse project.

use super::graphql::{Asked, AskedByGet, read_body};
use super::limits::PeerAddress;
use super::streams::{Counted, FULL, Of, Payload, Session, did_not_begin, refusal, server_errors, subscribe};
use super::{claims, limits, origin};
use crate::app::App;
use crate::auth::Claims;
use async_graphql::ServerError;
use axum::body::Body;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt, stream};
use parterre_schema::TopLevelCode;
use serde_json::json;
use std::convert::Infallible;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

/// How often a comment keeps a silent stream alive.
const KEEP_ALIVE: Duration = Duration::from_secs(12);
/// How long a client may take for an event.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);

pub(super) async fn post(
    State(app): State<App>,
    PeerAddress(address): PeerAddress,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let claims = claims(&app, &headers).await;
    match read_body(&headers, claims.as_deref(), body).await {
        Ok(asked) => open(app, headers, (claims, address), asked).await,
        Err(refused) => refuse(refused.status, &server_errors(&refused)),
    }
}

pub(super) async fn get(
    State(app): State<App>,
    PeerAddress(address): PeerAddress,
    headers: HeaderMap,
    Query(asked): Query<AskedByGet>,
) -> Response {
    match Asked::try_from(asked) {
        Ok(asked) => {
            let claims = claims(&app, &headers).await;
            open(app, headers, (claims, address), asked).await
        }
        Err(message) => refuse(StatusCode::BAD_REQUEST, &[refusal(TopLevelCode::BadUserInput, message)]),
    }
}

async fn open(
    app: App,
    headers: HeaderMap,
    (claims, address): (Option<Arc<Claims>>, IpAddr),
    asked: Asked,
) -> Response {
    if !origin::is_allowed(&app.config, &headers) {
        return refuse(StatusCode::FORBIDDEN, &[refusal(TopLevelCode::Forbidden, origin::REFUSED)]);
    }
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
    if !["text/event-stream", "text/*", "*/*"].iter().any(|kind| accepts.contains(kind)) {
        let error = refusal(TopLevelCode::BadUserInput, "this address answers with text/event-stream only");
        return refuse(StatusCode::NOT_ACCEPTABLE, &[error]);
    }
    if headers.contains_key(header::AUTHORIZATION) && claims.is_none() {
        let error = refusal(TopLevelCode::Unauthenticated, "the token is not valid");
        return refuse(StatusCode::UNAUTHORIZED, &[error]);
    }
    let Ok(session) = Session::of(&app, claims.as_deref()).await else {
        let error = refusal(TopLevelCode::ServiceUnavailable, "the database does not answer, try again in a moment");
        return refuse(StatusCode::SERVICE_UNAVAILABLE, &[error]);
    };
    let account = session.account.clone().map(Of::Account);
    let counted: Option<Vec<Counted>> =
        [Some(Of::Address(address)), account].into_iter().flatten().map(|of| app.open_streams.count(of)).collect();
    let Some(counted) = counted else { return limits::refuse(FULL) };
    // What is wrong with the operation is told in the stream, which is then complete.
    let payloads = subscribe(&app, &session, asked).await.unwrap_or_else(|errors| {
        stream::once(std::future::ready(Payload::Response(Box::new(async_graphql::Response::from_errors(errors)))))
            .boxed()
    });
    let ended = async move {
        let expired = async {
            match session.good_for {
                Some(good_for) => tokio::time::sleep(good_for).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = app.shutdown.cancelled() => {}
            () = expired => {}
        }
    };
    let taken = bounded(events(payloads, ended), counted);
    Sse::new(taken).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Passes events on to one who takes them. Whoever takes none for a while is not counted any more, and finds the stream
/// at its end.
fn bounded(
    events: impl Stream<Item = Result<Event, Infallible>> + Send + 'static,
    counted: Vec<Counted>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let _open = counted;
        let mut events = pin!(events);
        loop {
            let event = tokio::select! {
                () = sender.closed() => return,
                event = events.next() => event,
            };
            let Some(event) = event else { return };
            if !matches!(timeout(TAKEN_WITHIN, sender.send(event)).await, Ok(Ok(()))) {
                metrics::counter!("parterre_sockets_stuck_total").increment(1);
                return;
            }
        }
    });
    stream::unfold(receiver, async |mut receiver| Some((receiver.recv().await?, receiver)))
}

/// `next` for each payload, and `complete` when they are over; a stream that we end says nothing, so that the client
/// comes again.
fn events(
    payloads: impl Stream<Item = Payload>,
    ended: impl Future<Output = ()>,
) -> impl Stream<Item = Result<Event, Infallible>> {
    let next = |payload: Payload| {
        let event = Event::default().event("next");
        Ok(match payload {
            Payload::Response(response) if did_not_begin(&response) => {
                event.data(json!({ "errors": response.errors }).to_string())
            }
            Payload::Response(response) => event.data(serde_json::to_string(&response).unwrap_or_default()),
            Payload::Encoded(payload) => event.data(payload),
        })
    };
    let complete = async { Ok(Event::default().event("complete").data("")) };
    payloads.map(next).chain(stream::once(complete)).take_until(ended)
}

fn refuse(status: StatusCode, errors: &[ServerError]) -> Response {
    let body = json!({ "errors": errors }).to_string();
    (status, [(header::CONTENT_TYPE, "application/json; charset=utf-8")], body).into_response()
}
