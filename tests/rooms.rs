//! The walls between the rooms: who may call whom, read from the imports.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// A room and those it may call, besides itself.
const MAY_CALL: [(&str, &[&str]); 17] = [
    ("sales", &["db", "outbox"]),
    ("waiting", &["bus", "catalogue", "clock", "config", "db", "inventory", "limit", "outbox"]),
    ("auditor", &["db"]),
    ("audit", &[]),
    ("bus", &[]),
    ("input", &[]),
    ("limit", &[]),
    ("db", &[]),
    ("outbox", &["db", "bus"]),
    ("inventory", &["db", "bus", "outbox", "catalogue", "chaos", "wake"]),
    ("catalogue", &["db", "bus", "outbox", "inventory", "audit", "input", "clock"]),
    ("payment", &["db", "config", "clock"]),
    (
        "booking",
        &["audit", "db", "bus", "outbox", "inventory", "payment", "catalogue", "config", "clock", "chaos", "wake"],
    ),
    ("notification", &["db", "outbox", "booking", "catalogue", "chaos", "config"]),
    ("seatmap", &["db", "bus", "catalogue", "inventory", "clock"]),
    ("discovery", &["db", "outbox", "catalogue", "clock"]),
    (
        "graphql",
        &[
            "audit",
            "auth",
            "booking",
            "bus",
            "catalogue",
            "clock",
            "config",
            "db",
            "discovery",
            "input",
            "inventory",
            "limit",
            "payment",
            "sales",
            "seatmap",
            "telemetry",
            "waiting",
        ],
    ),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

/// Rooms that a source names: `crate::room`, and the first words of `crate::{…}`.
fn called(source: &str) -> BTreeSet<String> {
    let code = source.split("#[cfg(test)]").next().unwrap_or_default();
    let word = |rest: &str| rest.chars().take_while(|c| c.is_ascii_alphanumeric() || *c == '_').collect::<String>();
    let mut words = BTreeSet::new();
    for (at, found) in code.match_indices("crate::") {
        let rest = &code[at + found.len()..];
        match rest.strip_prefix('{') {
            None => drop(words.insert(word(rest))),
            Some(list) => {
                let mut depth = 0_i32;
                let mut start = true;
                for (at, c) in list.char_indices() {
                    match c {
                        '{' => depth += 1,
                        '}' if depth == 0 => break,
                        '}' => depth -= 1,
                        ',' if depth == 0 => start = true,
                        c if start && depth == 0 && c.is_ascii_alphabetic() => {
                            words.insert(word(&list[at..]));
                            start = false;
                        }
                        _ => {}
                    }
                }
            }
        }
    }
    words.remove("sql");
    words
}

#[test]
fn lists_of_imports_are_read_too() {
    let source = "use crate::{db, http::{a, b}, seed}; use crate::bus::Bus; fn f() { crate::sql!(x) }";
    assert_eq!(called(source), ["bus", "db", "http", "seed"].map(str::to_owned).into());
}

/// Those above the nouns, which may call anybody.
const ABOVE: [&str; 17] = [
    "app",
    "auth",
    "bench",
    "chaos",
    "clock",
    "config",
    "dev",
    "doctor",
    "http",
    "lib",
    "main",
    "seed",
    "shutdown",
    "telemetry",
    "wake",
    "workers",
    "graphql",
];

#[test]
fn every_room_is_listed() {
    for entry in std::fs::read_dir("src").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let room = name.trim_end_matches(".rs");
        let listed = MAY_CALL.iter().any(|(listed, _)| *listed == room) || ABOVE.contains(&room);
        assert!(listed, "{room} is in no table of tests/rooms.rs");
    }
}

fn files_of(room: &str) -> Vec<PathBuf> {
    let folder = PathBuf::from("src").join(room);
    if folder.is_dir() { sources(&folder) } else { vec![PathBuf::from(format!("src/{room}.rs"))] }
}

#[test]
fn rooms_call_only_those_they_may() {
    let mut wrong = Vec::new();
    for (room, may_call) in MAY_CALL {
        for file in files_of(room) {
            let source = std::fs::read_to_string(&file).unwrap();
            let calls = called(&source);
            wrong.extend(
                calls
                    .iter()
                    .filter(|call| *call != room && !may_call.contains(&call.as_str()))
                    .map(|call| format!("{}: crate::{call}", file.display())),
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn rules_are_pure() {
    let mut wrong = Vec::new();
    for file in sources(Path::new("src"))
        .into_iter()
        .chain([PathBuf::from("src/inventory/best.rs"), PathBuf::from("src/seatmap/state.rs")])
    {
        let pure = ["rules.rs", "best.rs", "state.rs", "layout.rs", "plan.rs"].iter().any(|name| file.ends_with(name));
        let source = std::fs::read_to_string(&file).unwrap();
        for impure in ["async fn", "crate::db", "sea_orm::", "crate::clock", "Utc::now", "tokio::"] {
            if pure && source.contains(impure) {
                wrong.push(format!("{}: {impure}", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Who writes which tables. Found by the statements: `INSERT INTO t`, `UPDATE t`, `DELETE FROM t`. The benchmark makes up
/// rows in a database of its own.
#[test]
fn tables_have_one_writer() {
    let owners: [(&str, &[&str]); 19] = [
        ("event_sales", &["sales"]),
        ("waiting_room", &["waiting"]),
        ("event_quota", &["inventory"]),
        ("idempotency", &["inventory", "booking"]),
        ("event_seat", &["inventory"]),
        ("event_tier", &["inventory"]),
        ("event_counter", &["inventory"]),
        ("hold", &["inventory"]),
        ("hold_item", &["inventory"]),
        ("booking", &["booking"]),
        ("ticket", &["booking"]),
        ("timeline", &["booking"]),
        ("payment", &["payment"]),
        ("refund", &["payment"]),
        ("outbox", &["outbox"]),
        ("outbox_removed", &["outbox"]),
        ("hold_sweep", &["inventory"]),
        ("notification", &["notification"]),
        ("event", &["catalogue"]),
    ];
    let mut wrong = Vec::new();
    for file in sources(Path::new("src")).into_iter().filter(|file| !file.starts_with("src/bench")) {
        let source = std::fs::read_to_string(&file).unwrap();
        for (table, rooms) in owners {
            let in_room = rooms.iter().any(|room| file.starts_with(Path::new("src").join(room)));
            for verb in ["INSERT INTO", "UPDATE", "DELETE FROM"] {
                let writes = source.match_indices(&format!("{verb} {table}")).any(|(at, found)| {
                    let next = source[at + found.len()..].chars().next();
                    next.is_some_and(|c| !c.is_ascii_alphanumeric() && c != '_')
                });
                if writes && !in_room {
                    wrong.push(format!("{}: {verb} {table}", file.display()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
