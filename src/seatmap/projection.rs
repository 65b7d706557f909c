//! The projection of one event: its state behind a lock, a task that keeps it fresh, and those who watch.

use super::load::{Now, counters, load};
use super::shared::Shared;
use super::snapshot::Snapshots;
use super::state::{Dirty, Loaded, Missed, State};
use crate::bus::SeatsDelta;
use crate::catalogue::Layout;
use crate::db::Db;
use parterre_entity::EventId;
use sea_orm::DbErr;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

/// What changed between two versions of a map, shared by all who watch it.
#[derive(Debug)]
pub struct Move {
    /// The version after it.
    pub version: String,
    /// When, by the database's clock, in milliseconds.
    pub as_of_ms: i64,
    /// Seat number, section and letter.
    pub seats: Vec<(i32, i16, char)>,
    /// Tier and what is available.
    pub tiers: Vec<(i16, i32)>,
    /// What was made of it.
    pub shared: Shared,
}

/// A section as it is shown.
#[derive(Clone, Debug)]
pub struct SectionView {
    /// Its number in the layout.
    pub section: i16,
    /// Its own version.
    pub version: String,
    /// The number of its first seat.
    pub first: i32,
    /// One letter a seat.
    pub letters: String,
}

impl SectionView {
    /// Seats that show as available.
    #[must_use]
    pub fn available(&self) -> usize {
        self.letters.bytes().filter(|letter| *letter == b'A').count()
    }
}

/// A map of one moment.
#[derive(Clone, Debug)]
pub struct View {
    /// The version vector.
    pub version: String,
    /// When, by the database's clock, in milliseconds.
    pub as_of_ms: i64,
    /// In the layout's order.
    pub sections: Vec<SectionView>,
    /// Tier and what is available.
    pub tiers: Vec<(i16, i32)>,
}

impl View {
    /// What a seat shows.
    #[must_use]
    pub fn letter(&self, seat: i32) -> Option<char> {
        self.sections.iter().find_map(|section| {
            let at = usize::try_from(seat.checked_sub(section.first)?).ok()?;
            section.letters.as_bytes().get(at).map(|letter| char::from(*letter))
        })
    }
}

/// One event's map.
#[derive(Debug)]
pub struct Projection {
    /// The event.
    pub event: EventId,
    /// Its layout, if it has one.
    pub layout: Option<Arc<Layout>>,
    sections: Vec<(i16, Range<i32>)>,
    state: Mutex<State>,
    /// How far the database's clock is ahead of this process's.
    clock_ahead_ms: AtomicI64,
    checked: Mutex<Checked>,
    moves: broadcast::Sender<Arc<Move>>,
    wake: Arc<Notify>,
}

/// What the last comparison with the database found.
#[derive(Debug, Default)]
struct Checked {
    /// When it was made; none when deltas may have been lost since.
    at: Option<Instant>,
    /// What the database was ahead by then, and was most likely on its way.
    awaited: Option<(BTreeMap<i16, i64>, i64)>,
}

impl Checked {
    /// Until the next one.
    fn pause(&self) -> Duration {
        let every = if self.awaited.is_some() { IN_FLIGHT } else { CHECK_EVERY };
        self.at.map_or(Duration::ZERO, |at| every.saturating_sub(at.elapsed()))
    }
}

/// Since when deltas wait for the ones before them, each for its own: on a busy event something is early at every turn, and
/// mostly has its turn soon after.
#[derive(Debug, Default)]
struct Gaps(BTreeMap<(Missed, i64), Instant>);

impl Gaps {
    /// What is missing now.
    fn note(&mut self, missed: BTreeSet<(Missed, i64)>, now: Instant) {
        self.0 = missed.into_iter().map(|gap| (gap, self.0.get(&gap).copied().unwrap_or(now))).collect();
    }

    /// Whether any of it has been for too long.
    fn waited(&self, now: Instant) -> bool {
        self.0.values().any(|since| now.duration_since(*since) >= EARLY_WAIT)
    }
}

/// Moves a watcher may be behind before it is told to start over.
const WATCHER_BACKLOG: usize = 64;
/// Moves are told at most this often.
const TELL_EVERY: Duration = Duration::from_millis(100);
/// About what it takes to tell one watcher, with as much again left for everything else.
const TELL_ONE: Duration = Duration::from_micros(25);
/// How long an early delta waits for the one before it.
const EARLY_WAIT: Duration = Duration::from_millis(200);
/// How often the counters are compared with the database's, so that the last lost delta is noticed too.
const CHECK_EVERY: Duration = Duration::from_millis(1_500);
/// How long what was committed may take until it is heard of. An event on which seats change all the time is always a little
/// behind the database; what it was behind by is loaded again only if it does not come.
const IN_FLIGHT: Duration = Duration::from_millis(500);

impl Projection {
    pub(super) async fn load(
        (db, snapshots): (&Db, Option<&Snapshots>),
        event: EventId,
        layout: Option<Arc<Layout>>,
    ) -> Result<Arc<Self>, DbErr> {
        let left = match snapshots {
            Some(snapshots) => snapshots.get(event).await,
            None => None,
        };
        let (loaded, now) = if let Some(loaded) = left {
            (loaded, Now::of(crate::db::clock(db.pool()).await?))
        } else {
            let (loaded, now) = load(db, event, None).await?;
            if let Some(snapshots) = snapshots {
                snapshots.put(event, &loaded).await;
            }
            (loaded, now)
        };
        let sections = layout.as_deref().map(sections).unwrap_or_default();
        Ok(Arc::new(Self {
            event,
            layout,
            sections,
            state: Mutex::new(State::new(&loaded, now.ms)),
            clock_ahead_ms: AtomicI64::new(now.ahead_ms),
            checked: Mutex::default(),
            moves: broadcast::channel(WATCHER_BACKLOG).0,
            wake: Arc::default(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn checked(&self) -> MutexGuard<'_, Checked> {
        self.checked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now_ms(&self) -> i64 {
        crate::clock::now().timestamp_millis() + self.clock_ahead_ms.load(Ordering::Relaxed)
    }

    /// Moves on by a delta from the bus.
    pub(super) fn apply(&self, delta: &SeatsDelta) {
        let now_ms = self.now_ms();
        let mut state = self.state();
        for section in &delta.sections {
            state.apply(section.clone(), now_ms);
        }
        if let Some(tiers) = &delta.tiers {
            state.apply_tiers(tiers.clone(), now_ms);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Deltas may have been lost: look at the database at the next turn.
    pub(super) fn source_lost(&self) {
        *self.checked() = Checked::default();
        self.wake.notify_one();
    }

    /// The map now.
    #[must_use]
    pub fn view(&self) -> View {
        let now_ms = self.now_ms();
        let mut state = self.state();
        state.pass_deadlines(now_ms);
        self.view_of(&state, now_ms)
    }

    fn view_of(&self, state: &State, now_ms: i64) -> View {
        let section = |(section, range): &(i16, Range<i32>)| SectionView {
            section: *section,
            version: state.section_version(*section),
            first: range.start,
            letters: state.letters(range.clone()),
        };
        View {
            version: state.version(),
            as_of_ms: now_ms,
            sections: self.sections.iter().map(section).collect(),
            tiers: state.tiers().iter().map(|(tier, available)| (*tier, *available)).collect(),
        }
    }

    /// What of the map is not what the database has at the same version, for the auditor.
    pub(super) async fn differences(&self, db: &Db) -> Result<Vec<String>, DbErr> {
        let (loaded, _) = load(db, self.event, None).await?;
        Ok(self.state().differences(&loaded))
    }

    /// What one seat shows.
    #[must_use]
    pub fn letter(&self, seat: i32) -> Option<char> {
        let mut state = self.state();
        state.pass_deadlines(self.now_ms());
        state.letter(seat)
    }

    /// The map now and everything after it, without a gap between.
    #[must_use]
    pub fn watch(&self) -> (View, broadcast::Receiver<Arc<Move>>) {
        let now_ms = self.now_ms();
        let mut state = self.state();
        state.pass_deadlines(now_ms);
        // Taken under the lock under which moves are told: what is told later is later than this view.
        let receiver = self.moves.subscribe();
        (self.view_of(&state, now_ms), receiver)
    }

    /// What one who has an earlier version has missed and everything after it. None: that version is not known.
    #[must_use]
    pub fn watch_after(&self, version: &str) -> Option<(Move, broadcast::Receiver<Arc<Move>>)> {
        let now_ms = self.now_ms();
        let mut state = self.state();
        state.pass_deadlines(now_ms);
        let missed = state.since(version)?;
        Some((self.told(&state, missed, now_ms), self.moves.subscribe()))
    }

    /// How many watch.
    #[must_use]
    pub fn watchers(&self) -> usize {
        self.moves.receiver_count()
    }

    /// Compares counters with the database if nobody did for a while: a reader without a subscription pays once.
    pub(super) async fn refresh_if_stale(&self, db: &Db) -> Result<(), DbErr> {
        let (followed, awaited) = {
            let mut checked = self.checked();
            if !checked.pause().is_zero() {
                return Ok(());
            }
            let before = checked.at.replace(Instant::now());
            // Whoever was not compared for long is not followed by anybody: their reader does not wait any longer.
            (before.is_some_and(|at| at.elapsed() < 2 * CHECK_EVERY), checked.awaited.take())
        };
        if let Some((versions, tiers_version)) = &awaited
            && self.state().is_behind(versions, *tiers_version)
        {
            return self.refresh(db, false).await;
        }
        self.refresh(db, followed).await
    }

    /// Compares counters with the database, and loads what differs again; unless it was followed until now, and what differs
    /// may be on its way.
    async fn refresh(&self, db: &Db, may_wait: bool) -> Result<(), DbErr> {
        // Noted first: what is heard of while we look is newer than what we see.
        let had = self.state().counters();
        let (versions, tiers_version, now) = counters(db.pool(), self.event).await?;
        if let Some(now) = now {
            self.clock_ahead_ms.store(now.ahead_ms, Ordering::Relaxed);
        }
        if had.is_ahead_of(&versions, tiers_version) {
            // The database is another one than before, or was set back: what we know is not true any more.
            tracing::warn!(event.id = %self.event, "a seat map is ahead of the database, loading it anew");
            let (loaded, now) = load(db, self.event, None).await?;
            self.state().start_over(&loaded, now.ms);
            self.wake.notify_one();
        } else if self.state().is_behind(&versions, tiers_version) {
            if may_wait {
                self.checked().awaited = Some((versions, tiers_version));
                return Ok(());
            }
            self.reload_what_differs(db, &versions).await?;
        }
        Ok(())
    }

    /// Loads the sections again that are behind: one by one when few, else all at once.
    async fn reload_what_differs(&self, db: &Db, versions: &BTreeMap<i16, i64>) -> Result<(), DbErr> {
        metrics::counter!("parterre_seatmap_reloads_total").increment(1);
        let behind: Vec<i16> = {
            let state = self.state();
            let one = |(section, version): (&i16, &i64)| {
                state.is_behind(&BTreeMap::from([(*section, *version)]), 0).then_some(*section)
            };
            versions.iter().filter_map(one).collect()
        };
        let wanted: Vec<Option<i16>> =
            if behind.len() <= 4 { behind.into_iter().map(Some).collect() } else { vec![None] };
        let wanted = if wanted.is_empty() { vec![Some(crate::inventory::TIERS)] } else { wanted };
        for section in wanted {
            let (loaded, now) = load(db, self.event, section).await?;
            self.take_over(&loaded, now.ms);
        }
        Ok(())
    }

    fn take_over(&self, loaded: &Loaded, now_ms: i64) {
        self.state().reload(loaded, now_ms);
        self.wake.notify_one();
    }

    /// Tells watchers what changed since the last time.
    fn tell(&self) {
        let now_ms = self.now_ms();
        let mut state = self.state();
        state.pass_deadlines(now_ms);
        let Some(dirty) = state.take_dirty() else { return };
        let told = self.told(&state, dirty, now_ms);
        // Sent under the lock, so that no watcher's view falls between.
        drop(self.moves.send(Arc::new(told)));
    }

    fn told(&self, state: &State, dirty: Dirty, now_ms: i64) -> Move {
        let section_of = |seat: i32| {
            self.sections.iter().find(|(_, range)| range.contains(&seat)).map_or(-1, |(section, _)| *section)
        };
        let seats = dirty.seats.into_iter().map(|(seat, letter)| (seat, section_of(seat), letter)).collect();
        Move {
            version: state.version(),
            as_of_ms: now_ms,
            seats,
            tiers: dirty.tiers.into_iter().collect(),
            shared: Shared::default(),
        }
    }

    /// The version now.
    #[must_use]
    pub fn version(&self) -> String {
        let mut state = self.state();
        state.pass_deadlines(self.now_ms());
        state.version()
    }

    /// Keeps a projection fresh until nobody has it any more.
    pub(super) async fn keep(self: Arc<Self>, db: Db, shutdown: CancellationToken) {
        let wake = Arc::clone(&self.wake);
        let weak: Weak<Self> = Arc::downgrade(&self);
        drop(self);
        let mut last_told = Instant::now();
        let mut gaps = Gaps::default();
        loop {
            let Some(projection) = weak.upgrade() else { return };
            let pause = projection.pause();
            drop(projection);
            tokio::select! {
                () = shutdown.cancelled() => return,
                () = wake.notified() => {}
                () = tokio::time::sleep(pause) => {}
            }
            // Moves are gathered, so that a busy event tells at most ten a second.
            let Some(projection) = weak.upgrade() else { return };
            let every = projection.tell_every();
            drop(projection);
            if let Some(rest) = every.checked_sub(last_told.elapsed()) {
                tokio::time::sleep(rest).await;
            }
            let Some(projection) = weak.upgrade() else { return };
            projection.tell();
            last_told = Instant::now();
            gaps.note(projection.state().missed(), last_told);
            let waited = gaps.waited(last_told);
            let watched = projection.watchers() > 0;
            let result = if waited {
                projection.refresh(&db, false).await
            } else if watched {
                projection.refresh_if_stale(&db).await
            } else {
                Ok(())
            };
            if let Err(error) = result {
                tracing::warn!(event.id = %projection.event, %error, "a seat map could not be compared with the database");
            }
        }
    }

    /// How often watchers are told: more seldom when there are so many that telling them all takes its time.
    fn tell_every(&self) -> Duration {
        let watchers = u32::try_from(self.watchers()).unwrap_or(u32::MAX);
        TELL_EVERY.max(TELL_ONE * watchers)
    }

    /// Until the next deadline, the next comparison, or the end of an early delta's wait.
    fn pause(&self) -> Duration {
        let state = self.state();
        let until_deadline = state.next_deadline().map(|at| at - self.now_ms());
        let until_deadline = until_deadline.map(|ms| Duration::from_millis(u64::try_from(ms.max(1)).unwrap_or(1)));
        let early = (!state.missed().is_empty()).then_some(EARLY_WAIT);
        // Nobody watches: nobody waits for a comparison.
        let rest = if self.watchers() > 0 { self.checked().pause() } else { CHECK_EVERY };
        [until_deadline, early].into_iter().flatten().fold(rest, Duration::min)
    }
}

/// Sections in the layout's order, each with the range of its seats.
fn sections(layout: &Layout) -> Vec<(i16, Range<i32>)> {
    let mut sections: Vec<(i16, Range<i32>)> = Vec::new();
    for (seat, number) in layout.drawing.seats.iter().zip(0_i32..) {
        match sections.last_mut() {
            Some((section, range)) if *section == seat.section => range.end = number + 1,
            _ => sections.push((seat.section, number..number + 1)),
        }
    }
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_counts_from_when_it_opened_and_not_from_another_one() {
        let (begun, mut gaps) = (Instant::now(), Gaps::default());
        let mut waited = |gap: (Missed, i64), after: Duration| {
            gaps.note(BTreeSet::from([gap]), begun + after);
            gaps.waited(begun + after)
        };
        for version in 0..10 {
            let after = EARLY_WAIT / 2 * u32::try_from(version).unwrap();
            assert!(!waited((Missed::Section(0), version), after), "each was closed in time");
        }
        assert!(!waited((Missed::Section(0), 9), EARLY_WAIT * 5));
        assert!(waited((Missed::Section(0), 9), EARLY_WAIT * 11 / 2));
        assert!(!waited((Missed::Tiers, 9), EARLY_WAIT * 6));
    }
}
