//! Money is an `i64` of minor units and a currency; this is where its text is read and written, exactly.

use crate::scalars::{CurrencyCode, Decimal, Money};

/// A currency of ISO 4217 and its exponent: how many decimals its minor unit has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Currency {
    currency: iso_currency::Currency,
    exponent: u32,
}

impl Currency {
    /// The currency of an ISO 4217 code that money can be in; `None` for unknown codes and for those without a minor
    /// unit, such as gold.
    #[must_use]
    pub fn from_code(code: &str) -> Option<Self> {
        let currency = iso_currency::Currency::from_code(code)?;
        let exponent = u32::from(currency.exponent()?);
        Some(Self { currency, exponent })
    }

    /// The ISO 4217 code.
    #[must_use]
    pub fn code(self) -> &'static str {
        self.currency.code()
    }

    /// Decimals of the minor unit: 0 for JPY, 2 for EUR, 3 for KWD.
    #[must_use]
    pub const fn exponent(self) -> u32 {
        self.exponent
    }

    /// Minor units as exact text with all of the currency's decimals.
    #[must_use]
    pub fn decimal(self, minor: i64) -> Decimal {
        let sign = if minor < 0 { "-" } else { "" };
        let scale = 10_u64.pow(self.exponent);
        let (whole, rest) = (minor.unsigned_abs() / scale, minor.unsigned_abs() % scale);
        match usize::try_from(self.exponent) {
            Ok(width) if width > 0 => Decimal(format!("{sign}{whole}.{rest:0width$}")),
            _ => Decimal(format!("{sign}{whole}")),
        }
    }

    /// Minor units as the contract's money.
    #[must_use]
    pub fn money(self, minor: i64) -> Money {
        Money { amount: self.decimal(minor), currency: CurrencyCode(self.code().to_owned()) }
    }

    /// Minor units of a non-negative amount, or why it is none.
    pub fn minor(self, amount: &Decimal) -> Result<i64, AmountError> {
        fixed_point(amount, self.exponent)
    }
}

/// Why a text is not an amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmountError {
    /// Not digits with at most one point between them.
    #[error("is not a decimal number")]
    NotANumber,
    /// Less than nothing.
    #[error("is negative")]
    Negative,
    /// `"1.234"` in a currency of two decimals.
    #[error("has too many decimals")]
    TooManyDecimals,
    /// More than the system can add up.
    #[error("is too large")]
    TooLarge,
}

/// No amount above this is accepted, so that sums of any order stay far from overflow.
pub const MAX_MINOR: i64 = 1_000_000_000_000;

/// A non-negative decimal as an integer of `10^-exponent` units, exactly.
pub fn fixed_point(amount: &Decimal, exponent: u32) -> Result<i64, AmountError> {
    let (digits, negative) = match amount.strip_prefix('-') {
        Some(digits) => (digits, true),
        None => (&**amount, false),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let all_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let well_formed = !whole.is_empty() && all_digits(whole) && all_digits(fraction) && !digits.ends_with('.');
    if !well_formed {
        return Err(AmountError::NotANumber);
    }
    let fraction = fraction.trim_end_matches('0');
    let places = u32::try_from(fraction.len()).map_err(|_| AmountError::TooManyDecimals)?;
    let missing = exponent.checked_sub(places).ok_or(AmountError::TooManyDecimals)?;
    let value = format!("{whole}{fraction}")
        .parse::<i64>()
        .ok()
        .and_then(|number| number.checked_mul(10_i64.pow(missing)))
        .filter(|value| *value <= MAX_MINOR)
        .ok_or(AmountError::TooLarge)?;
    if negative && value != 0 { Err(AmountError::Negative) } else { Ok(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minor(code: &str, text: &str) -> Result<i64, AmountError> {
        Currency::from_code(code).unwrap().minor(&Decimal(text.into()))
    }

    #[test]
    fn amounts_are_read_in_the_currencys_own_exponent() {
        assert_eq!(minor("EUR", "125.00"), Ok(12_500));
        assert_eq!(minor("EUR", "125"), Ok(12_500));
        assert_eq!(minor("EUR", "0.1"), Ok(10));
        assert_eq!(minor("EUR", "1.500"), Ok(150), "zeros beyond the exponent say nothing");
        assert_eq!(minor("JPY", "1500"), Ok(1500));
        assert_eq!(minor("JPY", "1500.5"), Err(AmountError::TooManyDecimals));
        assert_eq!(minor("KWD", "1.234"), Ok(1234));
        assert_eq!(minor("EUR", "1.234"), Err(AmountError::TooManyDecimals));
        assert_eq!(minor("EUR", "-1"), Err(AmountError::Negative));
        assert_eq!(minor("EUR", "-0"), Ok(0));
        assert_eq!(minor("EUR", "99999999999999999999"), Err(AmountError::TooLarge));
        for bad in ["", ".", "1.", ".5", "1,50", "1e3", "٣", " 1", "0x1", "1.2.3", "--1", "\0"] {
            assert_eq!(minor("EUR", bad), Err(AmountError::NotANumber), "{bad:?}");
        }
    }

    #[test]
    fn amounts_are_written_with_all_decimals() {
        let write = |code: &str, minor| Currency::from_code(code).unwrap().decimal(minor).0;
        assert_eq!(write("EUR", 12_500), "125.00");
        assert_eq!(write("EUR", 5), "0.05");
        assert_eq!(write("EUR", -5), "-0.05");
        assert_eq!(write("JPY", 1500), "1500");
        assert_eq!(write("KWD", 1234), "1.234");
    }

    #[test]
    fn only_currencies_with_a_minor_unit_exist() {
        assert!(Currency::from_code("EUR").is_some());
        assert!(Currency::from_code("XAU").is_none());
        assert!(Currency::from_code("EURO").is_none());
        assert!(Currency::from_code("eur").is_none());
    }
}
