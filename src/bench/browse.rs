//! The HTTP map against nginx with a file of the same bytes.

use super::Options;
use super::client::{Answer, Connection, get};
use super::load::{Asks, Pace, load};
use super::report::{Latency, Report, rate};
use super::world::{ROWS, World};
use anyhow::{Context as _, ensure};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

const CONNECTIONS: u32 = 64;
const WARM_UP: Duration = Duration::from_secs(1);

/// The same request, again and again.
struct Same {
    request: Vec<u8>,
    status: u16,
    /// How long the body is, unless there is none.
    length: usize,
}

impl Asks for Same {
    fn request(&self, _: u64) -> Option<Vec<u8>> {
        Some(self.request.clone())
    }

    fn is_right(&self, _: u64, answer: &Answer<'_>) -> bool {
        answer.status == self.status && answer.body.len() == self.length
    }
}

/// Rounds of it: how often a second.
async fn rounds(options: &Options, to: SocketAddr, name: &str, asks: Same) -> anyhow::Result<Report> {
    let mut report = Report::new(name, "requests/s");
    let (asks, mut latency) = (Arc::new(asks), Latency::new());
    load(to, (CONNECTIONS, Pace::Closed), WARM_UP, Arc::clone(&asks)).await?;
    for _ in 0..options.rounds {
        let seen = load(to, (CONNECTIONS, Pace::Closed), options.round(), Arc::clone(&asks)).await?;
        ensure!(seen.wrong == 0, "{name}: {} answers were wrong", seen.wrong);
        report.rounds.push(rate(seen.latency.count(), seen.took));
        latency.add(&seen.latency);
    }
    report.latency = Some(latency);
    Ok(report)
}

/// The same of the server, with the bytes of maps that it sends in a second of a processor.
async fn served(options: &Options, world: &World, name: &str, asks: Same) -> anyhow::Result<Report> {
    let length = asks.length;
    let before = world.processor_seconds();
    let begun = Instant::now();
    let mut report = rounds(options, world.server, name, asks).await?;
    let (used, took) = (world.processor_seconds() - before, begun.elapsed().as_secs_f64());
    let bytes = report.median() * f64::from(u32::try_from(length)?) * took;
    report.notes.push(format!("{:.0} MB of maps in a second of a core; {:.2} cores", bytes / used / 1e6, used / took));
    Ok(report)
}

pub(super) async fn run(options: &Options) -> anyhow::Result<Vec<Report>> {
    let world = World::new().await?;
    let arena = world.arena(options.share(ROWS)).await?;
    let path = arena.map_path();
    let mut connection = Connection::open(world.server).await?;
    let (tag, plain) = {
        let answer = connection.send(&get(&path, "")).await?;
        ensure!(answer.status == 200, "{}", answer.text());
        (answer.header("etag").context("no tag")?.to_owned(), answer.body.to_vec())
    };
    let mut sizes = vec![format!("{} bytes plain", plain.len())];
    let mut gzip = 0;
    for encoding in ["br", "zstd", "gzip"] {
        let answer = connection.send(&get(&path, &format!("Accept-Encoding: {encoding}\r\n"))).await?;
        gzip = answer.body.len();
        sizes.push(format!("{gzip} {encoding}"));
    }
    let bits = connection.send(&get(&format!("{path}?format=bits"), "")).await?.body.len();
    sizes.push(format!("{bits} as bits"));
    let file = Nginx::serving(&plain).await?;
    let nginx_tag = {
        let mut there = Connection::open(file.address).await?;
        there.send(&get("/map.json", "")).await?.header("etag").context("no tag")?.to_owned()
    };

    let same = |request: Vec<u8>, (status, length): (u16, usize)| Same { request, status, length };
    let known = || same(get("/map.json", &format!("If-None-Match: {nginx_tag}\r\n")), (304, 0));
    let before = rounds(options, file.address, "nginx", known()).await?;
    let ask = same(get(&path, &format!("If-None-Match: {tag}\r\n")), (304, 0));
    let mut unchanged = rounds(options, world.server, "browse-304", ask).await?;
    let after = rounds(options, file.address, "nginx", known()).await?;
    unchanged.anchor = Some(("nginx, a file, 304", before.median().max(after.median())));

    let whole = || same(get("/map.json", ""), (200, plain.len()));
    let before = rounds(options, file.address, "nginx", whole()).await?;
    let mut plainly = served(options, &world, "browse-200", same(get(&path, ""), (200, plain.len()))).await?;
    let after = rounds(options, file.address, "nginx", whole()).await?;
    plainly.anchor = Some(("nginx, a file, 200", before.median().max(after.median())));
    plainly.notes.push(sizes.join(", "));
    let ask = same(get(&path, "Accept-Encoding: gzip\r\n"), (200, gzip));
    let mut packed = rounds(options, world.server, "browse-gzip", ask).await?;
    packed.notes.push(format!("{gzip} bytes each"));

    let query = "query($id: ID!) { seatMap(eventId: $id) { version sections { name statuses } } }";
    let hash = hex::encode(Sha256::digest(query));
    let extensions = json!({ "persistedQuery": { "version": 1, "sha256Hash": hash } }).to_string();
    let variables = json!({ "id": arena.event }).to_string();
    let url = |query: Option<&str>| {
        let mut parameters = vec![("extensions", extensions.as_str()), ("variables", variables.as_str())];
        parameters.extend(query.map(|query| ("query", query)));
        let url = reqwest::Url::parse_with_params("http://bench/graphql", parameters)?;
        Ok::<_, anyhow::Error>(format!("/graphql?{}", url.query().unwrap_or_default()))
    };
    // The first has been silent for as long as the server lets anybody be.
    let mut connection = Connection::open(world.server).await?;
    ensure!(connection.send(&get(&url(Some(query))?, "")).await?.status == 200, "the query is not taken");
    let (tag, length) = {
        let answer = connection.send(&get(&url(None)?, "")).await?;
        (answer.header("etag").context("no tag")?.to_owned(), answer.body.len())
    };
    let ask = same(get(&url(None)?, ""), (200, length));
    let persisted = served(options, &world, "browse-persisted", ask).await?;
    let ask = same(get(&url(None)?, &format!("If-None-Match: {tag}\r\n")), (304, 0));
    let persisted_304 = rounds(options, world.server, "browse-persisted-304", ask).await?;

    let mut reports = vec![unchanged, plainly, packed, persisted, persisted_304];
    world.audit(&mut reports).await?;
    file.end().await?;
    world.end().await?;
    Ok(reports)
}

/// nginx with one file and nothing else to do.
struct Nginx {
    process: Child,
    address: SocketAddr,
}

impl Nginx {
    async fn serving(bytes: &[u8]) -> anyhow::Result<Self> {
        let folder = std::env::current_dir()?.join(".parterre/bench/nginx");
        std::fs::create_dir_all(folder.join("files"))?;
        std::fs::write(folder.join("files/map.json"), bytes)?;
        let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
        let shown = folder.display();
        let user = if std::fs::metadata("/proc/self").is_ok_and(|it| std::os::unix::fs::MetadataExt::uid(&it) == 0) {
            "user root;"
        } else {
            ""
        };
        let settings = format!(
            "daemon off; {user} worker_processes auto; pid {shown}/pid; error_log {shown}/error.log;
             events {{ worker_connections 1024; }}
             http {{
                 access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000000;
                 open_file_cache max=10 inactive=60s; client_body_temp_path {shown}/a; proxy_temp_path {shown}/b;
                 fastcgi_temp_path {shown}/c; uwsgi_temp_path {shown}/d; scgi_temp_path {shown}/e;
                 server {{ listen {address}; root {shown}/files; types {{ application/json json; }} }}
             }}"
        );
        let path = folder.join("nginx.conf");
        std::fs::write(&path, settings)?;
        let process = Command::new(if Path::new("/usr/sbin/nginx").exists() { "/usr/sbin/nginx" } else { "nginx" })
            .arg("-c")
            .arg(&path)
            .arg("-p")
            .arg(&folder)
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .context("nginx can't be started; install it (Debian: apt-get install nginx)")?;
        for _ in 0..100 {
            if Connection::open(address).await.is_ok() {
                return Ok(Self { process, address });
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        anyhow::bail!("nginx did not come up: see .parterre/bench/nginx/error.log")
    }

    async fn end(mut self) -> anyhow::Result<()> {
        // Its workers end with the one that is told to.
        if let Some(id) = self.process.id() {
            Command::new("kill").arg("-QUIT").arg(id.to_string()).status().await?;
        }
        self.process.wait().await?;
        Ok(())
    }
}
