//! From the outbox into the index: one writer a process, in batches; and the rebuild when there is nothing to go on.

use super::{Discovery, document};
use crate::db::{Db, Single};
use crate::outbox::{self, Cluster, Position};
use crate::sql;
use parterre_search::{Index, SearchError, Writer};
use sea_orm::{DbErr, FromQueryResult};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
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
    writer: Option<(String, Writer)>,
}

const ROWS_A_PASS: u32 = 1_000;

impl Indexer {
    /// For an index.
    #[must_use]
    pub const fn new(discovery: Discovery) -> Self {
        Self { discovery, writer: None }
    }

    /// Up to where the index has read, if there is one.
    #[must_use]
    pub fn position(&self) -> Option<Position> {
        let cursor = self.discovery.index()?.cursor().ok()??;
        serde_json::from_str::<Cursor>(&cursor).ok().map(|cursor| cursor.position)
    }

    /// Reads on in the outbox, or builds a new index if there is none to go on with.
    pub async fn pass(&mut self) -> Result<Pass, IndexError> {
        self.discovery.reopen();
        let Some(index) = self.discovery.index() else { return self.start_over().await };
        let here = outbox::cluster(self.discovery.db.pool()).await?;
        let cursor = index.cursor()?.and_then(|text| serde_json::from_str::<Cursor>(&text).ok());
        let Some(cursor) = cursor.filter(|cursor| cursor.cluster == here) else { return self.start_over().await };
        let rows = outbox::read_after(self.discovery.db.pool(), cursor.position, ROWS_A_PASS).await?;
        if outbox::removed(self.discovery.db.pool()).await? > cursor.position {
            tracing::info!("outbox rows were removed that the search index has not read, it is built anew");
            return self.start_over().await;
        }
        let Some(last) = rows.last().map(|row| row.position) else {
            let behind = outbox::waiting_behind(self.discovery.db.pool(), cursor.position).await?;
            return Ok(if behind { Pass::Behind } else { Pass::Idle });
        };
        let events = self.concerned(&rows).await?;
        let documents = document::of(&self.discovery.db, events, last).await?;
        let saved = serde_json::to_string(&Cursor { cluster: here, position: last })?;
        let mut writer = match self.writer.take() {
            Some((generation, writer)) if generation == index.generation() => writer,
            _ => index.writer()?,
        };
        let written = tokio::task::spawn_blocking(move || {
            documents.iter().try_for_each(|document| writer.put(document))?;
            writer.commit(&saved)?;
            Ok::<Writer, SearchError>(writer)
        })
        .await?;
        match written {
            Ok(writer) => {
                self.writer = Some((index.generation().to_owned(), writer));
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
        self.writer = None;
        self.discovery.rebuild().await?;
        Ok(Pass::Rebuilt)
    }

    /// Events whose documents rows change.
    async fn concerned(&self, rows: &[outbox::Row]) -> Result<Vec<Uuid>, DbErr> {
        let mut events: BTreeSet<Uuid> = rows
            .iter()
            .filter(|row| matches!(row.topic.as_str(), "event" | "seats" | "hold" | "booking" | "ticket"))
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
