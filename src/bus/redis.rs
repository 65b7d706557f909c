//! The bus of many processes: Redis pub/sub.
//!
//! Invariant: after every loss of the subscription each reader gets a `Gap`, since what was sent meanwhile is gone.

use super::{BACKLOG_MAX, Bus, BusError, Hint};
use async_trait::async_trait;
use futures_util::StreamExt;
use redis::AsyncCommands;
use redis::aio::ConnectionManager;
use std::time::Duration;
use tokio::sync::broadcast;
use tokio_util::sync::CancellationToken;

/// Hints through a Redis channel.
#[derive(Clone)]
pub struct RedisBus {
    channel: String,
    connection: ConnectionManager,
    sender: broadcast::Sender<Hint>,
}

impl std::fmt::Debug for RedisBus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisBus").field("channel", &self.channel).finish_non_exhaustive()
    }
}

impl RedisBus {
    /// Connects and subscribes. `namespace` keeps several installations on one Redis apart.
    pub async fn connect(url: &str, namespace: &str, shutdown: CancellationToken) -> Result<Self, BusError> {
        let client = redis::Client::open(url).map_err(|error| BusError(error.to_string()))?;
        let connection = client.get_connection_manager().await.map_err(|error| BusError(error.to_string()))?;
        let bus = Self {
            channel: format!("parterre:{namespace}:hints"),
            connection,
            sender: broadcast::channel(BACKLOG_MAX).0,
        };
        let first = subscribe(&client, &bus.channel).await?;
        tokio::spawn(listen(client, bus.channel.clone(), first, bus.sender.clone(), shutdown));
        Ok(bus)
    }
}

#[async_trait]
impl Bus for RedisBus {
    async fn publish(&self, hint: Hint) -> Result<(), BusError> {
        let text = serde_json::to_string(&hint).map_err(|error| BusError(error.to_string()))?;
        let mut connection = self.connection.clone();
        connection.publish::<_, _, ()>(&self.channel, text).await.map_err(|error| BusError(error.to_string()))
    }

    fn subscribe(&self) -> broadcast::Receiver<Hint> {
        self.sender.subscribe()
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
    channel: String,
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
                    message = messages.next() => match message {
                        Some(message) => forward(&message, &sender),
                        None => break,
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
        subscription = subscribe(&client, &channel).await.ok();
        if subscription.is_some() {
            drop(sender.send(Hint::Gap));
        }
    }
}

fn forward(message: &redis::Msg, sender: &broadcast::Sender<Hint>) {
    match serde_json::from_slice::<Hint>(message.get_payload_bytes()) {
        Ok(hint) => drop(sender.send(hint)),
        Err(error) => {
            tracing::warn!(%error, "a hint from redis could not be read");
            drop(sender.send(Hint::Gap));
        }
    }
}
