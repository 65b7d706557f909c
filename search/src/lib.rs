//! Full-text search over events with tantivy: what a document is, how it is written, and how it is asked for.
//!
//! Invariants: this crate knows of events only what a document says; nothing of SeaORM, GraphQL or seats. User text
//! never meets a query parser. A document's position only moves forward.

mod collect;
mod document;
mod index;
mod query;
mod text;
mod variants;

pub use collect::{Cursor, Facets, Hit, Hits};
pub use document::{EventDocument, Position, SaleState};
pub use index::{Index, SearchError, Writer};
pub use query::{Filter, Near, Request, SaleStatus, Sort};
pub use text::words;
