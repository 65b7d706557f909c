//! Seat maps as people see them: a projection of each event in use, in memory, approximate by contract.
//!
//! Invariants: no database read per viewer; a projection is loaded once, moved on by deltas, and what it missed is
//! loaded again; it decides nothing. This room knows nothing of who owns a seat.

mod load;
mod projection;
mod shared;
mod snapshot;
mod state;

pub use projection::{Move, Projection, SectionView, View};
pub use shared::{Shared, Wording};
pub use snapshot::Snapshots;
pub use state::{Cell, Dirty, Loaded, Missed, State};

use crate::bus::{Bus, Hint};
use crate::catalogue::Catalogue;
use crate::db::{Db, Pace};
use parterre_entity::EventId;
use sea_orm::DbErr;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::broadcast::error::RecvError;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The projections of a process.
#[derive(Clone, Debug)]
pub struct SeatMaps {
    db: Db,
    catalogue: Catalogue,
    snapshots: Option<Snapshots>,
    /// What is kept warm, the most recently used.
    live: moka::future::Cache<EventId, Arc<Projection>>,
    /// Whatever somebody still has, warm or watched: one projection an event.
    all: Arc<Mutex<HashMap<EventId, Weak<Projection>>>>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

/// Events whose maps are kept at once.
const LIVE_MAX: u64 = 256;

impl SeatMaps {
    /// Starts listening to the bus.
    #[must_use]
    pub fn start(
        db: Db,
        catalogue: Catalogue,
        (bus, snapshots): (&dyn Bus, Option<Snapshots>),
        tasks: &TaskTracker,
        shutdown: &CancellationToken,
    ) -> Self {
        let live = moka::future::Cache::builder()
            .max_capacity(LIVE_MAX)
            .eviction_policy(moka::policy::EvictionPolicy::lru())
            .time_to_idle(Duration::from_mins(10))
            .build();
        let maps = Self {
            db,
            catalogue,
            snapshots,
            live,
            all: Arc::default(),
            tasks: tasks.clone(),
            shutdown: shutdown.clone(),
        };
        let (listening, hints) = (maps.clone(), bus.subscribe());
        tasks.spawn(listening.listen(hints));
        maps
    }

    /// The projection of an event, loaded by the first who asks. `None`: no such event.
    pub async fn of(&self, event: EventId) -> Result<Option<Arc<Projection>>, Arc<DbErr>> {
        if let Some(projection) = self.live.get(&event).await {
            projection.refresh_if_stale(&self.db).await.map_err(Arc::new)?;
            return Ok(Some(projection));
        }
        // Not warm any more, and still watched.
        if let Some(projection) = self.known(event) {
            self.live.insert(event, Arc::clone(&projection)).await;
            projection.refresh_if_stale(&self.db).await.map_err(Arc::new)?;
            return Ok(Some(projection));
        }
        let Some(frame) = self.catalogue.frame(event).await.map_err(Arc::new)? else { return Ok(None) };
        let layout = match frame.layout {
            Some(id) => self.catalogue.layout(id).await.map_err(Arc::new)?,
            None => None,
        };
        let load = async {
            let projection = Projection::load((&self.db, self.snapshots.as_ref()), event, layout).await?;
            {
                let mut all = self.registry();
                all.retain(|_, known| known.strong_count() > 0);
                all.insert(event, Arc::downgrade(&projection));
            }
            self.tasks.spawn(Arc::clone(&projection).keep(self.db.clone(), self.shutdown.clone()));
            Ok::<_, DbErr>(projection)
        };
        let projection = self.live.try_get_with(event, load).await?;
        // One that began from another server's snapshot, or while deltas went by, is compared at once.
        projection.refresh_if_stale(&self.db).await.map_err(Arc::new)?;
        Ok(Some(projection))
    }

    /// I11: what the maps in use show at a version that is not what the database has at it.
    pub async fn differences(&self, pace: Pace) -> Result<Vec<String>, DbErr> {
        let mut found = Vec::new();
        for projection in self.everything() {
            let (event, begun) = (projection.event, Instant::now());
            let differences = projection.differences(&self.db).await?;
            found.extend(differences.into_iter().map(|what| format!("{event}: {what}")));
            pace.rest_after(begun.elapsed()).await;
        }
        Ok(found)
    }

    /// Keeps nothing warm any more: what is watched stays, the rest is loaded again when somebody asks.
    pub async fn cool(&self) {
        self.live.invalidate_all();
        self.live.run_pending_tasks().await;
    }

    fn registry(&self) -> MutexGuard<'_, HashMap<EventId, Weak<Projection>>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self, event: EventId) -> Option<Arc<Projection>> {
        self.registry().get(&event).and_then(Weak::upgrade)
    }

    fn everything(&self) -> Vec<Arc<Projection>> {
        self.registry().values().filter_map(Weak::upgrade).collect()
    }

    async fn listen(self, mut hints: tokio::sync::broadcast::Receiver<Hint>) {
        loop {
            let hint = tokio::select! {
                () = self.shutdown.cancelled() => return,
                hint = hints.recv() => hint,
            };
            match hint {
                Ok(Hint::Seats(delta)) => {
                    if let Some(projection) = self.known(delta.event) {
                        projection.apply(&delta);
                    }
                }
                Ok(Hint::Booking(_) | Hint::Admitted { .. } | Hint::AdmissionEnded(_)) => {}
                Ok(Hint::Gap) | Err(RecvError::Lagged(_)) => {
                    metrics::counter!("parterre_seatmap_gaps_total").increment(1);
                    for projection in self.everything() {
                        projection.source_lost();
                    }
                }
                Err(RecvError::Closed) => return,
            }
        }
    }
}
