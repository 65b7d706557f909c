//! From the outbox into the index: one writer a process, in batches; and the rebuild when there is nothing to go on.

use super::{Discovery, document};
use crate::db::{Db, Single};
use crate::outbox::{self, Cluster, Position, Topic};
use crate::sql;
use parterre_search::{EventDocument, Index, SearchError, Writer};
use sea_orm::{DbErr, FromQueryResult};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
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
    /// Read up to here, and saved with the last commit.
    read: Position,
    saved: Position,
    /// What was written lately: most changes of seats leave their event's document as it is.
    known: HashMap<Uuid, EventDocument>,
    /// Documents of which only the position has moved since: they go with the next commit.
    moved: HashMap<Uuid, EventDocument>,
    committed: Instant,
}

/// Rows looked at in a pass.
const ROWS_A_PASS: u32 = 5_000;
/// What an index reacts to. A sell-out comes with a change of seats.
const TOPICS: [Topic; 4] = [Topic::Event, Topic::Seats, Topic::Venue, Topic::Performer];
/// How long positions may wait to be saved that come with no other change: while there is more to read, and when there
/// is not.
const UNSAVED_MAX: Duration = Duration::from_secs(30);
const UNSAVED_AT_REST_MAX: Duration = Duration::from_secs(2);
/// Segments that an index may have when its writer is opened.
const SEGMENTS_MAX: usize = 4;
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
                writer: tidied(&index).await?,
                read: cursor.position,
                saved: cursor.position,
                known: HashMap::new(),
                moved: HashMap::new(),
                committed: Instant::now(),
            },
        };
        let page = outbox::read_after(db, open.read, ROWS_A_PASS, &TOPICS).await?;
        if outbox::removed(db).await? > open.read {
            tracing::info!("outbox rows were removed that the search index has not read, it is built anew");
            return self.start_over().await;
        }
        let is_at_rest = page.end.is_none();
        let newest = self.concerned(&page.rows).await?;
        let mut documents = document::of(&self.discovery.db, &newest).await?;
        open.read = page.end.unwrap_or(open.read);
        open.set_unchanged_aside(&mut documents);
        let wait = if is_at_rest { UNSAVED_AT_REST_MAX } else { UNSAVED_MAX };
        let is_due = open.read > open.saved && open.committed.elapsed() >= wait;
        if documents.is_empty() && !is_due {
            let is_behind = is_at_rest && outbox::waiting_behind(db, open.read).await?;
            self.open = Some(open);
            return Ok(if is_behind {
                Pass::Behind
            } else if is_at_rest {
                Pass::Idle
            } else {
                Pass::Moved
            });
        }
        documents.extend(open.moved.drain().map(|(_, document)| document));
        let cursor = serde_json::to_string(&Cursor { cluster: here, position: open.read })?;
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

    /// Events whose documents rows may change, each with the last row that is about it.
    async fn concerned(&self, rows: &[outbox::Row]) -> Result<HashMap<Uuid, Position>, DbErr> {
        let named = |topic: &str| -> HashMap<Uuid, Position> {
            rows.iter().filter(|row| row.topic == topic).filter_map(|row| Some((row.subject?, row.position))).collect()
        };
        let (venues, performers) = (named("venue"), named("performer"));
        // Rows ascend, so the last of an event stays.
        let mut events: HashMap<Uuid, Position> = rows
            .iter()
            .filter(|row| matches!(row.topic.as_str(), "event" | "seats"))
            .filter_map(|row| Some((row.event?.0, row.position)))
            .collect();
        if !venues.is_empty() || !performers.is_empty() {
            #[derive(FromQueryResult)]
            struct Of {
                event: Uuid,
                named: Uuid,
            }
            let more = Of::find_by_statement(sql!(
                "SELECT id AS event, venue_id AS named FROM event WHERE venue_id = ANY ($1)
                 UNION ALL SELECT event_id, performer_id FROM event_performer WHERE performer_id = ANY ($2)",
                venues.keys().copied().collect::<Vec<_>>(),
                performers.keys().copied().collect::<Vec<_>>()
            ))
            .all(self.discovery.db.pool())
            .await?;
            for Of { event, named } in more {
                let Some(at) = venues.get(&named).or_else(|| performers.get(&named)) else { continue };
                let newest = events.entry(event).or_insert(*at);
                *newest = (*newest).max(*at);
            }
        }
        Ok(events)
    }
}

/// The writer of an index that is served, after it has merged what a rebuild left in many segments.
async fn tidied(index: &Index) -> Result<Writer, IndexError> {
    let mut writer = index.writer()?;
    if index.segments() <= SEGMENTS_MAX {
        return Ok(writer);
    }
    tokio::task::spawn_blocking(move || writer.unite().map(|()| writer)).await?.map_err(IndexError::from)
}

/// The cursor in an index's last commit.
fn saved(index: &Index) -> Option<Cursor> {
    serde_json::from_str(&index.cursor().ok()??).ok()
}

impl Open {
    /// Takes documents out that say what the index says of their events already: only their positions have moved.
    fn set_unchanged_aside(&mut self, documents: &mut Vec<EventDocument>) {
        documents.retain(|new| {
            let says_more = self.known.get(&new.id).is_none_or(|known| !known.says_the_same_as(new));
            if says_more {
                self.moved.remove(&new.id);
            } else {
                self.moved.insert(new.id, new.clone());
            }
            says_more
        });
    }

    fn put(&mut self, documents: Vec<EventDocument>, cursor: &str) -> Result<(), SearchError> {
        documents.iter().try_for_each(|document| self.writer.put(document))?;
        self.writer.commit(cursor)?;
        self.saved = self.read;
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
    let mut writer = index.builder()?;
    let mut documents = document::page(db, Uuid::nil(), EVENTS_A_PAGE, position).await?;
    while let Some(last) = documents.last().map(|document| document.id) {
        // The next page is read while this one is written.
        let writing = tokio::task::spawn_blocking(move || {
            documents.iter().try_for_each(|document| writer.add(document)).map(|()| writer)
        });
        documents = document::page(db, last, EVENTS_A_PAGE, position).await?;
        writer = writing.await??;
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
