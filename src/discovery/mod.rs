//! Finding events: the search index kept up with the outbox, and asked.
//!
//! Invariants: the index decides nothing and may be lost at any moment; it is rebuilt from the database into a new
//! folder and swapped in; while there is none, search says so instead of finding nothing.

mod document;
mod feed;

pub use feed::{IndexError, Indexer, Pass, day_number};

use crate::db::Db;
use parterre_search::{Hits, Index, Request, SearchError};
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

/// Why a search has no answer.
#[derive(Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// There is no index now; one is being built.
    #[error("the search index is being rebuilt")]
    Unavailable,
}

/// The index that is served, shared by those who ask and the one who writes.
#[derive(Clone, Debug)]
pub struct Discovery {
    db: Db,
    root: PathBuf,
    live: Arc<RwLock<Option<Arc<Index>>>>,
    results: moka::sync::Cache<String, Arc<Hits>>,
}

/// How long the same search gets the same answer.
const RESULTS_LIVE: Duration = Duration::from_secs(1);

impl Discovery {
    /// Opens what a folder has; an index that can't be opened counts as none.
    #[must_use]
    pub fn open(db: Db, data: &Path) -> Self {
        let root = data.join("search");
        let results = moka::sync::Cache::builder().max_capacity(2_000).time_to_live(RESULTS_LIVE).build();
        let discovery = Self { db, root, live: Arc::default(), results };
        discovery.reopen();
        discovery
    }

    /// Serves the folder's current index, if it is another one than before.
    fn reopen(&self) {
        let current = Index::current_generation(&self.root);
        let served = self.index().map(|index| index.generation().to_owned());
        if current == served {
            return;
        }
        match Index::open(&self.root) {
            Ok(index) => self.serve(index.map(Arc::new)),
            Err(error) => {
                tracing::error!(%error, "the search index can't be opened, it will be rebuilt");
                self.serve(None);
            }
        }
    }

    fn serve(&self, index: Option<Arc<Index>>) {
        *self.live.write().unwrap_or_else(PoisonError::into_inner) = index;
        self.results.invalidate_all();
    }

    /// The index that is served.
    #[must_use]
    pub fn index(&self) -> Option<Arc<Index>> {
        self.live.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Asks. The same request within a second gets the same answer.
    pub async fn search(&self, request: Request) -> Result<Arc<Hits>, DiscoveryError> {
        let index = self.index().ok_or(DiscoveryError::Unavailable)?;
        let key = format!("{request:?}");
        if let Some(hits) = self.results.get(&key) {
            return Ok(hits);
        }
        let asked = tokio::task::spawn_blocking(move || index.search(&request)).await;
        match asked {
            Ok(Ok(hits)) => {
                let hits = Arc::new(hits);
                self.results.insert(key, Arc::clone(&hits));
                Ok(hits)
            }
            Ok(Err(error)) => {
                self.give_up(&error);
                Err(DiscoveryError::Unavailable)
            }
            Err(error) => {
                tracing::error!(%error, "a search ended early");
                Err(DiscoveryError::Unavailable)
            }
        }
    }

    /// The index failed: nobody asks it any more, and the writer builds another.
    fn give_up(&self, error: &SearchError) {
        tracing::error!(%error, "the search index failed, it will be rebuilt");
        self.serve(None);
        std::fs::remove_file(self.root.join("current")).ok();
    }

    /// Builds a new index from the database and serves it.
    pub async fn rebuild(&self) -> Result<u64, feed::IndexError> {
        feed::rebuild(&self.db, &self.root).await?;
        self.reopen();
        Ok(self.index().map_or(0, |index| index.len()))
    }
}
