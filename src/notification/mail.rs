//! A message as a mail, and where it goes: a mail server, or a folder of files.

use super::facts::Facts;
use super::qr::Squares;
use super::render;
use super::store::{Outcome, Waiting};
use crate::config::{Config, Secret};
use lettre::message::header::{ContentType, HeaderName, HeaderValue};
use lettre::message::{Attachment, Mailbox, Message, MultiPart, SinglePart};
use lettre::transport::smtp;
use lettre::{AsyncSmtpTransport, AsyncTransport, Tokio1Executor};
use std::path::PathBuf;
use std::time::Duration;
use uuid::Uuid;

/// Where messages go.
#[derive(Clone)]
pub enum Transport {
    /// A mail server.
    Smtp(AsyncSmtpTransport<Tokio1Executor>),
    /// A folder of `.eml` files, one a message.
    Folder(PathBuf),
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Smtp(_) => f.write_str("Smtp"),
            Self::Folder(folder) => f.debug_tuple("Folder").field(folder).finish(),
        }
    }
}

/// Why messages can't be sent. Each says what to do.
#[derive(Debug, thiserror::Error)]
pub enum TransportError {
    /// The address of the mail server can't be read.
    #[error("SMTP_URL is not the address of a mail server, such as smtps://user:password@mail.example.com: {0}")]
    Url(#[source] smtp::Error),
    /// The sender can't be read.
    #[error("MAIL_FROM is not a sender, such as Parterre <tickets@example.com>: {0}")]
    From(#[source] lettre::address::AddressError),
}

/// How long the mail server may take for one answer.
const ANSWER_WITHIN: Duration = Duration::from_secs(20);

/// How long a whole message may take: well under the time for which it is taken up.
const SEND_WITHIN: Duration = Duration::from_mins(1);

impl Transport {
    /// As configured; none if messages are not to be sent.
    pub fn of(config: &Config) -> Result<Option<Self>, TransportError> {
        if let Some(url) = config.smtp_url.as_ref().map(Secret::expose) {
            let builder = AsyncSmtpTransport::<Tokio1Executor>::from_url(url).map_err(TransportError::Url)?;
            return Ok(Some(Self::Smtp(builder.timeout(Some(ANSWER_WITHIN)).build())));
        }
        Ok(config.mail_folder.clone().map(Self::Folder))
    }

    /// Whether messages could be sent, without sending one.
    pub async fn test(&self) -> Result<String, String> {
        match self {
            Self::Smtp(server) => match server.test_connection().await {
                Ok(true) => Ok("the mail server answers".to_owned()),
                Ok(false) => Err("the mail server does not want to talk: look at SMTP_URL".to_owned()),
                Err(error) => Err(format!("{error}: look at SMTP_URL")),
            },
            Self::Folder(folder) => Ok(format!("written to {}", folder.display())),
        }
    }

    pub(super) async fn send(&self, id: Uuid, message: &Message) -> Outcome {
        match self {
            Self::Smtp(server) => match tokio::time::timeout(SEND_WITHIN, server.send(message.clone())).await {
                Err(_) => Outcome::Later("the mail server took too long".to_owned()),
                Ok(Ok(_)) => Outcome::Sent,
                Ok(Err(error)) if refuses_the_message(&error) => Outcome::Refused(error.to_string()),
                Ok(Err(error)) => Outcome::Later(error.to_string()),
            },
            Self::Folder(folder) => {
                // Written beside and moved into place, so that nobody reads half a message.
                let written = async {
                    tokio::fs::create_dir_all(folder).await?;
                    let (next, whole) = (folder.join(format!("{id}.next")), folder.join(format!("{id}.eml")));
                    tokio::fs::write(&next, message.formatted()).await?;
                    tokio::fs::rename(&next, &whole).await
                };
                written.await.map_or_else(|error| Outcome::Later(error.to_string()), |()| Outcome::Sent)
            }
        }
    }
}

/// Whether the server will never take this message. Anything else, also a password it does not accept, may be put right,
/// and then the message should go out.
fn refuses_the_message(error: &smtp::Error) -> bool {
    error.status().is_some_and(|code| (550..=553).contains(&u16::from(code)))
}

/// Writes the mail: text and HTML with the codes inline, and the tickets as a PDF.
pub(super) fn compose(from: &Mailbox, waiting: &Waiting, facts: &Facts) -> Result<Message, String> {
    let failed = |error: &dyn std::error::Error| error.to_string();
    let png: ContentType = "image/png".parse().map_err(|error| failed(&error))?;
    let html = SinglePart::html(render::html(facts).map_err(|error| failed(&error))?);
    let mut shown = MultiPart::related().singlepart(html);
    for (number, ticket) in facts.tickets.iter().enumerate() {
        let image =
            Squares::of(&ticket.code).ok_or("a ticket's code is too long")?.png().map_err(|error| failed(&error))?;
        shown = shown.singlepart(Attachment::new_inline(format!("ticket-{}", number + 1)).body(image, png.clone()));
    }
    let text = SinglePart::plain(render::text(facts).map_err(|error| failed(&error))?);
    let bodies = MultiPart::alternative().singlepart(text).multipart(shown);
    let message = Message::builder()
        .from(from.clone())
        .to(facts.to.clone())
        .subject(facts.subject())
        .message_id(Some(format!("<{}@{}>", waiting.id, from.email.domain())))
        .raw_header(HeaderValue::new(HeaderName::new_from_ascii_str("Auto-Submitted"), "auto-generated".to_owned()));
    message.multipart(with_tickets(bodies, facts)?).map_err(|error| failed(&error))
}

#[cfg(feature = "pdf")]
fn with_tickets(bodies: MultiPart, facts: &Facts) -> Result<MultiPart, String> {
    if facts.tickets.is_empty() {
        return Ok(MultiPart::mixed().multipart(bodies));
    }
    let file = super::pdf::tickets(facts).ok_or("the tickets can't be drawn")?;
    let kind: ContentType = "application/pdf".parse().map_err(|_| "application/pdf is no content type")?;
    let name = format!("tickets-{}.pdf", facts.booking_code);
    Ok(MultiPart::mixed().multipart(bodies).singlepart(Attachment::new(name).body(file, kind)))
}

#[cfg(not(feature = "pdf"))]
#[expect(clippy::unnecessary_wraps, reason = "its twin may fail")]
fn with_tickets(bodies: MultiPart, _facts: &Facts) -> Result<MultiPart, String> {
    Ok(MultiPart::mixed().multipart(bodies))
}
