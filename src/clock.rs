//! The one place that asks the machine for the time. Claims are judged by the database's clock instead.

use chrono::{DateTime, Utc};

/// The wall clock, for tokens, display and back-off: never for who owns a seat.
#[must_use]
#[expect(clippy::disallowed_methods, reason = "this is the clock")]
pub fn now() -> DateTime<Utc> {
    Utc::now()
}
