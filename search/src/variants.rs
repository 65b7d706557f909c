//! What a typed word may also stand for: the words of the index that begin with it or differ from it by a typo or two, found
//! in one walk of each segment's dictionary, and the events that have them.

use crate::index::{Fields, SearchError};
use levenshtein_automata::{DFA, Distance, LevenshteinAutomatonBuilder, SINK_STATE};
use std::sync::{Arc, LazyLock};
use tantivy::index::SegmentId;
use tantivy::postings::BlockSegmentPostings;
use tantivy::query::{BitSetDocSet, ConstScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::schema::IndexRecordOption;
use tantivy::{BitSet, DocId, Score, Searcher, SegmentReader, TantivyError, Term};
use tantivy_fst::Automaton;

/// What it is worth that a word begins with the typed one, is at most one typo away, at most two, and begins with it but for
/// one: an event is worth the sum of the ways in which its words resemble what was typed.
const WORTH: [Score; 4] = [0.8, 0.4, 0.4, 0.2];

/// Recognizes the words that a typed one may stand for, in every way at once.
pub(crate) struct Alike {
    word: String,
    /// Whether words that begin with it are.
    begins: bool,
    /// How many typos the whole word may have, and what counts them.
    typos: u8,
    whole: Option<DFA>,
    /// What counts the typos of a beginning.
    beginning: Option<DFA>,
}

static ONE_TYPO: LazyLock<LevenshteinAutomatonBuilder> = LazyLock::new(|| LevenshteinAutomatonBuilder::new(1, true));
static TWO_TYPOS: LazyLock<LevenshteinAutomatonBuilder> = LazyLock::new(|| LevenshteinAutomatonBuilder::new(2, true));

impl Alike {
    /// For the word that is being typed, those that begin with it; for one with typos, those that it may have been meant for.
    /// `None`: only the word itself.
    pub(crate) fn new(word: &str, is_last: bool, is_tolerant: bool) -> Option<Self> {
        let length = word.chars().count();
        let typos = if is_tolerant { typos(word, length) } else { 0 };
        let begins = is_last || (is_tolerant && length >= 2);
        let whole = match typos {
            0 => None,
            1 => Some(ONE_TYPO.build_dfa(word)),
            _ => Some(TWO_TYPOS.build_dfa(word)),
        };
        let beginning = (typos > 0 && is_last && length >= 5).then(|| ONE_TYPO.build_prefix_dfa(word));
        (begins || typos > 0).then(|| Self { word: word.to_owned(), begins, typos, whole, beginning })
    }

    /// The ways in which a word resembles the typed one.
    fn ways(&self, word: &[u8]) -> [bool; 4] {
        let away = |dfa: &Option<DFA>| match dfa.as_ref()?.eval(word) {
            Distance::Exact(distance) => Some(distance),
            Distance::AtLeast(_) => None,
        };
        let typos = away(&self.whole);
        [
            self.begins && word.starts_with(self.word.as_bytes()),
            typos.is_some_and(|typos| typos <= 1),
            self.typos > 1 && typos.is_some(),
            away(&self.beginning).is_some(),
        ]
    }
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

/// How far a walk is: how much of the typed word it has passed, if nothing else, and where the two counts of typos are.
#[derive(Clone, Copy)]
pub(crate) struct Walked {
    typed: Option<usize>,
    whole: u32,
    beginning: u32,
}

impl Automaton for Alike {
    type State = Walked;

    fn start(&self) -> Walked {
        let start = |dfa: &Option<DFA>| dfa.as_ref().map_or(SINK_STATE, DFA::initial_state);
        Walked { typed: self.begins.then_some(0), whole: start(&self.whole), beginning: start(&self.beginning) }
    }

    fn is_match(&self, at: &Walked) -> bool {
        let matches = |dfa: &Option<DFA>, state| {
            dfa.as_ref().is_some_and(|dfa| matches!(dfa.distance(state), Distance::Exact(_)))
        };
        at.typed == Some(self.word.len()) || matches(&self.whole, at.whole) || matches(&self.beginning, at.beginning)
    }

    fn can_match(&self, at: &Walked) -> bool {
        at.typed.is_some() || at.whole != SINK_STATE || at.beginning != SINK_STATE
    }

    fn accept(&self, at: &Walked, byte: u8) -> Walked {
        let step = |dfa: &Option<DFA>, state| dfa.as_ref().map_or(SINK_STATE, |dfa| dfa.transition(state, byte));
        let typed = match at.typed {
            Some(passed) if passed == self.word.len() => Some(passed),
            Some(passed) if self.word.as_bytes().get(passed) == Some(&byte) => Some(passed + 1),
            _ => None,
        };
        Walked { typed, whole: step(&self.whole, at.whole), beginning: step(&self.beginning, at.beginning) }
    }
}

/// The events of a segment that have a word or what it may stand for.
pub(crate) struct Matches {
    /// All of them.
    any: BitSet,
    /// Those that resemble it in a way, and what that is worth.
    ways: Vec<(Score, BitSet)>,
}

impl Matches {
    fn new(segment: &SegmentReader, fields: Fields, alike: &Alike) -> Result<Self, TantivyError> {
        let mut any = BitSet::with_max_value(segment.max_doc());
        let mut ways = WORTH.map(|_| None);
        let index = segment.inverted_index(fields.all)?;
        let mut words = index.terms().search(alike).into_stream()?;
        while words.advance() {
            let resembles = alike.ways(words.key());
            let postings = index.read_block_postings_from_terminfo(words.value(), IndexRecordOption::Basic)?;
            each_block(postings, |docs| {
                put(&mut any, docs);
                for (way, _) in ways.iter_mut().zip(resembles).filter(|(_, resembles)| *resembles) {
                    put(way.get_or_insert_with(|| BitSet::with_max_value(segment.max_doc())), docs);
                }
            });
        }
        let as_typed = Term::from_field_text(fields.any, &alike.word);
        let postings = segment.inverted_index(fields.any)?.read_block_postings(&as_typed, IndexRecordOption::Basic)?;
        if let Some(postings) = postings {
            each_block(postings, |docs| put(&mut any, docs));
        }
        let ways = ways.into_iter().zip(WORTH).filter_map(|(way, worth)| Some((worth, way?))).collect();
        Ok(Self { any, ways })
    }

    /// What an event is worth.
    pub(crate) fn worth(&self, doc: DocId) -> Score {
        self.ways.iter().filter(|(_, events)| events.contains(doc)).map(|(worth, _)| worth).sum()
    }
}

fn each_block(mut postings: BlockSegmentPostings, mut with: impl FnMut(&[DocId])) {
    while !postings.docs().is_empty() {
        with(postings.docs());
        postings.advance();
    }
}

fn put(into: &mut BitSet, docs: &[DocId]) {
    for doc in docs {
        into.insert(*doc);
    }
}

/// The events that have a word or what it may stand for: looked up once, to be matched and to be scored by.
#[derive(Clone)]
pub(crate) struct Variants(Arc<[(SegmentId, Arc<Matches>)]>);

impl Variants {
    pub(crate) fn look_up(searcher: &Searcher, fields: Fields, alike: &Alike) -> Result<Self, SearchError> {
        let segments = searcher.segment_readers().iter();
        let matches =
            segments.map(|segment| Ok((segment.segment_id(), Arc::new(Matches::new(segment, fields, alike)?))));
        Ok(Self(matches.collect::<Result<_, TantivyError>>()?))
    }

    pub(crate) fn of(&self, segment: &SegmentReader) -> Option<Arc<Matches>> {
        self.0.iter().find(|(id, _)| *id == segment.segment_id()).map(|(_, matches)| Arc::clone(matches))
    }
}

impl std::fmt::Debug for Variants {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Variants").finish_non_exhaustive()
    }
}

impl Query for Variants {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for Variants {
    fn scorer(&self, segment: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let any = self.of(segment).map_or_else(|| BitSet::with_max_value(segment.max_doc()), |found| found.any.clone());
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(any), boost)))
    }

    fn explain(&self, segment: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let worth = self.of(segment).map_or(0.0, |found| found.worth(doc));
        Ok(Explanation::new("the ways in which the event's words resemble the typed one", worth))
    }
}

#[cfg(test)]
#[expect(clippy::print_stderr, reason = "tests")]
mod tests {
    use super::*;
    use crate::index::schema;
    use rand::rngs::StdRng;
    use rand::seq::IndexedRandom as _;
    use rand::{Rng as _, SeedableRng as _};
    use std::collections::{BTreeMap, BTreeSet};
    use tantivy::collector::DocSetCollector;
    use tantivy::query::{FuzzyTermQuery, TermQuery};
    use tantivy::{DocAddress, TantivyDocument};

    fn word(random: &mut StdRng) -> String {
        (0..random.random_range(1..=10)).map(|_| *['a', 'b', 'c', 'ж', '1'].choose(random).unwrap()).collect()
    }

    /// What tantivy's own queries find, one for each way, and the sum of what they are worth.
    fn expected(
        searcher: &Searcher,
        fields: Fields,
        word: &str,
        is_last: bool,
        is_tolerant: bool,
    ) -> (BTreeSet<DocAddress>, BTreeMap<DocAddress, Score>) {
        let length = word.chars().count();
        let typos = if is_tolerant { typos(word, length) } else { 0 };
        let all = || Term::from_field_text(fields.all, word);
        let ways = [
            (is_last || (is_tolerant && length >= 2)).then(|| FuzzyTermQuery::new_prefix(all(), 0, true)),
            (typos >= 1).then(|| FuzzyTermQuery::new(all(), 1, true)),
            (typos >= 2).then(|| FuzzyTermQuery::new(all(), 2, true)),
            (typos >= 1 && is_last && length >= 5).then(|| FuzzyTermQuery::new_prefix(all(), 1, true)),
        ];
        let as_typed = TermQuery::new(Term::from_field_text(fields.any, word), IndexRecordOption::Basic);
        let mut any: BTreeSet<_> = searcher.search(&as_typed, &DocSetCollector).unwrap().into_iter().collect();
        let mut worth = BTreeMap::<_, Score>::new();
        for (query, score) in ways.into_iter().zip(WORTH).filter_map(|(query, score)| Some((query?, score))) {
            for doc in searcher.search(&query, &DocSetCollector).unwrap() {
                any.insert(doc);
                *worth.entry(doc).or_default() += score;
            }
        }
        (any, worth)
    }

    #[test]
    fn one_walk_finds_what_a_query_for_each_way_does() {
        let seed = rand::random();
        eprintln!("seed {seed}");
        let mut random = StdRng::seed_from_u64(seed);
        let (schema, fields) = schema();
        let index = tantivy::Index::create_in_ram(schema);
        index.tokenizers().register("words", tantivy::tokenizer::WhitespaceTokenizer::default());
        let mut writer = index.writer_with_num_threads(1, 15_000_000).unwrap();
        for _ in 0..2 {
            for _ in 0..1_000 {
                let (words, described) = (format!("{} {}", word(&mut random), word(&mut random)), word(&mut random));
                let mut doc = TantivyDocument::default();
                doc.add_text(fields.any, format!("{words} {described}"));
                doc.add_text(fields.all, words);
                writer.add_document(doc).unwrap();
            }
            writer.commit().unwrap();
        }
        let searcher = index.reader().unwrap().searcher();
        let mut found = 0;
        for _ in 0..300 {
            let (word, is_last, is_tolerant) = (word(&mut random), random.random(), random.random());
            let Some(alike) = Alike::new(&word, is_last, is_tolerant) else {
                assert!(!is_last && (!is_tolerant || word.chars().count() < 2), "{word}");
                continue;
            };
            let (any, worth) = expected(&searcher, fields, &word, is_last, is_tolerant);
            let variants = Variants::look_up(&searcher, fields, &alike).unwrap();
            let matched: BTreeSet<_> = searcher.search(&variants, &DocSetCollector).unwrap().into_iter().collect();
            assert_eq!(matched, any, "{word}, last: {is_last}, tolerant: {is_tolerant}");
            for doc in &matched {
                let here = variants.of(searcher.segment_reader(doc.segment_ord)).unwrap().worth(doc.doc_id);
                let there = worth.get(doc).copied().unwrap_or(0.0);
                assert!(
                    (here - there).abs() < 1e-6,
                    "{word}, last: {is_last}, tolerant: {is_tolerant}: {here}, not {there}"
                );
            }
            found += matched.len();
        }
        assert!(found > 1_000, "only {found}");
    }
}
