//! The index on disk: opened or made, written in commits that carry the feed's cursor, read.
//!
//! Generations: an index lives in a folder of its own, and a file named `current` says which one is served. A rebuild
//! writes a new folder and swaps the file, so a reader sees the old index or the new one, never half of one.

use crate::collect::Hits;
use crate::document::{EventDocument, Position};
use crate::query::{Request, run};
use crate::text::words;
use std::path::{Path, PathBuf};
use tantivy::indexer::{LogMergePolicy, MergePolicy, NoMergePolicy};
use tantivy::schema::{
    FAST, Field, INDEXED, IndexRecordOption, STORED, STRING, Schema, TextFieldIndexing, TextOptions,
};
use tantivy::tokenizer::{TextAnalyzer, WhitespaceTokenizer};
use tantivy::{IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, Term};

/// Why a search or a write failed.
#[derive(Debug, thiserror::Error)]
pub enum SearchError {
    /// The index is damaged, or its disk is.
    #[error("the search index failed: {0}")]
    Index(#[from] tantivy::TantivyError),
    /// A file of the index can't be read or written.
    #[error("the search index can't be read or written: {0}")]
    Io(#[from] std::io::Error),
    /// Its cursor can't be read.
    #[error("the search index has no usable cursor")]
    Cursor,
}

/// The fields of a document.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields {
    pub(crate) id: Field,
    pub(crate) any: Field,
    pub(crate) all: Field,
    pub(crate) title: Field,
    pub(crate) performers: Field,
    pub(crate) venue: Field,
    pub(crate) city_words: Field,
    pub(crate) description: Field,
    pub(crate) organization: Field,
    pub(crate) city: Field,
    pub(crate) country: Field,
    pub(crate) category: Field,
    pub(crate) performer_ids: Field,
    pub(crate) venue_id: Field,
    pub(crate) month: Field,
    pub(crate) currency: Field,
    pub(crate) id_high: Field,
    pub(crate) id_low: Field,
    pub(crate) local_day: Field,
    pub(crate) starts_at: Field,
    pub(crate) on_sale_at: Field,
    pub(crate) off_sale_at: Field,
    pub(crate) state: Field,
    pub(crate) stock: Field,
    pub(crate) price_min: Field,
    pub(crate) price_max: Field,
    pub(crate) latitude: Field,
    pub(crate) longitude: Field,
    pub(crate) popularity: Field,
    pub(crate) xid: Field,
    pub(crate) row: Field,
}

pub(crate) fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let text = || {
        let indexing =
            TextFieldIndexing::default().set_tokenizer("words").set_index_option(IndexRecordOption::WithFreqs);
        TextOptions::default().set_indexing_options(indexing)
    };
    // Only whether a word is there: its worth is told by where it is.
    let presence = || {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer("words")
            .set_fieldnorms(false)
            .set_index_option(IndexRecordOption::Basic);
        TextOptions::default().set_indexing_options(indexing)
    };
    let fields = Fields {
        id: schema.add_text_field("id", STRING | STORED),
        any: schema.add_text_field("any", presence()),
        all: schema.add_text_field("all", presence()),
        title: schema.add_text_field("title", text()),
        performers: schema.add_text_field("performers", text()),
        venue: schema.add_text_field("venue", text()),
        city_words: schema.add_text_field("city_words", text()),
        description: schema.add_text_field("description", text()),
        organization: schema.add_text_field("organization", STRING),
        city: schema.add_text_field("city", STRING | FAST),
        country: schema.add_text_field("country", STRING | FAST),
        category: schema.add_text_field("category", STRING | FAST),
        performer_ids: schema.add_text_field("performer_ids", STRING | FAST),
        venue_id: schema.add_text_field("venue_id", STRING | FAST),
        month: schema.add_text_field("month", STRING | FAST),
        currency: schema.add_text_field("currency", STRING | FAST),
        id_high: schema.add_u64_field("id_high", FAST),
        id_low: schema.add_u64_field("id_low", FAST),
        local_day: schema.add_i64_field("local_day", FAST),
        starts_at: schema.add_i64_field("starts_at", FAST),
        on_sale_at: schema.add_i64_field("on_sale_at", FAST),
        off_sale_at: schema.add_i64_field("off_sale_at", FAST),
        state: schema.add_u64_field("state", FAST | INDEXED),
        stock: schema.add_u64_field("stock", FAST),
        price_min: schema.add_i64_field("price_min", FAST),
        price_max: schema.add_i64_field("price_max", FAST),
        latitude: schema.add_f64_field("latitude", FAST),
        longitude: schema.add_f64_field("longitude", FAST),
        popularity: schema.add_f64_field("popularity", FAST),
        xid: schema.add_u64_field("xid", FAST),
        row: schema.add_i64_field("row", FAST),
    };
    (schema.build(), fields)
}

/// An open index.
#[derive(Clone)]
pub struct Index {
    inner: tantivy::Index,
    reader: IndexReader,
    fields: Fields,
    generation: String,
}

impl std::fmt::Debug for Index {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Index").field("generation", &self.generation).finish_non_exhaustive()
    }
}

const CURRENT: &str = "current";

impl Index {
    /// The generation that is served from a folder, if there is one.
    #[must_use]
    pub fn current_generation(root: &Path) -> Option<String> {
        let name = std::fs::read_to_string(root.join(CURRENT)).ok()?;
        Some(name.trim().to_owned()).filter(|name| !name.is_empty())
    }

    /// Opens what is served from a folder. `None`: nothing is yet, or another version of this crate wrote it, with other
    /// fields.
    pub fn open(root: &Path) -> Result<Option<Self>, SearchError> {
        let Some(generation) = Self::current_generation(root) else { return Ok(None) };
        let inner = tantivy::Index::open_in_dir(root.join(&generation))?;
        if inner.schema() != schema().0 {
            return Ok(None);
        }
        Self::with(inner, generation).map(Some)
    }

    /// Makes an empty index in a new folder; [`Self::serve`] makes it the one that is served.
    pub fn create(root: &Path) -> Result<Self, SearchError> {
        let generation = format!("index-{}", uuid::Uuid::now_v7().simple());
        let folder = root.join(&generation);
        std::fs::create_dir_all(&folder)?;
        let inner = tantivy::Index::create_in_dir(&folder, schema().0)?;
        Self::with(inner, generation)
    }

    fn with(inner: tantivy::Index, generation: String) -> Result<Self, SearchError> {
        inner.tokenizers().register("words", TextAnalyzer::builder(WhitespaceTokenizer::default()).build());
        let reader = inner.reader_builder().reload_policy(ReloadPolicy::Manual).try_into()?;
        let fields = schema().1;
        Ok(Self { inner, reader, fields, generation })
    }

    /// The folder's name.
    #[must_use]
    pub fn generation(&self) -> &str {
        &self.generation
    }

    /// Makes this the one that is served, atomically, and removes the others.
    pub fn serve(&self, root: &Path) -> Result<(), SearchError> {
        let next = root.join("current.next");
        std::fs::write(&next, &self.generation)?;
        std::fs::rename(&next, root.join(CURRENT))?;
        for entry in std::fs::read_dir(root)? {
            let path: PathBuf = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.starts_with("index-") && name != self.generation {
                // Whoever still reads it has its files open.
                std::fs::remove_dir_all(&path).ok();
            }
        }
        Ok(())
    }

    /// The feed position that the last commit reflects.
    pub fn cursor(&self) -> Result<Option<String>, SearchError> {
        Ok(self.inner.load_metas()?.payload)
    }

    /// Opens the one writer. It merges segments as they come: each has a dictionary of its own, which a search with typos
    /// walks, and keeps what was deleted.
    pub fn writer(&self) -> Result<Writer, SearchError> {
        let mut policy = LogMergePolicy::default();
        policy.set_min_num_segments(4);
        policy.set_del_docs_ratio_before_merge(0.3);
        self.writer_with(Box::new(policy))
    }

    /// Opens the one writer, for building the whole index: nothing is merged before [`Writer::unite`].
    pub fn builder(&self) -> Result<Writer, SearchError> {
        self.writer_with(Box::new(NoMergePolicy))
    }

    fn writer_with(&self, policy: Box<dyn MergePolicy>) -> Result<Writer, SearchError> {
        let inner = self.inner.writer_with_num_threads(1, 64 * 1024 * 1024)?;
        inner.set_merge_policy(policy);
        Ok(Writer { inner, reader: self.reader.clone(), fields: self.fields })
    }

    /// How many events are in it.
    #[must_use]
    pub fn len(&self) -> u64 {
        self.reader.searcher().num_docs()
    }

    /// How many segments it is in.
    #[must_use]
    pub fn segments(&self) -> usize {
        self.reader.searcher().segment_readers().len()
    }

    /// Whether it has no events.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Runs a search.
    pub fn search(&self, request: &Request) -> Result<Hits, SearchError> {
        run(&self.reader.searcher(), self.fields, request)
    }

    /// The position that an event's document reflects.
    pub fn position_of(&self, event: uuid::Uuid) -> Result<Option<Position>, SearchError> {
        let searcher = self.reader.searcher();
        let term = Term::from_field_text(self.fields.id, &event.simple().to_string());
        let query = tantivy::query::TermQuery::new(term, IndexRecordOption::Basic);
        let found = searcher.search(&query, &tantivy::collector::DocSetCollector)?;
        let Some(address) = found.into_iter().next() else { return Ok(None) };
        let Some(segment) = searcher.segment_readers().get(usize::try_from(address.segment_ord).unwrap_or(usize::MAX))
        else {
            return Ok(None);
        };
        let xid = segment.fast_fields().u64("xid")?.first(address.doc_id).unwrap_or(0);
        let id = segment.fast_fields().i64("row")?.first(address.doc_id).unwrap_or(0);
        Ok(Some(Position { xid, id }))
    }
}

/// The one writer of an index.
pub struct Writer {
    inner: IndexWriter,
    reader: IndexReader,
    fields: Fields,
}

impl std::fmt::Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl Writer {
    /// Puts an event in, in place of what was known of it.
    pub fn put(&self, event: &EventDocument) -> Result<(), SearchError> {
        let id = event.id.simple().to_string();
        self.inner.delete_term(Term::from_field_text(self.fields.id, &id));
        self.inner.add_document(self.document(event, id))?;
        Ok(())
    }

    /// Puts an event in that is known not to be there yet: for rebuilding.
    pub fn add(&self, event: &EventDocument) -> Result<(), SearchError> {
        let id = event.id.simple().to_string();
        self.inner.add_document(self.document(event, id))?;
        Ok(())
    }

    /// Makes what was put in visible and lasting, together with the feed's cursor.
    pub fn commit(&mut self, cursor: &str) -> Result<(), SearchError> {
        let mut commit = self.inner.prepare_commit()?;
        commit.set_payload(cursor);
        commit.commit()?;
        self.reader.reload()?;
        Ok(())
    }

    /// Merges all that was committed into one segment. Over a million events, searches with typos are seven times as fast in
    /// one as in eleven.
    pub fn unite(&mut self) -> Result<(), SearchError> {
        let segments = self.inner.index().searchable_segment_ids()?;
        if segments.len() > 1 {
            self.inner.merge(&segments).wait()?;
            self.reader.reload()?;
        }
        Ok(())
    }

    fn document(&self, event: &EventDocument, id: String) -> TantivyDocument {
        let f = self.fields;
        let folded = |text: &str| words(text).join(" ");
        let category = event.category.as_deref().unwrap_or_default();
        let title = folded(&event.title);
        let performers = folded(&event.performers.join(" "));
        let (venue, city) = (folded(&event.venue), folded(&event.city));
        let description = folded(&event.description);
        let all = [title.as_str(), &performers, &venue, &city, &folded(category)].join(" ");
        let mut doc = TantivyDocument::default();
        doc.add_text(f.id, id);
        doc.add_text(f.any, [all.as_str(), &description].join(" "));
        doc.add_text(f.all, all);
        doc.add_text(f.title, title);
        doc.add_text(f.performers, performers);
        doc.add_text(f.venue, venue);
        doc.add_text(f.city_words, city);
        doc.add_text(f.description, description);
        doc.add_text(f.organization, event.organization.simple().to_string());
        doc.add_text(f.city, &event.city);
        doc.add_text(f.country, &event.country_code);
        if let Some(category) = &event.category {
            doc.add_text(f.category, category);
        }
        for performer in &event.performer_ids {
            doc.add_text(f.performer_ids, performer);
        }
        doc.add_text(f.venue_id, &event.venue_id);
        doc.add_text(f.month, &event.month);
        doc.add_text(f.currency, &event.currency);
        let (high, low) = event.id.as_u64_pair();
        doc.add_u64(f.id_high, high);
        doc.add_u64(f.id_low, low);
        doc.add_i64(f.local_day, event.local_day);
        doc.add_i64(f.starts_at, event.starts_at);
        doc.add_i64(f.on_sale_at, event.on_sale_at);
        doc.add_i64(f.off_sale_at, event.off_sale_at);
        doc.add_u64(f.state, event.state.number());
        doc.add_u64(f.stock, u64::from(event.has_stock));
        doc.add_i64(f.price_min, event.price_min);
        doc.add_i64(f.price_max, event.price_max);
        if let Some((latitude, longitude)) = event.place {
            doc.add_f64(f.latitude, latitude);
            doc.add_f64(f.longitude, longitude);
        }
        doc.add_f64(f.popularity, event.popularity);
        doc.add_u64(f.xid, event.position.xid);
        doc.add_i64(f.row, event.position.id);
        doc
    }
}
