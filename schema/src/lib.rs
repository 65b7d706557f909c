//! The words of the client contract: ids, scalars, enums, inputs, error codes and limits.
//!
//! Invariant: words only. Nothing here knows of the database, of HTTP or of how a rule is decided; `schema.graphql`
//! beside this crate is the contract as exported by the server, and a test compares the two.

pub mod enums;
pub mod errors;
pub mod ids;
pub mod inputs;
pub mod limits;
pub mod money;
pub mod scalars;

pub use enums::*;
pub use errors::{TopLevelCode, UserErrorCode};
pub use ids::{Kind, LocalId, geometry_url, node_id, parse_node_id};
pub use inputs::*;
pub use money::Currency;
pub use scalars::*;
