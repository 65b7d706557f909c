//! Messages to buyers: confirmation with the tickets, cancellation, refund.
//!
//! Invariants: a transition has one row, however often it is delivered, and the row's id is the Message-ID; a message is
//! sent with no transaction open and marked afterwards, so that a second copy is possible only if we die between the mail
//! server's acceptance and the mark. This room writes nothing but its own rows; it knows bookings and the catalogue as
//! their readers do.

mod facts;
mod mail;
#[cfg(feature = "pdf")]
mod pdf;
mod qr;
mod render;
mod store;
mod words;

pub use mail::{Transport, TransportError};

use crate::booking::Bookings;
use crate::catalogue::Catalogue;
use crate::config::Secret;
use crate::db::{Db, Transaction};
use crate::outbox::{Consumer, Row, Topic};
use async_trait::async_trait;
use futures_util::future::join_all;
use lettre::message::Mailbox;
use sea_orm::DbErr;
use store::{Outcome, Waiting};
use uuid::Uuid;

/// What a message is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The booking is confirmed: here are the tickets.
    Confirmed,
    /// The booking is cancelled.
    Cancelled,
    /// A refund arrived.
    Refunded,
}

impl Kind {
    /// The database's text.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Confirmed => "CONFIRMED",
            Self::Cancelled => "CANCELLED",
            Self::Refunded => "REFUNDED",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        [Self::Confirmed, Self::Cancelled, Self::Refunded].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Turns what was committed into messages to be sent.
#[derive(Clone, Copy, Debug, Default)]
pub struct Notifier;

#[async_trait]
impl Consumer for Notifier {
    fn name(&self) -> &'static str {
        "notifications"
    }

    fn topics(&self) -> &'static [Topic] {
        &[Topic::Booking, Topic::Ticket]
    }

    async fn write(&self, transaction: &Transaction, rows: &[Row]) -> Result<(), DbErr> {
        let message =
            |row: &Row| message_of(row).map(|(kind, booking, subject)| (kind, booking, subject, row.position));
        store::insert(transaction, &rows.iter().filter_map(message).collect::<Vec<_>>()).await
    }
}

/// The message a change calls for: its kind, the booking, and what it is about, so that it is written once.
fn message_of(row: &Row) -> Option<(Kind, Uuid, Uuid)> {
    let booking = row.subject?;
    match row.topic.as_str() {
        // With the tickets, so only once they are issued.
        "ticket" if row.says("to", "ISSUED") => Some((Kind::Confirmed, booking, booking)),
        "booking" if row.says("to", "CANCELLED") => Some((Kind::Cancelled, booking, booking)),
        "booking" if row.says("refund", "SUCCEEDED") => {
            let refund = row.payload.get("id")?.as_str()?.parse().ok()?;
            Some((Kind::Refunded, booking, refund))
        }
        _ => None,
    }
}

/// Sends messages that wait.
#[derive(Clone, Debug)]
pub struct Mailer {
    db: Db,
    bookings: Bookings,
    catalogue: Catalogue,
    transport: Transport,
    from: Mailbox,
    ticket_secret: Secret,
}

/// What a mailer is built from.
#[derive(Debug)]
pub struct Parts {
    /// The database.
    pub db: Db,
    /// Reads bookings.
    pub bookings: Bookings,
    /// Reads events.
    pub catalogue: Catalogue,
    /// Where messages go.
    pub transport: Transport,
    /// The sender, as in a From line.
    pub from: String,
    /// Signs ticket codes.
    pub ticket_secret: Secret,
}

impl Mailer {
    /// Over its parts.
    pub fn new(parts: Parts) -> Result<Self, TransportError> {
        let Parts { db, bookings, catalogue, transport, from, ticket_secret } = parts;
        let from = from.parse().map_err(TransportError::From)?;
        Ok(Self { db, bookings, catalogue, transport, from, ticket_secret })
    }

    /// Sends some of what waits. Returns how many messages were taken up.
    pub async fn send_some(&self) -> Result<usize, DbErr> {
        let waiting = store::take_due(&self.db).await?;
        let count = waiting.len();
        let results = join_all(waiting.into_iter().map(|message| self.send_one(message))).await;
        results.into_iter().collect::<Result<Vec<()>, DbErr>>()?;
        Ok(count)
    }

    async fn send_one(&self, waiting: Waiting) -> Result<(), DbErr> {
        let outcome = match facts::gather(self, &waiting).await? {
            Err(outcome) => outcome,
            Ok(facts) => match mail::compose(&self.from, &waiting, &facts) {
                Ok(message) => {
                    crate::chaos::point("before_mail");
                    let sent = self.transport.send(waiting.id, &message).await;
                    crate::chaos::point("after_mail");
                    sent
                }
                Err(error) => Outcome::Refused(error),
            },
        };
        if let Outcome::Refused(_) = &outcome {
            tracing::error!(notification.id = %waiting.id, "a message can't be sent, see its row");
        }
        metrics::counter!("parterre_messages_total", "outcome" => outcome.name()).increment(1);
        store::finish(&self.db, &waiting, outcome).await
    }
}
