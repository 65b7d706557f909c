//! The index as its users see it.

#![expect(clippy::unwrap_used, reason = "tests")]

use parterre_search::{EventDocument, Filter, Index, Near, Position, Request, SaleState, SaleStatus, Sort};
use uuid::Uuid;

fn event(title: &str, performer: &str, city: &str) -> EventDocument {
    EventDocument {
        id: Uuid::now_v7(),
        position: Position { xid: 1, id: 1 },
        organization: Uuid::nil(),
        title: title.into(),
        description: "An evening to remember".into(),
        category: Some("Concert".into()),
        performers: vec![performer.into()],
        performer_ids: vec![format!("prf_{performer}")],
        venue: "Opera House".into(),
        venue_id: "ven_1".into(),
        city: city.into(),
        country_code: "DE".into(),
        local_day: 20_000,
        month: "2024-10".into(),
        starts_at: 1_000,
        on_sale_at: 100,
        off_sale_at: 900,
        state: SaleState::Published,
        has_stock: true,
        currency: "EUR".into(),
        price_min: 1_000,
        price_max: 5_000,
        place: Some((52.5, 13.4)),
        popularity: 0.0,
    }
}

fn request(text: &str) -> Request {
    Request {
        text: text.into(),
        filter: Filter::default(),
        sort: Sort::Relevance,
        after: None,
        limit: 10,
        now: 500,
        drafts_of: None,
        facets: true,
    }
}

struct Shelf {
    _folder: Folder,
    index: Index,
    ids: Vec<Uuid>,
}

struct Folder(std::path::PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        std::fs::remove_dir_all(&self.0).ok();
    }
}

fn shelf(events: &[EventDocument]) -> Shelf {
    let folder = Folder(std::env::temp_dir().join(format!("parterre-search-{}", Uuid::now_v7())));
    let index = Index::create(&folder.0).unwrap();
    let mut writer = index.writer().unwrap();
    for event in events {
        writer.put(event).unwrap();
    }
    writer.commit("cursor").unwrap();
    index.serve(&folder.0).unwrap();
    let index = Index::open(&folder.0).unwrap().unwrap();
    Shelf { _folder: folder, index, ids: events.iter().map(|event| event.id).collect() }
}

impl Shelf {
    fn find(&self, request: &Request) -> Vec<usize> {
        let hits = self.index.search(request).unwrap().hits;
        hits.iter().map(|hit| self.ids.iter().position(|id| *id == hit.cursor.id).unwrap()).collect()
    }
}

#[test]
fn text_is_found_with_accents_typos_prefixes_and_across_fields() {
    let shelf = shelf(&[
        event("Ágætis byrjun", "Sigur Rós", "Reykjavík"),
        event("Homogenic live", "Björk", "Berlin"),
        event("Aida", "Staatskapelle", "Dresden"),
    ]);
    for (text, expected) in [
        ("sigur ros", vec![0]),
        ("SIGUR RÓS", vec![0]),
        ("sgiur", vec![0]),
        ("reykjavik", vec![0]),
        ("rekjavik", vec![0]),
        ("bjo", vec![1]),
        ("bjork berlin", vec![1]),
        ("bjork dresden", vec![]),
        ("staatskapele", vec![2]),
        ("staatskapell dresden", vec![2]),
        ("zzzz", vec![]),
    ] {
        assert_eq!(shelf.find(&request(text)), expected, "{text}");
    }
    assert_eq!(shelf.find(&request("evening")).len(), 3, "the description counts too");
    for odd in ["\"", "title:aida AND (", "*", "+-&&||!(){}[]^\"~*?:\\/", "\u{0}"] {
        shelf.index.search(&request(odd)).unwrap();
    }
}

#[test]
fn a_title_counts_more_than_a_description_and_exact_more_than_a_typo() {
    let mut told = event("Something else", "Nobody", "Berlin");
    told.description = "With music from Carmen".into();
    let shelf = shelf(&[told, event("Carmel", "Nobody", "Berlin"), event("Carmen", "Nobody", "Berlin")]);
    assert_eq!(shelf.find(&request("carmen"))[0], 2);
}

#[test]
fn filters_and_sale_status_hold_at_the_time_of_the_query() {
    let mut dear = event("Dear", "A", "Paris");
    (dear.price_min, dear.price_max, dear.starts_at, dear.local_day) = (9_000, 9_000, 500, 20_005);
    let mut draft = event("Draft", "A", "Berlin");
    draft.state = SaleState::Draft;
    let mut gone = event("Gone", "A", "Berlin");
    gone.has_stock = false;
    let mut paused = event("Paused", "A", "Berlin");
    (paused.state, paused.place) = (SaleState::Paused, Some((48.85, 2.35)));
    let shelf = shelf(&[event("Plain", "A", "Berlin"), dear, draft, gone, paused]);
    let with = |change: &dyn Fn(&mut Request)| {
        let mut request = request("");
        request.sort = Sort::Date;
        change(&mut request);
        let mut found = shelf.find(&request);
        found.sort_unstable();
        found
    };
    assert_eq!(with(&|_| {}), [0, 1, 3, 4], "no drafts");
    assert_eq!(with(&|r| r.filter.cities = vec!["Paris".into()]), [1]);
    assert_eq!(with(&|r| r.filter.cities = vec!["Paris".into(), "Berlin".into()]), [0, 1, 3, 4]);
    assert_eq!(with(&|r| r.filter.day_from = Some(20_001)), [1]);
    assert_eq!(with(&|r| r.filter.day_to = Some(20_000)), [0, 3, 4]);
    assert_eq!(with(&|r| r.filter.price_min = Some(6_000)), [1]);
    assert_eq!(with(&|r| r.filter.price_max = Some(6_000)), [0, 3, 4]);
    assert_eq!(with(&|r| r.filter.sale_status = Some(vec![SaleStatus::SoldOut])), [3]);
    assert_eq!(with(&|r| r.filter.sale_status = Some(vec![SaleStatus::Paused])), [4]);
    assert_eq!(with(&|r| r.now = 50), [0, 1, 3, 4]);
    assert!(with(&|r| (r.now, r.filter.sale_status) = (50, Some(vec![SaleStatus::OnSale]))).is_empty());
    assert!(with(&|r| r.now = 900).is_empty(), "ended ones are left out");
    assert_eq!(with(&|r| (r.now, r.filter.sale_status) = (900, Some(vec![SaleStatus::Ended]))), [0, 1, 3, 4]);
    assert!(with(&|r| r.filter.sale_status = Some(vec![SaleStatus::Draft])).is_empty());
    let own =
        |r: &mut Request| (r.filter.sale_status, r.drafts_of) = (Some(vec![SaleStatus::Draft]), Some(Uuid::nil()));
    assert_eq!(with(&own), [2]);
    let near = Near { latitude: 48.86, longitude: 2.34, radius_km: 10.0 };
    assert_eq!(with(&|r| r.filter.near = Some(near)), [4]);
}

#[test]
fn sorts_facets_and_pages() {
    let events: Vec<EventDocument> = (0..25)
        .map(|n| {
            let mut event = event("Run", "A", if n % 5 == 0 { "Paris" } else { "Berlin" });
            event.starts_at = 2_000 - n;
            event.price_min = (n * 7) % 25;
            event.place = Some((52.5, 13.4 + f64::from(u32::try_from(n).unwrap()) / 100.0));
            event
        })
        .collect();
    let shelf = shelf(&events);
    let mut dated = request("run");
    dated.sort = Sort::Date;
    let first = shelf.index.search(&dated).unwrap();
    assert_eq!((first.total, first.has_more, first.hits.len()), (25, true, 10));
    assert_eq!(first.facets.city["Paris"], 5);
    assert_eq!(first.facets.sale_status[&SaleStatus::OnSale], 25);
    let mut seen = Vec::new();
    loop {
        let page = shelf.index.search(&dated).unwrap();
        seen.extend(page.hits.iter().map(|hit| shelf.ids.iter().position(|id| *id == hit.cursor.id).unwrap()));
        if !page.has_more {
            break;
        }
        dated.after = page.hits.last().map(|hit| hit.cursor);
    }
    assert_eq!(seen, (0..25).rev().collect::<Vec<_>>());
    let mut near = request("");
    near.filter.near = Some(Near { latitude: 52.5, longitude: 13.4, radius_km: 100.0 });
    near.sort = Sort::Distance;
    assert_eq!(shelf.find(&near), (0..10).collect::<Vec<_>>());
    let mut cheap = request("");
    cheap.sort = Sort::Price;
    assert_eq!(shelf.find(&cheap)[0], 0);
}

/// What is typed wrong may be a word that somebody else's event has by the time of the second page.
#[test]
fn later_pages_look_for_what_the_first_one_did() {
    let shows: Vec<EventDocument> =
        (0..15).map(|n| event(&format!("Staatskapelle {n}"), "Orchestra", "Dresden")).collect();
    let shelf = shelf(&shows);
    let mut mistyped = request("staatskapele");
    let first = shelf.index.search(&mistyped).unwrap();
    assert_eq!((first.total, first.has_more), (15, true));
    let mut writer = shelf.index.writer().unwrap();
    writer.put(&event("Staatskapele", "A misprint", "Berlin")).unwrap();
    writer.commit("later").unwrap();
    assert_eq!(shelf.index.search(&mistyped).unwrap().total, 1, "whoever asks now is shown the one that is spelled so");
    mistyped.after = first.hits.last().map(|hit| hit.cursor);
    let second = shelf.index.search(&mistyped).unwrap();
    assert!(second.hits.len() >= 5 && !second.has_more, "{second:?}");
}

#[test]
fn an_event_is_there_once_and_its_position_is_told() {
    let one = event("Aida", "A", "Berlin");
    let mut renamed = EventDocument { title: "Norma".into(), ..one.clone() };
    renamed.position = Position { xid: 7, id: 9 };
    let shelf = shelf(&[one.clone(), renamed]);
    assert_eq!(shelf.index.len(), 1);
    assert!(shelf.find(&request("aida")).is_empty());
    assert_eq!(shelf.index.position_of(one.id).unwrap(), Some(Position { xid: 7, id: 9 }));
    assert_eq!(shelf.index.cursor().unwrap().as_deref(), Some("cursor"));
}

/// Fields are known by their numbers: read as this version's, another's would be one for the other.
#[test]
fn an_index_with_other_fields_counts_as_none() {
    let folder = Folder(std::env::temp_dir().join(format!("parterre-search-{}", Uuid::now_v7())));
    let inner = folder.0.join("index-old");
    std::fs::create_dir_all(&inner).unwrap();
    let mut schema = tantivy::schema::Schema::builder();
    schema.add_text_field("id", tantivy::schema::STRING);
    tantivy::Index::create_in_dir(&inner, schema.build()).unwrap();
    std::fs::write(folder.0.join("current"), "index-old").unwrap();
    assert!(Index::open(&folder.0).unwrap().is_none());
}

#[test]
fn segments_are_united_while_they_are_served() {
    let folder = Folder(std::env::temp_dir().join(format!("parterre-search-{}", Uuid::now_v7())));
    let built = Index::create(&folder.0).unwrap();
    let mut builder = built.builder().unwrap();
    let events: Vec<_> = (0..12).map(|n| event(&format!("Evening {n}"), "Sigur Rós", "Reykjavík")).collect();
    for (n, event) in events.iter().enumerate() {
        builder.add(event).unwrap();
        builder.commit(&format!("cursor {n}")).unwrap();
    }
    built.serve(&folder.0).unwrap();
    drop(builder);
    let served = Index::open(&folder.0).unwrap().unwrap();
    assert_eq!(served.segments(), 12, "nothing is merged while it is built");
    let ask = request("sgiur evening");
    let before = served.search(&ask).unwrap();
    assert_eq!(before.total, 12);

    let mut writer = served.writer().unwrap();
    writer.unite().unwrap();
    assert_eq!(served.segments(), 1);
    assert_eq!(served.cursor().unwrap().as_deref(), Some("cursor 11"));
    let after = served.search(&ask).unwrap();
    let found = |hits: &[parterre_search::Hit]| hits.iter().map(|hit| hit.cursor).collect::<Vec<_>>();
    assert_eq!((found(&after.hits), after.total, after.facets), (found(&before.hits), before.total, before.facets));

    writer.put(&events[0]).unwrap();
    writer.commit("cursor 12").unwrap();
    assert_eq!(served.search(&ask).unwrap().total, 12, "what is put anew is there once");
}
