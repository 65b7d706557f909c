//! Reads a pretix seating-plan document as real files are: every seat is kept, ids become unique, neighbours are worked
//! out from places instead of drawing order, and everything that was changed is said. Pure.

use super::layout::{Draft, Drawing, Place, check_count};
use crate::input::Invalid;
use parterre_schema::limits;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Something an import changed or left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// A word to switch on.
    pub code: &'static str,
    /// For people.
    pub message: String,
    /// Where in the document.
    pub path: Vec<String>,
}

/// The layout of a seating plan and what had to be changed, or the reason it can't be one.
pub fn import(name: String, document: &str) -> Result<(Draft, Vec<Note>), Invalid> {
    let refuse = |message: String| Invalid::new("pretixPlan", message);
    if document.chars().count() > limits::PLAN_CHARS_MAX {
        return Err(refuse(format!("must have at most {} characters", limits::PLAN_CHARS_MAX)));
    }
    let plan: Value = serde_json::from_str(document).map_err(|error| refuse(format!("is not JSON: {error}")))?;
    let mut notes = Notes::default();
    notes.unknown(&plan, "", &["name", "categories", "zones", "size"]);
    let categories = read_categories(&plan, &mut notes)?;
    let zones = list(&plan, "zones");
    if zones.len() > limits::LAYOUT_SECTIONS_MAX {
        return Err(refuse(format!("has more than {} zones", limits::LAYOUT_SECTIONS_MAX)));
    }
    let blocks = zones
        .iter()
        .enumerate()
        .map(|(z, zone)| read_zone(z, zone, &categories, &mut notes))
        .collect::<Result<Vec<_>, _>>()?;
    check_count("pretixPlan", blocks.iter().flat_map(|block| &block.rows).map(|row| row.seats.len()).sum())?;
    notes.repeated_guids(&blocks);
    let draft = draw_blocks(name, blocks, &mut notes)?;
    Ok((draft, notes.finish()))
}

/// Category names as the document has them, and as price zones are called.
fn read_categories(plan: &Value, notes: &mut Notes) -> Result<HashMap<String, String>, Invalid> {
    let mut names = HashMap::new();
    for (index, category) in list(plan, "categories").iter().enumerate() {
        let Some(written) = category.get("name").and_then(Value::as_str) else { continue };
        let plain: String = written.chars().filter(|c| !c.is_control()).take(limits::NAME_CHARS_MAX).collect();
        let plain = plain.trim().to_owned();
        if plain.is_empty() {
            return Err(Invalid::new("pretixPlan", format!("the category at categories.{index} has a blank name")));
        }
        if plain != written {
            let message = format!("the category is called \"{plain}\" here");
            notes.add("CATEGORY_RENAMED", message, &format!("categories.{index}"));
        }
        names.insert(written.to_owned(), plain);
    }
    Ok(names)
}

/// A zone of the document.
struct Block {
    name: String,
    path: String,
    rows: Vec<RowPiece>,
}

/// One row object: a whole row, or a piece of one that an aisle parts.
struct RowPiece {
    name: String,
    seats: Vec<PlanSeat>,
}

#[derive(Clone)]
struct PlanSeat {
    guid: String,
    number: String,
    category: String,
    x: f64,
    y: f64,
}

fn read_zone(
    z: usize,
    zone: &Value,
    categories: &HashMap<String, String>,
    notes: &mut Notes,
) -> Result<Block, Invalid> {
    let path = format!("zones.{z}");
    notes.unknown(zone, &path, &["name", "zone_id", "uuid", "position", "rows", "areas"]);
    let name = string(zone, "name").unwrap_or_default();
    let origin = position(zone);
    let mut rows = Vec::new();
    for (r, row) in list(zone, "rows").iter().enumerate() {
        let path = format!("{path}.rows.{r}");
        notes.unknown(row, &path, ROW_PROPERTIES);
        let row_origin = position(row);
        let mut label = clean(&string(row, "row_number").unwrap_or_default());
        if label.is_empty() {
            label = format!("row {}", r + 1);
            notes.add("ROW_NAMED", format!("a row without a label is called \"{label}\""), &path);
        }
        let mut seats = Vec::new();
        for (s, seat) in list(row, "seats").iter().enumerate() {
            let path = format!("{path}.seats.{s}");
            notes.unknown(seat, &path, SEAT_PROPERTIES);
            let own = position(seat);
            let (x, y) = (origin.0 + row_origin.0 + own.0, origin.1 + row_origin.1 + own.1);
            let guid = string(seat, "seat_guid").unwrap_or_default();
            let mut number = clean(&string(seat, "seat_number").unwrap_or_default());
            if number.is_empty() {
                number = (s + 1).to_string();
                notes.add("SEAT_NUMBERED", format!("a seat without a number is called {number}"), &path);
            }
            let category = string(seat, "category").and_then(|category| categories.get(&category).cloned());
            let category = category.ok_or_else(|| {
                let found = string(seat, "category").unwrap_or_default();
                Invalid::new(
                    "pretixPlan",
                    format!("seat \"{number}\" of row \"{label}\" in zone \"{name}\" ({path}) has the category \"{found}\", which the plan's categories do not list"),
                )
            })?;
            seats.push(PlanSeat { guid, number, category, x, y });
        }
        if seats.is_empty() {
            notes.add("EMPTY_ROW", format!("row \"{label}\" has no seats and was left out"), &path);
        } else {
            rows.push(RowPiece { name: label, seats });
        }
    }
    Ok(Block { name, path, rows })
}

const ROW_PROPERTIES: &[&str] =
    &["row_number", "row_label", "seat_label", "row_number_position", "position", "seats", "uuid"];
const SEAT_PROPERTIES: &[&str] =
    &["seat_guid", "seat_number", "position", "category", "uuid", "radius", "start_direction"];

fn draw_blocks(name: String, blocks: Vec<Block>, notes: &mut Notes) -> Result<Draft, Invalid> {
    let used = blocks.iter().filter(|block| !block.rows.is_empty()).count();
    let mut drawing = Drawing::new(name, used > 1);
    for block in blocks.into_iter().filter(|block| !block.rows.is_empty()) {
        let section = add_section(&mut drawing, &block, notes);
        for (row, pieces) in rows_of(block.rows) {
            if pieces.len() > 1 {
                let message = format!("{} row objects of row \"{row}\" were joined into one row", pieces.len());
                notes.add("ROWS_JOINED", message, &block.path);
            }
            for (seat, has_neighbour) in in_order(pieces) {
                let zone = drawing.zone(seat.category).ok_or_else(|| {
                    Invalid::new("pretixPlan", format!("has more than {} categories", limits::LAYOUT_SECTIONS_MAX))
                })?;
                let place = Place {
                    section,
                    row: row.clone(),
                    number: seat.number,
                    zone,
                    accessible: false,
                    x: seat.x,
                    y: seat.y,
                };
                drawing.seat(place);
                if has_neighbour {
                    drawing.join_next();
                }
            }
        }
    }
    for (words, seat_id) in std::mem::take(&mut drawing.renamed) {
        notes.add("SEAT_RENAMED", format!("another seat is called \"{words}\", this one became \"{seat_id}\""), "");
    }
    Ok(drawing.finish())
}

fn add_section(drawing: &mut Drawing, block: &Block, notes: &mut Notes) -> i16 {
    let plain = match clean(&block.name) {
        name if name.is_empty() => "Main".to_owned(),
        name => name,
    };
    let mut candidate = plain.clone();
    let mut copy = 2;
    loop {
        if let Some(no) = drawing.section(candidate.clone()) {
            if candidate != block.name {
                let message = format!("the zone \"{}\" became the section \"{candidate}\"", block.name);
                notes.add("SECTION_RENAMED", message, &block.path);
            }
            return no;
        }
        candidate = format!("{plain} ({copy})");
        copy += 1;
    }
}

/// Rows by name, in the order in which the document first names them.
fn rows_of(pieces: Vec<RowPiece>) -> Vec<(String, Vec<Vec<PlanSeat>>)> {
    let mut order = Vec::new();
    let mut by_name: HashMap<String, Vec<Vec<PlanSeat>>> = HashMap::new();
    for piece in pieces {
        if !by_name.contains_key(&piece.name) {
            order.push(piece.name.clone());
        }
        by_name.entry(piece.name).or_default().push(piece.seats);
    }
    order
        .into_iter()
        .map(|name| {
            let pieces = by_name.remove(&name).unwrap_or_default();
            (name, pieces)
        })
        .collect()
}

/// A gap is wider than this many times the usual distance of two seats of the row.
const GAP_FACTOR: f64 = 1.6;

/// Seats in the order of their places along the row, and whether the next one is a neighbour.
fn in_order(pieces: Vec<Vec<PlanSeat>>) -> Vec<(PlanSeat, bool)> {
    let axis = main_axis(pieces.iter().flatten());
    let along = |seat: &PlanSeat| seat.x * axis.0 + seat.y * axis.1;
    let mut pieces = pieces;
    for piece in &mut pieces {
        piece.sort_by(|a, b| along(a).total_cmp(&along(b)));
    }
    pieces.sort_by(|a, b| match (a.first(), b.first()) {
        (Some(a), Some(b)) => along(a).total_cmp(&along(b)),
        (a, b) => a.is_some().cmp(&b.is_some()),
    });
    let mut steps: Vec<f64> = pieces.iter().flat_map(|piece| piece.windows(2)).filter_map(distance).collect();
    steps.sort_by(f64::total_cmp);
    let usual = steps.get(steps.len() / 2).copied().unwrap_or(f64::INFINITY);
    let seats: Vec<PlanSeat> = pieces.into_iter().flatten().collect();
    let near: Vec<bool> = seats
        .windows(2)
        .map(|pair| {
            distance(pair).is_some_and(|step| step <= usual * GAP_FACTOR && step.is_finite() && usual.is_finite())
        })
        .chain(std::iter::once(false))
        .collect();
    seats.into_iter().zip(near).collect()
}

fn distance(pair: &[PlanSeat]) -> Option<f64> {
    let [a, b] = pair else { return None };
    Some((a.x - b.x).hypot(a.y - b.y))
}

/// The direction in which the seats of a row lie: rows may be slanted or curved. Points right, or down.
fn main_axis<'a>(seats: impl Iterator<Item = &'a PlanSeat> + Clone) -> (f64, f64) {
    let count = f64::from(u32::try_from(seats.clone().count()).unwrap_or(u32::MAX)).max(1.0);
    let (mean_x, mean_y) =
        (seats.clone().map(|s| s.x).sum::<f64>() / count, seats.clone().map(|s| s.y).sum::<f64>() / count);
    let (mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0);
    for seat in seats {
        let (dx, dy) = (seat.x - mean_x, seat.y - mean_y);
        xx += dx * dx;
        xy += dx * dy;
        yy += dy * dy;
    }
    // The eigenvector of the larger eigenvalue of the covariance matrix.
    let angle = 0.5 * (2.0 * xy).atan2(xx - yy);
    let (x, y) = (angle.cos(), angle.sin());
    if x > 1e-9 || (x.abs() <= 1e-9 && y > 0.0) { (x, y) } else { (-x, -y) }
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value.get(key).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn string(value: &Value, key: &str) -> Option<String> {
    match value.get(key)? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// Without control characters and outer blanks, and short enough to read out.
fn clean(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).take(limits::SEAT_WORD_CHARS_MAX).collect();
    plain.trim().to_owned()
}

fn position(value: &Value) -> (f64, f64) {
    let axis = |name: &str| {
        let number = value.get("position").and_then(|position| position.get(name)).and_then(Value::as_f64);
        number.filter(|number| number.is_finite()).unwrap_or(0.0)
    };
    (axis("x"), axis("y"))
}

/// What an import changed. Findings of one kind are many in a real file: each is counted, the first few are told.
#[derive(Default)]
struct Notes {
    by_code: BTreeMap<&'static str, (usize, Vec<Note>)>,
}

const TOLD_OF_A_KIND: usize = 20;

impl Notes {
    fn add(&mut self, code: &'static str, message: String, path: &str) {
        let (count, told) = self.by_code.entry(code).or_default();
        *count += 1;
        if told.len() < TOLD_OF_A_KIND {
            let path = path.split('.').filter(|part| !part.is_empty()).map(str::to_owned).collect();
            told.push(Note { code, message, path });
        }
    }

    fn unknown(&mut self, value: &Value, path: &str, known: &[&str]) {
        let Some(object) = value.as_object() else { return };
        for property in object.keys().filter(|property| !known.contains(&property.as_str())) {
            let shown: String = property.chars().filter(|c| !c.is_control()).take(50).collect();
            self.add("UNKNOWN_PROPERTY", format!("the property \"{shown}\" was left out"), path);
        }
    }

    fn repeated_guids(&mut self, blocks: &[Block]) {
        let mut seen = HashSet::new();
        for (block, seat) in
            blocks.iter().flat_map(|block| block.rows.iter().flat_map(|row| &row.seats).map(move |seat| (block, seat)))
        {
            if !seen.insert(seat.guid.as_str()) {
                let message = format!(
                    "seat_guid \"{}\" is used more than once; ids are made of the seat's words instead",
                    clean(&seat.guid)
                );
                self.add("GUID_REPEATED", message, &block.path);
            }
        }
    }

    fn finish(self) -> Vec<Note> {
        let mut all = Vec::new();
        for (code, (count, told)) in self.by_code {
            let untold = count - told.len();
            all.extend(told);
            if untold > 0 {
                all.push(Note { code, message: format!("and {untold} more of this kind"), path: Vec::new() });
            }
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn seat(number: &str, x: f64, y: f64) -> Value {
        json!({"seat_guid": number, "seat_number": number, "position": {"x": x, "y": y}, "category": "A"})
    }

    fn plan(zones: &Value) -> String {
        json!({"name": "Plan", "categories": [{"name": "A"}], "zones": zones, "size": {"width": 1, "height": 1}})
            .to_string()
    }

    fn neighbours(draft: &Draft) -> Vec<(String, String)> {
        let pair = |seat: &super::super::layout::Seat| {
            let next = &draft.seats[usize::try_from(seat.next?).unwrap()];
            Some((seat.number.clone(), next.number.clone()))
        };
        draft.seats.iter().filter_map(pair).collect()
    }

    #[test]
    fn neighbours_are_worked_out_from_places_not_from_drawing_order() {
        let row = json!({"row_number": "1", "seats": [seat("3", 40.0, 0.0), seat("1", 0.0, 0.5), seat("2", 20.0, 0.0), seat("9", 100.0, 0.0)]});
        let (draft, _) =
            import("Plan".into(), &plan(&json!([{"name": "Z", "position": {"x": 0, "y": 0}, "rows": [row]}]))).unwrap();
        assert_eq!(neighbours(&draft), [("1".to_owned(), "2".to_owned()), ("2".to_owned(), "3".to_owned())]);
    }

    #[test]
    fn a_row_split_by_an_aisle_is_one_row_with_a_gap_and_slanted_rows_work() {
        let left = json!({"row_number": "A", "seats": [seat("2", 14.0, 14.0), seat("1", 0.0, 0.0)]});
        let right = json!({"row_number": "A", "position": {"x": 60, "y": 60}, "seats": [seat("3", 0.0, 0.0), seat("4", 14.0, 14.0)]});
        let (draft, notes) = import("Plan".into(), &plan(&json!([{"name": "Z", "rows": [right, left]}]))).unwrap();
        let numbers: Vec<_> = draft.seats.iter().map(|seat| seat.number.as_str()).collect();
        assert_eq!(numbers, ["1", "2", "3", "4"]);
        assert_eq!(neighbours(&draft).len(), 2);
        assert!(notes.iter().any(|note| note.code == "ROWS_JOINED"));
    }

    #[test]
    fn faults_of_real_files_are_mended_and_said() {
        let rows = json!([
            {"row_number": " ", "seats": [seat("1", 0.0, 0.0), seat("1", 20.0, 0.0)], "colour": "red"},
            {"row_number": "", "seats": [seat("1", 0.0, 40.5)]},
        ]);
        let (draft, notes) = import("Plan".into(), &plan(&json!([{"name": "Z", "rows": rows}]))).unwrap();
        let ids: HashSet<_> = draft.seats.iter().map(|seat| seat.seat_id.as_str()).collect();
        assert_eq!(ids.len(), 3, "{ids:?}");
        for code in ["ROW_NAMED", "GUID_REPEATED", "UNKNOWN_PROPERTY", "SEAT_RENAMED"] {
            assert!(notes.iter().any(|note| note.code == code), "{code} in {notes:?}");
        }
    }

    #[test]
    fn category_names_become_words_that_can_be_priced() {
        let odd = |name: &str| {
            let seat = json!({"seat_guid": "1", "seat_number": "1", "position": {"x": 0, "y": 0}, "category": name});
            let rows = json!([{"row_number": "1", "seats": [seat]}]);
            json!({"name": "P", "categories": [{"name": name}], "zones": [{"name": "Z", "rows": rows}], "size": {}})
                .to_string()
        };
        let (draft, notes) = import("Plan".into(), &odd(" V\u{0}IP ")).unwrap();
        assert_eq!(draft.zone_names, ["VIP"]);
        assert!(notes.iter().any(|note| note.code == "CATEGORY_RENAMED"));
        assert!(import("Plan".into(), &odd(" ")).unwrap_err().message.contains("categories.0"));
    }

    #[test]
    fn a_missing_category_or_no_seat_at_all_is_refused_by_name() {
        let row = json!({"row_number": "7", "seats": [{"seat_guid": "x", "seat_number": "12", "category": "Nope"}]});
        let error = import("Plan".into(), &plan(&json!([{"name": "Loge", "rows": [row]}]))).unwrap_err();
        for word in ["12", "7", "Loge", "Nope"] {
            assert!(error.message.contains(word), "{error}");
        }
        assert!(import("Plan".into(), &plan(&json!([]))).unwrap_err().message.contains("1 to 200000 seats"));
        assert!(import("Plan".into(), "{").is_err());
    }
}
