//! Clients: GraphQL over HTTP, and over WebSocket.

use super::PATIENCE;
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::net::{TcpSocket, TcpStream};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;

/// Somebody who talks to a server.
#[derive(Clone, Debug)]
pub struct Api {
    pub url: String,
    pub token: Option<String>,
    client: reqwest::Client,
}

impl Api {
    pub fn new(url: &str, token: Option<String>) -> Self {
        let client = reqwest::Client::builder().timeout(Duration::from_mins(1)).build().unwrap();
        Self { url: url.to_owned(), token, client }
    }

    /// The whole answer.
    pub async fn ask(&self, query: &str, variables: Value) -> Value {
        self.try_ask(query, variables).await.unwrap()
    }

    /// The whole answer, or that there was none.
    pub async fn try_ask(&self, query: &str, variables: Value) -> Result<Value, reqwest::Error> {
        let mut request =
            self.client.post(format!("{}/graphql", self.url)).json(&json!({ "query": query, "variables": variables }));
        if let Some(token) = &self.token {
            request = request.bearer_auth(token);
        }
        request.send().await?.json().await
    }

    /// The data of an answer without errors.
    pub async fn data(&self, query: &str, variables: Value) -> Value {
        let answer = self.ask(query, variables).await;
        assert!(answer.get("errors").is_none(), "{query}\n{answer:#}");
        answer["data"].clone()
    }

    /// The payload of a mutation with an `input`.
    pub async fn mutate(&self, name: &str, input: Value, fields: &str) -> Value {
        let kind = format!("{}{}Input", name[..1].to_uppercase(), &name[1..]);
        let errors = "userErrors { code message field
            ... on SeatsUnavailableError { conflicts { seatId tierId status available availableAgainAt } }
            ... on LimitExceededError { limit } ... on StaleVersionError { currentVersion }
            ... on PaymentDeclinedError { declineCode holdStillActive } ... on RetryLaterError { retryAfterMs } }";
        let query = format!("mutation($input: {kind}!) {{ {name}(input: $input) {{ {fields} {errors} }} }}");
        self.data(&query, json!({ "input": input })).await[name].clone()
    }

    /// The payload of a mutation that went well.
    pub async fn must(&self, name: &str, input: Value, fields: &str) -> Value {
        let payload = self.mutate(name, input, fields).await;
        assert_eq!(payload["userErrors"], json!([]), "{name}");
        payload
    }

    /// The code and field of a mutation that was refused.
    pub async fn refused(&self, name: &str, input: Value) -> (String, String) {
        let payload = self.mutate(name, input, "__typename").await;
        let error = &payload["userErrors"][0];
        let field =
            error["field"].as_array().map(|parts| parts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join("."));
        (error["code"].as_str().unwrap_or("none").to_owned(), field.unwrap_or_default())
    }

    pub async fn hold(&self, event: &str, key: &str, seats: &[&str]) -> Value {
        let input = json!({ "eventId": event, "idempotencyKey": key, "seatIds": seats });
        self.mutate("holdSeats", input, HOLD).await
    }

    pub async fn checkout(&self, hold: &Value, key: &str, method: &str) -> Value {
        let input = json!({ "holdId": hold, "idempotencyKey": key, "paymentMethod": method });
        self.mutate("checkout", input, BOOKING).await
    }

    pub async fn booking(&self, id: &Value) -> Value {
        let query = format!("query($id: ID) {{ booking(id: $id) {{ {BOOKING_FIELDS} }} }}");
        self.data(&query, json!({ "id": id })).await["booking"].clone()
    }
}

pub const HOLD: &str = "replayed hold { id status expiresAt total { amount currency }
    items { quantity unitPrice { amount } seat { seatId status } tier { name } } }";
pub const BOOKING_FIELDS: &str = "id code version status total { amount currency }
    items { quantity seat { seatId } } tickets { id status code qrSvg seat { seatId } }
    payment { status operationId declineCode unknownSince nextCheckAt nextAction { redirectUrl } }
    refunds { status amount { amount } reason } timeline { kind from to cause }
    cancellation { allowed refundNow { amount } }";
pub const BOOKING: &str = "replayed booking { id code version status total { amount currency }
    items { quantity seat { seatId } } tickets { id status code qrSvg seat { seatId } }
    payment { status operationId declineCode unknownSince nextCheckAt nextAction { redirectUrl } }
    refunds { status amount { amount } reason } timeline { kind from to cause }
    cancellation { allowed refundNow { amount } } }";

/// A subscriber.
pub struct Socket {
    inner: WebSocketStream<TcpStream>,
}

impl Socket {
    pub async fn open(api: &Api) -> Self {
        let address = api.url.strip_prefix("http://").unwrap();
        Self::over(api, TcpStream::connect(address).await.unwrap()).await
    }

    /// The same by a client that takes in next to nothing while it does not read.
    pub async fn open_narrow(api: &Api) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(2_048).unwrap();
        let address = api.url.strip_prefix("http://").unwrap().parse().unwrap();
        Self::over(api, socket.connect(address).await.unwrap()).await
    }

    async fn over(api: &Api, stream: TcpStream) -> Self {
        let mut request = format!("{}/graphql", api.url.replace("http://", "ws://")).into_client_request().unwrap();
        request.headers_mut().insert("Sec-WebSocket-Protocol", "graphql-transport-ws".parse().unwrap());
        let (mut inner, _) = tokio_tungstenite::client_async(request, stream).await.unwrap();
        let payload =
            api.token.as_ref().map_or(json!({}), |token| json!({ "authorization": format!("Bearer {token}") }));
        let init = json!({ "type": "connection_init", "payload": payload }).to_string();
        inner.send(Message::text(init)).await.unwrap();
        let mut socket = Self { inner };
        assert_eq!(socket.message().await["type"], "connection_ack");
        socket
    }

    pub async fn subscribe(&mut self, query: &str, variables: Value) {
        let payload = json!({ "query": query, "variables": variables });
        let message = json!({ "id": "1", "type": "subscribe", "payload": payload }).to_string();
        self.inner.send(Message::text(message)).await.unwrap();
    }

    /// Is gone, without a word: the connection is reset.
    pub fn vanish(self) {
        self.inner.get_ref().set_zero_linger().unwrap();
    }

    /// The next message of any kind.
    pub async fn message(&mut self) -> Value {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.inner.next()).await;
            match message.expect("a message").expect("an open socket").unwrap() {
                Message::Text(text) => return serde_json::from_str(&text).unwrap(),
                Message::Ping(_) | Message::Pong(_) => {}
                other => panic!("an unexpected message: {other:?}"),
            }
        }
    }

    /// Reads on until the server closes, and returns its close code.
    pub async fn closed(&mut self) -> u16 {
        loop {
            let message = tokio::time::timeout(PATIENCE, self.inner.next()).await;
            let message = message.expect("a message").expect("an open socket").unwrap();
            if let Message::Close(frame) = message {
                return frame.map_or(0, |frame| frame.code.into());
            }
        }
    }

    /// The data of the next `next` message.
    pub async fn next(&mut self) -> Value {
        let message = self.message().await;
        assert_eq!(message["type"], "next", "{message}");
        assert!(message["payload"].get("errors").is_none(), "{message:#}");
        message["payload"]["data"].clone()
    }
}
