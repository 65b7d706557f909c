//! One pass over the matches: the page after a cursor, the total, and the facets.

use crate::document::SaleState;
use crate::index::SearchError;
use crate::query::{Near, SaleStatus, Sort};
use crate::variants::{Matches, Variants};
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;
use tantivy::collector::{Collector, SegmentCollector};
use tantivy::columnar::{Column, ColumnValues, StrColumn};
use tantivy::query::{EnableScoring, Query, Scorer, Weight};
use tantivy::{DocId, DocSet as _, Score, Searcher, SegmentOrdinal, SegmentReader, TERMINATED};
use uuid::Uuid;

/// A hit's place in the order: the sort key, ascending, then the event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor {
    /// What is sorted by, as a number that grows downwards.
    pub key: i64,
    /// The event, breaking ties.
    pub id: Uuid,
    /// The words in which typos were looked for, a bit each: the next page asks the same.
    pub tolerant: u16,
}

/// An event that matches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// Its place.
    pub cursor: Cursor,
    /// How well the text matches; 0 without one.
    pub score: f32,
}

/// Counts by value.
pub type Counts = BTreeMap<String, u64>;

/// How many matches have which value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "each field is a facet of the contract, documented there")]
pub struct Facets {
    pub city: Counts,
    pub country: Counts,
    pub category: Counts,
    pub performer: Counts,
    pub venue: Counts,
    pub month: Counts,
    pub sale_status: BTreeMap<SaleStatus, u64>,
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hits {
    /// The page.
    pub hits: Vec<Hit>,
    /// Whether more come after it.
    pub has_more: bool,
    /// All that match.
    pub total: u64,
    /// Counts over all that match.
    pub facets: Facets,
}

/// What to collect.
#[derive(Clone, Debug)]
pub(crate) struct Spec {
    pub(crate) sort: Sort,
    pub(crate) near: Option<Near>,
    pub(crate) after: Option<Cursor>,
    pub(crate) tolerant: u16,
    pub(crate) limit: usize,
    pub(crate) now: i64,
    pub(crate) statuses: Vec<SaleStatus>,
    pub(crate) has_text: bool,
    pub(crate) facets: bool,
}

/// Collects what matches. Its score is the sum of what it has of `exact` and `alike`, looked up for those that count only: a
/// query that scores would do so for every match of every clause.
pub(crate) fn collect(
    searcher: &Searcher,
    query: &dyn Query,
    exact: &[Box<dyn Query>],
    alike: Vec<Variants>,
    spec: Spec,
) -> Result<Hits, SearchError> {
    let scoring = EnableScoring::enabled_from_searcher(searcher);
    let exact = exact.iter().map(|query| query.weight(scoring)).collect::<Result<Vec<_>, _>>()?;
    Ok(searcher.search(query, &Pass { spec: Arc::new(spec), exact, alike })?)
}

struct Pass {
    spec: Arc<Spec>,
    exact: Vec<Box<dyn Weight>>,
    alike: Vec<Variants>,
}

impl Collector for Pass {
    type Fruit = Hits;
    type Child = Segment;

    fn for_segment(&self, _: SegmentOrdinal, segment: &SegmentReader) -> tantivy::Result<Segment> {
        let fast = segment.fast_fields();
        let facet = |name: &str| -> tantivy::Result<Option<FacetColumn>> {
            if !self.spec.facets {
                return Ok(None);
            }
            Ok(fast.str(name)?.map(|column| FacetColumn { counts: vec![0; column.num_terms()], column }))
        };
        let mut exact = Vec::with_capacity(self.exact.len());
        for weight in &self.exact {
            let scorer = weight.scorer(segment, 1.0)?;
            if scorer.doc() != TERMINATED {
                exact.push(scorer);
            }
        }
        Ok(Segment {
            spec: Arc::clone(&self.spec),
            exact,
            alike: self.alike.iter().filter_map(|variants| variants.of(segment)).collect(),
            id_high: fast.u64("id_high")?.first_or_default_col(0),
            id_low: fast.u64("id_low")?.first_or_default_col(0),
            starts_at: fast.i64("starts_at")?.first_or_default_col(0),
            on_sale_at: fast.i64("on_sale_at")?.first_or_default_col(0),
            off_sale_at: fast.i64("off_sale_at")?.first_or_default_col(0),
            price_min: fast.i64("price_min")?.first_or_default_col(0),
            state: fast.u64("state")?.first_or_default_col(0),
            stock: fast.u64("stock")?.first_or_default_col(0),
            popularity: fast.f64("popularity")?.first_or_default_col(0.0),
            latitude: fast.f64("latitude")?,
            longitude: fast.f64("longitude")?,
            facets: [
                facet("city")?,
                facet("country")?,
                facet("category")?,
                facet("performer_ids")?,
                facet("venue_id")?,
                facet("month")?,
            ],
            sale_status: BTreeMap::new(),
            total: 0,
            page: BinaryHeap::new(),
        })
    }

    fn requires_scoring(&self) -> bool {
        false
    }

    fn merge_fruits(&self, segments: Vec<tantivy::Result<Harvest>>) -> tantivy::Result<Hits> {
        let mut all = Hits::default();
        for segment in segments {
            let segment = segment?;
            all.total += segment.total;
            all.hits.extend(segment.hits);
            let into = [
                &mut all.facets.city,
                &mut all.facets.country,
                &mut all.facets.category,
                &mut all.facets.performer,
                &mut all.facets.venue,
                &mut all.facets.month,
            ];
            for (into, counts) in into.into_iter().zip(segment.facets) {
                for (value, count) in counts {
                    *into.entry(value).or_default() += count;
                }
            }
            for (status, count) in segment.sale_status {
                *all.facets.sale_status.entry(status).or_default() += count;
            }
        }
        all.hits.sort_by_key(|hit| hit.cursor);
        all.has_more = all.hits.len() > self.spec.limit;
        all.hits.truncate(self.spec.limit);
        Ok(all)
    }
}

/// Counts by the number of a value.
struct FacetColumn {
    column: StrColumn,
    counts: Vec<u64>,
}

struct Segment {
    spec: Arc<Spec>,
    /// Those that have something in this segment.
    exact: Vec<Box<dyn Scorer>>,
    alike: Vec<Arc<Matches>>,
    id_high: Arc<dyn ColumnValues<u64>>,
    id_low: Arc<dyn ColumnValues<u64>>,
    starts_at: Arc<dyn ColumnValues<i64>>,
    on_sale_at: Arc<dyn ColumnValues<i64>>,
    off_sale_at: Arc<dyn ColumnValues<i64>>,
    price_min: Arc<dyn ColumnValues<i64>>,
    state: Arc<dyn ColumnValues<u64>>,
    stock: Arc<dyn ColumnValues<u64>>,
    popularity: Arc<dyn ColumnValues<f64>>,
    latitude: Column<f64>,
    longitude: Column<f64>,
    facets: [Option<FacetColumn>; 6],
    sale_status: BTreeMap<SaleStatus, u64>,
    total: u64,
    /// The best so far, the worst of them on top.
    page: BinaryHeap<Ranked>,
}

#[derive(Clone, Copy)]
struct Ranked(Hit);

impl PartialEq for Ranked {
    fn eq(&self, other: &Self) -> bool {
        self.0.cursor == other.0.cursor
    }
}

impl Eq for Ranked {}

impl PartialOrd for Ranked {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Ranked {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.cursor.cmp(&other.0.cursor)
    }
}

/// What a segment found.
pub(crate) struct Harvest {
    hits: Vec<Hit>,
    total: u64,
    facets: [Counts; 6],
    sale_status: BTreeMap<SaleStatus, u64>,
}

impl SegmentCollector for Segment {
    type Fruit = tantivy::Result<Harvest>;

    fn collect(&mut self, doc: DocId, _: Score) {
        let status = self.status(doc);
        if !self.spec.statuses.contains(&status) {
            return;
        }
        let metres = match self.spec.near {
            Some(near) => match self.metres(doc, near) {
                Some(metres) if metres <= near.radius_km * 1_000.0 => metres,
                _ => return,
            },
            None => 0.0,
        };
        self.total += 1;
        if self.spec.facets {
            *self.sale_status.entry(status).or_default() += 1;
            for facet in self.facets.iter_mut().flatten() {
                for ord in facet.column.term_ords(doc) {
                    if let Some(count) = usize::try_from(ord).ok().and_then(|ord| facet.counts.get_mut(ord)) {
                        *count += 1;
                    }
                }
            }
        }
        let score = self.score(doc);
        let key = match self.spec.sort {
            Sort::Relevance => relevance_key(score, self.popularity.get_val(doc), self.spec.has_text),
            Sort::Date => self.starts_at.get_val(doc),
            Sort::Price => self.price_min.get_val(doc),
            Sort::Distance => whole(metres),
        };
        // One more than the page, to know whether there are more.
        let is_full = self.page.len() > self.spec.limit;
        if is_full && self.page.peek().is_some_and(|worst| key > worst.0.cursor.key) {
            return;
        }
        let id = Uuid::from_u64_pair(self.id_high.get_val(doc), self.id_low.get_val(doc));
        let hit = Hit { cursor: Cursor { key, id, tolerant: self.spec.tolerant }, score };
        if self.spec.after.is_some_and(|after| hit.cursor <= after) {
            return;
        }
        if !is_full {
            self.page.push(Ranked(hit));
        } else if self.page.peek().is_some_and(|worst| hit.cursor < worst.0.cursor) {
            self.page.pop();
            self.page.push(Ranked(hit));
        }
    }

    fn harvest(self) -> Self::Fruit {
        let mut facets: [Counts; 6] = Default::default();
        for (into, facet) in facets.iter_mut().zip(self.facets) {
            let Some(facet) = facet else { continue };
            let counts: Vec<(u64, u64)> = (0..).zip(facet.counts).filter(|(_, count)| *count > 0).collect();
            let ords: Vec<u64> = counts.iter().map(|(ord, _)| *ord).collect();
            // In the order of the dictionary, so that each of its blocks is unpacked once.
            let mut counts = counts.into_iter();
            facet.column.dictionary().sorted_ords_to_term_cb(&ords, |value| {
                let count = counts.next().map_or(0, |(_, count)| count);
                into.insert(String::from_utf8_lossy(value).into_owned(), count);
            })?;
        }
        Ok(Harvest {
            hits: self.page.into_iter().map(|ranked| ranked.0).collect(),
            total: self.total,
            facets,
            sale_status: self.sale_status,
        })
    }
}

impl Segment {
    /// What a match is worth. Matches come in ascending order, as scorers need them.
    fn score(&mut self, doc: DocId) -> Score {
        let mut score = self.alike.iter().map(|alike| alike.worth(doc)).sum();
        for scorer in &mut self.exact {
            if scorer.doc() < doc {
                scorer.seek(doc);
            }
            if scorer.doc() == doc {
                score += scorer.score();
            }
        }
        score
    }

    fn status(&self, doc: DocId) -> SaleStatus {
        let state = self.state.get_val(doc);
        let now = self.spec.now;
        if state == SaleState::Cancelled.number() {
            SaleStatus::Cancelled
        } else if state == SaleState::Draft.number() {
            SaleStatus::Draft
        } else if self.off_sale_at.get_val(doc) <= now {
            SaleStatus::Ended
        } else if state == SaleState::Paused.number() {
            SaleStatus::Paused
        } else if now < self.on_sale_at.get_val(doc) {
            SaleStatus::Scheduled
        } else if self.stock.get_val(doc) == 0 {
            SaleStatus::SoldOut
        } else {
            SaleStatus::OnSale
        }
    }

    fn metres(&self, doc: DocId, near: Near) -> Option<f64> {
        let (latitude, longitude) = (self.latitude.first(doc)?, self.longitude.first(doc)?);
        Some(haversine_metres((near.latitude, near.longitude), (latitude, longitude)))
    }
}

/// Score, in thousandths, lifted by popularity; without a text, popularity alone. Larger is better, so it is negated.
fn relevance_key(score: f32, popularity: f64, has_text: bool) -> i64 {
    let lift = (1.0 + popularity.max(0.0)).ln();
    let value = if has_text { f64::from(score) * 0.1_f64.mul_add(lift, 1.0) } else { lift };
    -whole(value * 1_000.0)
}

#[expect(
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    reason = "a float becomes the nearest i64, saturating, which is what a sort key needs"
)]
fn whole(value: f64) -> i64 {
    value.round() as i64
}

/// The distance on a sphere of the earth's mean radius, 6,371,009 m (IUGG).
fn haversine_metres(a: (f64, f64), b: (f64, f64)) -> f64 {
    let (lat_a, lat_b) = (a.0.to_radians(), b.0.to_radians());
    let (half_lat, half_lon) = ((lat_b - lat_a) / 2.0, (b.1 - a.1).to_radians() / 2.0);
    let h = (lat_a.cos() * lat_b.cos()).mul_add(half_lon.sin().powi(2), half_lat.sin().powi(2));
    2.0 * 6_371_009.0 * h.sqrt().min(1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_those_on_the_earth() {
        let (berlin, paris) = ((52.52, 13.405), (48.8566, 2.3522));
        let km = haversine_metres(berlin, paris) / 1_000.0;
        assert!((877.0..879.0).contains(&km), "{km}");
        assert!(haversine_metres(berlin, berlin) < 0.001);
    }
}
