//! Ids of requests: the caller's, if there are any that make sense, else new ones.

use crate::telemetry::{Ids, under};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Request, header};
use axum::middleware::Next;
use axum::response::Response;
use uuid::Uuid;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_CHARS_MAX: usize = 64;

pub(super) async fn follow(mut request: Request<Body>, next: Next) -> Response {
    // HTTP/2 names the host in the address.
    if !request.headers().contains_key(header::HOST)
        && let Some(host) = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok())
    {
        request.headers_mut().insert(header::HOST, host);
    }
    let ids = ids(request.headers());
    let told = HeaderValue::from_str(&ids.request);
    let mut response = under(ids, next.run(request)).await;
    if let Ok(told) = told {
        response.headers_mut().insert(REQUEST_ID, told);
    }
    response
}

fn ids(headers: &HeaderMap) -> Ids {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let plain = |id: &&str| {
        (1..=REQUEST_ID_CHARS_MAX).contains(&id.len())
            && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
    };
    let new = || Uuid::now_v7().simple().to_string();
    Ids {
        request: text("x-request-id").filter(plain).map_or_else(new, str::to_owned),
        trace: text("traceparent").and_then(trace).map_or_else(new, str::to_owned),
    }
}

/// The trace id of a W3C `traceparent`.
fn trace(header: &str) -> Option<&str> {
    let id = header.split('-').nth(1)?;
    let good = id.len() == 32 && id.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')) && id.chars().any(|c| c != '0');
    good.then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_the_callers_only_if_they_make_sense() {
        let with = |name: &'static str, value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_str(value).unwrap());
            ids(&headers)
        };
        assert_eq!(with("x-request-id", "abc-1").request, "abc-1");
        assert_ne!(with("x-request-id", "a b").request, "a b");
        assert_ne!(with("x-request-id", &"a".repeat(65)).request.len(), 65);
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(with("traceparent", parent).trace, "4bf92f3577b34da6a3ce929d0e0e4736");
        assert_ne!(with("traceparent", &format!("00-{}-00-01", "0".repeat(32))).trace, "0".repeat(32));
        assert_eq!(with("traceparent", "nonsense").trace.len(), 32);
    }
}
