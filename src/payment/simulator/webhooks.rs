//! Signed webhooks of the simulator, in the provider's scheme: `t=<unix>,v1=<hex hmac-sha256 of "t.body">`.

use super::Simulator;
use super::behaviour::Webhooks;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::{Value, json};
use sha2::Sha256;
use std::time::Duration;

/// Sends a webhook about an object, as the behaviour says. Retries are the provider's matter: three, then it gives up.
pub(super) fn send(simulator: &Simulator, kind: &'static str, object: &Value, webhooks: Webhooks) {
    let (copies, delay) = match webhooks {
        Webhooks::None => return,
        Webhooks::Once => (1, Duration::from_millis(20)),
        Webhooks::Thrice => (3, Duration::ZERO),
        Webhooks::Late => (1, Duration::from_secs(2)),
        Webhooks::Reordered if kind == "payment_intent.succeeded" => (1, Duration::ZERO),
        Webhooks::Reordered => (1, Duration::from_millis(300)),
    };
    let Some(url) = simulator.settings.webhook_url.clone() else { return };
    let (id, created) = simulator.change(|book| (book.id("evt"), book.now_ms() / 1_000));
    let body = json!({ "id": id, "type": kind, "created": created, "data": { "object": object } }).to_string();
    for _ in 0..copies {
        let (simulator, url, body) = (simulator.clone(), url.clone(), body.clone());
        tokio::spawn(async move {
            tokio::time::sleep(delay).await;
            for attempt in 1..=3_u32 {
                let signature = sign(simulator.settings.webhook_secret.expose(), created, &body);
                let request = simulator.client.post(&url).header("Stripe-Signature", signature).body(body.clone());
                if request.send().await.is_ok_and(|response| response.status().is_success()) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(500 * u64::from(attempt))).await;
            }
        });
    }
}

fn sign(secret: &str, at: i64, body: &str) -> String {
    let digest = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
        mac.update(format!("{at}.{body}").as_bytes());
        hex::encode(mac.finalize().into_bytes())
    });
    format!("t={at},v1={}", digest.unwrap_or_default())
}
