//! Reports of the payment provider: the signature over the raw bytes is checked, the report is saved, then acknowledged.
//!
//! Source: the provider's documented scheme, `Stripe-Signature: t=<unix>,v1=<hex>`, HMAC-SHA256 over `<t>.<body>`.

use super::read_bytes;
use crate::app::App;
use crate::booking::BookingError;
use crate::config::Secret;
use crate::telemetry::carry;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use hmac::{Hmac, KeyInit, Mac};
use sea_orm::DbErr;
use sha2::Sha256;
use subtle::ConstantTimeEq;

const BODY_MAX: usize = 256 * 1024;
/// How old or early a signature may be.
const TOLERANCE_SECONDS: u64 = 300;

pub(super) async fn receive(State(app): State<App>, headers: HeaderMap, body: Body) -> StatusCode {
    let body = match read_bytes(body, BODY_MAX).await {
        Ok(body) => body,
        Err(status) => return status,
    };
    let signature = headers.get("stripe-signature").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !is_signed(&app.config.stripe_webhook_secrets, signature, &body, crate::clock::now().timestamp()) {
        metrics::counter!("parterre_webhooks_refused_total").increment(1);
        return StatusCode::BAD_REQUEST;
    }
    let Ok(payload) = serde_json::from_slice::<serde_json::Value>(&body) else { return StatusCode::BAD_REQUEST };
    let Some(id) = payload.get("id").and_then(serde_json::Value::as_str).map(str::to_owned) else {
        return StatusCode::BAD_REQUEST;
    };
    let bookings = app.services.bookings.clone();
    // In a task of its own: a provider who hangs up does not cancel it half way.
    let saved = app.tasks.spawn(carry(async move { bookings.save_webhook(&id, payload).await }));
    let saved = match saved.await {
        Ok(saved) => saved,
        Err(error) => Err(BookingError::Database(DbErr::Custom(error.to_string()))),
    };
    match saved {
        Ok(new) => {
            if !new {
                metrics::counter!("parterre_webhooks_duplicate_total").increment(1);
            }
            app.webhook_wake.wake();
            StatusCode::OK
        }
        Err(error) => {
            tracing::warn!(%error, "a webhook could not be saved, the provider will send it again");
            StatusCode::SERVICE_UNAVAILABLE
        }
    }
}

/// Whether one of the active secrets signed these bytes at a time near now. Constant time in the signature.
fn is_signed(secrets: &[Secret], header: &str, body: &[u8], now: i64) -> bool {
    let part = |name: &'static str| {
        header.split(',').filter_map(move |part| part.trim().strip_prefix(name)?.strip_prefix('='))
    };
    let Some(at) = part("t").next().and_then(|text| text.parse::<i64>().ok()) else { return false };
    if now.abs_diff(at) > TOLERANCE_SECONDS {
        return false;
    }
    secrets.iter().any(|secret| {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.expose().as_bytes()) else { return false };
        mac.update(format!("{at}.").as_bytes());
        mac.update(body);
        let expected = mac.finalize().into_bytes();
        part("v1").filter_map(|text| hex::decode(text).ok()).any(|given| bool::from(given.ct_eq(&expected)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fresh_signature_of_an_active_secret_over_these_bytes_counts() {
        let secrets = [Secret::new("old"), Secret::new("new")];
        let sign = |secret: &str, at: i64, body: &str| {
            let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).unwrap();
            mac.update(format!("{at}.{body}").as_bytes());
            format!("t={at},v1={}", hex::encode(mac.finalize().into_bytes()))
        };
        assert!(is_signed(&secrets, &sign("new", 1_000, "{}"), b"{}", 1_000));
        assert!(is_signed(&secrets, &sign("old", 1_000, "{}"), b"{}", 1_299));
        assert!(!is_signed(&secrets, &sign("new", 1_000, "{}"), b"{}", 1_301), "stale");
        assert!(!is_signed(&secrets, &sign("new", 1_000, "{}"), b"{ }", 1_000), "other bytes");
        assert!(!is_signed(&secrets, &sign("other", 1_000, "{}"), b"{}", 1_000), "wrong secret");
        assert!(!is_signed(&secrets, "", b"{}", 1_000));
        assert!(!is_signed(&secrets, "t=1000,v1=", b"{}", 1_000));
        assert!(!is_signed(&secrets, &format!("t={},v1=00", i64::MIN), b"{}", 1_000));
        assert!(!is_signed(&secrets, "t=x,v1=00", b"{}", 1_000));
    }
}
