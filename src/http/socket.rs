//! Subscriptions over WebSocket, by the graphql-transport-ws protocol.
//!
//! Source: PROTOCOL.md of the graphql-ws project. Invariants: nothing runs before `connection_init` is acknowledged; a
//! socket has a bounded number of streams and an account a bounded number of sockets; one who takes nothing for ten
//! seconds, or is silent for thirty, is closed; the end of the token is the end of the socket.

use super::graphql::Asked;
use super::streams::{Counted, FULL, Of, Payload, Session, did_not_begin, refusal, subscribe};
use super::{bearer, limits};
use crate::app::App;
use crate::limit::Bucket;
use async_graphql::ServerError;
use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use futures_util::StreamExt;
use futures_util::stream::{AbortHandle, BoxStream, SelectAll, abortable};
use parterre_schema::TopLevelCode;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until, timeout};

const PROTOCOL: &str = "graphql-transport-ws";
/// Bytes of one message from a client.
const MESSAGE_MAX: usize = 64 * 1024;
/// Bytes of one frame: one that is a little too long for a message is read, so that its sender sees why it is refused.
const FRAME_MAX: usize = 4 * MESSAGE_MAX;
/// How long a client may take to say who it is.
const INIT_WITHIN: Duration = Duration::from_secs(3);
/// How long a client may take for what is sent to it.
const SEND_WITHIN: Duration = Duration::from_secs(10);
/// How often a sign of life is asked for.
const PING_EVERY: Duration = Duration::from_secs(12);
/// How long a client may be silent.
const SILENT_MAX: Duration = Duration::from_secs(30);
/// How long a closed connection may take to end.
const FAREWELL: Duration = Duration::from_secs(1);
/// Streams of one socket.
const STREAMS_MAX: usize = 50;

/// A close code and its reason.
type Close = (u16, &'static str);

const GOING_AWAY: Close = (1001, "The server is going away");
const TOO_LARGE: Close = (1009, "A message has at most 64 KiB");
const TRY_LATER: Close = (1013, "Try again later");
const BAD_REQUEST: Close = (4400, "Invalid message");
const UNAUTHORIZED: Close = (4401, "Unauthorized");
const FORBIDDEN: Close = (4403, "Forbidden");
const EXPIRED: Close = (4403, "Token expired");
const WRONG_PROTOCOL: Close = (4406, "Subprotocol not acceptable");
const INIT_TIMEOUT: Close = (4408, "Connection initialisation timeout");
const SUBSCRIBER_EXISTS: Close = (4409, "Subscriber already exists");
const TOO_MANY_INITS: Close = (4429, "Too many initialisation requests");
const TOO_MANY_SOCKETS: Close = (4429, "Too many sockets of this account");

pub(super) fn open(app: App, upgrade: WebSocketUpgrade, address: IpAddr) -> Response {
    let Some(counted) = app.open_streams.count(Of::Address(address)) else { return limits::refuse(FULL) };
    let upgrade = upgrade
        .protocols([PROTOCOL])
        .read_buffer_size(4 * 1024)
        .max_message_size(MESSAGE_MAX)
        .max_frame_size(FRAME_MAX);
    upgrade.on_upgrade(move |socket| async move {
        let _open = (Gauge::more(), counted);
        let mut connection = Connection {
            app,
            address,
            socket,
            session: None,
            streams: SelectAll::new(),
            active: HashMap::new(),
            next_serial: 0,
            heard: Instant::now(),
        };
        if let Err(Ended::Close((code, reason))) = connection.run().await {
            metrics::counter!("parterre_sockets_closed_total", "code" => code.to_string()).increment(1);
            let frame = CloseFrame { code, reason: reason.into() };
            // Whoever does not take it is gone anyway.
            drop(timeout(SEND_WITHIN, connection.socket.send(Message::Close(Some(frame)))).await);
        }
        // Until the other side has closed too: unread input would end the connection before it saw why.
        let rest = async { while let Some(Ok(_)) = connection.socket.recv().await {} };
        drop(timeout(FAREWELL, rest).await);
    })
}

/// Open sockets of the process, for the metrics.
struct Gauge;

impl Gauge {
    fn more() -> Self {
        metrics::gauge!("parterre_sockets_open").increment(1.0);
        Self
    }
}

impl Drop for Gauge {
    fn drop(&mut self) {
        metrics::gauge!("parterre_sockets_open").decrement(1.0);
    }
}

/// What a client says.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Said {
    ConnectionInit { payload: Option<Value> },
    Ping { payload: Option<Value> },
    Pong {},
    Subscribe { id: String, payload: Asked },
    Complete { id: String },
}

/// Why a connection ends.
enum Ended {
    /// The other side is gone.
    Gone,
    /// We close it.
    Close(Close),
}

impl From<Close> for Ended {
    fn from(close: Close) -> Self {
        Self::Close(close)
    }
}

/// What a stream brings: its id, which of the id's streams, and a payload or its end.
type Brought = (String, u64, Option<Payload>);

/// A stream that a client has.
struct Active {
    serial: u64,
    stop: AbortHandle,
    /// Whether something of it was sent already.
    begun: bool,
}

struct Connection {
    app: App,
    address: IpAddr,
    socket: WebSocket,
    session: Option<(Session, Option<Counted>, Option<Instant>)>,
    streams: SelectAll<BoxStream<'static, Brought>>,
    active: HashMap<String, Active>,
    next_serial: u64,
    heard: Instant,
}

impl Connection {
    async fn run(&mut self) -> Result<(), Ended> {
        if self.socket.protocol().is_none_or(|chosen| chosen != PROTOCOL) {
            return Err(WRONG_PROTOCOL.into());
        }
        let shutdown = self.app.shutdown.clone();
        let init_until = Instant::now() + INIT_WITHIN;
        let mut pings = interval(PING_EVERY);
        pings.set_missed_tick_behavior(MissedTickBehavior::Delay);
        pings.reset();
        loop {
            let good_until = self.session.as_ref().and_then(|(_, _, until)| *until);
            tokio::select! {
                () = shutdown.cancelled() => return Err(GOING_AWAY.into()),
                () = sleep_until(init_until), if self.session.is_none() => return Err(INIT_TIMEOUT.into()),
                () = sleep_until(good_until.unwrap_or(init_until)), if good_until.is_some() => return Err(EXPIRED.into()),
                _ = pings.tick() => {
                    if self.heard.elapsed() > SILENT_MAX {
                        return Err(Ended::Gone);
                    }
                    self.send(Message::Ping(Vec::new().into())).await?;
                }
                message = self.socket.recv() => match message {
                    Some(Ok(message)) => {
                        self.heard = Instant::now();
                        self.hear(message).await?;
                    }
                    // What can't be read is too large, or no WebSocket any more: then the close goes nowhere.
                    Some(Err(_)) => return Err(TOO_LARGE.into()),
                    None => return Err(Ended::Gone),
                },
                Some(brought) = self.streams.next(), if !self.streams.is_empty() => self.bring(brought).await?,
            }
        }
    }

    async fn hear(&mut self, message: Message) -> Result<(), Ended> {
        let text = match message {
            Message::Text(text) => text,
            Message::Binary(_) => return Err(BAD_REQUEST.into()),
            Message::Ping(_) | Message::Pong(_) => return Ok(()),
            Message::Close(_) => return Err(Ended::Gone),
        };
        let said: Said = serde_json::from_str(&text).map_err(|_| Ended::Close(BAD_REQUEST))?;
        match said {
            Said::ConnectionInit { payload } => self.init(payload).await,
            Said::Ping { payload } => {
                let mut answer = json!({ "type": "pong" });
                if let (Some(payload), Some(fields)) = (payload, answer.as_object_mut()) {
                    fields.insert("payload".to_owned(), payload);
                }
                self.tell(&answer).await
            }
            Said::Pong {} => Ok(()),
            Said::Subscribe { id, payload } => self.subscribe(id, payload).await,
            Said::Complete { id } => {
                // Whatever of it is on its way comes to nothing: it is not active any more.
                if let Some(active) = self.active.remove(&id) {
                    active.stop.abort();
                }
                Ok(())
            }
        }
    }

    /// Reads the token of `connection_init`: `{"authorization": "Bearer …"}`. None is fine: maps are public.
    async fn init(&mut self, payload: Option<Value>) -> Result<(), Ended> {
        if self.session.is_some() {
            return Err(TOO_MANY_INITS.into());
        }
        let payload = payload.unwrap_or_else(|| json!({}));
        let Some(fields) = payload.as_object() else { return Err(BAD_REQUEST.into()) };
        let header = fields.get("authorization").or_else(|| fields.get("Authorization")).and_then(Value::as_str);
        let claims = match header {
            Some(header) => {
                let token = bearer(header).ok_or(Ended::Close(FORBIDDEN))?;
                Some(self.app.tokens.read(token).await.map_err(|_| Ended::Close(FORBIDDEN))?)
            }
            None => None,
        };
        let session = Session::of(&self.app, claims.as_deref()).await.map_err(|_| Ended::Close(TRY_LATER))?;
        let counted = match &session.account {
            Some(account) => {
                let counted = self.app.open_streams.count(Of::Account(account.clone()));
                Some(counted.ok_or(Ended::Close(TOO_MANY_SOCKETS))?)
            }
            None => None,
        };
        let good_until = session.good_for.and_then(|good_for| Instant::now().checked_add(good_for));
        self.session = Some((session, counted, good_until));
        self.tell(&json!({ "type": "connection_ack" })).await
    }

    async fn subscribe(&mut self, id: String, asked: Asked) -> Result<(), Ended> {
        let Some((session, _, _)) = &self.session else { return Err(UNAUTHORIZED.into()) };
        if id.is_empty() {
            return Err(BAD_REQUEST.into());
        }
        if self.active.contains_key(&id) {
            return Err(SUBSCRIBER_EXISTS.into());
        }
        if self.active.len() >= STREAMS_MAX {
            let message = format!("a socket has at most {STREAMS_MAX} streams: complete one, or open another socket");
            return self.refuse(&id, &[refusal(TopLevelCode::RateLimited, message)]).await;
        }
        let whose = session.account.clone().map_or(Bucket::Address(self.address), Bucket::Account);
        if let Some(limiter) = &self.app.limiter
            && let Err(too_often) = limiter.take(&[whose]).await
        {
            let mut error = refusal(TopLevelCode::RateLimited, "too many requests, wait a moment");
            error.extensions.get_or_insert_default().set("retryAfterMs", too_often.retry_after_ms());
            return self.refuse(&id, &[error]).await;
        }
        let stream = match subscribe(&self.app, session, asked).await {
            Ok(stream) => stream,
            Err(errors) => return self.refuse(&id, &errors).await,
        };
        let serial = self.next_serial;
        self.next_serial += 1;
        let (stream, stop) = abortable(stream);
        let (tag, end) = (id.clone(), id.clone());
        let brought = stream
            .map(move |payload| (tag.clone(), serial, Some(payload)))
            .chain(futures_util::stream::once(std::future::ready((end, serial, None))));
        self.streams.push(brought.boxed());
        self.active.insert(id, Active { serial, stop, begun: false });
        Ok(())
    }

    async fn bring(&mut self, (id, serial, payload): Brought) -> Result<(), Ended> {
        let Some(active) = self.active.get_mut(&id).filter(|active| active.serial == serial) else { return Ok(()) };
        match payload {
            // A server that goes away ends its streams: the client is to go on elsewhere, not to think it is over.
            None if self.app.shutdown.is_cancelled() => Err(GOING_AWAY.into()),
            None => {
                self.active.remove(&id);
                self.tell(&json!({ "id": id, "type": "complete" })).await
            }
            Some(Payload::Response(response)) if !active.begun && did_not_begin(&response) => {
                active.stop.abort();
                self.active.remove(&id);
                self.refuse(&id, &response.errors).await
            }
            Some(Payload::Response(response)) => {
                active.begun = true;
                // As text, so that fields stay in the order they were asked for.
                let payload = serde_json::to_string(&response).unwrap_or_default();
                self.next(id, &payload).await
            }
            Some(Payload::Encoded(payload)) => {
                active.begun = true;
                self.next(id, &payload).await
            }
        }
    }

    async fn refuse(&mut self, id: &str, errors: &[ServerError]) -> Result<(), Ended> {
        self.tell(&json!({ "id": id, "type": "error", "payload": errors })).await
    }

    async fn next(&mut self, id: String, payload: &str) -> Result<(), Ended> {
        let message = format!(r#"{{"id":{},"type":"next","payload":{payload}}}"#, Value::from(id));
        self.send(Message::text(message)).await
    }

    async fn tell(&mut self, message: &Value) -> Result<(), Ended> {
        self.send(Message::text(message.to_string())).await
    }

    /// Sends, to one who takes it.
    async fn send(&mut self, message: Message) -> Result<(), Ended> {
        match timeout(SEND_WITHIN, self.socket.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(Ended::Gone),
            Err(_) => {
                metrics::counter!("parterre_sockets_stuck_total").increment(1);
                Err(Ended::Gone)
            }
        }
    }
}
