//! What the simulator remembers.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// A payment intent.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Intent {
    pub(super) id: String,
    pub(super) amount: i64,
    pub(super) amount_received: i64,
    pub(super) currency: String,
    pub(super) status: String,
    pub(super) payment_method: String,
    pub(super) metadata: HashMap<String, String>,
    pub(super) created: i64,
    /// For methods that collect at once: when, in milliseconds of Unix time.
    pub(super) collects_at_ms: Option<i64>,
    pub(super) decline_code: Option<String>,
    /// How often money was really collected: must never exceed 1.
    pub(super) captures: u32,
}

/// A refund.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Refund {
    pub(super) id: String,
    pub(super) payment_intent: String,
    pub(super) amount: i64,
    pub(super) currency: String,
    pub(super) status: String,
    pub(super) metadata: HashMap<String, String>,
    pub(super) created: i64,
    /// When it will turn out to have failed, in milliseconds of Unix time.
    pub(super) fails_at_ms: Option<i64>,
}

/// A reply kept under an idempotency key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Kept {
    pub(super) request: String,
    pub(super) status: u16,
    pub(super) body: serde_json::Value,
}

/// Everything the simulator remembers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Book {
    pub(super) intents: BTreeMap<String, Intent>,
    pub(super) refunds: BTreeMap<String, Refund>,
    pub(super) keys: HashMap<String, Kept>,
    /// Keys whose first call is still running.
    #[serde(skip)]
    pub(super) running: std::collections::HashSet<String>,
    pub(super) next_id: u64,
    /// How far the clock is put forward, in seconds.
    pub(super) clock_offset_seconds: i64,
    /// Calls to fail, by endpoint, before anything is done: status to answer.
    pub(super) faults: Vec<Fault>,
    /// How many calls came in, by endpoint.
    pub(super) calls: BTreeMap<String, u64>,
}

/// A failure to inject once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Fault {
    /// `create`, `capture`, `cancel`, `refund`, `retrieve` or `list`.
    pub(super) endpoint: String,
    /// The HTTP status to answer.
    #[serde(default)]
    pub(super) status: u16,
    /// Whether the step is done all the same.
    #[serde(default)]
    pub(super) done: bool,
    /// Whether the connection drops instead of an answer, after the step was done.
    #[serde(default)]
    pub(super) dropped: bool,
}

/// What really happened to money.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ledger {
    /// By operation id.
    pub payments: Vec<LedgerPayment>,
    /// Calls by endpoint.
    pub calls: BTreeMap<String, u64>,
    /// Calls that move money and are being answered now.
    pub running: usize,
}

/// What really happened to the money of one payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LedgerPayment {
    /// Ours.
    pub operation_id: String,
    /// The provider's.
    pub id: String,
    /// The provider's word.
    pub status: String,
    /// In the provider's units.
    pub captured: i64,
    /// In the provider's units, of refunds that have not failed.
    pub refunded: i64,
    /// Lower case.
    pub currency: String,
    /// Times money was collected.
    pub captures: u32,
    /// Refunds that have not failed.
    pub refunds: u32,
}

impl Book {
    pub(super) fn load(file: &Path) -> Option<Self> {
        let text = std::fs::read(file).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Written beside and moved into place, so that a kill leaves the old one or the new one.
    pub(super) fn save(&self, file: &Path) {
        let next = file.with_extension("next");
        let written = serde_json::to_vec(self)
            .map_err(std::io::Error::other)
            .and_then(|text| std::fs::write(&next, text))
            .and_then(|()| std::fs::rename(&next, file));
        if let Err(error) = written {
            tracing::error!(%error, "the simulator's ledger could not be saved");
        }
    }

    pub(super) fn id(&mut self, prefix: &str) -> String {
        self.next_id += 1;
        format!("{prefix}_sim_{:08}", self.next_id)
    }

    pub(super) fn now_ms(&self) -> i64 {
        crate::clock::now().timestamp_millis() + self.clock_offset_seconds * 1_000
    }

    /// What really happened to money.
    #[must_use]
    pub fn ledger(&self) -> Ledger {
        let payments = self
            .intents
            .values()
            .map(|intent| {
                let refunds: Vec<&Refund> = self
                    .refunds
                    .values()
                    .filter(|refund| refund.payment_intent == intent.id && refund.status != "failed")
                    .collect();
                LedgerPayment {
                    operation_id: intent.metadata.get("operation_id").cloned().unwrap_or_default(),
                    id: intent.id.clone(),
                    status: intent.status.clone(),
                    captured: intent.amount_received,
                    refunded: refunds.iter().map(|refund| refund.amount).sum(),
                    currency: intent.currency.clone(),
                    captures: intent.captures,
                    refunds: u32::try_from(refunds.len()).unwrap_or(u32::MAX),
                }
            })
            .collect();
        Ledger { payments, calls: self.calls.clone(), running: self.running.len() }
    }
}
