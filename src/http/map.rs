//! An event's seat map over plain HTTP, for caches between us and many: statuses packed, prepared once a version
//! and not more than four times a second.
//!
//! Invariants: a tag names a version, a form and an encoding; equal tags are equal bytes of one build. Drafts are not here.

use super::encoded::{Encoded, Encoding};
use super::purge;
use crate::app::App;
use crate::seatmap::{Projection, View};
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use parterre_entity::{EventId, EventState};
use parterre_schema::{Kind, LocalId, geometry_url, node_id, parse_node_id};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// As fresh as statuses are.
const CACHE: HeaderValue = HeaderValue::from_static("public, max-age=1, stale-while-revalidate=2");

/// Maps of the events in use, each as it read a moment ago.
#[derive(Clone, Debug)]
pub struct PackedMaps {
    maps: moka::sync::Cache<EventId, Arc<Mutex<Option<Good>>>>,
}

impl Default for PackedMaps {
    fn default() -> Self {
        Self { maps: moka::sync::Cache::new(256) }
    }
}

/// A map, and when it was last seen to be the newest.
type Good = (Instant, Arc<Packed>);

/// A map that is packed is good for so long, however fast its event changes.
const PACKED_FOR: Duration = Duration::from_millis(250);

#[derive(Debug)]
struct Packed {
    version: String,
    tag: String,
    json: Encoded,
    bits: Encoded,
}

#[derive(Deserialize)]
pub(super) struct Form {
    format: Option<String>,
}

pub(super) async fn get(
    State(app): State<App>,
    Path(id): Path<String>,
    Query(form): Query<Form>,
    headers: HeaderMap,
) -> Response {
    let (bits, form) = match form.format.as_deref() {
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
    // One who has this version has it, in whatever encoding; a 304 names the one that they have.
    let same = format!("\"{}-{form}-", packed.tag);
    let asked = headers.get(header::IF_NONE_MATCH).and_then(|tags| tags.to_str().ok()).unwrap_or_default();
    let known = asked.split(',').map(|tag| tag.trim().trim_start_matches("W/")).find(|tag| tag.starts_with(&same));
    let tag = known.map_or_else(|| format!("{same}{}\"", encoding.name()), str::to_owned);
    let known = known.is_some() || asked.trim() == "*";
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let (form, kind) =
            if bits { (&packed.bits, "application/octet-stream") } else { (&packed.json, "application/json") };
        form.response(encoding, kind)
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
pub(super) const VERSION: header::HeaderName = header::HeaderName::from_static("x-seat-map-version");

impl PackedMaps {
    fn of(&self, map: &Projection) -> Arc<Packed> {
        let slot = self.maps.get_with(map.event, Arc::default);
        // Whoever comes meanwhile waits for the one who packs.
        let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((good_at, packed)) = slot.as_mut()
            && (good_at.elapsed() < PACKED_FOR || packed.version == map.version())
        {
            if good_at.elapsed() >= PACKED_FOR {
                *good_at = Instant::now();
            }
            return Arc::clone(packed);
        }
        let packed = Arc::new(pack(map, &map.view()));
        *slot = Some((Instant::now(), Arc::clone(&packed)));
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
}
