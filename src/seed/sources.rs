//! The files that demo data is made of, and what is made of them. Deterministic: the same files give the same events.

use anyhow::Context as _;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use std::collections::HashSet;

pub(super) const THEATRE: &str = include_str!("data/theatre.plan.json");
pub(super) const STADIUM: &str = include_str!("data/stadium.plan.json");
pub(super) const HALL: &str = include_str!("data/hall.plan.json");
const PERFORMERS: &str = include_str!("data/performers.csv");
const WELL_KNOWN: &str = include_str!("data/well-known-multiscript.csv");
const VENUES: &str = include_str!("data/venues.csv");
const TITLES: &str = include_str!("data/titles.csv");

/// A venue to be.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) name: String,
    pub(crate) city: String,
    pub(crate) country: String,
    pub(crate) time_zone: String,
    pub(crate) at: (f64, f64),
}

impl Place {
    pub(super) fn fixed(name: &str, city: &str, country: &str, time_zone: &str, at: (f64, f64)) -> Self {
        Self { name: name.into(), city: city.into(), country: country.into(), time_zone: time_zone.into(), at }
    }
}

/// A performer to be.
#[derive(Clone, Debug)]
pub(crate) struct Act {
    pub(crate) name: String,
    pub(super) genre: Option<String>,
    well_known: bool,
}

/// An event to be; `place` and `act` are indexes.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) title: String,
    pub(crate) description: String,
    pub(crate) category: &'static str,
    pub(crate) place: usize,
    pub(crate) act: usize,
    pub(crate) days: i64,
    pub(super) hour: i64,
    pub(crate) on_sale_days: i64,
    pub(crate) price: String,
    pub(crate) currency: &'static str,
    pub(crate) capacity: i32,
    pub(crate) popularity: f64,
}

/// Everything for search.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) places: Vec<Place>,
    pub(crate) acts: Vec<Act>,
    pub(crate) events: Vec<Entry>,
}

/// A catalogue of so many events, at so many places at the most, with so many acts.
pub(crate) fn plan(count: usize, (place_count, act_count): (usize, usize)) -> anyhow::Result<Plan> {
    let mut random = StdRng::seed_from_u64(20_261_130);
    let places = places(&mut random, place_count)?;
    let acts = acts(&mut random, act_count)?;
    let shows = rows(TITLES)?;
    let mut seen = HashSet::new();
    let mut events = Vec::with_capacity(count);
    while events.len() < count {
        let entry = entry(&mut random, (&places, &acts, &shows)).context("the files of demo data are empty")?;
        if seen.insert(entry.title.clone()) {
            events.push(entry);
        }
    }
    Ok(Plan { places, acts, events })
}

fn rows(text: &str) -> anyhow::Result<Vec<csv::StringRecord>> {
    csv::Reader::from_reader(text.as_bytes())
        .records()
        .map(|row| row.context("a file of demo data can't be read"))
        .collect()
}

fn places(random: &mut StdRng, count: usize) -> anyhow::Result<Vec<Place>> {
    let all = rows(VENUES)?;
    let mut names = HashSet::new();
    let usable = all.iter().filter_map(|row| {
        let place = Place {
            name: row.get(0)?.to_owned(),
            city: row.get(2).filter(|city| !city.is_empty())?.to_owned(),
            country: row.get(3).filter(|code| code.len() == 2)?.to_owned(),
            time_zone: row.get(6).filter(|zone| zone.parse::<chrono_tz::Tz>().is_ok())?.to_owned(),
            at: (row.get(4)?.parse().ok()?, row.get(5)?.parse().ok()?),
        };
        let short = place.name.chars().count() <= 100 && !place.name.is_empty();
        (short && names.insert(place.name.clone())).then_some(place)
    });
    let usable: Vec<Place> = usable.collect();
    Ok(usable.choose_multiple(random, count).cloned().collect())
}

fn acts(random: &mut StdRng, count: usize) -> anyhow::Result<Vec<Act>> {
    let known = rows(WELL_KNOWN)?;
    let mut acts: Vec<Act> = known
        .iter()
        .filter_map(|row| {
            Some(Act { name: row.get(0)?.to_owned(), genre: row.get(3).map(str::to_owned), well_known: true })
        })
        .collect();
    let mut names: HashSet<String> = acts.iter().map(|act| act.name.clone()).collect();
    let all = rows(PERFORMERS)?;
    let rest: Vec<Act> = all
        .iter()
        .filter_map(|row| {
            let name = row.get(0).filter(|name| (2..=80).contains(&name.chars().count()))?.to_owned();
            let genre = row.get(2).filter(|genre| !genre.is_empty()).map(|genre| genre.chars().take(100).collect());
            names.insert(name.clone()).then_some(Act { name, genre, well_known: false })
        })
        .collect();
    acts.extend(rest.choose_multiple(random, count).cloned());
    Ok(acts)
}

fn entry(random: &mut StdRng, (places, acts, shows): (&[Place], &[Act], &[csv::StringRecord])) -> Option<Entry> {
    let place = random.random_range(0..places.len());
    let act = random.random_range(0..acts.len());
    let (venue, performer) = (places.get(place)?, acts.get(act)?);
    let staged = random.random_bool(0.4);
    let (title, category) = if staged {
        let show = shows.choose(random)?;
        let category = match show.get(1) {
            Some("opera") => "Opera",
            Some("concert work" | "concert") => "Classical",
            Some("play") => "Theatre",
            _ => "Musical",
        };
        (format!("{} in {}", show.get(0)?.chars().take(120).collect::<String>(), venue.city), category)
    } else {
        (format!("{} live in {}", performer.name, venue.city), "Concert")
    };
    let currency = match venue.country.as_str() {
        "JP" => "JPY",
        "GB" => "GBP",
        "US" | "CA" | "AU" => "USD",
        _ => "EUR",
    };
    let whole: u32 = random.random_range(12..140);
    let price = if currency == "JPY" { (whole * 100).to_string() } else { format!("{whole}.00") };
    let days = random.random_range(2..360);
    Some(Entry {
        description: format!("{} at {}, {}.", performer.name, venue.name, venue.city),
        title,
        category,
        place,
        act,
        days,
        hour: random.random_range(0..24),
        on_sale_days: if random.random_bool(0.85) { -random.random_range(1..60) } else { random.random_range(0..2) },
        price,
        currency,
        capacity: random.random_range(80..5_000),
        popularity: if performer.well_known { random.random_range(5.0..50.0) } else { random.random_range(0.0..5.0) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_files_give_the_same_catalogue() {
        let (one, two) = (plan(300, (250, 700)).unwrap(), plan(300, (250, 700)).unwrap());
        assert_eq!(one.events.len(), 300);
        let titles = |plan: &Plan| plan.events.iter().map(|event| event.title.clone()).collect::<Vec<_>>();
        assert_eq!(titles(&one), titles(&two));
        assert!(one.events.iter().all(|event| event.on_sale_days < event.days));
    }
}
