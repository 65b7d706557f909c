//! A search request as a tree of tantivy queries, built by hand: user text never meets a query parser.

use crate::collect::{Cursor, Hits, Spec, collect};
use crate::index::{Fields, SearchError};
use crate::text::words;
use crate::variants::{Alike, Variants};
use std::ops::Bound;
use tantivy::query::{AllQuery, BooleanQuery, BoostQuery, Occur, Query, RangeQuery, TermQuery, TermSetQuery};
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
    let mut variants = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let alike = Alike::new(&word.text, word.is_last, tolerant >> at & 1 == 1);
        variants.push(alike.map(|alike| Variants::look_up(searcher, fields, &alike)).transpose()?);
    }
    let query = tree(fields, request, words, &variants);
    let (mut exact, mut alike) = (Vec::new(), Vec::new());
    if request.sort == Sort::Relevance {
        exact.extend(words.iter().flat_map(|word| weighted(fields, &word.text)));
        alike.extend(variants.into_iter().flatten());
    }
    collect(searcher, &query, &exact, alike, spec)
}

/// What matches.
fn tree(fields: Fields, request: &Request, words: &[Word], variants: &[Option<Variants>]) -> BooleanQuery {
    let mut must = Vec::new();
    for (word, variants) in words.iter().zip(variants) {
        let clause: Box<dyn Query> = match variants {
            Some(variants) => Box::new(variants.clone()),
            None => exact(fields.any, &word.text),
        };
        must.push((Occur::Must, clause));
    }
    must.extend(filters(fields, request));
    if must.is_empty() {
        must.push((Occur::Must, Box::new(AllQuery)));
    }
    BooleanQuery::new(must)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What building a query may allocate, so that a change which makes it dearer shows.
    #[test]
    fn building_a_query_allocates_little() {
        let fields = crate::index::schema().1;
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
        let none = [const { None }; 5];
        let build = || {
            drop(tree(fields, &request, &words, &none));
            drop(words.iter().flat_map(|word| weighted(fields, &word.text)).collect::<Vec<_>>());
        };
        let recognize = || words.iter().for_each(|word| drop(Alike::new(&word.text, word.is_last, true)));
        // What all share is made once.
        build();
        recognize();
        let plain = allocation_counter::measure(build);
        let alike = allocation_counter::measure(recognize);
        assert!(plain.count_total <= 120, "{plain:?}");
        assert!(alike.count_total <= 150, "{alike:?}");
    }
}
