//! Named points at which a test may end the process, as a kill would, and checks that a control may switch off. Debug
//! builds only: in a release there is nothing here.

/// Ends the process, if `PARTERRE_DIE_AT` names this point.
#[cfg(debug_assertions)]
#[expect(clippy::disallowed_methods, reason = "a test hook is no setting")]
pub fn point(name: &str) {
    static DIE_AT: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    if DIE_AT.get_or_init(|| std::env::var("PARTERRE_DIE_AT").ok()).as_deref() == Some(name) {
        std::process::abort();
    }
}

/// Nothing.
#[cfg(not(debug_assertions))]
pub const fn point(_name: &str) {}

/// Whether a control has switched a check off, to show that the race it guards against is real.
#[cfg(debug_assertions)]
#[must_use]
#[expect(clippy::disallowed_methods, reason = "a test hook is no setting")]
pub fn skips(check: &str) -> bool {
    static SKIP: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    SKIP.get_or_init(|| std::env::var("PARTERRE_SKIP").ok()).as_deref() == Some(check)
}

/// Never.
#[cfg(not(debug_assertions))]
#[must_use]
pub const fn skips(_check: &str) -> bool {
    false
}
