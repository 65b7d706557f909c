//! Best available, as a person would choose: the best row first, side by side, near the middle, and no single seat left
//! over where another choice exists. Pure.

use crate::catalogue::{Layout, Seat};
use std::collections::BTreeSet;
use std::ops::Range;

/// What the server is asked to choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Best {
    /// How many seats.
    pub quantity: i32,
    /// Only in these price zones.
    pub zones: Option<Vec<i16>>,
    /// Only in these sections.
    pub sections: Option<Vec<i16>>,
    /// How many of them are accessible. Others never are.
    pub accessible: i32,
    /// Side by side, or the group may be split.
    pub adjacent: bool,
}

impl Best {
    /// Whether a seat may be part of the choice.
    fn admits(&self, layout: &Layout, seat: i32) -> bool {
        let listed = |list: &Option<Vec<i16>>, no: i16| list.as_ref().is_none_or(|list| list.contains(&no));
        layout.seat(seat).is_some_and(|seat| {
            listed(&self.zones, seat.zone)
                && listed(&self.sections, seat.section)
                && (self.accessible > 0 || !seat.accessible)
        })
    }
}

/// Chooses among the free seats, or finds that there is no such choice. Ascending.
pub fn choose(layout: &Layout, is_free: &dyn Fn(i32) -> bool, want: &Best) -> Option<Vec<i32>> {
    if let Some(window) = window(layout, is_free, want) {
        return Some(window.collect());
    }
    if want.adjacent { None } else { split(layout, is_free, want) }
}

/// The largest groups that fit, best rows first: accessible places with those beside them, then the rest.
fn split(layout: &Layout, is_free: &dyn Fn(i32) -> bool, want: &Best) -> Option<Vec<i32>> {
    let mut chosen: Vec<i32> = Vec::new();
    let parts = [(want.accessible, true), (want.quantity - want.accessible, false)];
    for (mut left, accessible) in parts {
        let mut size = left;
        while left > 0 {
            if size == 0 {
                return None;
            }
            let part =
                Best { quantity: size, accessible: if accessible { size } else { 0 }, adjacent: true, ..want.clone() };
            let still_free = |seat: i32| is_free(seat) && !chosen.contains(&seat);
            match window(layout, &still_free, &part) {
                Some(found) => {
                    chosen.extend(found);
                    left -= size;
                    size = size.min(left);
                }
                None => size -= 1,
            }
        }
    }
    chosen.sort_unstable();
    Some(chosen)
}

/// The best run of neighbours of exactly the wanted size.
fn window(layout: &Layout, is_free: &dyn Fn(i32) -> bool, want: &Best) -> Option<Range<i32>> {
    let mut second_choice: Option<(u8, Range<i32>)> = None;
    for row in rows(layout) {
        let middle = f64::midpoint(f64::from(row.start), f64::from(row.end - 1));
        let mut best_of_row: Option<(u8, f64, Range<i32>)> = None;
        for run in runs(layout, row) {
            for start in run.start..=run.end.saturating_sub(want.quantity) {
                let candidate = start..start + want.quantity;
                if candidate.end > run.end || !fits(layout, is_free, want, candidate.clone()) {
                    continue;
                }
                let orphans = orphans(is_free, &run, &candidate);
                let from_middle =
                    (f64::midpoint(f64::from(candidate.start), f64::from(candidate.end - 1)) - middle).abs();
                let better = best_of_row.as_ref().is_none_or(|(o, d, _)| (orphans, from_middle) < (*o, *d));
                if better {
                    best_of_row = Some((orphans, from_middle, candidate));
                }
            }
        }
        match best_of_row {
            Some((0, _, found)) => return Some(found),
            Some((orphans, _, found)) if second_choice.as_ref().is_none_or(|(fewest, _)| orphans < *fewest) => {
                second_choice = Some((orphans, found));
            }
            _ => {}
        }
    }
    second_choice.map(|(_, found)| found)
}

fn fits(layout: &Layout, is_free: &dyn Fn(i32) -> bool, want: &Best, candidate: Range<i32>) -> bool {
    let mut accessible = 0;
    for seat in candidate {
        if !is_free(seat) || !want.admits(layout, seat) {
            return false;
        }
        accessible += i32::from(layout.seat(seat).is_some_and(|seat| seat.accessible));
    }
    accessible == want.accessible
}

/// How many single free seats a choice would leave between itself and what is taken, at its two sides.
fn orphans(is_free: &dyn Fn(i32) -> bool, run: &Range<i32>, candidate: &Range<i32>) -> u8 {
    let free = |seat: i32| run.contains(&seat) && is_free(seat);
    let left = free(candidate.start - 1) && !free(candidate.start - 2);
    let right = free(candidate.end) && !free(candidate.end + 1);
    u8::from(left) + u8::from(right)
}

/// Free seats that a pick would leave alone: beside it, and without a free neighbour any more.
pub fn lonely(layout: &Layout, is_free: &dyn Fn(i32) -> bool, picked: &[i32]) -> Vec<i32> {
    let left_free = |seat: &i32| is_free(*seat) && !picked.contains(seat);
    let neighbours = |seat: i32| {
        let before = seat.checked_sub(1).filter(|before| layout.seat(*before).is_some_and(|it| it.next == Some(seat)));
        [before, layout.seat(seat).and_then(|seat| seat.next)].into_iter().flatten()
    };
    let beside: BTreeSet<i32> = picked.iter().flat_map(|seat| neighbours(*seat)).filter(left_free).collect();
    beside.into_iter().filter(|seat| !neighbours(*seat).any(|other| left_free(&other))).collect()
}

/// As many neighbours of the same kind as were wanted, nearest to those, in their section: what to offer instead.
pub fn nearest(layout: &Layout, is_free: &dyn Fn(i32) -> bool, wanted: &[i32]) -> Option<Vec<i32>> {
    let seats: Vec<&Seat> = wanted.iter().filter_map(|seat| layout.seat(*seat)).collect();
    let first = seats.first()?;
    let want = Best {
        quantity: i32::try_from(seats.len()).ok()?,
        zones: Some(seats.iter().map(|seat| seat.zone).collect()),
        sections: Some(vec![first.section]),
        accessible: i32::try_from(seats.iter().filter(|seat| seat.accessible).count()).ok()?,
        adjacent: true,
    };
    let centre = |seats: &[&Seat]| {
        let count = f64::from(u32::try_from(seats.len().max(1)).unwrap_or(1));
        let sum = seats.iter().fold((0.0, 0.0), |(x, y), seat| (x + seat.x, y + seat.y));
        (sum.0 / count, sum.1 / count)
    };
    let (x, y) = centre(&seats);
    let in_section =
        rows(layout).filter(|row| layout.seat(row.start).is_some_and(|seat| seat.section == first.section));
    let candidates = in_section.flat_map(|row| runs(layout, row)).flat_map(|run| {
        (run.start..=run.end.saturating_sub(want.quantity)).map(move |start| start..start + want.quantity)
    });
    candidates
        .filter(|candidate| fits(layout, is_free, &want, candidate.clone()))
        .map(|candidate| {
            let picked: Vec<i32> = candidate.collect();
            let there = centre(&picked.iter().filter_map(|seat| layout.seat(*seat)).collect::<Vec<_>>());
            let far = (there.0 - x).hypot(there.1 - y);
            (lonely(layout, is_free, &picked).len(), far, picked)
        })
        .min_by(|a, b| (a.0.min(1), a.1).partial_cmp(&(b.0.min(1), b.1)).unwrap_or(std::cmp::Ordering::Equal))
        .map(|(_, _, picked)| picked)
}

/// Rows in the layout's order: seats of one row are numbered one after the other.
fn rows(layout: &Layout) -> impl Iterator<Item = Range<i32>> + '_ {
    ranges(layout, |a, b| a.section == b.section && a.row == b.row, 0..count(layout))
}

/// The stretches of neighbours of a row.
fn runs(layout: &Layout, row: Range<i32>) -> impl Iterator<Item = Range<i32>> + '_ {
    ranges(layout, |a, _| a.next.is_some(), row)
}

fn count(layout: &Layout) -> i32 {
    i32::try_from(layout.drawing.seats.len()).unwrap_or(i32::MAX)
}

/// Cuts a range of seats wherever two that follow each other do not belong together.
fn ranges<'a>(
    layout: &'a Layout,
    together: impl Fn(&crate::catalogue::Seat, &crate::catalogue::Seat) -> bool + 'a,
    within: Range<i32>,
) -> impl Iterator<Item = Range<i32>> + 'a {
    let mut start = within.start;
    std::iter::from_fn(move || {
        if start >= within.end {
            return None;
        }
        let mut end = start + 1;
        while end < within.end
            && matches!((layout.seat(end - 1), layout.seat(end)), (Some(a), Some(b)) if together(a, b))
        {
            end += 1;
        }
        let found = start..end;
        start = end;
        Some(found)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::layout_for_tests as hall;
    use proptest::prelude::*;

    fn want(quantity: i32) -> Best {
        Best { quantity, zones: None, sections: None, accessible: 0, adjacent: true }
    }

    /// Free seats of a hall, as a picture: `.` free, `x` taken.
    fn free(picture: &str) -> impl Fn(i32) -> bool {
        let taken: Vec<bool> = picture.chars().filter(|c| !c.is_whitespace()).map(|c| c == 'x').collect();
        move |seat| usize::try_from(seat).ok().and_then(|seat| taken.get(seat)) == Some(&false)
    }

    #[test]
    fn what_people_expect() {
        let layout = hall(&["........", "........"]);
        let pick = |picture: &str, best: &Best| choose(&layout, &free(picture), best);
        assert_eq!(pick("........ ........", &want(2)), Some(vec![3, 4]), "the middle of the front row");
        assert_eq!(pick("xxx.xxxx ........", &want(2)), Some(vec![11, 12]), "side by side, so the second row");
        assert_eq!(pick("xx...xxx ........", &want(2)), Some(vec![11, 12]), "two of three would leave one alone");
        assert_eq!(pick("xx...xxx xxxxxxxx", &want(2)), Some(vec![3, 4]), "unless there is no other choice");
        assert_eq!(pick("x.x.x.x. xxxxxxxx", &want(2)), None);
        let split = Best { adjacent: false, ..want(2) };
        assert_eq!(pick("x.x.x.x. xxxxxxxx", &split).map(|seats| seats.len()), Some(2));
        assert_eq!(pick("xxxxxxxx xxxxxxx.", &split), None);
    }

    #[test]
    fn accessible_seats_only_when_asked_for_with_a_companion_beside() {
        let layout = hall(&["w...", "...."]);
        let pick = |picture: &str, best: &Best| choose(&layout, &free(picture), best);
        assert_eq!(pick(".xxx xxxx", &want(1)), None, "never unasked");
        let companion = Best { accessible: 1, ..want(2) };
        assert_eq!(pick(".... ....", &companion), Some(vec![0, 1]));
        assert_eq!(pick(".x.. ....", &companion), None, "beside, not somewhere");
    }

    #[test]
    fn a_gap_parts_neighbours() {
        let layout = hall(&["..|.."]);
        assert_eq!(choose(&layout, &free("x..x"), &want(2)), None);
    }

    #[test]
    fn a_seat_is_left_alone_only_if_the_pick_made_it_so() {
        let layout = hall(&["........", "..|.."]);
        let alone = |picture: &str, picked: &[i32]| lonely(&layout, &free(picture), picked);
        assert_eq!(alone("........ ....", &[1, 2]), [0]);
        assert_eq!(alone("........ ....", &[2, 3]), Vec::<i32>::new(), "two are left at the side");
        assert_eq!(alone("........ ....", &[0, 1]), Vec::<i32>::new());
        assert_eq!(alone("xxx..xxx ....", &[3]), [4]);
        assert_eq!(alone("x.x..... ....", &[4, 5]), [3], "not the one that was alone before");
        assert_eq!(alone("........ ....", &[0, 2]), [1]);
        assert_eq!(alone("........ ....", &[8]), [9], "a gap parts neighbours");
        assert_eq!(alone("........ ....", &[8, 9]), Vec::<i32>::new());
    }

    #[test]
    fn the_nearest_like_seats_are_offered_instead() {
        let layout = hall(&["........", "........", "w......."]);
        let instead = |picture: &str, wanted: &[i32]| nearest(&layout, &free(picture), wanted);
        assert_eq!(instead("...xx... ........ ........", &[3, 4]), Some(vec![11, 12]), "behind, not at the side");
        assert_eq!(instead("xxxxxxxx xxxxxxxx .x..xxxx", &[3, 4]), Some(vec![18, 19]));
        assert_eq!(instead("xxxxxxxx xxxxxxxx .xxxxxxx", &[3]), None, "an accessible one only for an accessible one");
        assert_eq!(instead("xxxxxxxx xxxxxxxx ..xxxxxx", &[16, 17]), Some(vec![16, 17]));
    }

    proptest! {
        #[test]
        fn a_choice_is_free_adjacent_of_the_right_size_and_leaves_no_orphan_if_avoidable(
            taken in proptest::collection::vec(any::<bool>(), 30), quantity in 1_i32..6,
        ) {
            let layout = hall(&[".....|.....", "w.........", ".........w"]);
            let is_free = |seat: i32| usize::try_from(seat).ok().and_then(|seat| taken.get(seat)) == Some(&false);
            let all: Vec<Vec<i32>> = (0..=30 - quantity)
                .map(|start| (start..start + quantity).collect::<Vec<_>>())
                .filter(|seats| seats.iter().all(|seat| is_free(*seat) && !layout.seat(*seat).unwrap().accessible))
                .filter(|seats| seats.windows(2).all(|pair| layout.seat(pair[0]).unwrap().next == Some(pair[1])))
                .collect();
            let lonely = |seats: &[i32]| {
                let run = runs(&layout, 0..30).find(|run| run.contains(&seats[0])).unwrap();
                orphans(&is_free, &run, &(seats[0]..seats[0] + quantity)) > 0
            };
            match choose(&layout, &is_free, &want(quantity)) {
                None => prop_assert!(all.is_empty()),
                Some(seats) => {
                    prop_assert!(all.contains(&seats));
                    prop_assert!(!lonely(&seats) || all.iter().all(|other| lonely(other)));
                }
            }
        }
    }
}
