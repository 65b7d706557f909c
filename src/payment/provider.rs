//! What we need from a payment provider, in our words. Every call names our operation id; every answer is the
//! provider's object as it stands, or the admission that we do not know.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

/// Money to be reserved.
#[derive(Clone, Debug)]
pub struct Order {
    /// Ours: the root of every idempotency key, and in the provider's metadata.
    pub operation_id: String,
    /// For people who look at the provider's dashboard.
    pub booking_code: String,
    /// In minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// A token of the provider.
    pub payment_method: String,
    /// Where a redirect comes back to.
    pub return_url: Option<String>,
    /// Which key of this step: the next one after a stored failure.
    pub key_no: i16,
}

/// A payment at the provider.
#[derive(Clone, Debug)]
pub struct Handle {
    /// The provider's id.
    pub provider_id: String,
    /// Ours.
    pub operation_id: String,
    /// Which key of this step.
    pub key_no: i16,
}

/// Where a payment stands at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// The buyer has to do something.
    WaitsForBuyer,
    /// The provider is at it.
    Processing,
    /// Money is reserved.
    Authorized,
    /// Money is collected.
    Captured,
    /// Declined, or not collected: it needs another payment method.
    Declined,
    /// Cancelled: nothing is reserved.
    Cancelled,
}

/// A payment as the provider has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Intent {
    /// The provider's id.
    pub provider_id: String,
    /// Ours, from the metadata.
    pub operation_id: Option<String>,
    /// Where it stands.
    pub standing: Standing,
    /// In minor units: what is asked for, and once it is collected what was collected.
    pub amount_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// Why it was declined.
    pub decline_code: Option<String>,
    /// What the buyer has to do.
    pub next_action: Option<NextAction>,
    /// When the provider lets the reservation lapse.
    pub capture_before: Option<DateTime<Utc>>,
}

/// What the buyer has to do.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct NextAction {
    /// Go there.
    pub redirect_url: Option<String>,
    /// Or hand this to the provider's own library.
    pub client_secret: Option<String>,
}

/// Money to be given back.
#[derive(Clone, Debug)]
pub struct RefundOrder {
    /// The provider's id of the payment.
    pub provider_payment_id: String,
    /// Ours, of the refund.
    pub operation_id: String,
    /// In minor units.
    pub amount_minor: i64,
    /// ISO 4217.
    pub currency: String,
    /// Which key of this step.
    pub key_no: i16,
}

/// Where a refund stands at the provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RefundStanding {
    /// On its way.
    Pending,
    /// The money is back.
    Succeeded,
    /// It could not be done.
    Failed,
}

/// A refund as the provider has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderRefund {
    /// The provider's id.
    pub provider_id: String,
    /// Ours, from the metadata.
    pub operation_id: Option<String>,
    /// Where it stands.
    pub standing: RefundStanding,
    /// In minor units.
    pub amount_minor: i64,
}

/// Why a call brought no object. Never means that nothing happened, but for a decline.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CallError {
    /// A decline of this very operation.
    #[error("declined: {code}")]
    Declined {
        /// The provider's word for why.
        code: String,
        /// The provider's id of the payment.
        provider_id: Option<String>,
    },
    /// A failure that is stored under its key and will be repeated: retrieve, then use the next key.
    #[error("the provider failed and stored it: {0}")]
    Stored(String),
    /// Turned away as malformed before anything began.
    #[error("refused: {code}")]
    Refused {
        /// The provider's word for why.
        code: String,
    },
    /// No answer, or one that says nothing about this operation.
    #[error("no usable answer: {0}")]
    Unknown(String),
}

/// A payment service.
#[async_trait]
pub trait PaymentProvider: Send + Sync + std::fmt::Debug {
    /// Whether the provider answers, as far as we know. While it does not, nothing new should be begun.
    fn is_up(&self) -> bool;

    /// Waits for one's turn to send something that moves money: the account's rate is limited. Wait before what is sent
    /// is judged to be still wanted, not after.
    async fn turn(&self);

    /// Reserves money. The same operation id never reserves twice.
    async fn authorize(&self, order: &Order) -> Result<Intent, CallError>;

    /// Collects what is reserved.
    async fn capture(&self, payment: &Handle) -> Result<Intent, CallError>;

    /// Gives the reservation back.
    async fn void(&self, payment: &Handle) -> Result<Intent, CallError>;

    /// The payment as it stands, by the provider's id.
    async fn retrieve(&self, provider_id: &str) -> Result<Intent, CallError>;

    /// The payment of an operation id, by the provider's list over a time of creation, from and to. `None`: not in the
    /// list.
    async fn find(
        &self,
        operation_id: &str,
        created: (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<Option<Intent>, CallError>;

    /// Every payment created in a range of time, newest first.
    async fn list(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Vec<Intent>, CallError>;

    /// Gives money back.
    async fn refund(&self, order: &RefundOrder) -> Result<ProviderRefund, CallError>;

    /// The refund of an operation id, by the list of its payment's refunds. `None`: not in the list.
    async fn find_refund(
        &self,
        provider_payment_id: &str,
        operation_id: &str,
    ) -> Result<Option<ProviderRefund>, CallError>;
}
