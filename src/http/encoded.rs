//! Bytes in the encodings that clients understand, each made once by the first who asks.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use std::io::Write as _;
use std::sync::OnceLock;

/// One body, in the encodings that were asked for.
#[derive(Debug)]
pub(super) struct Encoded {
    plain: Bytes,
    gzip: OnceLock<Option<Bytes>>,
    brotli: OnceLock<Option<Bytes>>,
    zstd: OnceLock<Option<Bytes>>,
}

/// What a client understands, the smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Zstd,
    Gzip,
    Plain,
}

impl Encoding {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Plain => "identity",
        }
    }

    /// The best that is accepted.
    pub(super) fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let takes = |wanted: Self| {
            accepted.split(',').any(|offer| {
                let mut parts = offer.split(';').map(str::trim);
                let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted.name()));
                let refused = parts.any(|part| {
                    part.strip_prefix(['q', 'Q'])
                        .and_then(|rest| rest.strip_prefix('='))
                        .is_some_and(|q| q.parse() == Ok(0.0_f32))
                });
                named && !refused
            })
        };
        [Self::Brotli, Self::Zstd, Self::Gzip].into_iter().find(|one| takes(*one)).unwrap_or(Self::Plain)
    }
}

impl Encoded {
    pub(super) fn new(plain: Vec<u8>) -> Self {
        Self { plain: plain.into(), gzip: OnceLock::new(), brotli: OnceLock::new(), zstd: OnceLock::new() }
    }

    /// Bytes as they are.
    pub(super) fn len(&self) -> usize {
        self.plain.len()
    }

    /// The answer with these bytes; what can't be encoded is our fault.
    pub(super) fn response(&self, encoding: Encoding, kind: &'static str) -> Response {
        let Some(bytes) = self.bytes(encoding) else { return StatusCode::INTERNAL_SERVER_ERROR.into_response() };
        let mut response = ([(header::CONTENT_TYPE, kind)], bytes).into_response();
        if encoding != Encoding::Plain {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
        response
    }

    /// The bytes, encoded by the first who asks.
    fn bytes(&self, encoding: Encoding) -> Option<Bytes> {
        let plain = &self.plain;
        // The first encodes, the others wait for it.
        let encode = |cell: &OnceLock<Option<Bytes>>, encode: &dyn Fn() -> std::io::Result<Vec<u8>>| {
            cell.get_or_init(|| encode().ok().map(Bytes::from)).clone()
        };
        match encoding {
            Encoding::Plain => Some(plain.clone()),
            Encoding::Gzip => encode(&self.gzip, &|| {
                let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
                encoder.write_all(plain)?;
                encoder.finish()
            }),
            Encoding::Brotli => encode(&self.brotli, &|| {
                let mut encoded = Vec::new();
                let settings = brotli::enc::BrotliEncoderParams { quality: 5, ..Default::default() };
                brotli::BrotliCompress(&mut plain.as_ref(), &mut encoded, &settings)?;
                Ok(encoded)
            }),
            Encoding::Zstd => encode(&self.zstd, &|| zstd::encode_all(plain.as_ref(), 3)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_encoding_that_is_accepted_is_used() {
        let of = |accepted: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            Encoding::of(&headers)
        };
        assert_eq!(of("gzip, deflate, br, zstd"), Encoding::Brotli);
        assert_eq!(of("gzip;q=1.0, br;q=0"), Encoding::Gzip);
        assert_eq!(of("ZSTD"), Encoding::Zstd);
        assert_eq!(of("identity"), Encoding::Plain);
    }
}
