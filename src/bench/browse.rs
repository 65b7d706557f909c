//! The HTTP map against nginx with a file of the same bytes.

use super::Options;
use super::client::{Answer, Connection, get};
use super::load::{Asks, Pace, load};
use super::report::{Report, rate};
use super::world::{ROWS, World};
use anyhow::{Context as _, ensure};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

const CONNECTIONS: u32 = 64;

/// The same request, again and again.
struct Same {
    request: Vec<u8>,
    status: u16,
}

impl Asks for Same {
    fn request(&self, _: u64) -> Option<Vec<u8>> {
        Some(self.request.clone())
    }

    fn is_right(&self, _: u64, answer: &Answer<'_>) -> bool {
        answer.status == self.status
    }
}

/// Rounds of it: how often a second.
async fn rounds(
    options: &Options,
    to: SocketAddr,
    name: &str,
    (request, status): (Vec<u8>, u16),
) -> anyhow::Result<Report> {
    let mut report = Report::new(name, "requests/s");
    let asks = Arc::new(Same { request, status });
    for _ in 0..options.rounds {
        let seen = load(to, (CONNECTIONS, Pace::Closed), options.round(), Arc::clone(&asks)).await?;
        ensure!(seen.wrong == 0, "{name}: {} answers were wrong", seen.wrong);
        report.rounds.push(rate(seen.latency.count(), seen.took));
        report.latency = Some(seen.latency);
    }
    Ok(report)
}

pub(super) async fn run(options: &Options) -> anyhow::Result<Vec<Report>> {
    let world = World::new().await?;
    let arena = world.arena(options.share(ROWS)).await?;
    let path = format!("/events/{}/seat-map", arena.event);
    let mut connection = Connection::open(world.server).await?;
    let (tag, plain) = {
        let answer = connection.send(&get(&path, "")).await?;
        ensure!(answer.status == 200, "{}", answer.text());
        (answer.header("etag").context("no tag")?.to_owned(), answer.body.to_vec())
    };
    let mut sizes = vec![format!("{} bytes plain", plain.len())];
    for encoding in ["gzip", "br", "zstd"] {
        let answer = connection.send(&get(&path, &format!("Accept-Encoding: {encoding}\r\n"))).await?;
        sizes.push(format!("{} {encoding}", answer.body.len()));
    }
    let bits = connection.send(&get(&format!("{path}?format=bits"), "")).await?.body.len();
    sizes.push(format!("{bits} as bits"));
    let file = Nginx::serving(&plain).await?;
    let nginx_tag = {
        let mut there = Connection::open(file.address).await?;
        there.send(&get("/map.json", "")).await?.header("etag").context("no tag")?.to_owned()
    };

    let known = get(&path, &format!("If-None-Match: {tag}\r\n"));
    let ask = (known, 304);
    let anchor =
        rounds(options, file.address, "nginx", (get("/map.json", &format!("If-None-Match: {nginx_tag}\r\n")), 304))
            .await?;
    let mut unchanged = rounds(options, world.server, "browse-304", ask).await?;
    unchanged.anchor = Some(("nginx, a file, 304", anchor.median()));

    let anchor = rounds(options, file.address, "nginx", (get("/map.json", ""), 200)).await?;
    let mut whole = rounds(options, world.server, "browse-200", (get(&path, ""), 200)).await?;
    whole.anchor = Some(("nginx, a file, 200", anchor.median()));
    whole.notes.push(sizes.join(", "));

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
    ensure!(connection.send(&get(&url(Some(query))?, "")).await?.status == 200, "the query is not taken");
    let tag = connection.send(&get(&url(None)?, "")).await?.header("etag").context("no tag")?.to_owned();
    let persisted = rounds(options, world.server, "browse-persisted", (get(&url(None)?, ""), 200)).await?;
    let same = (get(&url(None)?, &format!("If-None-Match: {tag}\r\n")), 304);
    let persisted_304 = rounds(options, world.server, "browse-persisted-304", same).await?;

    let mut reports = vec![unchanged, whole, persisted, persisted_304];
    if let Some(first) = reports.first_mut() {
        first.broken = world.broken().await?;
    }
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
