//! Everything a measurement needs, private and new: PostgreSQL, Redis, the payment simulator, and the server as a process.

use super::client::{Connection, post};
use super::report::Report;
use crate::auth::{Person, issue};
use crate::config::{Config, Secret};
use crate::db::Db;
use crate::dev::{Cluster, Durability, Redis, default_config};
use crate::payment::simulator::{Settings, Simulator};
use anyhow::{Context as _, ensure};
use sea_orm::{ConnectionTrait as _, FromQueryResult as _};
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// What there is.
pub(super) struct World {
    pub(super) cluster: Cluster,
    pub(super) db: Db,
    pub(super) server: SocketAddr,
    admin: SocketAddr,
    config: Config,
    redis: Redis,
    simulator: Simulator,
    process: Child,
    shutdown: CancellationToken,
}

/// An event with a hall.
#[derive(Clone, Debug)]
pub(super) struct Arena {
    pub(super) event: String,
    pub(super) layout: String,
    pub(super) venue: String,
    /// Rows of 200 seats, in ten sections.
    pub(super) rows: usize,
}

impl Arena {
    /// Where its map is.
    pub(super) fn map_path(&self) -> String {
        format!("/events/{}/seat-map", self.event)
    }

    /// Pairs of neighbours.
    pub(super) fn pairs(&self) -> u64 {
        u64::try_from(self.rows * ROW_SEATS / 2).unwrap_or(0)
    }

    /// The seats of a pair, row after row.
    pub(super) fn pair(&self, n: u64) -> [String; 2] {
        let seat = usize::try_from(n).unwrap_or(0) * 2;
        let (row, first) = (seat / ROW_SEATS, seat % ROW_SEATS + 1);
        [first, first + 1].map(|number| format!("S{}-R{row}-{number}", row * SECTIONS / self.rows))
    }
}

/// Where the private cluster is, and the server's own files.
const FOLDER: &str = ".parterre/bench";

/// How long what is on its way may take after a load.
const REST_WITHIN: Duration = Duration::from_mins(5);

/// Rows of a whole arena, which has 50,000 seats, and the seats of each.
pub(super) const ROWS: usize = 250;
const ROW_SEATS: usize = 200;
const SECTIONS: usize = 10;

impl World {
    pub(super) async fn new() -> anyhow::Result<Self> {
        Self::with(&[]).await
    }

    /// One whose server has some settings of its own.
    pub(super) async fn with(settings: &[(&str, &str)]) -> anyhow::Result<Self> {
        Self::start(settings, async |_, _| Ok(())).await
    }

    /// One whose database, and folder of the server's own files, are made ready before the server starts.
    pub(super) async fn prepared(prepare: impl AsyncFnOnce(&Db, &Path) -> anyhow::Result<()>) -> anyhow::Result<Self> {
        Self::start(&[], prepare).await
    }

    async fn start(
        settings: &[(&str, &str)],
        prepare: impl AsyncFnOnce(&Db, &Path) -> anyhow::Result<()>,
    ) -> anyhow::Result<Self> {
        let folder = Path::new(FOLDER);
        Cluster::of(folder)?.remove()?;
        std::fs::remove_dir_all(folder)?;
        let cluster = Cluster::start(folder, Durability::Durable)?;
        cluster.create_database("bench")?;
        let redis = Redis::start().await?;
        let shutdown = CancellationToken::new();
        let provider = TcpListener::bind("127.0.0.1:0").await?;
        let simulated = format!("http://{}", provider.local_addr()?);
        let simulator = Simulator::new(Settings {
            webhook_url: None,
            webhook_secret: Secret::new("whsec_simulator"),
            file: None,
            public_url: simulated.clone(),
        });
        tokio::spawn(simulator.clone().serve(provider, shutdown.clone()));
        let db = Db::connect(&cluster.url("bench"), 4).await?;
        parterre_migration::up(db.pool()).await?;
        let data = folder.join("data");
        prepare(&db, &data).await?;
        let (server, admin) = (free().await?, free().await?);
        let log = std::fs::File::create(folder.join("server.log"))?;
        let process = Command::new(std::env::current_exe()?)
            .arg("serve")
            .env("DATABASE_URL", cluster.url("bench"))
            .env("REDIS_URL", &redis.url)
            .env("STRIPE_API_BASE", simulated)
            .env("PARTERRE_LISTEN", server.to_string())
            .env("PARTERRE_ADMIN_LISTEN", admin.to_string())
            .env("PARTERRE_DATA", data)
            .env("PARTERRE_CREATE_ORGANIZATIONS", "true")
            .env("PARTERRE_LIMITS", "off")
            .envs(settings.iter().copied())
            .stdout(Stdio::null())
            .stderr(log)
            .kill_on_drop(true)
            .spawn()
            .context("the server can't be started")?;
        let world = Self { cluster, db, server, admin, config: default_config(), redis, simulator, process, shutdown };
        for _ in 0..400 {
            if Connection::open(world.server).await.is_ok() {
                return Ok(world);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        anyhow::bail!("the server did not come up: see .parterre/bench/server.log")
    }

    /// Settings that sign tokens which the server takes.
    pub(super) fn config(&self) -> Config {
        self.config.clone()
    }

    pub(super) async fn ask(&self, token: Option<&str>, query: &str, variables: Value) -> anyhow::Result<Value> {
        let body = json!({ "query": query, "variables": variables }).to_string();
        let mut connection = Connection::open(self.server).await?;
        let answer = connection.send(&post("/graphql", token, &body)).await?;
        let answer: Value = serde_json::from_slice(answer.body)?;
        ensure!(answer.get("errors").is_none(), "{answer}");
        answer.get("data").cloned().context("no data")
    }

    async fn make(&self, name: &str, kind: &str, input: Value, fields: &str) -> anyhow::Result<Value> {
        let token = issue(&self.config, &Person::organizer("ACME"), Duration::from_hours(1))?;
        let query = format!(
            "mutation($input: {kind}!) {{ {name}(input: $input) {{ {fields} userErrors {{ code message }} }} }}"
        );
        let data = self.ask(Some(&token), &query, json!({ "input": input })).await?;
        let payload = data.get(name).context("no payload")?;
        ensure!(payload.get("userErrors") == Some(&json!([])), "{payload}");
        Ok(payload.clone())
    }

    /// A venue and a layout of so many rows in ten sections, and an event in it.
    pub(super) async fn arena(&self, rows: usize) -> anyhow::Result<Arena> {
        let venue = json!({ "name": "Arena", "city": "Berlin", "countryCode": "DE", "timeZone": "Europe/Berlin" });
        let venue = self.make("createVenue", "CreateVenueInput", venue, "venue { id }").await?;
        let venue = text(&venue, "/venue/id")?;
        let row = |row: usize| {
            let seats: Vec<Value> =
                (1..=ROW_SEATS).map(|n| json!({ "number": n.to_string(), "zone": "All" })).collect();
            json!({ "name": format!("R{row}"), "seats": seats })
        };
        let section = |section: usize| {
            let its_rows = (0..rows).filter(|row| row * SECTIONS / rows == section);
            json!({ "name": format!("S{section}"), "rows": its_rows.map(row).collect::<Vec<_>>() })
        };
        let used: std::collections::BTreeSet<usize> = (0..rows).map(|row| row * SECTIONS / rows).collect();
        let sections: Vec<Value> = used.into_iter().map(section).collect();
        let layout = json!({ "venueId": venue, "name": "Arena", "sections": sections });
        let layout = self.make("createLayout", "CreateLayoutInput", layout, "layout { id }").await?;
        let layout = text(&layout, "/layout/id")?;
        self.event_in(Arena { event: String::new(), layout, venue, rows }, json!({})).await
    }

    /// More events in the same hall, with some rules of their own.
    pub(super) async fn events(&self, hall: &Arena, count: usize, rules: Value) -> anyhow::Result<Vec<Arena>> {
        let mut events = Vec::with_capacity(count);
        for _ in 0..count {
            events.push(self.event_in(hall.clone(), rules.clone()).await?);
        }
        Ok(events)
    }

    /// Until what was prepared is on the disk, so that nobody has to wait for it later.
    pub(super) async fn settle(&self) -> anyhow::Result<()> {
        self.db.pool().execute_unprepared("CHECKPOINT").await?;
        Ok(())
    }

    /// Every event's map is in the server's memory from now on.
    pub(super) async fn load_maps(&self, events: &[Arena]) -> anyhow::Result<()> {
        let mut connection = Connection::open(self.server).await?;
        for arena in events {
            let answer = connection.send(&super::client::get(&arena.map_path(), "")).await?;
            ensure!(answer.status == 200, "{}", answer.text());
        }
        Ok(())
    }

    /// Stops the server where it stands, once it has nothing left to do.
    pub(super) async fn stop_server(&self) -> anyhow::Result<()> {
        self.rest().await?;
        self.signal("-STOP").await
    }

    /// Lets it go on, and waits until it knows what happened meanwhile.
    pub(super) async fn continue_server(&self, events: &[Arena]) -> anyhow::Result<()> {
        self.signal("-CONT").await?;
        self.rest().await?;
        self.load_maps(events).await
    }

    async fn signal(&self, signal: &str) -> anyhow::Result<()> {
        let id = self.process.id().context("the server has ended")?;
        let told = Command::new("kill").args([signal, &id.to_string()]).status().await?;
        ensure!(told.success(), "the server could not be signalled");
        Ok(())
    }

    /// An event in a hall, with some rules of its own.
    pub(super) async fn event_in(&self, hall: Arena, rules: Value) -> anyhow::Result<Arena> {
        let at = |days: i64| (crate::clock::now() + chrono::Duration::days(days)).to_rfc3339();
        let mut event = json!({
            "venueId": hall.venue, "layoutId": hall.layout, "title": "Measured", "currency": "EUR", "inventoryMode": "ASSIGNED",
            "zonePrices": [{ "zone": "All", "price": "25.00" }], "holdSeconds": 3600,
            "startsAt": at(30), "onSaleAt": at(-1), "offSaleAt": at(29),
        });
        if let (Some(event), Value::Object(rules)) = (event.as_object_mut(), rules) {
            event.extend(rules);
        }
        let event = self.make("createEvent", "CreateEventInput", event, "event { id version }").await?;
        let id = text(&event, "/event/id")?;
        let publish = json!({ "eventId": id, "expectedVersion": event.pointer("/event/version") });
        self.make("publishEvent", "PublishEventInput", publish, "event { id }").await?;
        Ok(Arena { event: id, ..hall })
    }

    /// A metric of the server: the sum of its series.
    pub(super) async fn metric(&self, name: &str) -> anyhow::Result<f64> {
        let mut connection = Connection::open(self.admin).await?;
        let answer = connection.send(&super::client::get("/metrics", "")).await?.text();
        let of = |line: &str| line.strip_prefix(name).is_some_and(|rest| rest.starts_with([' ', '{']));
        let values =
            answer.lines().filter(|line| of(line)).filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        // The sum of no numbers would be -0.
        Ok(values.fold(0.0, std::ops::Add::add))
    }

    /// Where the private Redis is.
    pub(super) fn redis_url(&self) -> &str {
        &self.redis.url
    }

    /// Resident memory of the server, in MB.
    pub(super) fn memory_mb(&self) -> f64 {
        let id = self.process.id().unwrap_or(0);
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kb = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
        kb.unwrap_or(0.0) * 1_024.0 / 1e6
    }

    /// Processor time of the server so far, in seconds.
    pub(super) fn processor_seconds(&self) -> f64 {
        let id = self.process.id().unwrap_or(0);
        let status = std::fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
        // Behind the name, which may have spaces: state is the third field, utime and stime the 14th and 15th, in
        // hundredths of a second.
        let fields = status.rsplit(')').next().unwrap_or_default().split_whitespace();
        fields.skip(11).take(2).filter_map(|ticks| ticks.parse::<f64>().ok()).sum::<f64>() / 100.0
    }

    /// Bytes of the write-ahead log so far.
    pub(super) async fn wal_bytes(&self) -> anyhow::Result<f64> {
        let statement = crate::sql!("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::float8 AS value");
        let row = crate::db::Single::<f64>::find_by_statement(statement).one(self.db.pool()).await?;
        Ok(row.context("no position in the log")?.value)
    }

    /// Updates of a table so far: those that touched no index, and all.
    pub(super) async fn hot_updates(&self, table: &str) -> anyhow::Result<(i64, i64)> {
        #[derive(sea_orm::FromQueryResult)]
        struct Updates {
            hot: i64,
            all: i64,
        }
        // What a session did is told a second later at the most.
        tokio::time::sleep(Duration::from_secs(2)).await;
        let statement = crate::sql!(
            "SELECT n_tup_hot_upd AS hot, n_tup_upd AS \"all\" FROM pg_stat_user_tables WHERE relname = $1",
            table.to_owned()
        );
        let row = Updates::find_by_statement(statement).one(self.db.pool()).await?.context("no such table")?;
        Ok((row.hot, row.all))
    }

    /// Until nothing is on its way: no payment or refund is open, and every row of the outbox reached those who wait for
    /// it.
    pub(super) async fn rest(&self) -> anyhow::Result<()> {
        let statement = "SELECT (SELECT count(*) FROM payment WHERE next_check_at IS NOT NULL)
              + (SELECT count(*) FROM refund WHERE next_check_at IS NOT NULL AND status <> 'SUCCEEDED')
              + (SELECT count(*) FROM outbox_cursor AS cursor
                 JOIN (VALUES ('relay', '{seats,booking,ticket}'::text[]), ('tickets', '{booking}')) AS reads (consumer, topics)
                   USING (consumer)
                 WHERE EXISTS (SELECT FROM outbox WHERE (outbox.xid, outbox.id) > (cursor.xid, cursor.id) AND topic = ANY (topics)))
              AS value";
        let begun = Instant::now();
        loop {
            let open = crate::db::Single::<i64>::find_by_statement(crate::sql!(statement)).one(self.db.pool()).await?;
            if open.is_some_and(|open| open.value == 0) {
                return Ok(());
            }
            ensure!(begun.elapsed() < REST_WITHIN, "something is on its way still after {REST_WITHIN:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Says of each figure of this world whether the promises were kept.
    pub(super) async fn audit(&self, reports: &mut [Report]) -> anyhow::Result<()> {
        let broken = self.broken().await?;
        for report in reports {
            report.broken.clone_from(&broken);
        }
        Ok(())
    }

    /// What breaks a promise, now that the load is over and nothing is on its way any more.
    async fn broken(&self) -> anyhow::Result<Vec<String>> {
        let mut broken = Vec::new();
        if let Err(late) = self.rest().await {
            broken.push(format!("I8: {late}"));
        }
        let found = crate::auditor::check(&self.db, chrono::Duration::zero(), crate::db::Pace::Full).await?;
        broken.extend(found.into_iter().map(|violation| format!("{}: {}", violation.invariant, violation.what)));
        broken.extend(self.wrong_money().await?);
        broken.extend(self.wrong_maps().await?);
        // The server's own auditor looked meanwhile.
        let log = std::fs::read_to_string(Path::new(FOLDER).join("server.log"))?;
        broken.extend(log.lines().filter(|line| line.contains("an invariant is broken")).map(str::to_owned));
        Ok(broken)
    }

    pub(super) async fn end(mut self) -> anyhow::Result<()> {
        self.process.kill().await?;
        self.shutdown.cancel();
        self.redis.stop().await;
        self.db.pool().clone().close().await?;
        Ok(self.cluster.remove()?)
    }
}

impl World {
    /// What the provider says of the money that we say was collected, and the other way round.
    async fn wrong_money(&self) -> anyhow::Result<Vec<String>> {
        #[derive(sea_orm::FromQueryResult)]
        struct Collected {
            provider_id: String,
            minor: i64,
        }
        let statement =
            crate::sql!("SELECT provider_id, captured_minor AS minor FROM payment WHERE status = 'CAPTURED'");
        let rows = Collected::find_by_statement(statement).all(self.db.pool()).await?;
        let mut ours: HashMap<String, i64> = rows.into_iter().map(|row| (row.provider_id, row.minor)).collect();
        let mut wrong = Vec::new();
        for there in self.simulator.ledger().payments.iter().filter(|there| there.captured > 0) {
            let here = ours.remove(&there.id);
            // Euros: the provider counts cents too.
            if here != Some(there.captured) || there.captures != 1 {
                wrong.push(format!(
                    "I4: the provider collected {} for {}, and here it is {here:?}",
                    there.captured, there.id
                ));
            }
        }
        wrong.extend(ours.into_keys().map(|id| format!("I4: {id} was collected here, and not at the provider")));
        Ok(wrong)
    }

    /// Waits for the last hold that ends soon: while some run out, the database and a map are never looked at in the same moment.
    async fn holds_run_out(&self) -> anyhow::Result<()> {
        let statement = crate::sql!(
            "SELECT coalesce(max(ceil(extract(epoch FROM held_until - clock_timestamp()) * 1000))::bigint, 0) AS value
             FROM event_seat WHERE status = 'HELD' AND held_until BETWEEN clock_timestamp() AND clock_timestamp() + $1::float8 * interval '1 second'",
            REST_WITHIN.as_secs_f64()
        );
        let last = crate::db::Single::<i64>::find_by_statement(statement).one(self.db.pool()).await?;
        let ms = last.map_or(0, |last| u64::try_from(last.value).unwrap_or(0));
        tokio::time::sleep(Duration::from_millis(ms)).await;
        Ok(())
    }

    /// I11 at rest: what is told of every seat is what the database has. A deadline may pass meanwhile, so there are a
    /// few looks.
    async fn wrong_maps(&self) -> anyhow::Result<Vec<String>> {
        #[derive(sea_orm::FromQueryResult)]
        struct Section {
            event_id: uuid::Uuid,
            letters: String,
        }
        self.holds_run_out().await?;
        let mut wrong = Vec::new();
        for _ in 0..20 {
            wrong.clear();
            let statement = crate::sql!(
                "SELECT event_seat.event_id, string_agg(CASE WHEN status = 'AVAILABLE' OR (status = 'HELD' AND held_until <= clock_timestamp()) THEN 'A'
                     WHEN status IN ('HELD', 'PENDING') THEN 'H' WHEN status = 'SOLD' THEN 'S' ELSE 'B' END, '' ORDER BY seat_no) AS letters
                 FROM event_seat JOIN event ON event.id = event_seat.event_id WHERE event.state = 'PUBLISHED'
                 GROUP BY event_seat.event_id, section_no ORDER BY event_seat.event_id, section_no"
            );
            let rows = Section::find_by_statement(statement).all(self.db.pool()).await?;
            let mut told: BTreeMap<uuid::Uuid, String> = BTreeMap::new();
            for row in rows {
                told.entry(row.event_id).or_default().push_str(&row.letters);
            }
            let mut connection = Connection::open(self.server).await?;
            for (event, letters) in told {
                let path =
                    format!("/events/{}/seat-map", parterre_schema::node_id(parterre_schema::Kind::Event, event).0);
                let answer = connection.send(&super::client::get(&path, "")).await?;
                let map: Value = serde_json::from_slice(answer.body)?;
                let sections = map.get("sections").and_then(Value::as_array).context("no sections")?;
                let shown: String = sections.iter().filter_map(|section| section.get("statuses")?.as_str()).collect();
                if shown != letters {
                    let seats = shown.bytes().zip(letters.bytes()).filter(|(shown, is)| shown != is).count();
                    wrong.push(format!("I11: the map of {event} shows {seats} seats that are not so"));
                }
            }
            if wrong.is_empty() {
                break;
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        Ok(wrong)
    }
}

async fn free() -> std::io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0").await?.local_addr()
}

fn text(value: &Value, pointer: &str) -> anyhow::Result<String> {
    value.pointer(pointer).and_then(Value::as_str).map(str::to_owned).with_context(|| format!("{pointer} in {value}"))
}
