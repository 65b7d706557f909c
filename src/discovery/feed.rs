//! From the outbox into the index: one writer a process, in batches; and the rebuild when there is nothing to go on.

use super::{Discovery, document};
use crate::db::{Db, Single};
use crate::outbox::{self, Cluster, Position, Topic};
use crate::sql;
use parterre_search::{EventDocument, Index, SearchError, Writer};
use sea_orm::{DbErr, FromQueryResult};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Why the index was not brought up to date.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// The index failed.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The database failed.
    #[error(transparent)]
    Database(#[from] DbErr),
    /// A blocking task ended early.
    #[error("the indexing task ended early: {0}")]
    Task(#[from] tokio::task::JoinError),
    /// The saved cursor can't be written.
    #[error("the cursor can't be written: {0}")]
    Cursor(#[from] serde_json::Error),
}

/// How far the index has read, and in which cluster.
#[derive(Debug, Serialize, Deserialize)]
struct Cursor {
    cluster: Cluster,
    position: Position,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// Read some rows; there may be more.
    Moved,
    /// Committed rows wait for an older transaction to end.
    Behind,
    /// Nothing new.
    Idle,
    /// Built a new index.
    Rebuilt,
}

/// The one writer of this process's index.
#[derive(Debug)]
pub struct Indexer {
    discovery: Discovery,
    open: Option<Open>,
}

/// An index that is being written.
#[derive(Debug)]
struct Open {
    generation: String,
    writer: Writer,
    /// Read up to here, which is saved with the next commit.
    read: Position,
    committed: Instant,
    /// What was written lately: most changes of seats leave their event's document as it is.
    known: HashMap<Uuid, EventDocument>,
}

/// Rows looked at in a pass.
const ROWS_A_PASS: u32 = 5_000;
/// What an index reacts to. A sell-out comes with a change of seats.
const TOPICS: [Topic; 4] = [Topic::Event, Topic::Seats, Topic::Venue, Topic::Performer];
/// How long a position that no document came with may wait to be saved.
const UNSAVED_MAX: Duration = Duration::from_secs(30);
/// Documents remembered.
const KNOWN_MAX: usize = 5_000;

impl Indexer {
    /// For an index.
    #[must_use]
    pub const fn new(discovery: Discovery) -> Self {
        Self { discovery, open: None }
    }

    /// Up to where the index has read, if there is one.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        let index = self.discovery.index()?;
        match &self.open {
            Some(open) if open.generation == index.generation() => Some(open.read),
            _ => Some(saved(&index)?.position),
        }
    }

    /// Reads on in the outbox, or builds a new index if there is none to go on with.
    pub async fn pass(&mut self) -> Result<Pass, IndexError> {
        self.discovery.reopen();
        let Some(index) = self.discovery.index() else { return self.start_over().await };
        let db = self.discovery.db.pool();
        let here = outbox::cluster(db).await?;
        let Some(cursor) = saved(&index).filter(|cursor| cursor.cluster == here) else {
            return self.start_over().await;
        };
        let mut open = match self.open.take() {
            Some(open) if open.generation == index.generation() => open,
            _ => Open {
                generation: index.generation().to_owned(),
                writer: index.writer()?,
                read: cursor.position,
                committed: Instant::now(),
                known: HashMap::new(),
            },
        };
        let page = outbox::read_after(db, open.read, ROWS_A_PASS, &TOPICS).await?;
        if outbox::removed(db).await? > open.read {
            tracing::info!("outbox rows were removed that the search index has not read, it is built anew");
            return self.start_over().await;
        }
        let Some(end) = page.end else {
            let behind = outbox::waiting_behind(db, open.read).await?;
            self.open = Some(open);
            return Ok(if behind { Pass::Behind } else { Pass::Idle });
        };
        let mut documents = document::of(&self.discovery.db, self.concerned(&page.rows).await?, end).await?;
        documents.retain(|new| open.known.get(&new.id).is_none_or(|known| !known.says_the_same_as(new)));
        open.read = end;
        if documents.is_empty() && open.committed.elapsed() < UNSAVED_MAX {
            self.open = Some(open);
            return Ok(Pass::Moved);
        }
        let cursor = serde_json::to_string(&Cursor { cluster: here, position: end })?;
        match tokio::task::spawn_blocking(move || open.put(documents, &cursor).map(|()| open)).await? {
            Ok(open) => {
                self.open = Some(open);
                self.discovery.results.invalidate_all();
                Ok(Pass::Moved)
            }
            Err(error) => {
                self.discovery.give_up(&error);
                Err(error.into())
            }
        }
    }

    async fn start_over(&mut self) -> Result<Pass, IndexError> {
        self.open = None;
        self.discovery.rebuild().await?;
        Ok(Pass::Rebuilt)
    }

    /// Events whose documents rows change.
    async fn concerned(&self, rows: &[outbox::Row]) -> Result<Vec<Uuid>, DbErr> {
        let mut events: BTreeSet<Uuid> = rows
            .iter()
            .filter(|row| matches!(row.topic.as_str(), "event" | "seats"))
            .filter_map(|row| row.event.map(Uuid::from))
            .collect();
        let named = |topic: &str| {
            rows.iter().filter(|row| row.topic == topic).filter_map(|row| row.subject).collect::<Vec<_>>()
        };
        let (venues, performers) = (named("venue"), named("performer"));
        if !venues.is_empty() || !performers.is_empty() {
            let more = Single::<Uuid>::find_by_statement(sql!(
                "SELECT id AS value FROM event WHERE venue_id = ANY ($1)
                 UNION SELECT event_id FROM event_performer WHERE performer_id = ANY ($2)",
                venues,
                performers
            ))
            .all(self.discovery.db.pool())
            .await?;
            events.extend(more.into_iter().map(|row| row.value));
        }
        Ok(events.into_iter().collect())
    }
}

/// The cursor in an index's last commit.
fn saved(index: &Index) -> Option<Cursor> {
    serde_json::from_str(&index.cursor().ok()??).ok()
}

impl Open {
    fn put(&mut self, documents: Vec<EventDocument>, cursor: &str) -> Result<(), SearchError> {
        documents.iter().try_for_each(|document| self.writer.put(document))?;
        self.writer.commit(cursor)?;
        self.committed = Instant::now();
        if self.known.len() > KNOWN_MAX {
            self.known.clear();
        }
        self.known.extend(documents.into_iter().map(|document| (document.id, document)));
        Ok(())
    }
}

const EVENTS_A_PAGE: i64 = 2_000;

/// Builds an index of all events in a new folder and makes it the one that is served.
pub(super) async fn rebuild(db: &Db, root: &Path) -> Result<(), IndexError> {
    // Everything before the horizon is visible to the reads below; everything after is read from the feed later.
    let horizon =
        Single::<String>::find_by_statement(sql!("SELECT pg_snapshot_xmin(pg_current_snapshot())::text AS value"))
            .one(db.pool())
            .await?
            .and_then(|row| row.value.parse::<u64>().ok())
            .unwrap_or_default();
    let position = Position { xid: horizon.saturating_sub(1), id: i64::MAX };
    let cursor = serde_json::to_string(&Cursor { cluster: outbox::cluster(db.pool()).await?, position })?;
    let index = Index::create(root)?;
    let mut writer = index.writer()?;
    let mut after = Uuid::nil();
    loop {
        let documents = document::page(db, after, EVENTS_A_PAGE, position).await?;
        let Some(last) = documents.last().map(|document| document.id) else { break };
        after = last;
        writer = tokio::task::spawn_blocking(move || {
            documents.iter().try_for_each(|document| writer.add(document)).map(|()| writer)
        })
        .await??;
    }
    let folder = root.to_path_buf();
    let generation = index.generation().to_owned();
    tokio::task::spawn_blocking(move || {
        writer.commit(&cursor)?;
        index.serve(&folder)
    })
    .await??;
    tracing::info!(generation, "the search index was rebuilt");
    Ok(())
}

/// A calendar day as the index counts it.
#[must_use]
pub fn day_number(day: chrono::NaiveDate) -> i64 {
    document::days(day)
}
