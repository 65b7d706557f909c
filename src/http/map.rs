//! An event's seat map over plain HTTP, for caches between us and many: statuses packed, prepared once a version.
//!
//! Invariants: a tag names a version, a form and an encoding; equal tags are equal bytes. Drafts are not here.

use super::purge;
use crate::app::App;
use crate::seatmap::{Projection, View};
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use parterre_entity::{EventId, EventState};
use parterre_schema::{Kind, LocalId, geometry_url, node_id, parse_node_id};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::io::Write as _;
use std::sync::{Arc, OnceLock};

/// As fresh as statuses are.
const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=1, stale-while-revalidate=2");

/// Maps of the events in use, each as its last version reads.
#[derive(Clone, Debug)]
pub struct PackedMaps {
    maps: moka::sync::Cache<EventId, Arc<Packed>>,
}

impl Default for PackedMaps {
    fn default() -> Self {
        Self { maps: moka::sync::Cache::new(256) }
    }
}

#[derive(Debug)]
struct Packed {
    version: String,
    tag: String,
    json: Encoded,
    bits: Encoded,
}

/// One form of a map, in the encodings that were asked for.
#[derive(Debug)]
struct Encoded {
    plain: Bytes,
    gzip: OnceLock<Bytes>,
    brotli: OnceLock<Bytes>,
    zstd: OnceLock<Bytes>,
}

/// What a client understands, the smallest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Encoding {
    Brotli,
    Zstd,
    Gzip,
    Plain,
}

impl Encoding {
    const fn name(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Zstd => "zstd",
            Self::Gzip => "gzip",
            Self::Plain => "identity",
        }
    }

    /// The best that is accepted.
    fn of(headers: &HeaderMap) -> Self {
        let accepted = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let takes = |wanted: Self| {
            accepted.split(',').any(|offer| {
                let mut parts = offer.split(';').map(str::trim);
                let named = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted.name()));
                let refused = parts.any(|part| part.strip_prefix("q=").is_some_and(|q| q.parse() == Ok(0.0_f32)));
                named && !refused
            })
        };
        [Self::Brotli, Self::Zstd, Self::Gzip].into_iter().find(|one| takes(*one)).unwrap_or(Self::Plain)
    }
}

impl Encoded {
    fn new(plain: Vec<u8>) -> Self {
        Self { plain: plain.into(), gzip: OnceLock::new(), brotli: OnceLock::new(), zstd: OnceLock::new() }
    }

    /// The bytes, encoded by the first who asks. What can't be encoded is sent as it is.
    fn bytes(&self, encoding: Encoding) -> Option<Bytes> {
        let plain = &self.plain;
        let encode = |cell: &OnceLock<Bytes>, encode: &dyn Fn() -> std::io::Result<Vec<u8>>| {
            if let Some(done) = cell.get() {
                return Some(done.clone());
            }
            let done = Bytes::from(encode().ok()?);
            Some(cell.get_or_init(|| done).clone())
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

#[derive(Deserialize)]
pub(super) struct Asked {
    format: Option<String>,
}

pub(super) async fn get(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(asked): Query<Asked>,
    headers: HeaderMap,
) -> Response {
    let (bits, form) = match asked.format.as_deref() {
        None | Some("json") => (false, "j"),
        Some("bits") => (true, "b"),
        Some(_) => return (StatusCode::BAD_REQUEST, "format is json or bits").into_response(),
    };
    let id = parse_node_id(&id).filter(|(kind, _)| *kind == Kind::Event).map(|(_, id)| EventId(id));
    let nothing = || (StatusCode::NOT_FOUND, [(header::CACHE_CONTROL, "no-store")]).into_response();
    let away = || (StatusCode::SERVICE_UNAVAILABLE, [(header::RETRY_AFTER, "1")]).into_response();
    let Some(id) = id else { return nothing() };
    match app.services.catalogue.recent(id).await {
        Ok(Some(event)) if event.state != EventState::Draft => {}
        Ok(_) => return nothing(),
        Err(_) => return away(),
    }
    let map = match app.services.seat_maps.of(id).await {
        Ok(Some(map)) => map,
        Ok(None) => return nothing(),
        Err(_) => return away(),
    };
    let packed = app.packed_maps.of(&map);
    let encoding = Encoding::of(&headers);
    let tag = format!("\"{}-{form}-{}\"", packed.tag, encoding.name());
    // One who has this version has it, in whatever encoding.
    let same = format!("\"{}-{form}-", packed.tag);
    let known = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok()).is_some_and(|tags| {
        tags.trim() == "*" || tags.split(',').any(|tag| tag.trim().trim_start_matches("W/").starts_with(&same))
    });
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let form = if bits { &packed.bits } else { &packed.json };
        let Some(bytes) = form.bytes(encoding) else { return away() };
        let kind = if bits { "application/octet-stream" } else { "application/json" };
        let mut response = ([(header::CONTENT_TYPE, kind)], bytes).into_response();
        if encoding != Encoding::Plain {
            response.headers_mut().insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding.name()));
        }
        response
    };
    let told = response.headers_mut();
    told.insert(header::CACHE_CONTROL, CACHE);
    told.insert(header::VARY, HeaderValue::from_static("Accept-Encoding, Origin"));
    let event = node_id(Kind::Event, map.event).0;
    for (name, value) in [(header::ETAG, &tag), (VERSION, &packed.version), (purge::TAGS, &event)] {
        if let Ok(value) = HeaderValue::from_str(value) {
            told.insert(name, value);
        }
    }
    response
}

/// The version of the map, for `afterVersion`: the binary form has no other place for it.
const VERSION: header::HeaderName = header::HeaderName::from_static("x-seat-map-version");

impl PackedMaps {
    fn of(&self, map: &Projection) -> Arc<Packed> {
        let version = map.version();
        if let Some(packed) = self.maps.get(&map.event).filter(|packed| packed.version == version) {
            return packed;
        }
        let packed = Arc::new(pack(map, &map.view()));
        self.maps.insert(map.event, Arc::clone(&packed));
        packed
    }
}

fn pack(map: &Projection, view: &View) -> Packed {
    let layout = map.layout.as_deref();
    let section = |section: &crate::seatmap::SectionView| {
        let name = layout.and_then(|layout| {
            layout.drawing.section_names.get(usize::try_from(section.section).unwrap_or(usize::MAX))
        });
        json!({
            "id": LocalId::Section.encode(map.event, section.section), "name": name, "statuses": section.letters,
        })
    };
    let tier = |(tier, available): &(i16, i32)| json!({ "id": LocalId::Tier.encode(map.event, *tier), "available": available });
    let geometry = layout.map(|layout| geometry_url(layout.id, &layout.geometry_hash));
    let json = json!({
        "eventId": node_id(Kind::Event, map.event), "version": view.version,
        "geometryUrl": geometry,
        "sections": view.sections.iter().map(section).collect::<Vec<_>>(),
        "tiers": view.tiers.iter().map(tier).collect::<Vec<_>>(),
    });
    let tag = hex::encode(Sha256::digest(&view.version).get(..12).unwrap_or_default());
    let bits = view.sections.iter().flat_map(|section| two_bits(&section.letters)).collect();
    Packed {
        version: view.version.clone(),
        tag,
        json: Encoded::new(json.to_string().into_bytes()),
        bits: Encoded::new(bits),
    }
}

/// Two bits a seat, the first in the lowest: 0 available, 1 held, 2 sold, 3 blocked. A section begins with a new byte.
fn two_bits(letters: &str) -> Vec<u8> {
    let pair = |letter: &u8| match letter {
        b'A' => 0,
        b'H' => 1,
        b'S' => 2,
        _ => 3,
    };
    let byte = |four: &[u8]| four.iter().rev().fold(0_u8, |byte, letter| (byte << 2) | pair(letter));
    letters.as_bytes().chunks(4).map(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_seats_are_a_byte_and_the_first_is_the_lowest() {
        assert_eq!(two_bits("AHSBH"), [0b11_10_01_00, 0b01]);
        assert_eq!(two_bits(""), Vec::<u8>::new());
    }

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
