//! The bus of many processes: Redis pub/sub.
//!
//! Invariants: this process's own readers are told at once and without Redis; nobody who sends waits for it; after every
//! loss of the subscription each reader gets a `Gap`, since what was sent meanwhile is gone.

use super::{BACKLOG_MAX, Bus, BusError, Hint};
use async_trait::async_trait;
use futures_util::StreamExt;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// Hints through a Redis channel.
#[derive(Clone)]
pub struct RedisBus {
    wire: Wire,
    sender: broadcast::Sender<Hint>,
    /// What is to be sent without anybody waiting for it.
    outgoing: mpsc::Sender<Hint>,
}

/// The way out.
#[derive(Clone)]
struct Wire {
    channel: String,
    connection: ConnectionManager,
    /// This process, which need not hear itself.
    me: Uuid,
}

/// How long Redis may take for what is sent to it.
const TAKEN_WITHIN: Duration = Duration::from_secs(1);
/// What a process that has nothing to say publishes, so that every listener knows that its line is not dead.
const SIGN_OF_LIFE: &[u8] = b"";
/// How often, and how long a line may be silent.
const SIGN_EVERY: Duration = Duration::from_secs(3);
const SILENT_MAX: Duration = Duration::from_secs(10);
/// Hints sent in one go.
const AT_ONCE: usize = 256;

impl std::fmt::Debug for RedisBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisBus").field("channel", &self.wire.channel).finish_non_exhaustive()
    }
}

impl RedisBus {
    /// Connects and subscribes. `namespace` keeps several installations on one Redis apart.
    pub async fn connect(url: &str, namespace: &str, shutdown: CancellationToken) -> Result<Self, BusError> {
        let client = redis::Client::open(url).map_err(|error| BusError(error.to_string()))?;
        let settings = ConnectionManagerConfig::new().set_response_timeout(Some(TAKEN_WITHIN));
        let connection = ConnectionManager::new_with_config(client.clone(), settings).await;
        let connection = connection.map_err(|error| BusError(error.to_string()))?;
        let wire = Wire { channel: format!("parterre:{namespace}:hints"), connection, me: Uuid::now_v7() };
        let (outgoing, queue) = mpsc::channel(BACKLOG_MAX);
        let bus = Self { wire, sender: broadcast::channel(BACKLOG_MAX).0, outgoing };
        let first = subscribe(&client, &bus.wire.channel).await?;
        tokio::spawn(listen(client, bus.wire.clone(), first, bus.sender.clone(), shutdown));
        tokio::spawn(send_all(bus.wire.clone(), queue));
        Ok(bus)
    }
}

#[async_trait]
impl Bus for RedisBus {
    fn send(&self, hint: Hint) {
        drop(self.sender.send(hint.clone()));
        if self.outgoing.try_send(hint).is_err() {
            metrics::counter!("parterre_bus_unsent_total").increment(1);
        }
    }

    async fn publish(&self, hints: &[Hint]) -> Result<(), BusError> {
        self.wire.publish(hints).await?;
        for hint in hints {
            drop(self.sender.send(hint.clone()));
        }
        Ok(())
    }

    fn subscribe(&self) -> broadcast::Receiver<Hint> {
        self.sender.subscribe()
    }
}

impl Wire {
    async fn publish(&self, hints: &[Hint]) -> Result<(), BusError> {
        // Nothing to send is nothing that could fail; a pipeline without commands does.
        if hints.is_empty() {
            return Ok(());
        }
        let mut pipeline = redis::pipe();
        for hint in hints {
            // Who sends it, then the hint: one's own are known without being read.
            let mut sent = self.me.as_bytes().to_vec();
            serde_json::to_writer(&mut sent, hint).map_err(|error| BusError(error.to_string()))?;
            pipeline.publish(&self.channel, sent).ignore();
        }
        self.run(&pipeline).await
    }

    async fn say(&self, bytes: &[u8]) -> Result<(), BusError> {
        self.run(redis::pipe().publish(&self.channel, bytes).ignore()).await
    }

    async fn run(&self, pipeline: &redis::Pipeline) -> Result<(), BusError> {
        let mut connection = self.connection.clone();
        let sent = tokio::time::timeout(TAKEN_WITHIN, pipeline.query_async::<()>(&mut connection)).await;
        let sent = sent.map_err(|_| BusError(format!("it did not answer within {TAKEN_WITHIN:?}")))?;
        sent.map_err(|error| BusError(error.to_string()))
    }
}

/// Sends what was handed in, in its order, until the bus is gone. What Redis does not take is the relay's.
async fn send_all(wire: Wire, mut queue: mpsc::Receiver<Hint>) {
    let (mut hints, mut away) = (Vec::with_capacity(AT_ONCE), false);
    loop {
        let sent = match tokio::time::timeout(SIGN_EVERY, queue.recv_many(&mut hints, AT_ONCE)).await {
            Ok(0) => return,
            Ok(_) => wire.publish(&hints).await,
            Err(_) => wire.say(SIGN_OF_LIFE).await,
        };
        match &sent {
            Err(error) if !away => tracing::warn!(%error, "hints are not sent, the relay will send them again"),
            Err(_) => {}
            Ok(()) if away => tracing::info!("hints are sent again"),
            Ok(()) => {}
        }
        away = sent.is_err();
        if away {
            let unsent = u64::try_from(hints.len()).unwrap_or(u64::MAX);
            metrics::counter!("parterre_bus_unsent_total").increment(unsent);
        }
        hints.clear();
    }
}

async fn subscribe(client: &redis::Client, channel: &str) -> Result<redis::aio::PubSub, BusError> {
    let mut subscription = client.get_async_pubsub().await.map_err(|error| BusError(error.to_string()))?;
    subscription.subscribe(channel).await.map_err(|error| BusError(error.to_string()))?;
    Ok(subscription)
}

/// Passes hints on, and subscribes again for as long as it takes: the stream itself ends silently with its connection.
async fn listen(
    client: redis::Client,
    wire: Wire,
    first: redis::aio::PubSub,
    sender: broadcast::Sender<Hint>,
    shutdown: CancellationToken,
) {
    let mut subscription = Some(first);
    loop {
        if let Some(live) = subscription.take() {
            let mut messages = live.into_on_message();
            loop {
                tokio::select! {
                    () = shutdown.cancelled() => return,
                    message = tokio::time::timeout(SILENT_MAX, messages.next()) => match message {
                        Ok(Some(message)) => forward(&message, (wire.me, &sender)),
                        // Over, or as good as: not even our own signs of life come back.
                        Ok(None) | Err(_) => break,
                    },
                }
            }
            tracing::warn!("the redis subscription ended, subscribing again");
            metrics::counter!("parterre_bus_reconnects_total").increment(1);
        }
        tokio::select! {
            () = shutdown.cancelled() => return,
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
        subscription = subscribe(&client, &wire.channel).await.ok();
        if subscription.is_some() {
            drop(sender.send(Hint::Gap));
        }
    }
}

fn forward(message: &redis::Msg, (me, sender): (Uuid, &broadcast::Sender<Hint>)) {
    let sent = message.get_payload_bytes();
    if sent == SIGN_OF_LIFE || sent.starts_with(me.as_bytes()) {
        return;
    }
    match serde_json::from_slice(sent.get(me.as_bytes().len()..).unwrap_or_default()) {
        Ok(hint) => drop(sender.send(hint)),
        Err(error) => {
            tracing::warn!(%error, "a hint from redis could not be read");
            drop(sender.send(Hint::Gap));
        }
    }
}
