//! Tells the cache in front of us what is out of date: an outbox consumer, for a CDN or whatever listens.
//!
//! Answers that anybody may keep name the events, venues and performers in them in `Surrogate-Key`; when one of these
//! changes, `{"tags": ["evt_…"]}` is posted to `CACHE_PURGE_URL`, at least once.

use crate::outbox::{Consumer, Row, Topic};
use async_trait::async_trait;
use axum::http::{HeaderName, StatusCode};
use parterre_schema::{Kind, node_id, parse_node_id};
use sea_orm::{DbErr, RuntimeErr};
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

/// Names what an answer is about, as CDNs know it.
pub(super) const TAGS: HeaderName = HeaderName::from_static("surrogate-key");
/// Tags of one answer: a header has its limits.
const TAGS_MAX: usize = 60;
/// How long the cache may take to answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(3);

/// From the outbox to the cache.
#[derive(Debug)]
pub struct Purger {
    client: reqwest::Client,
    url: String,
}

impl Purger {
    /// Posts to an address.
    pub fn new(url: &str) -> Result<Self, reqwest::Error> {
        let client = reqwest::Client::builder()
            .timeout(ANSWER_WITHIN)
            // Whoever is sent elsewhere has not heard.
            .redirect(reqwest::redirect::Policy::none())
            .build()?;
        Ok(Self { client, url: url.to_owned() })
    }
}

#[async_trait]
impl Consumer for Purger {
    fn name(&self) -> &'static str {
        "cache_purge"
    }

    fn topics(&self) -> &'static [Topic] {
        &[Topic::Event, Topic::Venue, Topic::Performer]
    }

    async fn act(&self, rows: &[Row]) -> Result<(), DbErr> {
        let kind = |topic: &str| match topic {
            "event" => Some(Kind::Event),
            "venue" => Some(Kind::Venue),
            "performer" => Some(Kind::Performer),
            _ => None,
        };
        let tags: BTreeSet<String> =
            rows.iter().filter_map(|row| Some(node_id(kind(&row.topic)?, row.subject?).0)).collect();
        if tags.is_empty() {
            return Ok(());
        }
        let answer = self.client.post(&self.url).json(&json!({ "tags": tags })).send().await;
        // As if the connection were lost: told again until it was heard.
        let again = |why: String| Err(DbErr::Conn(RuntimeErr::Internal(format!("the cache was not told: {why}"))));
        match answer {
            // What we said can't be understood, and would not be the next time.
            Ok(answer) if matches!(answer.status(), StatusCode::BAD_REQUEST | StatusCode::UNPROCESSABLE_ENTITY) => {
                let status = answer.status().as_u16();
                tracing::error!(status, "the cache does not understand what it is told: look at CACHE_PURGE_URL");
                Ok(())
            }
            Ok(answer) if answer.status().is_success() => Ok(()),
            Ok(answer) => again(answer.status().to_string()),
            Err(error) => again(error.without_url().to_string()),
        }
    }
}

/// The tags of an answer and of what it was asked for with: whatever in them is the id of something that anybody may read.
pub(super) fn tags(asked: &str, answer: &[u8]) -> String {
    let answer = String::from_utf8_lossy(answer);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut tags: BTreeSet<&str> = BTreeSet::new();
    for kind in [Kind::Event, Kind::Venue, Kind::Performer] {
        for text in [asked, &answer] {
            for (at, _) in text.match_indices(kind.prefix()) {
                let (before, rest) = text.split_at(at);
                let word = rest.split(|c| !is_word(c)).next().unwrap_or_default();
                if !before.ends_with(is_word) && parse_node_id(word).is_some_and(|(found, _)| found == kind) {
                    tags.insert(word);
                }
            }
        }
    }
    tags.into_iter().take(TAGS_MAX).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    #[test]
    fn an_answer_is_tagged_with_what_it_is_about() {
        let event = node_id(Kind::Event, Uuid::from_u128(1)).0;
        let (venue, hold) = (node_id(Kind::Venue, Uuid::from_u128(2)).0, node_id(Kind::Hold, Uuid::from_u128(3)).0);
        let answer = format!(r#"{{"data":{{"event":{{"id":"{event}","venue":{{"id":"{venue}"}},"x":"{hold}"}}}}}}"#);
        assert_eq!(tags("", answer.as_bytes()), format!("{event} {venue}"));
        assert_eq!(tags(&format!(r#"{{"id":"{event}"}}"#), b"{}"), event);
        assert_eq!(tags("", b"evt_1 ven_"), "");
    }
}
