//! One event's seats in memory, moved on by deltas. Pure: time is an argument, in milliseconds of the database's clock.
//!
//! Invariants: a section is moved only by the delta that follows its version; a seat past its hold's deadline is shown
//! available from that moment; equal versions mean equal statuses.

use crate::bus::{SectionDelta, TiersDelta};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A seat's cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// A H S B.
    pub letter: char,
    /// The hold's deadline, or 0.
    pub until_ms: i64,
    /// The section's number.
    pub section: i16,
}

/// A section or the tiers, as loaded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Loaded {
    /// Sections with their counters.
    pub versions: BTreeMap<i16, i64>,
    /// Seats by number.
    pub cells: BTreeMap<i32, Cell>,
    /// The tiers' counter.
    pub tiers_version: i64,
    /// What is available, by tier.
    pub tiers: BTreeMap<i16, i32>,
}

/// What readers have not been told yet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dirty {
    /// Seats and what they show now.
    pub seats: BTreeMap<i32, char>,
    /// Tiers and what is available.
    pub tiers: BTreeMap<i16, i32>,
}

/// Something a delta shows to have been missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Missed {
    /// A section's delta came before the one that precedes it.
    Section(i16),
    /// The tiers' did.
    Tiers,
}

/// The versions of a map.
#[derive(Clone, Debug)]
pub struct Counters {
    versions: BTreeMap<i16, i64>,
    tiers_version: i64,
}

impl Counters {
    /// Whether a database that says this was set back since.
    #[must_use]
    pub fn is_ahead_of(&self, versions: &BTreeMap<i16, i64>, tiers_version: i64) -> bool {
        self.tiers_version > tiers_version
            || self.versions.iter().any(|(section, known)| versions.get(section).is_some_and(|now| now < known))
    }
}

/// An event's seats and tiers.
#[derive(Clone, Debug, Default)]
pub struct State {
    versions: BTreeMap<i16, i64>,
    /// The last deadline passed in each section.
    passed: BTreeMap<i16, i64>,
    cells: Vec<Option<Cell>>,
    tiers_version: i64,
    tiers: BTreeMap<i16, i32>,
    deadlines: BTreeSet<(i64, i32)>,
    early: Vec<SectionDelta>,
    early_tiers: Vec<TiersDelta>,
    dirty: Dirty,
    log: Log,
}

/// What happened of late, so that a reader who knows an earlier version can be told the rest.
#[derive(Clone, Debug, Default)]
struct Log {
    steps: VecDeque<Step>,
    /// Deadlines passed, and whose.
    passed: VecDeque<(i64, i32)>,
    /// Deadlines up to this one are not kept any more.
    passed_before: i64,
    seats: usize,
}

/// A section went from one version to another.
#[derive(Clone, Debug)]
struct Step {
    section: i16,
    from: i64,
    to: i64,
    seats: Vec<i32>,
}

/// Seats of steps and deadlines that are kept.
const LOGGED_MAX: usize = 20_000;

impl Log {
    fn step(&mut self, step: Step) {
        self.seats += step.seats.len() + 1;
        self.steps.push_back(step);
        while self.seats > LOGGED_MAX {
            let Some(oldest) = self.steps.pop_front() else { break };
            self.seats -= oldest.seats.len() + 1;
        }
    }

    fn passed(&mut self, until_ms: i64, seat: i32) {
        self.passed.push_back((until_ms, seat));
        if self.passed.len() > LOGGED_MAX
            && let Some((until_ms, _)) = self.passed.pop_front()
        {
            self.passed_before = self.passed_before.max(until_ms);
        }
    }

    /// Seats that changed since each section had the version given, if every step since then is known.
    fn between(&self, mut at: BTreeMap<i16, i64>, now: &BTreeMap<i16, i64>) -> Option<Vec<i32>> {
        let mut seats = Vec::new();
        for step in &self.steps {
            let Some(at) = at.get_mut(&step.section).filter(|at| step.to > **at) else { continue };
            if step.from != *at {
                return None;
            }
            *at = step.to;
            seats.extend(&step.seats);
        }
        (at == *now).then_some(seats)
    }
}

/// A version vector that a client handed back: sections in order, tiers, the last deadline passed.
fn parse_version(text: &str) -> Option<(Vec<i64>, i64, i64)> {
    let (counters, passed) = text.split_once('@')?;
    let (sections, tiers) = counters.split_once(';')?;
    let sections = match sections {
        "" => Vec::new(),
        sections => sections.split(',').map(|number| number.parse().ok()).collect::<Option<_>>()?,
    };
    let (tiers, passed): (u32, u64) = (tiers.parse().ok()?, passed.parse().ok()?);
    Some((sections, tiers.into(), passed.try_into().ok()?))
}

impl State {
    /// As loaded at a time.
    #[must_use]
    pub fn new(loaded: &Loaded, now_ms: i64) -> Self {
        let mut state = Self::default();
        state.reload(loaded, now_ms);
        state.dirty = Dirty::default();
        // What came before is not known.
        state.log = Log { passed_before: state.passed.values().max().copied().unwrap_or(0), ..Log::default() };
        state
    }

    /// Takes over what was loaded anew, if it is newer, and notes what differs.
    pub fn reload(&mut self, loaded: &Loaded, now_ms: i64) {
        self.pass_deadlines(now_ms);
        let newer: BTreeSet<i16> = loaded
            .versions
            .iter()
            .filter(|(section, version)| self.versions.get(section).is_none_or(|known| known < version))
            .map(|(section, _)| *section)
            .collect();
        let mut changed: BTreeMap<i16, Vec<i32>> = BTreeMap::new();
        for (number, cell) in loaded.cells.iter().filter(|(_, cell)| newer.contains(&cell.section)) {
            let before = self.cell(*number);
            self.put(*number, *cell, now_ms);
            if before != Some(*cell) {
                changed.entry(cell.section).or_default().push(*number);
            }
        }
        for (section, version) in loaded.versions.iter().filter(|(section, _)| newer.contains(section)) {
            if let Some(from) = self.versions.insert(*section, *version) {
                let seats = changed.remove(section).unwrap_or_default();
                self.log.step(Step { section: *section, from, to: *version, seats });
            }
        }
        if loaded.tiers_version > self.tiers_version || self.tiers.is_empty() {
            self.tiers_version = loaded.tiers_version;
            // A draft may lose tiers.
            self.tiers.retain(|tier, _| loaded.tiers.contains_key(tier));
            self.put_tiers(loaded.tiers.iter().map(|(tier, available)| (*tier, *available)).collect());
        }
        self.pass_deadlines(now_ms);
        self.catch_up(now_ms);
    }

    /// Moves on by a section's delta. One from the past is ignored, one from too far ahead waits for its turn.
    pub fn apply(&mut self, delta: SectionDelta, now_ms: i64) -> Option<Missed> {
        // First: what a seat showed to readers until now must be known when its new state is compared with it.
        self.pass_deadlines(now_ms);
        let known = self.versions.get(&delta.section).copied()?;
        if delta.version <= known {
            return None;
        }
        let section = delta.section;
        self.early.push(delta);
        self.catch_up(now_ms);
        self.early.iter().any(|early| early.section == section).then_some(Missed::Section(section))
    }

    /// The same for the tiers.
    pub fn apply_tiers(&mut self, delta: TiersDelta, now_ms: i64) -> Option<Missed> {
        self.pass_deadlines(now_ms);
        if delta.version <= self.tiers_version {
            return None;
        }
        self.early_tiers.push(delta);
        self.catch_up(now_ms);
        (!self.early_tiers.is_empty()).then_some(Missed::Tiers)
    }

    /// Applies whatever early deltas have their turn by now, and drops those that came to nothing.
    fn catch_up(&mut self, now_ms: i64) {
        loop {
            let versions = &self.versions;
            let known = |section: i16| versions.get(&section).copied().unwrap_or(i64::MAX);
            self.early.retain(|delta| delta.version > known(delta.section));
            let Some(index) = self.early.iter().position(|delta| delta.version == known(delta.section) + 1) else {
                break;
            };
            let delta = self.early.swap_remove(index);
            let seats = delta.seats.iter().map(|(number, _, _)| *number).collect();
            self.log.step(Step { section: delta.section, from: delta.version - 1, to: delta.version, seats });
            for (number, letter, until_ms) in delta.seats {
                self.put(number, Cell { letter, until_ms, section: delta.section }, now_ms);
            }
            self.versions.insert(delta.section, delta.version);
        }
        loop {
            self.early_tiers.retain(|delta| delta.version > self.tiers_version);
            let Some(index) = self.early_tiers.iter().position(|delta| delta.version == self.tiers_version + 1) else {
                break;
            };
            let delta = self.early_tiers.swap_remove(index);
            self.tiers_version = delta.version;
            self.put_tiers(delta.available);
        }
    }

    /// What is still missing, and the version that it stands at meanwhile.
    #[must_use]
    pub fn missed(&self) -> BTreeSet<(Missed, i64)> {
        let at = |section: i16| self.versions.get(&section).copied().unwrap_or_default();
        let sections = self.early.iter().map(|delta| (Missed::Section(delta.section), at(delta.section)));
        sections.chain((!self.early_tiers.is_empty()).then_some((Missed::Tiers, self.tiers_version))).collect()
    }

    /// Whether counters of the database are ahead of this.
    #[must_use]
    pub fn is_behind(&self, versions: &BTreeMap<i16, i64>, tiers_version: i64) -> bool {
        tiers_version > self.tiers_version
            || versions.iter().any(|(section, version)| self.versions.get(section).is_none_or(|known| known < version))
    }

    /// The versions that are shown.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { versions: self.versions.clone(), tiers_version: self.tiers_version }
    }

    /// Forgets what it knew for what was loaded, whatever the versions say, and notes what differs.
    pub fn start_over(&mut self, loaded: &Loaded, now_ms: i64) {
        let mut fresh = Self::new(loaded, now_ms);
        let numbers = loaded.cells.keys().copied();
        let differing = numbers.filter(|number| fresh.letter(*number) != self.letter(*number));
        let seats = differing.filter_map(|number| Some((number, fresh.letter(number)?))).collect();
        fresh.dirty = Dirty { seats, tiers: fresh.tiers.clone() };
        *self = fresh;
    }

    fn put(&mut self, number: i32, cell: Cell, now_ms: i64) {
        let Ok(index) = usize::try_from(number) else { return };
        if self.cells.len() <= index {
            self.cells.resize(index + 1, None);
        }
        let Some(slot) = self.cells.get_mut(index) else { return };
        let before = slot.map(|old| shown(old, now_ms));
        if let Some(old) = slot.replace(cell) {
            self.deadlines.remove(&(old.until_ms, number));
        }
        if cell.letter == 'H' && cell.until_ms > 0 {
            self.deadlines.insert((cell.until_ms, number));
        }
        let after = shown(cell, now_ms);
        if before != Some(after) {
            self.dirty.seats.insert(number, after);
        }
    }

    fn put_tiers(&mut self, available: Vec<(i16, i32)>) {
        for (tier, available) in available {
            if self.tiers.insert(tier, available) != Some(available) {
                self.dirty.tiers.insert(tier, available);
            }
        }
    }

    /// Shows seats available whose deadline has passed.
    pub fn pass_deadlines(&mut self, now_ms: i64) {
        while let Some((until_ms, number)) = self.deadlines.first().copied().filter(|(until_ms, _)| *until_ms <= now_ms)
        {
            self.deadlines.remove(&(until_ms, number));
            if let Some(cell) = self.cell(number) {
                let passed = self.passed.entry(cell.section).or_default();
                *passed = (*passed).max(until_ms);
                self.log.passed(until_ms, number);
                self.dirty.seats.insert(number, 'A');
            }
        }
    }

    /// The next deadline to pass.
    #[must_use]
    pub fn next_deadline(&self) -> Option<i64> {
        self.deadlines.first().map(|(until_ms, _)| *until_ms)
    }

    /// Seats and tiers that are not what was loaded although their version is the same: there must be none.
    #[must_use]
    pub fn differences(&self, loaded: &Loaded) -> Vec<String> {
        let same = |cell: &Cell| self.versions.get(&cell.section) == loaded.versions.get(&cell.section);
        let seats = loaded
            .cells
            .iter()
            .filter(|(number, cell)| same(cell) && self.cell(**number) != Some(**cell))
            .map(|(number, cell)| format!("seat {number} is {cell:?} and shown from {:?}", self.cell(*number)));
        let tiers = (self.tiers_version == loaded.tiers_version && self.tiers != loaded.tiers)
            .then(|| format!("tiers are {:?} and shown as {:?}", loaded.tiers, self.tiers));
        seats.chain(tiers).collect()
    }

    /// What one who has an earlier version has missed. None: that is not known any more, or never was.
    #[must_use]
    pub fn since(&self, version: &str) -> Option<Dirty> {
        let (sections, tiers, passed) = parse_version(version)?;
        let passed_now = self.passed.values().max().copied().unwrap_or(0);
        let known = sections.len() == self.versions.len()
            && tiers <= self.tiers_version
            && passed <= passed_now
            && passed >= self.log.passed_before;
        if !known {
            return None;
        }
        let mut seats: BTreeSet<i32> =
            self.log.passed.iter().filter(|(until_ms, _)| *until_ms > passed).map(|(_, seat)| *seat).collect();
        let then = self.versions.keys().copied().zip(sections).collect();
        seats.extend(self.log.between(then, &self.versions)?);
        let letter = |seat: i32| self.letter(seat).map(|letter| (seat, letter));
        let tiers = if tiers == self.tiers_version { BTreeMap::new() } else { self.tiers.clone() };
        Some(Dirty { seats: seats.into_iter().filter_map(letter).collect(), tiers })
    }

    /// What readers were not told yet. Told now.
    pub fn take_dirty(&mut self) -> Option<Dirty> {
        let dirty = std::mem::take(&mut self.dirty);
        (dirty != Dirty::default()).then_some(dirty)
    }

    fn cell(&self, number: i32) -> Option<Cell> {
        usize::try_from(number).ok().and_then(|index| self.cells.get(index).copied().flatten())
    }

    /// What a seat shows.
    #[must_use]
    pub fn letter(&self, number: i32) -> Option<char> {
        self.cell(number).map(|cell| if self.has_passed(cell) { 'A' } else { cell.letter })
    }

    /// A deadline counts as passed once it was passed here, so that statuses follow the version.
    fn has_passed(&self, cell: Cell) -> bool {
        cell.letter == 'H'
            && cell.until_ms > 0
            && self.passed.get(&cell.section).is_some_and(|passed| cell.until_ms <= *passed)
    }

    /// Letters of the seats of a range, in order.
    #[must_use]
    pub fn letters(&self, range: std::ops::Range<i32>) -> String {
        range.map(|number| self.letter(number).unwrap_or('B')).collect()
    }

    /// What is available, by tier.
    #[must_use]
    pub const fn tiers(&self) -> &BTreeMap<i16, i32> {
        &self.tiers
    }

    /// The version vector, as clients see it: sections in order, tiers, and the last deadline passed.
    #[must_use]
    pub fn version(&self) -> String {
        let sections: Vec<String> = self.versions.values().map(i64::to_string).collect();
        let passed = self.passed.values().max().copied().unwrap_or(0);
        format!("{};{}@{passed}", sections.join(","), self.tiers_version)
    }

    /// One section's version.
    #[must_use]
    pub fn section_version(&self, section: i16) -> String {
        let version = self.versions.get(&section).copied().unwrap_or(0);
        format!("{version}@{}", self.passed.get(&section).copied().unwrap_or(0))
    }
}

fn shown(cell: Cell, now_ms: i64) -> char {
    if cell.letter == 'H' && cell.until_ms > 0 && cell.until_ms <= now_ms { 'A' } else { cell.letter }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bus::SeatsDelta;
    use parterre_entity::EventId;

    fn state() -> State {
        let cell = |section| Cell { letter: 'A', until_ms: 0, section };
        let loaded = Loaded {
            versions: BTreeMap::from([(0, 5), (1, 9)]),
            cells: BTreeMap::from([(0, cell(0)), (1, cell(0)), (2, cell(1))]),
            tiers_version: 2,
            tiers: BTreeMap::from([(0, 10)]),
        };
        State::new(&loaded, 0)
    }

    fn delta(section: i16, version: i64, seats: &[(i32, char, i64)]) -> SectionDelta {
        SectionDelta { section, version, seats: seats.to_vec() }
    }

    #[test]
    fn a_tier_that_was_taken_off_a_draft_is_shown_no_more() {
        let mut state = state();
        let loaded = Loaded { tiers_version: 3, tiers: BTreeMap::from([(1, 7)]), ..Loaded::default() };
        state.reload(&loaded, 0);
        assert_eq!(state.tiers(), &BTreeMap::from([(1, 7)]));
        assert_eq!(state.differences(&loaded), Vec::<String>::new());
    }

    #[test]
    fn one_who_has_an_earlier_version_is_told_the_rest_or_that_it_is_not_known() {
        let mut state = state();
        let first = state.version();
        assert_eq!(state.since(&first), Some(Dirty::default()));
        state.apply(delta(0, 6, &[(0, 'H', 500)]), 0);
        let second = state.version();
        state.apply(delta(0, 7, &[(1, 'S', 0)]), 0);
        state.apply(delta(1, 10, &[(2, 'B', 0)]), 0);
        let seats = |state: &State, version: &str| state.since(version).map(|dirty| dirty.seats);
        assert_eq!(seats(&state, &first), Some(BTreeMap::from([(0, 'H'), (1, 'S'), (2, 'B')])));
        assert_eq!(seats(&state, &second), Some(BTreeMap::from([(1, 'S'), (2, 'B')])));
        let third = state.version();
        state.pass_deadlines(500);
        assert_eq!(seats(&state, &third), Some(BTreeMap::from([(0, 'A')])), "a deadline is a change too");
        state.apply_tiers(TiersDelta { version: 3, available: vec![(0, 9)] }, 600);
        assert_eq!(state.since(&third).unwrap().tiers, BTreeMap::from([(0, 9)]));
        // Loaded anew, over versions that nobody saw: only one who had exactly the last one can go on.
        let cell = |letter| Cell { letter, until_ms: 0, section: 0 };
        let loaded = Loaded {
            versions: BTreeMap::from([(0, 20)]),
            cells: BTreeMap::from([(0, cell('S')), (1, cell('S'))]),
            tiers_version: 3,
            tiers: BTreeMap::from([(0, 9)]),
        };
        let last = state.version();
        state.reload(&loaded, 700);
        assert_eq!(seats(&state, &last), Some(BTreeMap::from([(0, 'S')])));
        assert_eq!(seats(&state, &last.replacen("7,", "12,", 1)), None, "between");
        assert_eq!(seats(&state, &last.replacen("7,", "21,", 1)), None, "ahead of us");
        for nonsense in ["", "x", "1;2@3", "5,9,1;2@0", "5,9;2", "5,9;99@0"] {
            assert_eq!(state.since(nonsense), None, "{nonsense}");
        }
        for version in 21..30_000 {
            state.apply(delta(0, version, &[(0, 'S', 0)]), 700);
        }
        assert_eq!(state.since(&last), None, "long ago");
        assert!(state.log.seats <= LOGGED_MAX);
    }

    #[test]
    fn an_early_delta_waits_for_the_one_before_it_and_an_old_one_is_ignored() {
        let mut state = state();
        assert_eq!(state.apply(delta(0, 7, &[(0, 'S', 0)]), 0), Some(Missed::Section(0)));
        assert_eq!(state.missed(), BTreeSet::from([(Missed::Section(0), 5)]));
        assert_eq!(state.letters(0..2), "AA");
        assert_eq!(state.apply(delta(0, 6, &[(0, 'H', 500), (1, 'H', 500)]), 0), None);
        assert_eq!(state.letters(0..3), "SHA");
        assert_eq!(state.apply(delta(0, 5, &[(1, 'A', 0)]), 0), None);
        assert_eq!(state.letters(0..3), "SHA");
        assert_eq!(state.take_dirty().unwrap().seats, BTreeMap::from([(0, 'S'), (1, 'H')]));
        assert_eq!(state.take_dirty(), None);
    }

    #[test]
    fn a_deadline_passes_by_itself_and_shows_in_the_version() {
        let mut state = state();
        state.apply(delta(1, 10, &[(2, 'H', 1_000)]), 0);
        state.take_dirty();
        let held = state.version();
        assert_eq!(state.next_deadline(), Some(1_000));
        state.pass_deadlines(999);
        assert_eq!((state.letter(2), state.take_dirty()), (Some('H'), None));
        state.pass_deadlines(1_000);
        assert_eq!(state.letter(2), Some('A'));
        assert_ne!(state.version(), held);
        assert_eq!(state.take_dirty().unwrap().seats, BTreeMap::from([(2, 'A')]));
    }

    #[test]
    fn a_delta_that_overtakes_the_timer_of_a_deadline_is_told() {
        let mut state = state();
        state.apply(delta(1, 10, &[(2, 'H', 1_000)]), 0);
        state.take_dirty();
        state.apply(delta(1, 11, &[(2, 'A', 0)]), 1_001);
        assert_eq!(state.take_dirty().unwrap().seats, BTreeMap::from([(2, 'A')]));
    }

    #[test]
    fn equal_versions_with_other_statuses_are_told_apart_from_a_map_that_is_behind() {
        let cell = Cell { letter: 'A', until_ms: 0, section: 0 };
        let loaded = Loaded {
            versions: [(0, 3)].into(),
            cells: [(0, cell), (1, cell)].into(),
            tiers_version: 1,
            tiers: [(0, 5)].into(),
        };
        let state = State::new(&loaded, 0);
        assert_eq!(state.differences(&loaded), Vec::<String>::new());
        let mut wrong = loaded.clone();
        wrong.cells.insert(1, Cell { letter: 'S', ..cell });
        wrong.tiers.insert(0, 4);
        assert_eq!(state.differences(&wrong).len(), 2);
        let newer = Loaded { versions: [(0, 4)].into(), tiers_version: 2, ..wrong };
        assert_eq!(state.differences(&newer), Vec::<String>::new(), "behind is no violation");
    }

    #[test]
    fn a_reload_takes_only_what_is_newer_and_notes_the_difference() {
        let mut state = state();
        state.apply(delta(0, 8, &[(0, 'S', 0)]), 0);
        let cell = |letter, section| Cell { letter, until_ms: 0, section };
        let loaded = Loaded {
            versions: BTreeMap::from([(0, 7), (1, 8)]),
            cells: BTreeMap::from([(0, cell('B', 0)), (1, cell('S', 0)), (2, cell('S', 1))]),
            tiers_version: 3,
            tiers: BTreeMap::from([(0, 8)]),
        };
        state.reload(&loaded, 0);
        assert_eq!(
            state.letters(0..3),
            "SSA",
            "the waiting delta came after the reload, the old section was left alone"
        );
        assert!(state.missed().is_empty());
        assert_eq!(state.take_dirty().unwrap().tiers, BTreeMap::from([(0, 8)]));
        assert_eq!(state.version(), "8,9;3@0");
    }

    /// What taking in a delta of a hundred seats and telling it may allocate, so that a change which makes it dearer shows.
    #[test]
    fn a_delta_allocates_little() {
        let cells = (0..50_000).map(|seat| (seat, Cell { letter: 'A', until_ms: 0, section: 0 })).collect();
        let loaded = Loaded { versions: BTreeMap::from([(0, 0)]), cells, tiers_version: 0, tiers: BTreeMap::new() };
        let mut state = State::new(&loaded, 0);
        let seats: Vec<(i32, char, i64)> = (0..100).map(|seat| (seat * 7, 'H', 90_000)).collect();
        state.apply(delta(0, 1, &seats), 0);
        state.take_dirty();
        let sold: Vec<(i32, char, i64)> = seats.iter().map(|(seat, ..)| (*seat, 'S', 0)).collect();
        let next = delta(0, 2, &sold);
        let taken = allocation_counter::measure(|| {
            assert!(state.apply(next, 0).is_none());
            assert!(state.take_dirty().is_some());
        });
        let told = SeatsDelta { event: EventId::new(), sections: vec![delta(0, 3, &seats)], tiers: None };
        let encoded = allocation_counter::measure(|| assert!(serde_json::to_vec(&told).is_ok()));
        assert!(taken.count_total <= 25, "{taken:?}");
        assert!(encoded.count_total <= 8, "{encoded:?}");
    }
}
