//! The provider speaking Stripe's `PaymentIntents` API: manual capture, our ids in the metadata, one idempotency key an
//! operation and endpoint.
//!
//! Source: the public API reference of Stripe for payment intents, refunds, errors and idempotent requests. Unknown
//! fields are ignored; an unknown status reads as processing, so that nothing is concluded from it.

use super::currency;
use super::gate::{Gate, Kind};
use super::provider::{
    CallError, Handle, Intent, NextAction, Order, PaymentProvider, ProviderRefund, RefundOrder, RefundStanding,
    Standing,
};
use crate::config::Secret;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use reqwest::StatusCode;
use serde::Deserialize;
use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

/// The adapter.
#[derive(Clone, Debug)]
pub struct Stripe {
    client: reqwest::Client,
    base: String,
    key: Secret,
    gate: Gate,
}

/// How long a call may take before its outcome is unknown.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(10);

impl Stripe {
    /// An adapter for an API base such as `https://api.stripe.com`, which makes up to so many reads and as many writes a
    /// second.
    pub fn new(base: &str, key: Secret, calls_per_second: NonZeroU32) -> Result<Self, reqwest::Error> {
        let client =
            reqwest::Client::builder().connect_timeout(Duration::from_secs(3)).timeout(CALL_TIMEOUT).build()?;
        Ok(Self { client, base: base.trim_end_matches('/').to_owned(), key, gate: Gate::new(calls_per_second) })
    }

    async fn post<T: for<'de> Deserialize<'de>>(
        &self,
        path: &str,
        idempotency_key: &str,
        form: &[(String, String)],
    ) -> Result<T, CallError> {
        let request =
            self.client.post(format!("{}{path}", self.base)).header("Idempotency-Key", idempotency_key).form(form);
        self.send(Kind::Write, request).await
    }

    /// A page of the list of payments, newest first.
    async fn page(&self, range: &[(&str, String)], after: Option<String>) -> Result<List<WireIntent>, CallError> {
        let mut query = vec![("limit", "100".to_owned())];
        query.extend(range.iter().cloned());
        query.extend(after.map(|id| ("starting_after", id)));
        self.get("/v1/payment_intents", &query).await
    }

    async fn get<T: for<'de> Deserialize<'de>>(&self, path: &str, query: &[(&str, String)]) -> Result<T, CallError> {
        self.gate.read_turn().await;
        let answer = self.send(Kind::Read, self.client.get(format!("{}{path}", self.base)).query(query)).await;
        // Only a call that may have done something is kept under its key.
        answer.map_err(|error| match error {
            CallError::Stored(what) | CallError::Refused { code: what } => CallError::Unknown(what),
            other => other,
        })
    }

    async fn send<T: for<'de> Deserialize<'de>>(
        &self,
        kind: Kind,
        request: reqwest::RequestBuilder,
    ) -> Result<T, CallError> {
        let answer = async {
            let response = request.bearer_auth(self.key.expose()).send().await?;
            let replayed = response.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
            Ok::<_, reqwest::Error>((response.status(), replayed, response.bytes().await?))
        };
        let answer = answer.await;
        // A key that is not accepted is as good as no provider: nothing can be paid.
        let usable = |status: StatusCode| !status.is_server_error() && !matches!(status.as_u16(), 401 | 403);
        self.gate.note(kind, answer.as_ref().is_ok_and(|(status, _, _)| usable(*status)));
        let (status, replayed, body) = answer.map_err(|error| CallError::Unknown(error.without_url().to_string()))?;
        if status.is_success() {
            return serde_json::from_slice(&body)
                .map_err(|error| CallError::Unknown(format!("an answer that can't be read: {error}")));
        }
        let error = serde_json::from_slice::<Failure>(&body).map(|failure| failure.error).unwrap_or_default();
        if status.as_u16() == 402 && error.kind.as_deref() == Some("card_error") {
            let code = error.decline_code.or(error.code).unwrap_or_else(|| "card_declined".to_owned());
            return Err(CallError::Declined { code, provider_id: error.payment_intent.map(|intent| intent.id) });
        }
        // A key keeps the outcome of what began to be done, also a refusal; what was turned away before is not kept, and
        // a gateway's answer says nothing of it. A repeated answer says so itself.
        let kept = replayed || !matches!(status.as_u16(), 401 | 403 | 409 | 429 | 502..=504);
        let refused = matches!(status.as_u16(), 400 | 404) && error.kind.as_deref() == Some("invalid_request_error");
        let code = error.code.or(error.kind).unwrap_or_default();
        if refused && error.payment_intent.is_none() {
            return Err(CallError::Refused { code });
        }
        let what = format!("{status} {code}");
        Err(if kept { CallError::Stored(what) } else { CallError::Unknown(what) })
    }
}

#[derive(Deserialize)]
struct Failure {
    error: ApiError,
}

#[derive(Default, Deserialize)]
struct ApiError {
    #[serde(rename = "type")]
    kind: Option<String>,
    code: Option<String>,
    decline_code: Option<String>,
    payment_intent: Option<Named>,
}

#[derive(Deserialize)]
struct Named {
    id: String,
}

#[derive(Deserialize)]
struct List<T> {
    data: Vec<T>,
    #[serde(default)]
    has_more: bool,
}

#[derive(Deserialize)]
struct WireIntent {
    id: String,
    status: String,
    amount: i64,
    #[serde(default)]
    amount_received: i64,
    currency: String,
    client_secret: Option<String>,
    #[serde(default)]
    metadata: HashMap<String, String>,
    next_action: Option<WireAction>,
    last_payment_error: Option<ApiError>,
    latest_charge: Option<WireCharge>,
}

/// Expanded where it was asked for, else an id.
#[derive(Deserialize)]
#[serde(untagged)]
enum WireCharge {
    Expanded {
        payment_method_details: Option<WireMethod>,
    },
    #[expect(dead_code, reason = "read to be told from the other shape")]
    Id(String),
}

#[derive(Deserialize)]
struct WireMethod {
    card: Option<WireCard>,
}

#[derive(Deserialize)]
struct WireCard {
    capture_before: Option<i64>,
}

impl WireCharge {
    fn capture_before(self) -> Option<DateTime<Utc>> {
        match self {
            Self::Expanded { payment_method_details } => {
                DateTime::from_timestamp(payment_method_details?.card?.capture_before?, 0)
            }
            Self::Id(_) => None,
        }
    }
}

#[derive(Deserialize)]
struct WireAction {
    redirect_to_url: Option<WireRedirect>,
}

#[derive(Deserialize)]
struct WireRedirect {
    url: Option<String>,
}

impl From<WireIntent> for Intent {
    fn from(wire: WireIntent) -> Self {
        let standing = match wire.status.as_str() {
            "requires_action" | "requires_confirmation" => Standing::WaitsForBuyer,
            "requires_capture" => Standing::Authorized,
            "succeeded" => Standing::Captured,
            "requires_payment_method" => Standing::Declined,
            "canceled" => Standing::Cancelled,
            _ => Standing::Processing,
        };
        let currency = wire.currency.to_uppercase();
        let amount = if standing == Standing::Captured { wire.amount_received } else { wire.amount };
        let next_action = (standing == Standing::WaitsForBuyer).then(|| NextAction {
            redirect_url: wire.next_action.and_then(|action| action.redirect_to_url?.url),
            client_secret: wire.client_secret,
        });
        Self {
            provider_id: wire.id,
            operation_id: wire.metadata.get("operation_id").cloned(),
            standing,
            amount_minor: currency::from_provider(&currency, amount),
            currency,
            decline_code: wire.last_payment_error.and_then(|error| error.decline_code.or(error.code)),
            next_action,
            capture_before: wire.latest_charge.and_then(WireCharge::capture_before),
        }
    }
}

#[derive(Deserialize)]
struct WireRefund {
    id: String,
    status: Option<String>,
    amount: i64,
    currency: String,
    #[serde(default)]
    metadata: HashMap<String, String>,
}

impl From<WireRefund> for ProviderRefund {
    fn from(wire: WireRefund) -> Self {
        let standing = match wire.status.as_deref() {
            Some("succeeded") => RefundStanding::Succeeded,
            Some("failed" | "canceled") => RefundStanding::Failed,
            _ => RefundStanding::Pending,
        };
        Self {
            provider_id: wire.id,
            operation_id: wire.metadata.get("operation_id").cloned(),
            standing,
            amount_minor: currency::from_provider(&wire.currency.to_uppercase(), wire.amount),
        }
    }
}

/// `<operation>:<step>`, and `:2` and so on for the next key of a step.
fn idempotency_key(operation_id: &str, step: &str, key_no: i16) -> String {
    if key_no <= 1 { format!("{operation_id}:{step}") } else { format!("{operation_id}:{step}:{key_no}") }
}

fn pair(key: &str, value: impl Into<String>) -> (String, String) {
    (key.to_owned(), value.into())
}

/// A refusal of a step of a payment that is there proves nothing about it; its key keeps it.
fn kept_refusal(error: CallError) -> CallError {
    match error {
        CallError::Refused { code } => CallError::Stored(code),
        other => other,
    }
}

/// Pages of a list, of a hundred each, that are read before giving up.
const PAGES_MAX: usize = 1_000;

/// A range of time, as a list wants it.
fn created(from: DateTime<Utc>, to: DateTime<Utc>) -> [(&'static str, String); 2] {
    [("created[gte]", from.timestamp().to_string()), ("created[lte]", to.timestamp().to_string())]
}

fn too_long() -> CallError {
    CallError::Unknown("the provider's list is longer than we read".to_owned())
}

#[async_trait]
impl PaymentProvider for Stripe {
    fn is_up(&self) -> bool {
        self.gate.is_open()
    }

    async fn turn(&self) {
        self.gate.write_turn().await;
    }

    async fn authorize(&self, order: &Order) -> Result<Intent, CallError> {
        let amount = currency::to_provider(&order.currency, order.amount_minor)
            .ok_or_else(|| CallError::Unknown("the amount can't be expressed in this currency".to_owned()))?;
        let mut form = vec![
            pair("amount", amount.to_string()),
            pair("currency", order.currency.to_lowercase()),
            pair("payment_method", &order.payment_method),
            pair("capture_method", "manual"),
            pair("confirm", "true"),
            pair("automatic_payment_methods[enabled]", "true"),
            pair("metadata[operation_id]", &order.operation_id),
            pair("metadata[booking_code]", &order.booking_code),
            pair("expand[]", "latest_charge"),
        ];
        match &order.return_url {
            Some(url) => form.push(pair("return_url", url)),
            // Without a way back, only methods that stay on the page.
            None => form.push(pair("automatic_payment_methods[allow_redirects]", "never")),
        }
        let key = idempotency_key(&order.operation_id, "create", order.key_no);
        let answer = self.post::<WireIntent>("/v1/payment_intents", &key, &form).await;
        // Turned away before there was a payment: as good as a decline, another method may be tried. Should a payment
        // turn up all the same, it is voided.
        answer.map(Intent::from).map_err(|error| match error {
            CallError::Refused { code } => CallError::Declined { code, provider_id: None },
            other => other,
        })
    }

    async fn capture(&self, payment: &Handle) -> Result<Intent, CallError> {
        let key = idempotency_key(&payment.operation_id, "capture", payment.key_no);
        let path = format!("/v1/payment_intents/{}/capture", payment.provider_id);
        self.post::<WireIntent>(&path, &key, &[]).await.map(Intent::from).map_err(kept_refusal)
    }

    async fn void(&self, payment: &Handle) -> Result<Intent, CallError> {
        let key = idempotency_key(&payment.operation_id, "void", payment.key_no);
        let path = format!("/v1/payment_intents/{}/cancel", payment.provider_id);
        self.post::<WireIntent>(&path, &key, &[]).await.map(Intent::from).map_err(kept_refusal)
    }

    async fn retrieve(&self, provider_id: &str) -> Result<Intent, CallError> {
        self.get::<WireIntent>(
            &format!("/v1/payment_intents/{provider_id}"),
            &[("expand[]", "latest_charge".to_owned())],
        )
        .await
        .map(Intent::from)
    }

    async fn find(
        &self,
        operation_id: &str,
        (from, to): (DateTime<Utc>, DateTime<Utc>),
    ) -> Result<Option<Intent>, CallError> {
        let range = created(from, to);
        let mut after = None;
        for _ in 0..PAGES_MAX {
            let page = self.page(&range, after).await?;
            after = page.data.last().map(|intent| intent.id.clone());
            let is_it = |intent: &WireIntent| intent.metadata.get("operation_id").is_some_and(|id| id == operation_id);
            match page.data.into_iter().find(is_it) {
                Some(intent) => return Ok(Some(intent.into())),
                None if !page.has_more => return Ok(None),
                None => {}
            }
        }
        Err(too_long())
    }

    async fn list(&self, from: DateTime<Utc>, to: DateTime<Utc>) -> Result<Vec<Intent>, CallError> {
        let range = created(from, to);
        let (mut all, mut after) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = self.page(&range, after).await?;
            after = page.data.last().map(|intent| intent.id.clone());
            all.extend(page.data.into_iter().map(Intent::from));
            if !page.has_more {
                return Ok(all);
            }
        }
        Err(too_long())
    }

    async fn refund(&self, order: &RefundOrder) -> Result<ProviderRefund, CallError> {
        let amount = currency::to_provider(&order.currency, order.amount_minor)
            .ok_or_else(|| CallError::Unknown("the amount can't be expressed in this currency".to_owned()))?;
        let form = [
            pair("payment_intent", &order.provider_payment_id),
            pair("amount", amount.to_string()),
            pair("metadata[operation_id]", &order.operation_id),
        ];
        let key = idempotency_key(&order.operation_id, "refund", order.key_no);
        self.post::<WireRefund>("/v1/refunds", &key, &form).await.map(ProviderRefund::from).map_err(kept_refusal)
    }

    async fn find_refund(
        &self,
        provider_payment_id: &str,
        operation_id: &str,
    ) -> Result<Option<ProviderRefund>, CallError> {
        let query = [("payment_intent", provider_payment_id.to_owned()), ("limit", "100".to_owned())];
        let page: List<WireRefund> = self.get("/v1/refunds", &query).await?;
        let found = page
            .data
            .into_iter()
            .find(|refund| refund.metadata.get("operation_id").is_some_and(|id| id == operation_id));
        match found {
            None if page.has_more => Err(CallError::Unknown("more refunds of one payment than we read".to_owned())),
            found => Ok(found.map(ProviderRefund::from)),
        }
    }
}
