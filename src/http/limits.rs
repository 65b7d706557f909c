//! The first stage of limits: peer address and account, before a body is read.

use super::claims;
use crate::app::App;
use crate::limit::{Bucket, TooOften};
use axum::body::Body;
use axum::extract::{ConnectInfo, FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use ipnet::IpNet;
use parterre_schema::TopLevelCode;
use serde_json::json;
use std::net::{IpAddr, SocketAddr};

/// Who is really asking, as the first stage found out.
#[derive(Clone, Copy, Debug)]
pub(super) struct PeerAddress(pub(super) IpAddr);

impl<S: Send + Sync> FromRequestParts<S> for PeerAddress {
    type Rejection = StatusCode;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, StatusCode> {
        parts.extensions.get().copied().ok_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

pub(super) async fn limit(
    State(app): State<App>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request<Body>,
    next: Next,
) -> Response {
    let address = address_of(peer.ip(), request.headers(), &app.config.trusted_proxies);
    request.extensions_mut().insert(PeerAddress(address));
    let Some(limiter) = &app.limiter else { return next.run(request).await };
    // The address first: whoever asks too often costs no signature.
    let mut taken = limiter.take(&[Bucket::Address(address)]).await;
    if taken.is_ok()
        && let Some(claims) = claims(&app, request.headers()).await
    {
        taken = limiter.take(&[Bucket::Account(claims.sub.clone())]).await;
    }
    match taken {
        Ok(()) => next.run(request).await,
        Err(too_often) => {
            metrics::counter!("parterre_requests_limited_total").increment(1);
            refuse(too_often)
        }
    }
}

/// Who is really asking: the peer, or, if that is a proxy of ours, the last hop before our proxies.
fn address_of(peer: IpAddr, headers: &HeaderMap, proxies: &[IpNet]) -> IpAddr {
    let is_ours = |address: IpAddr| proxies.iter().any(|net| net.contains(&address));
    // Bytes that are no text are somebody's own; the hops of our proxies are read all the same.
    let hops = headers.get_all("x-forwarded-for").iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let hops: Vec<String> =
        hops.flat_map(|value| value.split(',').map(|hop| hop.trim().to_owned()).collect::<Vec<_>>()).collect();
    let mut address = peer.to_canonical();
    for hop in hops.iter().rev() {
        if !is_ours(address) {
            break;
        }
        // What is no address was made up: the proxy that passed it on is as far as we can see.
        let before = hop.parse::<IpAddr>().or_else(|_| hop.parse::<SocketAddr>().map(|hop| hop.ip()));
        let Ok(before) = before else { break };
        address = before.to_canonical();
    }
    address
}

/// Too often: when to try again, for programs that read bodies and for those that read headers.
pub(super) fn refuse(too_often: TooOften) -> Response {
    let retry_after_ms = too_often.retry_after_ms();
    let code = TopLevelCode::RateLimited.as_str();
    let error = json!({
        "message": "too many requests, wait a moment",
        "extensions": { "code": code, "retryAfterMs": retry_after_ms },
    });
    let seconds = HeaderValue::from(retry_after_ms.div_ceil(1_000));
    let body = json!({ "errors": [error] }).to_string();
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/graphql-response+json; charset=utf-8")),
        (header::RETRY_AFTER, seconds),
    ];
    (StatusCode::TOO_MANY_REQUESTS, headers, body).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forwarded_addresses_count_only_from_our_own_proxies_and_from_the_right() {
        let proxies: Vec<IpNet> = vec!["10.0.0.0/8".parse().unwrap()];
        let ask = |peer: &str, forwarded: &str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-forwarded-for", forwarded.parse().unwrap());
            address_of(peer.parse().unwrap(), &headers, &proxies).to_string()
        };
        assert_eq!(ask("192.0.2.1", "198.51.100.1"), "192.0.2.1", "whoever asks us directly says what he likes");
        assert_eq!(ask("10.0.0.1", "198.51.100.1"), "198.51.100.1");
        assert_eq!(ask("10.0.0.1", "203.0.113.9, 198.51.100.1"), "198.51.100.1", "the rest is his own word");
        assert_eq!(ask("10.0.0.1", "198.51.100.1, 10.0.0.2"), "198.51.100.1", "two proxies of ours");
        assert_eq!(ask("10.0.0.1", "nonsense"), "10.0.0.1");
        assert_eq!(ask("::ffff:10.0.0.1", "198.51.100.1:4711"), "198.51.100.1", "a proxy at a socket of both kinds");
    }
}
