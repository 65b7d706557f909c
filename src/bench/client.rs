//! HTTP/1.1 and WebSocket, as little of them as a load generator needs, so that what is measured is the server.

use crate::auth::{Person, issue};
use crate::config::Config;
use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};

/// A connection that is kept.
pub(super) struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

/// What came back.
pub(super) struct Answer<'a> {
    pub(super) status: u16,
    pub(super) head: &'a str,
    pub(super) body: &'a [u8],
}

impl Answer<'_> {
    /// A header by its name in lower case.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        header(self.head, name)
    }

    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(self.body).into_owned()
    }

    pub(super) fn contains(&self, words: &str) -> bool {
        self.body.windows(words.len()).any(|window| window == words.as_bytes())
    }
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (found, value) = line.split_once(':')?;
        found.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

impl Connection {
    pub(super) async fn open(to: SocketAddr) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(to).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, buffer: Vec::with_capacity(8 * 1024) })
    }

    /// Sends a whole request and reads a whole answer.
    pub(super) async fn send(&mut self, request: &[u8]) -> anyhow::Result<Answer<'_>> {
        self.stream.write_all(request).await?;
        self.buffer.clear();
        let end = loop {
            let read = self.stream.read_buf(&mut self.buffer).await?;
            ensure!(read > 0, "the server hung up");
            if let Some(end) = self.buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
        };
        let length = {
            let head = std::str::from_utf8(self.buffer.get(..end).unwrap_or_default())?;
            let length = header(head, "content-length").map(str::parse::<usize>).transpose()?;
            length.unwrap_or(0)
        };
        while self.buffer.len() < end + length {
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the server hung up");
        }
        let (head, body) = self.buffer.split_at_checked(end).context("no head")?;
        let head = std::str::from_utf8(head)?;
        let status = head.get(9..12).and_then(|status| status.parse().ok()).context("no status")?;
        Ok(Answer { status, head, body })
    }
}

/// A request for JSON, as bytes.
pub(super) fn post(path: &str, token: Option<&str>, body: &str) -> Vec<u8> {
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    format!(
        "POST {path} HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\n{authorization}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// A mutation of a buyer with its `$input`, as bytes.
pub(super) fn mutation(config: &Config, buyer: impl Into<String>, query: &str, input: &Value) -> Vec<u8> {
    // The development secret signs anything.
    let token = issue(config, &Person::buyer(buyer), Duration::from_hours(1)).unwrap_or_default();
    post("/graphql", Some(&token), &json!({ "query": query, "variables": { "input": input } }).to_string())
}

/// A request without a body, with more headers, each ended by `\r\n`.
pub(super) fn get(path: &str, headers: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: bench\r\n{headers}\r\n").into_bytes()
}

/// A subscriber: it says one thing, and then only listens.
pub(super) struct Subscriber {
    stream: TcpStream,
    buffer: Vec<u8>,
    read: usize,
}

impl Subscriber {
    /// Connects from an address of its own, since one address may only have so many.
    pub(super) async fn open(from: IpAddr, to: SocketAddr) -> anyhow::Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::new(from, 0))?;
        let mut stream = socket.connect(to).await?;
        stream.set_nodelay(true)?;
        let upgrade = "GET /graphql HTTP/1.1\r\nHost: bench\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
            Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: cGFydGVycmUtYmVuY2g9PQ==\r\n\
            Sec-WebSocket-Protocol: graphql-transport-ws\r\n\r\n";
        stream.write_all(upgrade.as_bytes()).await?;
        let mut buffer = Vec::new();
        let end = loop {
            ensure!(stream.read_buf(&mut buffer).await? > 0, "the server hung up");
            if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break end + 4;
            }
        };
        ensure!(buffer.starts_with(b"HTTP/1.1 101"), "{}", String::from_utf8_lossy(&buffer));
        buffer.drain(..end);
        let mut subscriber = Self { stream, buffer, read: 0 };
        subscriber.say(r#"{"type":"connection_init"}"#).await?;
        subscriber.next().await?;
        Ok(subscriber)
    }

    /// Sends a text of at most 64 KiB, masked with zeros.
    pub(super) async fn say(&mut self, text: &str) -> anyhow::Result<()> {
        let length = u16::try_from(text.len())?;
        let mut frame = vec![0x81, 0xFE];
        frame.extend(length.to_be_bytes());
        frame.extend([0; 4]);
        frame.extend(text.as_bytes());
        Ok(self.stream.write_all(&frame).await?)
    }

    /// The next text.
    pub(super) async fn next(&mut self) -> anyhow::Result<&[u8]> {
        self.buffer.drain(..self.read);
        self.read = 0;
        loop {
            if let Some((opcode, start, end)) = frame(self.buffer.get(self.read..).unwrap_or_default()) {
                let (start, end) = (self.read + start, self.read + end);
                self.read = end;
                match opcode {
                    0x1 => return self.buffer.get(start..end).context("a frame"),
                    // A ping is answered, so that the server knows that somebody is there.
                    0x9 => self.stream.write_all(&[0x8A, 0x80, 0, 0, 0, 0]).await?,
                    0x8 => bail!("the server closed the socket"),
                    _ => {}
                }
                continue;
            }
            // As much as comes, and not more memory than that.
            self.buffer.reserve(2 * 1024);
            ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the server hung up");
        }
    }
}

/// A server's frame at the beginning of some bytes: its kind, and where its payload is.
fn frame(bytes: &[u8]) -> Option<(u8, usize, usize)> {
    let (first, second) = (*bytes.first()?, *bytes.get(1)?);
    let (length, start): (usize, usize) = match second & 0x7F {
        126 => (usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?)), 4),
        127 => (usize::try_from(u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?)).ok()?, 10),
        short => (usize::from(short), 2),
    };
    let end = start.checked_add(length)?;
    (bytes.len() >= end).then_some((first & 0x0F, start, end))
}
