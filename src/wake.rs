//! Waking whoever waits for something to do. Any number may listen; one who is busy sees it when done.

use std::sync::Arc;
use tokio::sync::watch;

/// Something that happens again and again.
#[derive(Clone, Debug)]
pub struct Wake {
    times: Arc<watch::Sender<u64>>,
}

impl Default for Wake {
    fn default() -> Self {
        Self { times: Arc::new(watch::Sender::new(0)) }
    }
}

impl Wake {
    /// It happened.
    pub fn wake(&self) {
        self.times.send_modify(|times| *times = times.wrapping_add(1));
    }

    /// Listens from now on.
    #[must_use]
    pub fn listen(&self) -> Sleeper {
        Sleeper { times: self.times.subscribe() }
    }
}

/// One who waits.
#[derive(Debug)]
pub struct Sleeper {
    times: watch::Receiver<u64>,
}

impl Sleeper {
    /// Until it happened at least once since the last time; for ever if nobody is left who could say so.
    pub async fn woken(&mut self) {
        if self.times.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
