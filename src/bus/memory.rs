//! The bus of a process that serves alone.

use super::{BACKLOG_MAX, Bus, BusError, Hint};
use async_trait::async_trait;
use tokio::sync::broadcast;

/// Hints within one process.
#[derive(Debug)]
pub struct MemoryBus {
    sender: broadcast::Sender<Hint>,
}

impl Default for MemoryBus {
    fn default() -> Self {
        Self { sender: broadcast::channel(BACKLOG_MAX).0 }
    }
}

#[async_trait]
impl Bus for MemoryBus {
    fn send(&self, hint: Hint) {
        // No reader is no failure: whoever comes later loads what it needs.
        drop(self.sender.send(hint));
    }

    async fn publish(&self, hints: &[Hint]) -> Result<(), BusError> {
        for hint in hints {
            self.send(hint.clone());
        }
        Ok(())
    }

    fn subscribe(&self) -> broadcast::Receiver<Hint> {
        self.sender.subscribe()
    }
}
