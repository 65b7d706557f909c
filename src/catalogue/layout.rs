//! A layout in memory, and how one is drawn from sections. Pure.
//!
//! Invariants: seats are numbered from 0 in the order sections → rows → neighbours; a seat's id is unique in its layout
//! and made of words people can read out.

use crate::input::{Invalid, text, within};
use parterre_entity::{LayoutId, VenueId};
use parterre_schema::{SectionInput, limits};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::collections::{HashMap, HashSet};

/// A seat of a layout.
#[derive(Clone, Debug, PartialEq)]
pub struct Seat {
    /// Unique in the layout: `A-14`.
    pub seat_id: String,
    /// The section's number.
    pub section: i16,
    /// The row's name.
    pub row: String,
    /// The number within the row, as printed.
    pub number: String,
    /// The price zone's number.
    pub zone: i16,
    /// A place for a wheelchair.
    pub accessible: bool,
    /// In the layout's unit.
    pub x: f64,
    /// In the layout's unit, downwards.
    pub y: f64,
    /// The right neighbour's number; none at an aisle or the end of a row.
    pub next: Option<i32>,
}

/// A layout not saved yet.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// Its name.
    pub name: String,
    /// By number, unique.
    pub section_names: Vec<String>,
    /// Price zones by number, unique.
    pub zone_names: Vec<String>,
    /// By number.
    pub seats: Vec<Seat>,
}

/// A saved layout, immutable.
#[derive(Debug)]
pub struct Layout {
    /// Its id.
    pub id: LayoutId,
    /// Its venue.
    pub venue: VenueId,
    /// When it was made.
    pub created_at: chrono::DateTime<chrono::Utc>,
    /// SHA-256 of the geometry, hex.
    pub geometry_hash: String,
    /// What it looks like.
    pub drawing: Draft,
    numbers: HashMap<String, i32>,
}

impl Layout {
    /// A layout as saved.
    #[must_use]
    pub fn new(row: parterre_entity::layout::Model, seats: Vec<Seat>) -> Self {
        let numbers = seats.iter().zip(0_i32..).map(|(seat, no)| (seat.seat_id.clone(), no)).collect();
        Self {
            id: row.id,
            venue: row.venue_id,
            created_at: row.created_at,
            geometry_hash: row.geometry_hash,
            drawing: Draft { name: row.name, section_names: row.section_names, zone_names: row.zone_names, seats },
            numbers,
        }
    }

    /// The number of a seat by its id.
    #[must_use]
    pub fn number(&self, seat_id: &str) -> Option<i32> {
        self.numbers.get(seat_id).copied()
    }

    /// The seat of a number.
    #[must_use]
    pub fn seat(&self, number: i32) -> Option<&Seat> {
        self.drawing.seats.get(usize::try_from(number).ok()?)
    }

    /// The id of a seat, for people; a number that doesn't exist reads as itself.
    #[must_use]
    pub fn seat_id(&self, number: i32) -> String {
        self.seat(number).map_or_else(|| number.to_string(), |seat| seat.seat_id.clone())
    }
}

impl Draft {
    /// The geometry file: sections by name with their seats in order. Immutable, so it can be cached for a year.
    #[must_use]
    pub fn geometry(&self) -> String {
        let mut sections: Vec<serde_json::Value> =
            self.section_names.iter().map(|name| json!({"name": name, "seats": []})).collect();
        for seat in &self.seats {
            let next = seat.next.and_then(|next| self.seats.get(usize::try_from(next).ok()?)).map(|next| &next.seat_id);
            let place = json!({
                "seatId": seat.seat_id, "row": seat.row, "number": seat.number, "x": seat.x, "y": seat.y,
                "zone": self.zone_names.get(usize::try_from(seat.zone).unwrap_or(usize::MAX)),
                "accessible": seat.accessible, "next": next,
            });
            let section = usize::try_from(seat.section).ok().and_then(|no| sections.get_mut(no));
            if let Some(seats) =
                section.and_then(|section| section.get_mut("seats")).and_then(|seats| seats.as_array_mut())
            {
                seats.push(place);
            }
        }
        json!({ "name": self.name, "zones": self.zone_names, "sections": sections }).to_string()
    }

    /// SHA-256 of the geometry file, hex.
    #[must_use]
    pub fn geometry_hash(&self) -> String {
        hex::encode(Sha256::digest(self.geometry().as_bytes()))
    }
}

/// Draws a layout from sections, or says where it is wrong.
pub fn draw(name: String, sections: &[SectionInput]) -> Result<Draft, Invalid> {
    if sections.is_empty() {
        return Err(Invalid::new("sections", "a layout needs at least one section"));
    }
    if sections.len() > limits::LAYOUT_SECTIONS_MAX {
        return Err(Invalid::new("sections", format!("at most {} sections", limits::LAYOUT_SECTIONS_MAX)));
    }
    let seat_count: usize = sections.iter().flat_map(|section| &section.rows).map(|row| row.seats.len()).sum();
    if seat_count > limits::LAYOUT_SEATS_MAX {
        return Err(Invalid::new("sections", format!("at most {} seats", limits::LAYOUT_SEATS_MAX)));
    }
    let mut drawing = Drawing::new(name, sections.len() > 1);
    let grid = Grid::of(sections);
    for (s, section) in sections.iter().enumerate() {
        let at = format!("sections.{s}");
        let section_name = text(format!("{at}.name"), &section.name, limits::NAME_CHARS_MAX)?;
        let section_no = drawing
            .section(section_name)
            .ok_or_else(|| Invalid::new(format!("{at}.name"), "another section has this name"))?;
        if section.rows.is_empty() {
            return Err(Invalid::new(format!("{at}.rows"), "a section needs at least one row"));
        }
        let mut row_names = HashSet::new();
        for (r, row) in section.rows.iter().enumerate() {
            let at = format!("{at}.rows.{r}");
            let row_name = text(format!("{at}.name"), &row.name, limits::SEAT_WORD_CHARS_MAX)?;
            if !row_names.insert(row_name.clone()) {
                return Err(Invalid::new(format!("{at}.name"), "another row of this section has this name"));
            }
            draw_row(&mut drawing, &at, (section_no, grid.place(s, r)), &row_name, &row.seats)?;
        }
    }
    Ok(drawing.finish())
}

fn draw_row(
    drawing: &mut Drawing,
    at: &str,
    (section, (left, top)): (i16, (f64, f64)),
    row_name: &str,
    seats: &[parterre_schema::SeatInput],
) -> Result<(), Invalid> {
    if seats.is_empty() {
        return Err(Invalid::new(format!("{at}.seats"), "a row needs at least one seat"));
    }
    let mut numbers = HashSet::new();
    for (index, seat) in seats.iter().enumerate() {
        let at = format!("{at}.seats.{index}");
        let number = text(format!("{at}.number"), &seat.number, limits::SEAT_WORD_CHARS_MAX)?;
        if !numbers.insert(number.clone()) {
            return Err(Invalid::new(format!("{at}.number"), "another seat of this row has this number"));
        }
        let zone_name = text(format!("{at}.zone"), &seat.zone, limits::NAME_CHARS_MAX)?;
        let zone = drawing.zone(zone_name).ok_or_else(|| {
            Invalid::new(format!("{at}.zone"), format!("at most {} zones", limits::LAYOUT_SECTIONS_MAX))
        })?;
        let (x, y) = match (seat.x, seat.y) {
            (Some(x), Some(y)) if x.is_finite() && y.is_finite() => (x, y),
            (None, None) => (left + steps(index), top),
            _ => return Err(Invalid::new(format!("{at}.x"), "x and y are given together, as finite numbers")),
        };
        let accessible = seat.accessible.unwrap_or(false);
        drawing.seat(Place { section, row: row_name.to_owned(), number, zone, accessible, x, y });
        if index + 1 < seats.len() && !seat.gap_after.unwrap_or(false) {
            drawing.join_next();
        }
    }
    Ok(())
}

/// Where rows begin when nobody said: sections stand side by side in a square, with aisles between.
struct Grid {
    columns: usize,
    /// Seats from one section to the next, and rows.
    seats: usize,
    rows: usize,
}

/// Seats and rows that an aisle between sections takes.
const AISLE: usize = 3;

impl Grid {
    fn of(sections: &[SectionInput]) -> Self {
        let longest = sections.iter().flat_map(|section| &section.rows).map(|row| row.seats.len()).max().unwrap_or(0);
        let deepest = sections.iter().map(|section| section.rows.len()).max().unwrap_or(0);
        let (seats, rows) = (longest + AISLE, deepest + AISLE);
        // As many columns as make it about as wide as it is high.
        let width = |columns: usize| columns * seats;
        let height = |columns: usize| sections.len().div_ceil(columns) * rows;
        let columns = (1..=sections.len()).find(|columns| width(*columns) >= height(*columns)).unwrap_or(1);
        Self { columns, seats, rows }
    }

    fn place(&self, section: usize, row: usize) -> (f64, f64) {
        (steps(section % self.columns * self.seats), steps(section / self.columns * self.rows + row))
    }
}

/// So many neighbours further.
fn steps(index: usize) -> f64 {
    f64::from(u32::try_from(index).unwrap_or(u32::MAX)) * 20.0
}

/// A seat before it has an id.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) section: i16,
    pub(super) row: String,
    pub(super) number: String,
    pub(super) zone: i16,
    pub(super) accessible: bool,
    pub(super) x: f64,
    pub(super) y: f64,
}

/// A layout being drawn: gives out numbers and ids.
pub(super) struct Drawing {
    name: String,
    name_sections: bool,
    section_names: Vec<String>,
    zone_names: Vec<String>,
    zones: HashMap<String, i16>,
    seats: Vec<Seat>,
    ids: HashSet<String>,
    /// Seats whose plain id was taken.
    pub(super) renamed: Vec<(String, String)>,
}

impl Drawing {
    /// `name_sections`: whether ids must say which section a seat is in.
    pub(super) fn new(name: String, name_sections: bool) -> Self {
        Self {
            name,
            name_sections,
            section_names: Vec::new(),
            zone_names: Vec::new(),
            zones: HashMap::new(),
            seats: Vec::new(),
            ids: HashSet::new(),
            renamed: Vec::new(),
        }
    }

    /// A new section's number, or none if the name is taken.
    pub(super) fn section(&mut self, name: String) -> Option<i16> {
        if self.section_names.contains(&name) {
            return None;
        }
        let no = i16::try_from(self.section_names.len()).ok()?;
        self.section_names.push(name);
        Some(no)
    }

    /// A zone's number, new or known; none if there are too many.
    pub(super) fn zone(&mut self, name: String) -> Option<i16> {
        if let Some(no) = self.zones.get(&name) {
            return Some(*no);
        }
        let no = i16::try_from(self.zone_names.len())
            .ok()
            .filter(|_| self.zone_names.len() < limits::LAYOUT_SECTIONS_MAX)?;
        self.zone_names.push(name.clone());
        self.zones.insert(name, no);
        Some(no)
    }

    /// Adds a seat with an id made of its section, row and number.
    pub(super) fn seat(&mut self, place: Place) {
        let words = self.words(&place);
        let mut seat_id = words.clone();
        let mut copy = 2;
        while !self.ids.insert(seat_id.clone()) {
            seat_id = format!("{words}~{copy}");
            copy += 1;
        }
        if seat_id != words {
            self.renamed.push((words, seat_id.clone()));
        }
        let Place { section, row, number, zone, accessible, x, y } = place;
        self.seats.push(Seat { seat_id, section, row, number, zone, accessible, x, y, next: None });
    }

    /// The seat added last has the one added next for a neighbour.
    pub(super) fn join_next(&mut self) {
        let next = i32::try_from(self.seats.len()).ok();
        if let Some(last) = self.seats.last_mut() {
            last.next = next;
        }
    }

    fn words(&self, place: &Place) -> String {
        let row = if place.number.starts_with(&format!("{}-", place.row)) { "" } else { &place.row };
        let section = usize::try_from(place.section).ok().and_then(|no| self.section_names.get(no));
        let section = section.filter(|_| self.name_sections).map_or("", String::as_str);
        [section, row, &place.number]
            .into_iter()
            .map(|word| word.split_whitespace().collect::<Vec<_>>().join("_"))
            .filter(|word| !word.is_empty())
            .collect::<Vec<_>>()
            .join("-")
    }

    pub(super) fn finish(self) -> Draft {
        Draft { name: self.name, section_names: self.section_names, zone_names: self.zone_names, seats: self.seats }
    }
}

/// A number of seats that a plan may have.
pub(super) fn check_count(path: &str, count: usize) -> Result<(), Invalid> {
    let count = i32::try_from(count).unwrap_or(i32::MAX);
    let most = i32::try_from(limits::LAYOUT_SEATS_MAX).unwrap_or(i32::MAX);
    within(path, count, 1, most)
        .map(drop)
        .map_err(|_| Invalid::new(path, format!("a layout has 1 to {most} seats, this one has {count}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parterre_schema::{RowInput, SeatInput};

    fn seat(number: &str) -> SeatInput {
        SeatInput { number: number.into(), x: None, y: None, zone: "Stalls".into(), accessible: None, gap_after: None }
    }

    fn section(name: &str, rows: &[(&str, &[&str])]) -> SectionInput {
        let rows = rows.iter().map(|(name, seats)| RowInput {
            name: (*name).into(),
            seats: seats.iter().map(|number| seat(number)).collect(),
        });
        SectionInput { name: name.into(), rows: rows.collect() }
    }

    #[test]
    fn ids_are_words_and_say_the_section_only_when_there_are_several() {
        let one = draw("Hall".into(), &[section("Main", &[("A", &["1", "2"])])]).unwrap();
        assert_eq!(one.seats[1].seat_id, "A-2");
        let two =
            draw("Hall".into(), &[section("Stalls", &[("C", &["7"])]), section("Upper Circle", &[("C", &["7"])])]);
        let ids: Vec<_> = two.unwrap().seats.into_iter().map(|seat| seat.seat_id).collect();
        assert_eq!(ids, ["Stalls-C-7", "Upper_Circle-C-7"]);
    }

    #[test]
    fn words_that_collide_stay_unique() {
        let drawing = draw("Hall".into(), &[section("Main", &[("A-1", &["2"]), ("A", &["1-2"])])]).unwrap();
        let ids: HashSet<_> = drawing.seats.iter().map(|seat| seat.seat_id.clone()).collect();
        assert_eq!(ids.len(), 2, "{ids:?}");
    }

    #[test]
    fn sections_without_places_stand_beside_each_other() {
        let block = |name: &str| section(name, &[("A", &["1", "2", "3"]), ("B", &["1", "2"])]);
        let drawing = draw("Hall".into(), &["I", "II", "III", "IV", "V"].map(block)).unwrap();
        let places: HashSet<(u64, u64)> =
            drawing.seats.iter().map(|seat| (seat.x.to_bits(), seat.y.to_bits())).collect();
        assert_eq!(places.len(), drawing.seats.len());
        let corners: Vec<(f64, f64)> =
            (0..5).map(|block| &drawing.seats[block * 5]).map(|seat| (seat.x, seat.y)).collect();
        assert_eq!(corners, [(0.0, 0.0), (120.0, 0.0), (240.0, 0.0), (0.0, 100.0), (120.0, 100.0)]);
    }

    #[test]
    fn a_gap_parts_neighbours() {
        let mut input = section("Main", &[("A", &["1", "2", "3"])]);
        input.rows[0].seats[0].gap_after = Some(true);
        let drawing = draw("Hall".into(), &[input]).unwrap();
        let next: Vec<_> = drawing.seats.iter().map(|seat| seat.next).collect();
        assert_eq!(next, [None, Some(2), None]);
    }

    #[test]
    fn what_is_wrong_is_named_by_its_place() {
        let field = |sections: &[SectionInput]| draw("Hall".into(), sections).unwrap_err().field.join(".");
        assert_eq!(field(&[]), "input.sections");
        assert_eq!(field(&[section("Main", &[])]), "input.sections.0.rows");
        assert_eq!(field(&[section("Main", &[("A", &[])])]), "input.sections.0.rows.0.seats");
        assert_eq!(field(&[section("Main", &[("A", &["1", "1"])])]), "input.sections.0.rows.0.seats.1.number");
        assert_eq!(field(&[section("Main", &[("A", &["1"]), ("A", &["2"])])]), "input.sections.0.rows.1.name");
        let numbers: Vec<String> = (0..200_001).map(|n| n.to_string()).collect();
        let numbers: Vec<&str> = numbers.iter().map(String::as_str).collect();
        assert_eq!(field(&[section("Main", &[("A", &numbers)])]), "input.sections");
    }
}
