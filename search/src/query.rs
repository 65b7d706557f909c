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

pub(crate) fn run(searcher: &Searcher, fields: Fields, request: &Request) -> Result<Hits, SearchError> {
    let spec = Spec {
        sort: request.sort,
        near: request.filter.near,
        after: request.after,
        limit: request.limit,
        now: request.now,
        statuses: request.filter.sale_status.clone().unwrap_or_else(|| SaleStatus::SHOWN.to_vec()),
        has_text: !words(&request.text).is_empty(),
        facets: request.facets,
    };
    collect(searcher, &*tree(fields, request), spec)
}

/// Words of a text that are looked for; more say nothing more.
const WORDS_MAX: usize = 12;

fn tree(fields: Fields, request: &Request) -> Box<dyn Query> {
    let mut must: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    let looked_for = words(&request.text);
    let count = looked_for.len().min(WORDS_MAX);
    for (index, word) in looked_for.into_iter().take(WORDS_MAX).enumerate() {
        must.push((Occur::Must, word_query(fields, &word, index + 1 == count)));
    }
    if must.is_empty() {
        must.push((Occur::Must, Box::new(AllQuery)));
    }
    let filter = &request.filter;
    let lists = [
        (fields.city, &filter.cities),
        (fields.country, &filter.country_codes),
        (fields.category, &filter.categories),
        (fields.venue_id, &filter.venue_ids),
        (fields.performer_ids, &filter.performer_ids),
    ];
    for (field, values) in lists {
        if !values.is_empty() {
            let terms = values.iter().map(|value| Term::from_field_text(field, value));
            must.push((Occur::Must, silent(Box::new(TermSetQuery::new(terms)))));
        }
    }
    if let Some(currency) = &filter.currency {
        must.push((Occur::Must, silent(exact(fields.currency, currency))));
    }
    must.extend(range(fields.local_day, filter.day_from, filter.day_to));
    // Something in the event costs at least the minimum, something at most the maximum.
    must.extend(range(fields.price_max, filter.price_min, None));
    must.extend(range(fields.price_min, None, filter.price_max));
    must.push((Occur::Must, silent(visible(fields, request.drafts_of))));
    Box::new(BooleanQuery::new(must))
}

/// Everything but drafts; of those, only the organization's own.
fn visible(fields: Fields, drafts_of: Option<uuid::Uuid>) -> Box<dyn Query> {
    let is_draft = || -> Box<dyn Query> {
        Box::new(TermQuery::new(Term::from_field_u64(fields.state, 0), IndexRecordOption::Basic))
    };
    let public: Box<dyn Query> =
        Box::new(BooleanQuery::new(vec![(Occur::Must, Box::new(AllQuery)), (Occur::MustNot, is_draft())]));
    match drafts_of {
        None => public,
        Some(organization) => {
            let own = exact(fields.organization, &organization.simple().to_string());
            let own_drafts: Box<dyn Query> =
                Box::new(BooleanQuery::new(vec![(Occur::Must, is_draft()), (Occur::Must, own)]));
            Box::new(BooleanQuery::new(vec![(Occur::Should, public), (Occur::Should, own_drafts)]))
        }
    }
}

fn exact(field: Field, text: &str) -> Box<dyn Query> {
    Box::new(TermQuery::new(Term::from_field_text(field, text), IndexRecordOption::Basic))
}

/// A clause that must hold and says nothing about relevance.
fn silent(query: Box<dyn Query>) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(query, 0.0))
}

fn range(field: Field, from: Option<i64>, to: Option<i64>) -> Option<(Occur, Box<dyn Query>)> {
    if from.is_none() && to.is_none() {
        return None;
    }
    let bound = |value: Option<i64>| {
        value.map_or(Bound::Unbounded, |value| Bound::Included(Term::from_field_i64(field, value)))
    };
    let query: Box<dyn Query> = Box::new(RangeQuery::new(bound(from), bound(to)));
    Some((Occur::Must, silent(query)))
}

/// A word: as written in a field that matters, as the beginning of a word, or with a typo or two.
fn word_query(fields: Fields, word: &str, is_last: bool) -> Box<dyn Query> {
    let weights = [
        (fields.title, 3.0),
        (fields.performers, 3.0),
        (fields.venue, 1.5),
        (fields.city_words, 1.5),
        (fields.description, 0.3),
    ];
    let mut any: Vec<(Occur, Box<dyn Query>)> = Vec::new();
    for (field, weight) in weights {
        let query = Box::new(TermQuery::new(Term::from_field_text(field, word), IndexRecordOption::WithFreqs));
        any.push((Occur::Should, Box::new(BoostQuery::new(query, weight))));
    }
    let all = || Term::from_field_text(fields.all, word);
    any.push((Occur::Should, exact(fields.all, word)));
    let length = word.chars().count();
    if length >= 2 || is_last {
        let prefix = Box::new(FuzzyTermQuery::new_prefix(all(), 0, true));
        any.push((Occur::Should, Box::new(ConstScoreQuery::new(prefix, 0.8))));
    }
    let typos = typos(word, length);
    if typos > 0 {
        let fuzzy = Box::new(FuzzyTermQuery::new(all(), typos, true));
        any.push((Occur::Should, Box::new(ConstScoreQuery::new(fuzzy, 0.4))));
        if is_last && length >= 5 {
            let fuzzy = Box::new(FuzzyTermQuery::new_prefix(all(), 1, true));
            any.push((Occur::Should, Box::new(ConstScoreQuery::new(fuzzy, 0.2))));
        }
    }
    Box::new(BooleanQuery::new(any))
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
