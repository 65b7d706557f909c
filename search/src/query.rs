//! A search request as a tree of tantivy queries, built by hand: user text never meets a query parser.

use crate::collect::{Cursor, Hits, Spec, collect};
use crate::index::{Fields, SearchError};
use crate::text::words;
use std::ops::Bound;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, FuzzyTermQuery, Occur, Query, RangeQuery, TermQuery,
    TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption};
use tantivy::{Searcher, Term};

/// Where an event's sale stands at the time of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SaleStatus {
    /// Called off.
    Cancelled,
    /// Not published.
    Draft,
    /// The sale is over.
    Ended,
    /// Stopped for now.
    Paused,
    /// Not open yet.
    Scheduled,
    /// Nothing left.
    SoldOut,
    /// Selling.
    OnSale,
}

impl SaleStatus {
    /// All of them, in the order in which the first that applies is told.
    pub const ALL: [Self; 7] =
        [Self::Cancelled, Self::Draft, Self::Ended, Self::Paused, Self::Scheduled, Self::SoldOut, Self::OnSale];

    /// What people see without a filter.
    pub const SHOWN: [Self; 4] = [Self::Paused, Self::Scheduled, Self::SoldOut, Self::OnSale];
}

/// The order of results.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sort {
    /// Best match first; without a text, the most popular.
    Relevance,
    /// Soonest first.
    Date,
    /// Cheapest first.
    Price,
    /// Nearest first.
    Distance,
}

/// A circle on the earth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Near {
    /// Degrees.
    pub latitude: f64,
    /// Degrees.
    pub longitude: f64,
    /// Kilometres.
    pub radius_km: f64,
}

/// What must hold. Values of one list are alternatives.
#[derive(Clone, Debug, Default, PartialEq)]
#[expect(missing_docs, reason = "each field is the contract's filter, documented there")]
pub struct Filter {
    pub cities: Vec<String>,
    pub country_codes: Vec<String>,
    pub categories: Vec<String>,
    pub venue_ids: Vec<String>,
    pub performer_ids: Vec<String>,
    pub day_from: Option<i64>,
    pub day_to: Option<i64>,
    pub sale_status: Option<Vec<SaleStatus>>,
    pub near: Option<Near>,
    pub price_min: Option<i64>,
    pub price_max: Option<i64>,
    pub currency: Option<String>,
}

/// A search.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// What people typed.
    pub text: String,
    /// What must hold.
    pub filter: Filter,
    /// The order.
    pub sort: Sort,
    /// After this hit.
    pub after: Option<Cursor>,
    /// How many hits.
    pub limit: usize,
    /// The time, Unix seconds: sale status is derived from it.
    pub now: i64,
    /// The organization that sees its drafts.
    pub drafts_of: Option<uuid::Uuid>,
    /// Whether to count facets.
    pub facets: bool,
}

/// A word that is looked for.
struct Word {
    text: String,
    is_last: bool,
}

/// Words of a text that are looked for; more say nothing more. Fewer than a cursor has bits.
const WORDS_MAX: usize = 12;
/// Typos are looked for in every word.
const EVERYWHERE: u16 = u16::MAX;

/// Looks for what was typed, with typos only in words that no event has; and only if that finds nothing for typos in every
/// word, since one may have made another word that exists: most people type right, and a word with its variants costs many
/// times the word. Later pages look as the first did, whatever the index has learned since.
pub(crate) fn run(searcher: &Searcher, fields: Fields, request: &Request) -> Result<Hits, SearchError> {
    let words = looked_for(&request.text);
    if let Some(after) = request.after {
        return pass(searcher, fields, request, &words, after.tolerant);
    }
    let hits = pass(searcher, fields, request, &words, unknown(searcher, fields, &words)?)?;
    if hits.total > 0 || words.is_empty() {
        return Ok(hits);
    }
    pass(searcher, fields, request, &words, EVERYWHERE)
}

fn looked_for(text: &str) -> Vec<Word> {
    let mut words = words(text);
    words.truncate(WORDS_MAX);
    let count = words.len();
    words.into_iter().enumerate().map(|(at, text)| Word { text, is_last: at + 1 == count }).collect()
}

/// The words that no event has, a bit each.
fn unknown(searcher: &Searcher, fields: Fields, words: &[Word]) -> Result<u16, SearchError> {
    let mut unknown = 0;
    for (at, word) in words.iter().enumerate() {
        if searcher.doc_freq(&Term::from_field_text(fields.any, &word.text))? == 0 {
            unknown |= 1 << at;
        }
    }
    Ok(unknown)
}

fn pass(
    searcher: &Searcher,
    fields: Fields,
    request: &Request,
    words: &[Word],
    tolerant: u16,
) -> Result<Hits, SearchError> {
    let mut statuses = request.filter.sale_status.clone().unwrap_or_else(|| SaleStatus::SHOWN.to_vec());
    // An organization's own are let through by the query; nobody else sees any.
    statuses.retain(|status| *status != SaleStatus::Draft || request.drafts_of.is_some());
    let spec = Spec {
        sort: request.sort,
        near: request.filter.near,
        after: request.after,
        tolerant,
        limit: request.limit,
        now: request.now,
        statuses,
        has_text: !words.is_empty(),
        facets: request.facets,
    };
    let (query, scores) = tree(fields, request, words, tolerant);
    collect(searcher, &query, &scores, spec)
}

/// What matches, and what makes a match worth something.
fn tree(fields: Fields, request: &Request, words: &[Word], tolerant: u16) -> (BooleanQuery, Vec<Box<dyn Query>>) {
    let (mut must, mut scores) = (Vec::new(), Vec::new());
    for (at, word) in words.iter().enumerate() {
        let variants = variants(fields, word, tolerant >> at & 1 == 1);
        let as_typed = exact(fields.any, &word.text);
        let clause = if variants.is_empty() {
            as_typed
        } else {
            let ways = std::iter::once(as_typed).chain(variants.iter().map(|variant| variant.box_clone()));
            Box::new(BooleanQuery::new(ways.map(|way| (Occur::Should, way)).collect()))
        };
        must.push((Occur::Must, clause));
        if request.sort == Sort::Relevance {
            scores.extend(weighted(fields, &word.text));
            scores.extend(variants);
        }
    }
    must.extend(filters(fields, request));
    if must.is_empty() {
        must.push((Occur::Must, Box::new(AllQuery)));
    }
    (BooleanQuery::new(must), scores)
}

/// What must hold besides the text.
fn filters(fields: Fields, request: &Request) -> Vec<(Occur, Box<dyn Query>)> {
    let mut must: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    let filter = &request.filter;
    let lists = [
        (fields.city, &filter.cities),
        (fields.country, &filter.country_codes),
        (fields.category, &filter.categories),
        (fields.venue_id, &filter.venue_ids),
        (fields.performer_ids, &filter.performer_ids),
    ];
    for (field, values) in lists {
        match values.as_slice() {
            [] => {}
            [value] => must.push((Occur::Must, exact(field, value))),
            values => {
                let terms = values.iter().map(|value| Term::from_field_text(field, value));
                must.push((Occur::Must, Box::new(TermSetQuery::new(terms))));
            }
        }
    }
    if let Some(currency) = &filter.currency {
        must.push((Occur::Must, exact(fields.currency, currency)));
    }
    must.extend(range(fields.local_day, filter.day_from, filter.day_to));
    // Something in the event costs at least the minimum, something at most the maximum.
    must.extend(range(fields.price_max, filter.price_min, None));
    must.extend(range(fields.price_min, None, filter.price_max));
    if let Some(organization) = request.drafts_of {
        must.push((Occur::Must, visible_to(fields, organization)));
    }
    must
}

/// Everything but the drafts of others.
fn visible_to(fields: Fields, organization: uuid::Uuid) -> Box<dyn Query> {
    let is_draft = || -> Box<dyn Query> {
        Box::new(TermQuery::new(Term::from_field_u64(fields.state, 0), IndexRecordOption::Basic))
    };
    let public = BooleanQuery::new(vec![(Occur::Must, Box::new(AllQuery)), (Occur::MustNot, is_draft())]);
    let own = exact(fields.organization, &organization.simple().to_string());
    let own_drafts = BooleanQuery::new(vec![(Occur::Must, is_draft()), (Occur::Must, own)]);
    Box::new(BooleanQuery::new(vec![(Occur::Should, Box::new(public)), (Occur::Should, Box::new(own_drafts))]))
}

fn exact(field: Field, text: &str) -> Box<dyn Query> {
    Box::new(TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::Basic))
}

fn range(field: Field, from: Option<i64>, to: Option<i64>) -> Option<(Occur, Box<dyn Query>)> {
    if from.is_none() && to.is_none() {
        return None;
    }
    let bound = |value: Option<i64>| {
        value.map_or(Bound::Unbounded, |value| Bound::Included(Term::from_field_i64(field, value)))
    };
    let query: Box<dyn Query> = Box::new(RangeQuery::new(bound(from), bound(to)));
    Some((Occur::Must, query))
}

/// What a word is worth where it stands as typed.
fn weighted(fields: Fields, word: &str) -> impl Iterator<Item = Box<dyn Query>> {
    let weights = [
        (fields.title, 3.0),
        (fields.performers, 3.0),
        (fields.venue, 1.5),
        (fields.city_words, 1.5),
        (fields.description, 0.3),
    ];
    weights
        .map(|(field, weight)| -> Box<dyn Query> {
            let query = Box::new(TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs));
            Box::new(BoostQuery::new(query, weight))
        })
        .into_iter()
}

/// What a word may also stand for, each with its worth: the beginning of the word that is being typed, and words that
/// differ by a typo or two.
fn variants(fields: Fields, word: &Word, is_tolerant: bool) -> Vec<Box<dyn Query>> {
    let all = || Term::from_field_text(fields.all, &word.text);
    let worth =
        |query: FuzzyTermQuery, worth| -> Box<dyn Query> { Box::new(ConstScoreQuery::new(Box::new(query), worth)) };
    let length = word.text.chars().count();
    let mut variants = Vec::new();
    if word.is_last || (is_tolerant && length >= 2) {
        variants.push(worth(FuzzyTermQuery::new_prefix(all(), 0, true), 0.8));
    }
    let typos = if is_tolerant { typos(&word.text, length) } else { 0 };
    for distance in 1..=typos {
        variants.push(worth(FuzzyTermQuery::new(all(), distance, true), 0.4));
    }
    if typos > 0 && word.is_last && length >= 5 {
        variants.push(worth(FuzzyTermQuery::new_prefix(all(), 1, true), 0.2));
    }
    variants
}

/// How many typos a word may have: none in a short one or a number, two in a long one.
fn typos(word: &str, length: usize) -> u8 {
    match length {
        _ if word.chars().all(|c| c.is_ascii_digit()) => 0,
        0..=3 => 0,
        4..=7 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What building a query may allocate, so that a change which makes it dearer shows.
    #[test]
    fn building_a_query_allocates_little() {
        let fields = crate::index::fields();
        let text = "sigur ros live in reykjavik";
        let request = Request {
            text: text.into(),
            filter: Filter { cities: vec!["Berlin".into()], day_from: Some(20_000), ..Filter::default() },
            sort: Sort::Relevance,
            after: None,
            limit: 10,
            now: 0,
            drafts_of: None,
            facets: true,
        };
        let words = looked_for(text);
        let plain = allocation_counter::measure(|| drop(tree(fields, &request, &words, 0)));
        let tolerant = allocation_counter::measure(|| drop(tree(fields, &request, &words, EVERYWHERE)));
        assert!(plain.count_total <= 130, "{plain:?}");
        assert!(tolerant.count_total <= 200, "{tolerant:?}");
    }
}
