//! Load: as fast as answers come (closed), or by the clock whatever comes (open).

use super::client::{Answer, Connection};
use super::report::Latency;
use anyhow::Context as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What is asked: the n-th request, and whether its answer is right.
pub(super) trait Asks: Send + Sync + 'static {
    /// The n-th request; none when there is nothing left to ask.
    fn request(&self, n: u64) -> Option<Vec<u8>>;

    /// Whether the answer to the n-th is what it should be.
    fn is_right(&self, n: u64, answer: &Answer<'_>) -> bool;
}

/// What a load saw.
pub(super) struct Seen {
    pub(super) latency: Latency,
    pub(super) took: Duration,
    pub(super) wrong: u64,
}

/// How fast to ask.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pace {
    /// As soon as the answer before is there.
    Closed,
    /// So many a second over all connections, each counted from when it was due.
    Open(f64),
}

/// The same from a thread of its own: whoever it stands for does not wait for what a crowd's clients do.
pub(super) async fn load_apart(
    to: SocketAddr,
    how: (u32, Pace),
    lasting: Duration,
    asks: Arc<impl Asks>,
) -> anyhow::Result<Seen> {
    let (done, seen) = tokio::sync::oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    std::thread::Builder::new().name("apart".to_owned()).spawn(move || {
        drop(done.send(runtime.block_on(load(to, how, lasting, asks))));
    })?;
    seen.await.context("the load apart broke")?
}

/// Asks over so many connections for so long.
pub(super) async fn load(
    to: SocketAddr,
    (connections, pace): (u32, Pace),
    lasting: Duration,
    asks: Arc<impl Asks>,
) -> anyhow::Result<Seen> {
    let next = Arc::new(AtomicU64::new(0));
    let begun = Instant::now();
    let lanes = (0..connections).map(|lane| {
        let (asks, next) = (Arc::clone(&asks), Arc::clone(&next));
        tokio::spawn(async move {
            let mut connection = Connection::open(to).await?;
            let (mut latency, mut wrong) = (Latency::new(), 0_u64);
            let mut turn = 0_u32;
            loop {
                let due = match pace {
                    Pace::Closed => Instant::now(),
                    Pace::Open(rate) => {
                        let nth = f64::from(turn) * f64::from(connections) + f64::from(lane);
                        begun + Duration::from_secs_f64(nth / rate)
                    }
                };
                turn += 1;
                if due.duration_since(begun) >= lasting {
                    break;
                }
                tokio::time::sleep_until(due.into()).await;
                let n = next.fetch_add(1, Ordering::Relaxed);
                let Some(request) = asks.request(n) else { break };
                let answer = connection.send(&request).await?;
                if !asks.is_right(n, &answer) {
                    wrong += 1;
                }
                latency.note(due.elapsed());
            }
            Ok::<_, anyhow::Error>((latency, wrong))
        })
    });
    let (mut latency, mut wrong) = (Latency::new(), 0);
    for lane in futures_util::future::join_all(lanes).await {
        let (seen, bad) = lane.context("a lane broke")??;
        latency.add(&seen);
        wrong += bad;
    }
    Ok(Seen { latency, took: begun.elapsed(), wrong })
}
