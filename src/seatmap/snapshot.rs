//! A map that another server loaded a moment ago, by way of Redis: many servers that start at once ask the database once.
//!
//! Invariant: a snapshot is of one moment and carries its versions, so whoever starts from it sees what it missed. Without
//! Redis, or when it is slow, the database is asked.

use super::state::{Cell, Loaded};
use parterre_entity::EventId;
use redis::aio::{ConnectionManager, ConnectionManagerConfig};
use redis::{AsyncCommands, RedisError};
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// How long Redis may take before the database is asked.
const ANSWER_WITHIN: Duration = Duration::from_millis(200);
/// How long a snapshot is kept.
const KEPT: Duration = Duration::from_secs(2);

/// Where servers leave maps for each other.
#[derive(Clone)]
pub struct Snapshots {
    connection: ConnectionManager,
    prefix: String,
}

impl std::fmt::Debug for Snapshots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Snapshots").field("prefix", &self.prefix).finish_non_exhaustive()
    }
}

/// A map, written small.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Packed {
    versions: Vec<(i16, i64)>,
    /// The number of a stretch's first seat, its section, and a letter a seat.
    stretches: Vec<(i32, i16, String)>,
    /// Seats with a deadline.
    deadlines: Vec<(i32, i64)>,
    tiers_version: i64,
    tiers: Vec<(i16, i32)>,
}

impl Snapshots {
    /// Connects at the first use, and again by itself. `namespace` keeps several installations on one Redis apart.
    pub fn new(url: &str, namespace: &str) -> Result<Self, RedisError> {
        let settings = ConnectionManagerConfig::new().set_response_timeout(Some(ANSWER_WITHIN));
        Ok(Self {
            connection: ConnectionManager::new_lazy_with_config(redis::Client::open(url)?, settings)?,
            prefix: format!("parterre:{namespace}:map:"),
        })
    }

    /// What another server loaded a moment ago.
    pub(super) async fn get(&self, event: EventId) -> Option<Loaded> {
        let key = format!("{}{event}", self.prefix);
        let asked = async |mut connection: ConnectionManager| connection.get::<_, Option<Vec<u8>>>(key).await;
        let found = tokio::time::timeout(ANSWER_WITHIN, asked(self.connection.clone())).await.ok()?.ok()??;
        let packed: Packed = serde_json::from_slice(&found).ok()?;
        metrics::counter!("parterre_seatmap_snapshots_total").increment(1);
        Some(packed.unpack())
    }

    /// Leaves what was just loaded. Nobody depends on it.
    pub(super) async fn put(&self, event: EventId, loaded: &Loaded) {
        let key = format!("{}{event}", self.prefix);
        let Ok(text) = serde_json::to_vec(&Packed::of(loaded)) else { return };
        let put =
            async |mut connection: ConnectionManager| connection.set_ex::<_, _, ()>(key, text, KEPT.as_secs()).await;
        if !matches!(tokio::time::timeout(ANSWER_WITHIN, put(self.connection.clone())).await, Ok(Ok(()))) {
            tracing::debug!(event.id = %event, "a map was not left for other servers");
        }
    }
}

impl Packed {
    fn of(loaded: &Loaded) -> Self {
        let mut stretches: Vec<(i32, i16, String)> = Vec::new();
        let mut next = None;
        for (number, cell) in &loaded.cells {
            match stretches.last_mut().filter(|(_, section, _)| next == Some(*number) && *section == cell.section) {
                Some((_, _, letters)) => letters.push(cell.letter),
                None => stretches.push((*number, cell.section, cell.letter.to_string())),
            }
            next = number.checked_add(1);
        }
        let with_deadline = loaded.cells.iter().filter(|(_, cell)| cell.until_ms > 0);
        Self {
            versions: loaded.versions.iter().map(|(section, version)| (*section, *version)).collect(),
            stretches,
            deadlines: with_deadline.map(|(number, cell)| (*number, cell.until_ms)).collect(),
            tiers_version: loaded.tiers_version,
            tiers: loaded.tiers.iter().map(|(tier, available)| (*tier, *available)).collect(),
        }
    }

    fn unpack(self) -> Loaded {
        let seats = self.stretches.iter().flat_map(|(first, section, letters)| {
            letters
                .chars()
                .zip(*first..)
                .map(|(letter, number)| (number, Cell { letter, until_ms: 0, section: *section }))
        });
        let mut loaded = Loaded {
            versions: self.versions.into_iter().collect(),
            cells: seats.collect(),
            tiers_version: self.tiers_version,
            tiers: self.tiers.into_iter().collect(),
        };
        for (number, until_ms) in self.deadlines {
            if let Some(cell) = loaded.cells.get_mut(&number) {
                cell.until_ms = until_ms;
            }
        }
        loaded
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_map_is_the_same_after_it_was_packed() {
        let cell = |letter, until_ms, section| Cell { letter, until_ms, section };
        let loaded = Loaded {
            versions: [(0, 5), (1, 9)].into(),
            cells: [
                (0, cell('A', 0, 0)),
                (1, cell('H', 1_700, 0)),
                (2, cell('S', 0, 1)),
                (7, cell('B', 0, 1)),
                (8, cell('H', 0, 1)),
            ]
            .into(),
            tiers_version: 2,
            tiers: [(0, 10)].into(),
        };
        let packed = Packed::of(&loaded);
        assert_eq!(packed.stretches.len(), 3);
        assert_eq!(packed.unpack(), loaded);
        assert_eq!(Packed::of(&Loaded::default()).unpack(), Loaded::default());
    }
}
