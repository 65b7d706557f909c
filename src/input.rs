//! Pure checks that every noun's input meets, and the one shape of "this field is wrong".

use parterre_schema::scalars::DateTime;
use std::fmt::Display;

/// An input that can't be accepted: the path of the field from the argument on, and what is wrong with it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", .field.join("."))]
pub struct Invalid {
    /// `["input", "seatIds", "3"]`
    pub field: Vec<String>,
    /// What is wrong and what to do, in lower case.
    pub message: String,
}

impl Invalid {
    /// A finding about `input.<path>`, the path's parts separated by dots.
    pub fn new(path: impl Display, message: impl Into<String>) -> Self {
        let field = std::iter::once("input".to_owned())
            .chain(path.to_string().split('.').filter(|part| !part.is_empty()).map(str::to_owned))
            .collect();
        Self { field, message: message.into() }
    }
}

/// Text as people write it: trimmed, without control characters, 1 to `chars_max` characters.
pub fn text(path: impl Display, value: &str, chars_max: usize) -> Result<String, Invalid> {
    let trimmed = optional_text(&path, Some(value), chars_max)?;
    trimmed.ok_or_else(|| Invalid::new(path, "must not be empty"))
}

/// The same, where nothing, or only blanks, means nothing.
pub fn optional_text(path: impl Display, value: Option<&str>, chars_max: usize) -> Result<Option<String>, Invalid> {
    let Some(value) = value else { return Ok(None) };
    let forbidden = |c: char| c.is_control() && !matches!(c, '\n' | '\r' | '\t');
    if value.chars().any(forbidden) {
        return Err(Invalid::new(path, "must not contain control characters"));
    }
    if value.chars().count() > chars_max {
        return Err(Invalid::new(path, format!("must have at most {chars_max} characters")));
    }
    let trimmed = value.trim();
    Ok((!trimmed.is_empty()).then(|| trimmed.to_owned()))
}

/// A whole number between two bounds, both allowed.
pub fn within(path: impl Display, value: i32, min: i32, max: i32) -> Result<i32, Invalid> {
    if (min..=max).contains(&value) {
        Ok(value)
    } else {
        Err(Invalid::new(path, format!("must be between {min} and {max}")))
    }
}

/// An instant.
pub fn instant(path: impl Display, value: &DateTime) -> Result<chrono::DateTime<chrono::Utc>, Invalid> {
    value.instant().ok_or_else(|| {
        Invalid::new(path, "must be an RFC 3339 date and time with an offset, in the years 1970 to 9999")
    })
}

/// An idempotency key.
pub fn key(value: &str) -> Result<String, Invalid> {
    let checked = text("idempotencyKey", value, parterre_schema::limits::KEY_CHARS_MAX)?;
    if checked == value {
        Ok(checked)
    } else {
        Err(Invalid::new("idempotencyKey", "must not begin or end with blanks"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_trimmed_and_bounded() {
        assert_eq!(text("name", "  Aida ", 10), Ok("Aida".to_owned()));
        assert!(text("name", " ", 10).is_err());
        assert!(text("name", "a\0b", 10).is_err());
        assert!(text("name", &"x".repeat(11), 10).is_err());
        assert_eq!(text("name", &"ß".repeat(10), 10).map(|t| t.chars().count()), Ok(10));
    }

    #[test]
    fn a_path_names_the_field_from_the_argument_on() {
        assert_eq!(Invalid::new("seatIds.3", "x").field, ["input", "seatIds", "3"]);
    }
}
