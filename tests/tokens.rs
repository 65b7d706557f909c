//! Tokens signed by key pairs: from a file, and from a set that is published and rotated. The keys in `tests/fixtures`
//! were made for these tests and sign nothing else.

use crate::support::{Api, Stage};
use axum::extract::State;
use axum::routing::get;
use axum::{Json, Router};
use jsonwebtoken::jwk::{Jwk, JwkSet};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;

const KEYS: [(&str, Algorithm); 3] =
    [("ed25519", Algorithm::EdDSA), ("p256", Algorithm::ES256), ("rsa", Algorithm::RS256)];

fn file(name: &str) -> PathBuf {
    PathBuf::from("tests/fixtures").join(name)
}

fn private(name: &str) -> EncodingKey {
    let pem = std::fs::read(file(&format!("{name}.pem"))).unwrap();
    match name {
        "ed25519" => EncodingKey::from_ed_pem(&pem).unwrap(),
        "p256" => EncodingKey::from_ec_pem(&pem).unwrap(),
        _ => EncodingKey::from_rsa_pem(&pem).unwrap(),
    }
}

#[expect(clippy::disallowed_methods, reason = "tests live in the present")]
fn claims() -> Value {
    json!({ "sub": "mina", "iss": "parterre", "aud": "parterre", "exp": chrono::Utc::now().timestamp() + 60 })
}

fn token(algorithm: Algorithm, key_id: Option<&str>, key: &EncodingKey) -> String {
    let header = Header { kid: key_id.map(str::to_owned), ..Header::new(algorithm) };
    encode(&header, &claims(), key).unwrap()
}

/// A token signed with a shared secret, made by hand: the library refuses to sign with a public key.
fn shared(key_id: Option<&str>, secret: &[u8]) -> String {
    use base64::Engine as _;
    use hmac::{Hmac, KeyInit, Mac};
    let part = |value: Value| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(value.to_string());
    let signed = format!("{}.{}", part(json!({ "alg": "HS256", "typ": "JWT", "kid": key_id })), part(claims()));
    let mut mac = Hmac::<sha2::Sha256>::new_from_slice(secret).unwrap();
    mac.update(signed.as_bytes());
    let signature = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(mac.finalize().into_bytes());
    format!("{signed}.{signature}")
}

async fn accepts(url: &str, token: String) -> bool {
    let answer = Api::new(url, Some(token)).ask("{ bookings { nodes { id } } }", json!({})).await;
    answer.get("errors").is_none()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_file_fixes_the_algorithm_and_no_other_passes() {
    let stage = Stage::new().await;
    for (name, algorithm) in KEYS {
        let public = file(&format!("{name}.pub.pem"));
        let server = stage.beside(|config| config.jwt_public_key_file = Some(public.clone())).await;
        let url = server.url.clone();
        assert!(accepts(&url, token(algorithm, None, &private(name))).await, "{name}");
        for (other, algorithm) in KEYS.into_iter().filter(|(other, _)| *other != name) {
            assert!(!accepts(&url, token(algorithm, None, &private(other))).await, "{other} where {name} is expected");
        }
        // The public key is no secret: it must not pass as one.
        assert!(!accepts(&url, shared(None, &std::fs::read(&public).unwrap())).await, "{name} as a secret");
        let secret = stage.config.jwt_secret.expose().as_bytes();
        assert!(accepts(&stage.servers[0].url, shared(None, secret)).await, "which the other server takes");
        assert!(!accepts(&url, shared(None, secret)).await, "the development secret");
        server.end().await;
    }
    stage.finish().await;
}

#[derive(Clone, Default)]
struct Provider {
    keys: Arc<Mutex<Vec<Value>>>,
    asked: Arc<AtomicUsize>,
}

fn published(name: &str, algorithm: Algorithm, key_id: &str) -> Value {
    let mut jwk = Jwk::from_encoding_key(&private(name), algorithm).unwrap();
    jwk.common.key_id = Some(key_id.to_owned());
    serde_json::to_value(jwk).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_published_set_is_read_for_a_new_key_and_never_once_a_token() {
    let stage = Stage::new().await;
    let provider = Provider::default();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/keys", listener.local_addr().unwrap());
    let app = Router::new()
        .route(
            "/keys",
            get(|State(provider): State<Provider>| async move {
                provider.asked.fetch_add(1, Ordering::Relaxed);
                Json(json!({ "keys": *provider.keys.lock().unwrap() }))
            }),
        )
        .with_state(provider.clone());
    tokio::spawn(async move { axum::serve(listener, app).await });
    let secret = json!({ "kty": "oct", "kid": "shared", "alg": "HS256", "k": "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0" });
    let first: Vec<Value> = KEYS.iter().map(|(name, algorithm)| published(name, *algorithm, name)).collect();
    *provider.keys.lock().unwrap() = first.into_iter().chain([secret]).collect();
    assert!(serde_json::from_value::<JwkSet>(json!({ "keys": *provider.keys.lock().unwrap() })).is_ok());
    let server = stage.beside(|config| config.jwt_jwks_url = Some(address)).await;
    let url = server.url.clone();
    for (name, algorithm) in KEYS {
        assert!(accepts(&url, token(algorithm, Some(name), &private(name))).await, "{name}");
    }
    assert_eq!(provider.asked.load(Ordering::Relaxed), 1, "read once for all of them");
    let hidden = shared(Some("shared"), b"secret-secret-secret-secret");
    assert!(!accepts(&url, hidden).await, "a published secret is none");
    assert!(!accepts(&url, token(Algorithm::EdDSA, None, &private("ed25519"))).await, "a key id is needed");
    assert!(!accepts(&url, token(Algorithm::ES256, Some("ed25519"), &private("p256"))).await, "another key's id");
    let unknown =
        (0..50).map(|n| accepts(&url, token(Algorithm::EdDSA, Some(["a", "b", "c"][n % 3]), &private("ed25519"))));
    assert!(futures_util::future::join_all(unknown).await.iter().all(|accepted| !accepted));
    assert_eq!(provider.asked.load(Ordering::Relaxed), 1, "not for every key id that somebody makes up");
    // A key that came since is found by one more look, once the last one is a while ago.
    *provider.keys.lock().unwrap() = vec![published("ed25519", Algorithm::EdDSA, "next")];
    crate::support::eventually("the new key counts", || async {
        accepts(&url, token(Algorithm::EdDSA, Some("next"), &private("ed25519"))).await.then_some(())
    })
    .await;
    assert_eq!(provider.asked.load(Ordering::Relaxed), 2);
    assert!(!accepts(&url, token(Algorithm::RS256, Some("rsa"), &private("rsa"))).await, "what was withdrawn is over");
    server.end().await;
    stage.finish().await;
}
