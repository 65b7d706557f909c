//! The provider's own currency table, where it differs from ISO 4217. Pure.
//!
//! Source: Stripe's documentation of supported currencies. Zero-decimal there are BIF, CLP, DJF, GNF, JPY, KMF, KRW,
//! MGA, PYG, RWF, UGX, VND, VUV, XAF, XOF, XPF; ISK and UGX are sent with two decimals that must be 0; three-decimal
//! amounts (BHD, JOD, KWD, OMR, TND) must end in 0.

use parterre_schema::Currency;

const ZERO_DECIMAL: [&str; 15] =
    ["BIF", "CLP", "DJF", "GNF", "JPY", "KMF", "KRW", "MGA", "PYG", "RWF", "VND", "VUV", "XAF", "XOF", "XPF"];
const TWO_ZEROS: [&str; 2] = ["ISK", "UGX"];
const THREE_DECIMAL: [&str; 5] = ["BHD", "JOD", "KWD", "OMR", "TND"];

/// Decimals of the unit in which the provider counts.
fn provider_exponent(code: &str) -> u32 {
    match code {
        _ if ZERO_DECIMAL.contains(&code) => 0,
        _ if THREE_DECIMAL.contains(&code) => 3,
        _ => 2,
    }
}

/// The smallest step of an amount that the provider can express, in our minor units.
#[must_use]
pub fn step_minor(code: &str) -> i64 {
    let ours = Currency::from_code(code).map_or(2, Currency::exponent);
    match provider_exponent(code) {
        3 => 10,
        theirs if ours > theirs => 10_i64.pow(ours - theirs),
        _ => 1,
    }
}

/// Our minor units in the provider's, or none if it can't express the amount.
#[must_use]
pub fn to_provider(code: &str, minor: i64) -> Option<i64> {
    if minor % step_minor(code) != 0 {
        return None;
    }
    let ours = Currency::from_code(code)?.exponent();
    let theirs = provider_exponent(code);
    if theirs >= ours { minor.checked_mul(10_i64.pow(theirs - ours)) } else { Some(minor / 10_i64.pow(ours - theirs)) }
}

/// The provider's units in ours.
#[must_use]
pub fn from_provider(code: &str, amount: i64) -> i64 {
    let ours = Currency::from_code(code).map_or(2, Currency::exponent);
    let theirs = provider_exponent(code);
    if theirs >= ours { amount / 10_i64.pow(theirs - ours) } else { amount.saturating_mul(10_i64.pow(ours - theirs)) }
}

/// The largest amount not above this one that the provider can express.
#[must_use]
pub fn round_down(code: &str, minor: i64) -> i64 {
    let step = if TWO_ZEROS.contains(&code) { step_minor(code).max(1) } else { step_minor(code) };
    minor - minor % step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_go_through_the_providers_own_table() {
        assert_eq!(to_provider("EUR", 1234), Some(1234));
        assert_eq!(to_provider("JPY", 1500), Some(1500));
        assert_eq!(to_provider("KWD", 1230), Some(1230));
        assert_eq!(to_provider("KWD", 1234), None, "three-decimal amounts end in 0");
        assert_eq!(to_provider("ISK", 15), Some(1500), "no decimals in ISO 4217, two at the provider");
        assert_eq!(from_provider("ISK", 1500), 15);
        assert_eq!(to_provider("MGA", 1200), Some(12), "two decimals in ISO 4217, none at the provider");
        assert_eq!(to_provider("MGA", 1250), None);
        assert_eq!(round_down("KWD", 1234), 1230);
        assert_eq!(round_down("MGA", 1299), 1200);
        assert_eq!(round_down("EUR", 1299), 1299);
    }
}
