//! The contract's own scalars. Each is text on the wire; a rule judges the text, so a bad date in a mutation is
//! `INVALID_INPUT` with its field instead of a document error.

use async_graphql::{InputValueError, InputValueResult, Scalar, ScalarType, SimpleObject, Value};
use chrono::{SecondsFormat, Utc};

macro_rules! text_scalars {
    ($($(#[doc = $doc:literal])+ $name:ident)*) => {$(
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub String);

        $(#[doc = $doc])+
        #[Scalar]
        impl ScalarType for $name {
            fn parse(value: Value) -> InputValueResult<Self> {
                match value {
                    Value::String(text) => Ok(Self(text)),
                    other => Err(InputValueError::expected_type(other)),
                }
            }

            fn to_value(&self) -> Value {
                Value::String(self.0.clone())
            }
        }

        impl std::ops::Deref for $name {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }
    )*};
}

text_scalars! {
    /// An instant, RFC 3339. Answers are in UTC with milliseconds; an input may carry any offset.
    DateTime
    /// A local calendar date of the venue, `YYYY-MM-DD`.
    Date
    /// An exact decimal number as text: `"125.00"`, `"1500"`, `"1.234"`.
    Decimal
    /// An ISO 4217 currency code: `"EUR"`.
    CurrencyCode
    /// An IANA time zone name: `"Europe/Berlin"`.
    TimeZone
    /// An unsigned 64-bit counter as text. Hand it back as `expectedVersion` to edit what you saw.
    Version
    /// An opaque position in a seat map's history. Compare for equality, hand back as `afterVersion` to resume.
    SeatMapVersion
}

impl From<chrono::DateTime<Utc>> for DateTime {
    fn from(at: chrono::DateTime<Utc>) -> Self {
        Self(at.to_rfc3339_opts(SecondsFormat::Millis, true))
    }
}

impl DateTime {
    /// The instant, if the text is RFC 3339 and in the years 1970 to 9999, where every part of the system can hold it.
    #[must_use]
    pub fn instant(&self) -> Option<chrono::DateTime<Utc>> {
        let at = chrono::DateTime::parse_from_rfc3339(&self.0).ok()?.with_timezone(&Utc);
        ("1970-01-01T00:00:00Z"..="9999-12-31T23:59:59Z")
            .contains(&at.to_rfc3339_opts(SecondsFormat::Secs, true).as_str())
            .then_some(at)
    }
}

impl Date {
    /// The calendar date, if the text is `YYYY-MM-DD`.
    #[must_use]
    pub fn day(&self) -> Option<chrono::NaiveDate> {
        let day = chrono::NaiveDate::parse_from_str(&self.0, "%Y-%m-%d").ok()?;
        (self.0 == day.format("%Y-%m-%d").to_string()).then_some(day)
    }
}

impl From<chrono::NaiveDate> for Date {
    fn from(day: chrono::NaiveDate) -> Self {
        Self(day.format("%Y-%m-%d").to_string())
    }
}

impl From<i64> for Version {
    fn from(version: i64) -> Self {
        Self(version.to_string())
    }
}

impl Version {
    /// The number, if the text is one as the server writes it.
    #[must_use]
    pub fn number(&self) -> Option<i64> {
        let number: u64 = self.0.parse().ok()?;
        // One beyond what the database can hold is a well-formed version that nothing has.
        (number.to_string() == self.0).then(|| i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl TimeZone {
    /// The zone, if the text is an IANA name.
    #[must_use]
    pub fn zone(&self) -> Option<chrono_tz::Tz> {
        self.0.parse().ok()
    }
}

/// An amount of money in one currency.
#[derive(Clone, Debug, PartialEq, Eq, SimpleObject)]
pub struct Money {
    /// Exact, with as many decimals as the currency has.
    pub amount: Decimal,
    /// ISO 4217.
    pub currency: CurrencyCode,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_outside_what_the_system_can_hold_are_refused() {
        let read = |text: &str| DateTime(text.into()).instant().is_some();
        assert!(read("2026-11-30T20:00:00+01:00"));
        assert!(read("2026-11-30T20:00:00.5Z"));
        assert!(!read("1969-12-31T23:59:59Z"));
        assert!(!read("+10000-01-01T00:00:00Z"));
        assert!(!read("2026-02-30T00:00:00Z"));
        assert!(!read("tomorrow"));
        assert!(!read("2026-11-30T20:00:00"), "an instant needs an offset");
    }

    #[test]
    fn a_version_has_one_spelling() {
        assert_eq!(Version("7".into()).number(), Some(7));
        assert_eq!(Version("18446744073709551615".into()).number(), Some(i64::MAX));
        for bad in ["", "07", "+7", "-1", "7.0", "18446744073709551616"] {
            assert_eq!(Version(bad.into()).number(), None, "{bad}");
        }
    }
}
