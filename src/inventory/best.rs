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

/// Parts of a group, as a person would part it: places for wheelchairs with as many companions beside them as fit; the
/// rest in two parts, as even as can be and near each other, so that nobody sits alone; and only then in whatever is left.
fn split(layout: &Layout, is_free: &dyn Fn(i32) -> bool, want: &Best) -> Option<Vec<i32>> {
    let mut chosen: Vec<i32> = Vec::new();
    let (mut accessible, mut others) = (want.accessible, want.quantity - want.accessible);
    while accessible > 0 {
        let still_free = |seat: i32| is_free(seat) && !chosen.contains(&seat);
        let (wheelchairs, companions, found) = with_companions(layout, &still_free, want, (accessible, others))?;
        chosen.extend(found);
        accessible -= wheelchairs;
        others -= companions;
    }
    let still_free = |seat: i32| is_free(seat) && !chosen.contains(&seat);
    let rest = Best { quantity: others, accessible: 0, adjacent: true, ..want.clone() };
    chosen.extend(in_two(layout, &still_free, &rest).or_else(|| in_any(layout, &still_free, &rest))?);
    chosen.sort_unstable();
    Some(chosen)
}

/// A run of accessible places and companions: as many wheelchairs as fit, each run with somebody beside them while there
/// is somebody. How many of each, and where.
fn with_companions(
    layout: &Layout,
    is_free: &dyn Fn(i32) -> bool,
    want: &Best,
    (accessible, others): (i32, i32),
) -> Option<(i32, i32, Range<i32>)> {
    let run = |wheelchairs: i32, companions: i32| {
        let part = Best { quantity: wheelchairs + companions, accessible: wheelchairs, adjacent: true, ..want.clone() };
        window(layout, is_free, &part).map(|found| (wheelchairs, companions, found))
    };
    let accompanied = (1..=accessible).rev().flat_map(|wheelchairs| (1..=others).rev().map(move |n| (wheelchairs, n)));
    let alone = (1..=accessible).rev().map(|wheelchairs| (wheelchairs, 0));
    accompanied.chain(alone).find_map(|(wheelchairs, companions)| run(wheelchairs, companions))
}

/// Two parts near each other in one section, the more even the better.
fn in_two(layout: &Layout, is_free: &dyn Fn(i32) -> bool, want: &Best) -> Option<Vec<i32>> {
    if want.quantity == 0 {
        return Some(Vec::new());
    }
    if let Some(together) = window(layout, is_free, want) {
        return Some(together.collect());
    }
    (1..=want.quantity / 2).rev().find_map(|small| {
        let large = Best { quantity: want.quantity - small, ..want.clone() };
        let first: Vec<i32> = window(layout, is_free, &large)?.collect();
        let section = layout.seat(*first.first()?)?.section;
        let beside = Best { quantity: small, sections: Some(vec![section]), ..want.clone() };
        let left = |seat: i32| is_free(seat) && !first.contains(&seat);
        let second = closest(layout, &left, &beside, centre(layout, &first))?;
        Some(first.iter().copied().chain(second).collect())
    })
}

/// The largest parts that fit, best rows first.
fn in_any(layout: &Layout, is_free: &dyn Fn(i32) -> bool, want: &Best) -> Option<Vec<i32>> {
    let mut chosen: Vec<i32> = Vec::new();
    let mut size = want.quantity;
    while let left @ 1.. = want.quantity - i32::try_from(chosen.len()).ok()? {
        size = size.min(left);
        if size == 0 {
            return None;
        }
        let still_free = |seat: i32| is_free(seat) && !chosen.contains(&seat);
        match window(layout, &still_free, &Best { quantity: size, ..want.clone() }) {
            Some(found) => chosen.extend(found),
            None => size -= 1,
        }
    }
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
    closest(layout, is_free, &want, centre(layout, wanted))
}

/// The middle of some seats.
fn centre(layout: &Layout, seats: &[i32]) -> (f64, f64) {
    let places: Vec<&Seat> = seats.iter().filter_map(|seat| layout.seat(*seat)).collect();
    let count = f64::from(u32::try_from(places.len().max(1)).unwrap_or(1));
    let sum = places.iter().fold((0.0, 0.0), |(x, y), seat| (x + seat.x, y + seat.y));
    (sum.0 / count, sum.1 / count)
}

/// The run that is wanted nearest to a place; one that leaves a seat alone only if there is no other.
fn closest(layout: &Layout, is_free: &dyn Fn(i32) -> bool, want: &Best, (x, y): (f64, f64)) -> Option<Vec<i32>> {
    let in_section = |row: &Range<i32>| {
        let section = layout.seat(row.start).map(|seat| seat.section);
        want.sections.as_ref().is_none_or(|list| section.is_some_and(|section| list.contains(&section)))
    };
    let candidates = rows(layout).filter(in_section).flat_map(|row| runs(layout, row)).flat_map(|run| {
        (run.start..=run.end.saturating_sub(want.quantity)).map(move |start| start..start + want.quantity)
    });
    candidates
        .filter(|candidate| fits(layout, is_free, want, candidate.clone()))
        .map(|candidate| {
            let picked: Vec<i32> = candidate.collect();
            let there = centre(layout, &picked);
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
    fn a_group_that_has_to_be_parted_is_parted_as_people_would() {
        let layout = hall(&["........", "........", "w......w"]);
        let pick = |picture: &str, best: &Best| choose(&layout, &free(picture), best);
        let group = |quantity: i32, accessible: i32| Best { accessible, adjacent: false, ..want(quantity) };
        let three_and_three = pick("..xxx... xx....xx xxxxxxxx", &group(6, 0));
        assert_eq!(three_and_three, Some(vec![5, 6, 7, 11, 12, 13]), "not five or four and somebody alone");
        assert_eq!(pick("..xx..xx xxxxxxxx xxxxxxxx", &group(4, 0)), Some(vec![0, 1, 4, 5]));
        assert_eq!(pick("......xx xxxxxxxx x.xxxxxx", &group(7, 0)), Some(vec![0, 1, 2, 3, 4, 5, 17]), "if it must be");
        let companions = pick("........ ........ ..xxxxx.", &group(4, 1));
        assert_eq!(companions, Some(vec![3, 4, 16, 17]), "one beside the wheelchair, the others together");
        assert_eq!(pick("xxxxxxxx xxxxxxxx ..xxxx..", &group(4, 2)), Some(vec![16, 17, 22, 23]), "each with somebody");
        assert_eq!(pick("xxxxxxxx xxxxxxxx .xxxxx..", &group(2, 2)), Some(vec![16, 23]), "alone if there is no more");
    }

    #[test]
    fn price_zones_and_sections_are_kept_to() {
        let mut layout = hall(&["........", "........"]);
        for seat in layout.drawing.seats.iter_mut().take(8) {
            seat.zone = 1;
        }
        let pick = |best: &Best| choose(&layout, &free("........ ........"), best);
        assert_eq!(pick(&want(2)), Some(vec![3, 4]));
        assert_eq!(pick(&Best { zones: Some(vec![0]), ..want(2) }), Some(vec![11, 12]));
        assert_eq!(pick(&Best { zones: Some(vec![7]), ..want(2) }), None);
        assert_eq!(pick(&Best { sections: Some(vec![5]), ..want(1) }), None);
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
            // By pictures, not by what is tested: a free seat between the choice and something that is not free.
            let next_to = |a: i32, b: i32| a >= 0 && layout.seat(a).is_some_and(|seat| seat.next == Some(b));
            let lonely = |seats: &[i32]| {
                let (first, last) = (seats[0], seats[seats.len() - 1]);
                let left = next_to(first - 1, first) && is_free(first - 1)
                    && !(next_to(first - 2, first - 1) && is_free(first - 2));
                let right = next_to(last, last + 1) && is_free(last + 1)
                    && !(next_to(last + 1, last + 2) && is_free(last + 2));
                left || right
            };
            match choose(&layout, &is_free, &want(quantity)) {
                None => prop_assert!(all.is_empty()),
                Some(seats) => {
                    prop_assert!(all.contains(&seats));
                    prop_assert!(!lonely(&seats) || all.iter().all(|other| lonely(other)));
                }
            }
        }

        #[test]
        fn a_parted_group_has_whom_it_wanted_where_it_may_sit(
            taken in proptest::collection::vec(any::<bool>(), 30), quantity in 1_i32..8, wheelchairs in 0_i32..3,
        ) {
            let layout = hall(&["w....|....w", "..........", "w........."]);
            let is_free = |seat: i32| usize::try_from(seat).ok().and_then(|seat| taken.get(seat)) == Some(&false);
            let accessible = |seat: &i32| layout.seat(*seat).unwrap().accessible;
            let wheelchairs = wheelchairs.min(quantity);
            let free: Vec<i32> = (0..30).filter(|seat| is_free(*seat)).collect();
            let places = i32::try_from(free.iter().filter(|seat| accessible(seat)).count()).unwrap();
            let others = i32::try_from(free.len()).unwrap() - places;
            let want = Best { accessible: wheelchairs, adjacent: false, ..want(quantity) };
            match choose(&layout, &is_free, &want) {
                // Wherever there are enough of each kind, there is a choice.
                None => prop_assert!(places < wheelchairs || others < quantity - wheelchairs),
                Some(seats) => {
                    prop_assert!(seats.windows(2).all(|pair| pair[0] < pair[1]), "each once, ascending");
                    prop_assert!(seats.iter().all(|seat| is_free(*seat)));
                    prop_assert_eq!(seats.len(), usize::try_from(quantity).unwrap());
                    let given = seats.iter().filter(|seat| accessible(seat)).count();
                    prop_assert_eq!(given, usize::try_from(wheelchairs).unwrap(), "never one unasked");
                }
            }
        }
    }
}
