//! Search: texts with typos whose target is known, and texts with filters and sorts, over HTTP. Anchor: PostgreSQL's full
//! text and trigrams with their indexes on the same rows, asked without anything in between.

use super::Options;
use super::client::{Answer, post};
use super::load::{Asks, Pace, Seen, load};
use super::report::{Latency, Report, rate};
use super::world::World;
use crate::db::{Db, Single};
use crate::discovery::Discovery;
use crate::seed;
use crate::sql;
use anyhow::{Context as _, ensure};
use parterre_schema::{Kind, node_id};
use rand::rngs::StdRng;
use rand::seq::{IndexedRandom as _, SliceRandom as _};
use rand::{Rng as _, SeedableRng as _};
use sea_orm::{ConnectionTrait as _, FromQueryResult as _};
use serde_json::{Value, json};
use std::collections::HashSet;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Events in the larger of the two catalogues.
const EVENTS: usize = 1_000_000;
/// Texts with a typo.
const TEXTS: usize = 500;
/// How long the anchor is asked at the most: it is slow, and its median does not need them all.
const ANCHOR_LASTS: Duration = Duration::from_mins(1);
const SEED: u64 = 20_261_201;

/// What somebody typed, and the event they meant.
#[derive(Clone, Debug)]
struct Typed {
    text: String,
    target: Uuid,
}

pub(super) async fn run(options: &Options) -> anyhow::Result<Vec<Report>> {
    if options.percent < 100 {
        return over(options, options.share(EVENTS)).await;
    }
    let mut reports = Box::pin(over(options, EVENTS / 10)).await?;
    reports.extend(Box::pin(over(options, EVENTS)).await?);
    Ok(reports)
}

/// Everything about a catalogue of so many events.
async fn over(options: &Options, events: usize) -> anyhow::Result<Vec<Report>> {
    let mut typed = Vec::new();
    let (mut built, mut united) = (Duration::ZERO, Duration::ZERO);
    let world = World::prepared(async |db: &Db, data: &Path| {
        typed = fill(db, events).await?;
        let begun = Instant::now();
        let discovery = Discovery::open(db.clone(), data);
        discovery.rebuild().await?;
        built = begun.elapsed();
        // What a server does as soon as it serves.
        let begun = Instant::now();
        let index = discovery.index().context("the index that was built is served")?;
        tokio::task::spawn_blocking(move || index.writer()?.unite()).await??;
        united = begun.elapsed();
        Ok(())
    })
    .await?;
    let label = if events >= 1_000_000 { format!("{}M", events / 1_000_000) } else { format!("{}k", events / 1_000) };
    let mut build = Report::new(format!("search-build-{label}"), "documents/s");
    build.rounds.push(rate(u64::try_from(events)?, built));
    build.notes.push(format!(
        "read from PostgreSQL, indexed and served in {:.1} s; merged into one segment while it is served in {:.1} s more",
        built.as_secs_f64(),
        united.as_secs_f64()
    ));

    let asks = Arc::new(Texts::new(&typed));
    load(world.server, (1, Pace::Closed), Duration::from_secs(1), Arc::clone(&asks)).await?;
    let asks = Arc::new(Texts::new(&typed));
    let seen = all(&world, 1, &asks).await?;
    prepare_anchor(&world.db).await?;
    // The default finds far more rows, and is slower: it is compared with the faster one's time, and with both recalls.
    let (fast, thorough) = (anchor(&world.db, &typed, 0.5).await?, anchor(&world.db, &typed, 0.3).await?);
    let mut typos = Report::new(format!("search-typos-{label}"), "ms, p95");
    typos.rounds.push(seen.latency.ms(0.95));
    typos.anchor = Some(("PostgreSQL, p95", fast.latency.ms(0.95)));
    typos.notes.push(format!("recall@10 of all {TEXTS} texts {:.3}", asks.recall(TEXTS)));
    for (threshold, anchor) in [("0.5", fast), ("0.3, its default", thorough)] {
        typos.notes.push(format!(
            "PostgreSQL with a similarity of {threshold}: p50 {:.1}, p95 {:.1} ms; recall@10 of the {} texts that it reached in {ANCHOR_LASTS:?} {:.3}, of the same here {:.3}",
            anchor.latency.ms(0.5),
            anchor.latency.ms(0.95),
            anchor.asked,
            share(anchor.found, anchor.asked),
            asks.recall(anchor.asked)
        ));
    }
    let asks = Arc::new(Texts::new(&typed));
    let together = all(&world, 16, &asks).await?;
    typos.notes.push(format!("{:.0} a second over 16 connections", rate(together.latency.count(), together.took)));
    typos.latency = Some(seen.latency);

    let mut reports = vec![build, typos];
    for (name, query) in [("mix", QUERY), ("facets", FACETS)] {
        let mut mixed = Report::new(format!("search-{name}-{label}"), "ms, p95");
        let asks = Arc::new(Mix { typed: typed.clone(), query, from: AtomicU64::new(0) });
        let mut latency = Latency::new();
        for _ in 0..options.rounds {
            let seen = load(world.server, (1, Pace::Closed), options.round(), Arc::clone(&asks)).await?;
            ensure!(seen.wrong == 0, "{} answers were wrong", seen.wrong);
            mixed.rounds.push(seen.latency.ms(0.95));
            latency.add(&seen.latency);
        }
        mixed.latency = Some(latency);
        mixed.notes.push(format!("{:.0} MB of memory of the server", world.memory_mb()));
        reports.push(mixed);
    }
    world.audit(&mut reports).await?;
    world.end().await?;
    Ok(reports)
}

async fn all(world: &World, connections: u32, asks: &Arc<Texts>) -> anyhow::Result<Seen> {
    let seen = load(world.server, (connections, Pace::Closed), Duration::from_mins(10), Arc::clone(asks)).await?;
    ensure!(seen.wrong == 0, "{} answers were wrong", seen.wrong);
    Ok(seen)
}

const QUERY: &str = "query($query: String, $filter: EventFilter, $sort: EventSort) { searchEvents(query: $query, filter: $filter, sort: $sort, first: 10) { totalCount nodes { id title startsAt } } }";

const FACETS: &str = "query($query: String, $filter: EventFilter, $sort: EventSort) { searchEvents(query: $query, filter: $filter, sort: $sort, first: 10) { totalCount nodes { id title startsAt } facets { field buckets { value count } } } }";

fn request(query: &str, variables: &Value) -> Vec<u8> {
    post("/graphql", None, &json!({ "query": query, "variables": variables }).to_string())
}

/// Each text once.
struct Texts {
    typed: Vec<Typed>,
    /// Which texts had their target among the ten.
    found: Mutex<HashSet<usize>>,
}

impl Texts {
    fn new(typed: &[Typed]) -> Self {
        Self { typed: typed.to_vec(), found: Mutex::default() }
    }

    /// Of the first so many texts.
    fn recall(&self, first: usize) -> f64 {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        share(found.iter().filter(|text| **text < first).count(), first)
    }
}

impl Asks for Texts {
    fn request(&self, n: u64) -> Option<Vec<u8>> {
        let typed = self.typed.get(usize::try_from(n).ok()?)?;
        Some(request(QUERY, &json!({ "query": typed.text })))
    }

    fn is_right(&self, n: u64, answer: &Answer<'_>) -> bool {
        let Ok(answer) = serde_json::from_slice::<Value>(answer.body) else { return false };
        let Some(nodes) = answer.pointer("/data/searchEvents/nodes").and_then(Value::as_array) else { return false };
        let at = usize::try_from(n).unwrap_or(usize::MAX);
        let Some(target) = self.typed.get(at).map(|typed| node_id(Kind::Event, typed.target).0) else { return false };
        if nodes.iter().any(|node| node.get("id").and_then(Value::as_str) == Some(&target)) {
            self.found.lock().unwrap_or_else(PoisonError::into_inner).insert(at);
        }
        true
    }
}

/// Texts with typos, of which some have a filter or another sort, and filters without a text: more of each than are asked in
/// the second for which the server keeps an answer.
struct Mix {
    typed: Vec<Typed>,
    query: &'static str,
    from: AtomicU64,
}

const COUNTRIES: [&str; 6] = ["DE", "FR", "GB", "ES", "US", "JP"];
const CATEGORIES: [&str; 3] = ["Opera", "Concert", "Theatre"];
/// Berlin, Paris, London, Madrid, New York, Tokyo.
const CITIES: [(f64, f64); 6] = [(52.5, 13.4), (48.9, 2.4), (51.5, -0.1), (40.4, -3.7), (40.7, -74.0), (35.7, 139.7)];

impl Asks for Mix {
    fn request(&self, _: u64) -> Option<Vec<u8>> {
        let n = usize::try_from(self.from.fetch_add(1, Ordering::Relaxed)).ok()?;
        let turn = n / 8;
        let typed = self.typed.get(n % self.typed.len())?;
        let first_word = || typed.text.split(' ').next().unwrap_or_default().to_owned();
        let day = crate::clock::now().date_naive() + chrono::Duration::days(i64::try_from(turn % 200).ok()?);
        let week = json!({ "dateFrom": day, "dateTo": day + chrono::Duration::days(7) });
        let (country, category) =
            (COUNTRIES.get(turn % COUNTRIES.len())?, CATEGORIES.get(turn / 200 % CATEGORIES.len())?);
        let (latitude, longitude) = CITIES.get(turn % CITIES.len())?;
        let radius_km = 30 + turn / 200 % 50;
        Some(request(
            self.query,
            &match n % 8 {
                0..=2 => json!({ "query": typed.text }),
                3 => json!({ "query": first_word(), "filter": week }),
                4 => json!({ "query": first_word(), "sort": "DATE" }),
                5 => {
                    json!({ "filter": { "countryCodes": [country], "categories": [category], "dateFrom": day, "dateTo": day }, "sort": "DATE" })
                }
                6 => {
                    json!({ "query": first_word(), "filter": { "currency": "EUR", "priceMax": "40.00" }, "sort": "PRICE" })
                }
                _ => {
                    json!({ "filter": { "near": { "latitude": latitude, "longitude": longitude, "radiusKm": radius_km }, "dateFrom": day, "dateTo": day }, "sort": "DISTANCE" })
                }
            },
        ))
    }

    fn is_right(&self, _: u64, answer: &Answer<'_>) -> bool {
        answer.status == 200 && !answer.contains("\"errors\"")
    }
}

/// Fills the catalogue, as the organizers' mutations would have, and types for some of its events.
async fn fill(db: &Db, events: usize) -> anyhow::Result<Vec<Typed>> {
    let plan = seed::plan(events, (2_400, 11_000))?;
    let mut random = StdRng::seed_from_u64(SEED);
    // References are right by construction; to check four million of them is not what is measured.
    let tx = db.begin("bench_fill").await?;
    tx.execute_unprepared("SET LOCAL session_replication_role = replica; SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0").await?;
    let organization = Uuid::now_v7();
    tx.execute_raw(sql!("INSERT INTO organization (id, name) VALUES ($1, 'Measured')", organization)).await?;
    let venues: Vec<Uuid> = plan.places.iter().map(|_| Uuid::now_v7()).collect();
    tx.execute_raw(sql!(
        "INSERT INTO venue (id, organization_id, name, city, country_code, time_zone, latitude, longitude)
         SELECT id, $2, name, city, country, zone, latitude, longitude
         FROM unnest($1::uuid[], $3::text[], $4::text[], $5::text[], $6::text[], $7::float8[], $8::float8[])
             AS new (id, name, city, country, zone, latitude, longitude)",
        venues.clone(),
        organization,
        plan.places.iter().map(|place| place.name.clone()).collect::<Vec<_>>(),
        plan.places.iter().map(|place| place.city.clone()).collect::<Vec<_>>(),
        plan.places.iter().map(|place| place.country.clone()).collect::<Vec<_>>(),
        plan.places.iter().map(|place| place.time_zone.clone()).collect::<Vec<_>>(),
        plan.places.iter().map(|place| place.at.0).collect::<Vec<_>>(),
        plan.places.iter().map(|place| place.at.1).collect::<Vec<_>>()
    ))
    .await?;
    let performers: Vec<Uuid> = plan.acts.iter().map(|_| Uuid::now_v7()).collect();
    tx.execute_raw(sql!(
        "INSERT INTO performer (id, organization_id, name) SELECT id, $2, name FROM unnest($1::uuid[], $3::text[]) AS new (id, name)",
        performers.clone(),
        organization,
        plan.acts.iter().map(|act| act.name.clone()).collect::<Vec<_>>()
    ))
    .await?;
    let ids: Vec<Uuid> = plan.events.iter().map(|_| Uuid::now_v7()).collect();
    for (ids, entries) in ids.chunks(5_000).zip(plan.events.chunks(5_000)) {
        let of = |places: &[Uuid], index: usize| places.get(index).copied().unwrap_or_default();
        let minor = |entry: &seed::Entry| {
            let factor = if entry.currency == "JPY" { 1.0 } else { 100.0 };
            entry.price.parse::<f64>().unwrap_or(0.0) * factor
        };
        tx.execute_raw(sql!(
            "WITH new AS MATERIALIZED (
                 SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::text[], $7::int[], $8::int[],
                     $9::text[], $10::float8[], $11::int[], $12::float8[])
                     AS new (id, venue, performer, title, description, category, days, on_sale_days, currency, price, capacity, popularity)),
             events AS (
                 INSERT INTO event (id, organization_id, venue_id, slug, title, description, category, starts_at, on_sale_at,
                     off_sale_at, state, inventory_mode, seats_wanted, seats_ready, currency, hold_seconds, max_seats_per_buyer,
                     forbid_single_seats, refund_ppm, resell, popularity)
                 SELECT id, $13, venue, 'e-' || id, title, description, category, now() + make_interval(days => days, hours => 20),
                     now() + make_interval(days => on_sale_days), now() + make_interval(days => days, hours => 19), 'PUBLISHED',
                     'GENERAL_ADMISSION', 0, true, currency, 600, 8, false, 1000000, true, popularity FROM new),
             bills AS (INSERT INTO event_performer (event_id, position, performer_id) SELECT id, 0, performer FROM new),
             tiers AS (INSERT INTO event_tier (event_id, tier_no, name, price_minor, capacity, available)
                 SELECT id, 0, 'Standing', price::bigint, capacity, capacity FROM new)
             INSERT INTO event_counter (event_id, section_no, remaining) SELECT id, -1, capacity FROM new",
            ids.to_vec(),
            entries.iter().map(|entry| of(&venues, entry.place)).collect::<Vec<_>>(),
            entries.iter().map(|entry| of(&performers, entry.act)).collect::<Vec<_>>(),
            entries.iter().map(|entry| entry.title.clone()).collect::<Vec<_>>(),
            entries.iter().map(|entry| entry.description.clone()).collect::<Vec<_>>(),
            entries.iter().map(|entry| entry.category.to_owned()).collect::<Vec<_>>(),
            entries.iter().map(|entry| i32::try_from(entry.days).unwrap_or(0)).collect::<Vec<_>>(),
            entries.iter().map(|entry| i32::try_from(entry.on_sale_days).unwrap_or(0)).collect::<Vec<_>>(),
            entries.iter().map(|entry| entry.currency.to_owned()).collect::<Vec<_>>(),
            entries.iter().map(minor).collect::<Vec<_>>(),
            entries.iter().map(|entry| entry.capacity).collect::<Vec<_>>(),
            entries.iter().map(|entry| entry.popularity).collect::<Vec<_>>(),
            organization
        ))
        .await?;
    }
    tx.commit().await?;
    db.pool().execute_unprepared("ANALYZE").await?;
    let mut typed = Vec::with_capacity(TEXTS);
    while typed.len() < TEXTS {
        let at = random.random_range(0..plan.events.len());
        let (Some(entry), Some(id)) = (plan.events.get(at), ids.get(at)) else { continue };
        if let Some(text) = mistype(&mut random, &entry.title) {
            typed.push(Typed { text, target: *id });
        }
    }
    Ok(typed)
}

/// A title with a typo in one of its longer words, and in every third text in two of them.
fn mistype(random: &mut StdRng, title: &str) -> Option<String> {
    let mut words: Vec<Vec<char>> = title.split_whitespace().map(|word| word.chars().collect()).collect();
    let mut long: Vec<usize> = (0..words.len())
        .filter(|at| words.get(*at).is_some_and(|word| word.len() >= 5 && word.iter().all(|c| c.is_alphabetic())))
        .collect();
    if long.is_empty() || title.chars().count() > 100 {
        return None;
    }
    long.shuffle(random);
    long.truncate(if random.random_bool(1.0 / 3.0) { 2 } else { 1 });
    for at in long {
        let word = words.get_mut(at)?;
        let place = random.random_range(1..word.len() - 1);
        let letter = *['a', 'e', 'i', 'n', 'r', 's', 't'].choose(random)?;
        match random.random_range(0..4) {
            0 => drop(word.remove(place)),
            1 => word.insert(place, letter),
            2 => word.swap(place, place + 1),
            _ => *word.get_mut(place)? = letter,
        }
    }
    Some(words.into_iter().map(String::from_iter).collect::<Vec<_>>().join(" "))
}

/// What the anchor did.
struct Anchor {
    latency: Latency,
    asked: usize,
    found: usize,
}

/// The one text that a document has, with the indexes that people give it.
async fn prepare_anchor(db: &Db) -> anyhow::Result<()> {
    db.pool()
        .execute_unprepared(
            "CREATE EXTENSION IF NOT EXISTS pg_trgm;
             CREATE EXTENSION IF NOT EXISTS unaccent;
             CREATE TABLE anchor_event AS SELECT event.id, lower(unaccent(title)) AS title,
                 to_tsvector('simple', unaccent(title || ' ' || performer.name || ' ' || venue.name || ' ' || city)) AS words
             FROM event JOIN venue ON venue.id = venue_id JOIN event_performer ON event_id = event.id
             JOIN performer ON performer.id = performer_id;
             CREATE INDEX ON anchor_event USING gin (words);
             CREATE INDEX ON anchor_event USING gin (title gin_trgm_ops);
             ANALYZE anchor_event",
        )
        .await?;
    Ok(())
}

/// What people build on PostgreSQL: full text first; if that does not fill the page, the most similar by trigrams.
async fn anchor(db: &Db, typed: &[Typed], similarity: f64) -> anyhow::Result<Anchor> {
    let tx = db.begin("bench_anchor").await?;
    // The planner is free to do as it likes.
    tx.execute_unprepared(&format!(
        "SET LOCAL enable_seqscan = on; SET LOCAL enable_hashjoin = on; SET LOCAL enable_mergejoin = on;
         SET LOCAL plan_cache_mode = auto; SET LOCAL pg_trgm.similarity_threshold = {similarity};
         SET LOCAL statement_timeout = 0; SET LOCAL idle_in_transaction_session_timeout = 0"
    ))
    .await?;
    let mut anchor = Anchor { latency: Latency::new(), asked: 0, found: 0 };
    let begun = Instant::now();
    for typed in typed {
        if begun.elapsed() > ANCHOR_LASTS {
            break;
        }
        let one = Instant::now();
        let mut ids = Single::<Uuid>::find_by_statement(sql!(
            "SELECT id AS value FROM anchor_event, plainto_tsquery('simple', unaccent($1)) AS query
             WHERE words @@ query ORDER BY ts_rank(words, query) DESC LIMIT 10",
            typed.text.clone()
        ))
        .all(&*tx)
        .await?;
        if ids.len() < 10 {
            let similar = Single::<Uuid>::find_by_statement(sql!(
                "SELECT id AS value FROM anchor_event WHERE title % lower(unaccent($1))
                 ORDER BY similarity(title, lower(unaccent($1))) DESC LIMIT 10",
                typed.text.clone()
            ))
            .all(&*tx)
            .await?;
            ids.extend(similar);
        }
        anchor.latency.note(one.elapsed());
        anchor.asked += 1;
        anchor.found += usize::from(ids.iter().take(10).any(|row| row.value == typed.target));
    }
    tx.rollback().await?;
    Ok(anchor)
}

fn share(part: usize, whole: usize) -> f64 {
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    number(part) / number(whole).max(1.0)
}

impl Options {
    /// A share of something's full size, at least one.
    pub(super) fn share(&self, full: usize) -> usize {
        (full * usize::from(self.percent) / 100).max(1)
    }
}
