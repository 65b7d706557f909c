//! The simulator's endpoints.

use super::Simulator;
use super::behaviour::{Behaviour, Effect, Reply, Step, Webhooks, behaviour};
use super::ledger::{Book, Fault, Intent, Kept, Refund};
use super::webhooks;
use axum::body::Body;
use axum::extract::{Form, Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{Html, IntoResponse, Json, Response};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Duration;

type Fields = HashMap<String, String>;

pub(super) async fn create(
    State(simulator): State<Simulator>,
    headers: HeaderMap,
    Form(form): Form<Fields>,
) -> Response {
    let method = form.get("payment_method").cloned().unwrap_or_default();
    let call = Call { endpoint: "create", step: Step::Create, method, request: canonical("create", &form) };
    run(simulator, headers, call, |book, effect, public_url| {
        let (Some(amount), Some(currency)) =
            (form.get("amount").and_then(|text| text.parse().ok()), form.get("currency"))
        else {
            return Err(refused(400, "parameter_missing", None));
        };
        if form.get("payment_method").is_some_and(|method| method == "pm_sim_no_such_method") {
            return Err(refused(404, "resource_missing", None));
        }
        let id = book.id("pi");
        let mut intent = Intent {
            id: id.clone(),
            amount,
            amount_received: 0,
            currency: currency.clone(),
            status: "requires_capture".to_owned(),
            payment_method: form.get("payment_method").cloned().unwrap_or_default(),
            metadata: metadata(&form),
            created: book.now_ms() / 1_000,
            collects_at_ms: None,
            decline_code: None,
            captures: 0,
        };
        match effect {
            Effect::Done | Effect::Nothing => {}
            Effect::Declined => {
                intent.status = "requires_payment_method".to_owned();
                intent.decline_code = Some("generic_decline".to_owned());
            }
            Effect::AskBuyer => intent.status = "requires_action".to_owned(),
            Effect::CollectsAfter(ms) => {
                intent.status = "processing".to_owned();
                intent.collects_at_ms = Some(book.now_ms() + ms);
            }
        }
        let shown = intent_json(&intent, public_url);
        book.intents.insert(id, intent);
        if effect == Effect::Declined { Err(declined(&shown)) } else { Ok(shown) }
    })
    .await
}

pub(super) async fn capture(
    State(simulator): State<Simulator>,
    headers: HeaderMap,
    Path(id): Path<String>,
) -> Response {
    let method = method_of(&simulator, &id);
    let call = Call { endpoint: "capture", step: Step::Capture, method, request: format!("capture {id}") };
    run(simulator, headers, call, |book, effect, public_url| {
        let Some(intent) = book.intents.get_mut(&id) else { return Err(refused(404, "resource_missing", None)) };
        if intent.status != "requires_capture" {
            return Err(refused(400, "payment_intent_unexpected_state", Some(&intent_json(intent, public_url))));
        }
        if effect == Effect::Declined {
            intent.status = "requires_payment_method".to_owned();
            intent.decline_code = Some("capture_declined".to_owned());
            return Err(declined(&intent_json(intent, public_url)));
        }
        collect(intent);
        Ok(intent_json(intent, public_url))
    })
    .await
}

pub(super) async fn cancel(State(simulator): State<Simulator>, headers: HeaderMap, Path(id): Path<String>) -> Response {
    let method = method_of(&simulator, &id);
    let call = Call { endpoint: "cancel", step: Step::Cancel, method, request: format!("cancel {id}") };
    run(simulator, headers, call, |book, _, public_url| {
        let Some(intent) = book.intents.get_mut(&id) else { return Err(refused(404, "resource_missing", None)) };
        if matches!(intent.status.as_str(), "succeeded" | "canceled" | "processing") {
            return Err(refused(400, "payment_intent_unexpected_state", Some(&intent_json(intent, public_url))));
        }
        intent.status = "canceled".to_owned();
        Ok(intent_json(intent, public_url))
    })
    .await
}

pub(super) async fn refund(
    State(simulator): State<Simulator>,
    headers: HeaderMap,
    Form(form): Form<Fields>,
) -> Response {
    let payment = form.get("payment_intent").cloned().unwrap_or_default();
    let method = method_of(&simulator, &payment);
    let fails_later = method == "pm_sim_refund_fails_later";
    let call = Call { endpoint: "refund", step: Step::Refund, method, request: canonical("refund", &form) };
    run(simulator, headers, call, |book, _, _| {
        let Some(amount) = form.get("amount").and_then(|text| text.parse::<i64>().ok()) else {
            return Err(refused(400, "parameter_missing", None));
        };
        let refunded: i64 = book
            .refunds
            .values()
            .filter(|refund| refund.payment_intent == payment && refund.status != "failed")
            .map(|refund| refund.amount)
            .sum();
        let Some(intent) = book.intents.get(&payment).cloned() else {
            return Err(refused(404, "resource_missing", None));
        };
        if intent.status != "succeeded" || refunded + amount > intent.amount_received {
            return Err(refused(400, "charge_already_refunded", None));
        }
        // Only the first refund of such a payment fails: the one after it must be able to succeed.
        let first = !book.refunds.values().any(|refund| refund.payment_intent == payment);
        let id = book.id("re");
        let refund = Refund {
            id: id.clone(),
            payment_intent: payment.clone(),
            amount,
            currency: intent.currency,
            status: "succeeded".to_owned(),
            metadata: metadata(&form),
            created: book.now_ms() / 1_000,
            fails_at_ms: (fails_later && first).then(|| book.now_ms() + 1_000),
        };
        let shown = refund_json(&refund);
        book.refunds.insert(id, refund);
        Ok(shown)
    })
    .await
}

pub(super) async fn retrieve(State(simulator): State<Simulator>, Path(id): Path<String>) -> Response {
    let public_url = simulator.settings.public_url.clone();
    let found = simulator.change(|book| {
        count(book, "retrieve");
        if let Some(fault) = take_fault(book, "retrieve") {
            return Err(fault.status);
        }
        settle_time(book);
        Ok(book.intents.get(&id).map(|intent| intent_json(intent, &public_url)))
    });
    match found {
        Ok(Some(intent)) => Json(intent).into_response(),
        Ok(None) => failure(404, &refused(404, "resource_missing", None).1),
        Err(status) => failure(status, &json!({ "error": { "type": "api_error" } })),
    }
}

pub(super) async fn list(State(simulator): State<Simulator>, Query(query): Query<Fields>) -> Response {
    let public_url = simulator.settings.public_url.clone();
    let from: i64 = query.get("created[gte]").and_then(|text| text.parse().ok()).unwrap_or(0);
    let to: i64 = query.get("created[lte]").and_then(|text| text.parse().ok()).unwrap_or(i64::MAX);
    let limit: usize = query.get("limit").and_then(|text| text.parse().ok()).unwrap_or(10);
    simulator.change(|book| {
        count(book, "list");
        if let Some(fault) = take_fault(book, "list") {
            return failure(fault.status, &json!({ "error": { "type": "api_error" } }));
        }
        settle_time(book);
        let newest_first = book.intents.values().rev().filter(|intent| (from..=to).contains(&intent.created));
        let mut rest: Vec<&Intent> = match query.get("starting_after") {
            Some(after) => newest_first.skip_while(|intent| intent.id != *after).skip(1).collect(),
            None => newest_first.collect(),
        };
        let has_more = rest.len() > limit;
        rest.truncate(limit);
        let data: Vec<Value> = rest.into_iter().map(|intent| intent_json(intent, &public_url)).collect();
        Json(json!({ "object": "list", "data": data, "has_more": has_more })).into_response()
    })
}

pub(super) async fn list_refunds(State(simulator): State<Simulator>, Query(query): Query<Fields>) -> Response {
    let payment = query.get("payment_intent").cloned().unwrap_or_default();
    simulator.change(|book| {
        count(book, "list_refunds");
        settle_time(book);
        let data: Vec<Value> =
            book.refunds.values().filter(|refund| refund.payment_intent == payment).map(refund_json).collect();
        Json(json!({ "object": "list", "data": data, "has_more": false })).into_response()
    })
}

/// What a buyer does on the provider's page: the action succeeds.
pub(super) async fn complete_action(State(simulator): State<Simulator>, Path(id): Path<String>) -> Response {
    let public_url = simulator.settings.public_url.clone();
    let done = simulator.change(|book| {
        let intent = book.intents.get_mut(&id).filter(|intent| intent.status == "requires_action")?;
        if intent.payment_method == "pm_sim_action_abandoned" {
            return None;
        }
        intent.status = "requires_capture".to_owned();
        Some(intent_json(intent, &public_url))
    });
    match done {
        Some(intent) => {
            webhooks::send(&simulator, "payment_intent.amount_capturable_updated", &intent, Webhooks::Once);
            Html("<!doctype html><title>Payment simulator</title><p>Done. You may go back.").into_response()
        }
        None => (
            StatusCode::CONFLICT,
            Html("<!doctype html><title>Payment simulator</title><p>There is nothing to do here."),
        )
            .into_response(),
    }
}

pub(super) async fn ledger(State(simulator): State<Simulator>) -> Response {
    simulator.change(settle_time);
    Json(simulator.ledger()).into_response()
}

/// Commands for tests: faults to inject, keys to forget, a clock to put forward.
#[derive(serde::Deserialize)]
pub(super) struct Orders {
    #[serde(default)]
    faults: Vec<Fault>,
    #[serde(default)]
    forget_keys: bool,
    #[serde(default)]
    advance_seconds: i64,
    /// Amounts to falsify, in the provider's units, by the payment's operation id.
    #[serde(default)]
    amounts: HashMap<String, i64>,
}

pub(super) async fn faults(State(simulator): State<Simulator>, Json(orders): Json<Orders>) -> StatusCode {
    simulator.change(|book| {
        book.faults.extend(orders.faults);
        book.clock_offset_seconds += orders.advance_seconds;
        if orders.forget_keys {
            book.keys.clear();
        }
        for intent in book.intents.values_mut() {
            let operation = intent.metadata.get("operation_id");
            if let Some(amount) = operation.and_then(|operation| orders.amounts.get(operation)) {
                intent.amount = *amount;
                if intent.amount_received > 0 {
                    intent.amount_received = *amount;
                }
            }
        }
    });
    StatusCode::NO_CONTENT
}

struct Call {
    endpoint: &'static str,
    step: Step,
    method: String,
    request: String,
}

type Refused = (u16, Value);

/// Runs a step the way its payment method behaves, with the provider's rules of idempotency keys.
async fn run(
    simulator: Simulator,
    headers: HeaderMap,
    call: Call,
    step: impl FnOnce(&mut Book, Effect, &str) -> Result<Value, Refused>,
) -> Response {
    let key = headers.get("idempotency-key").and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let first_key = key.rsplit(':').next().is_none_or(|last| last.parse::<u32>().is_err());
    let public_url = simulator.settings.public_url.clone();
    let mut how = behaviour(&call.method, call.step, first_key);
    let begun = simulator.change(|book| begin(book, &key, &call));
    let fault = match begun {
        Ok(fault) => fault,
        Err(early) => return early,
    };
    let _running = Running { simulator: simulator.clone(), key: key.clone() };
    if let Some(fault) = &fault {
        how = Behaviour {
            effect: if fault.done || fault.dropped { how.effect } else { Effect::Nothing },
            reply: if fault.dropped { Reply::Dropped } else { Reply::StoredError },
            webhooks: if fault.dropped { Webhooks::None } else { how.webhooks },
        };
    }
    let status_of_fault = fault.map_or(500, |fault| fault.status);
    let result = simulator.change(|book| match how.effect {
        Effect::Nothing => Err((status_of_fault, json!({ "error": { "type": "api_error" } }))),
        effect => step(book, effect, &public_url),
    });
    let (mut status, mut body) = match result {
        Ok(object) => {
            webhooks::send(&simulator, kind_of(&object), &object, how.webhooks);
            tell_later(&simulator, &object, how);
            (200, object)
        }
        Err((status, body)) => {
            if let Some(object) = body.pointer("/error/payment_intent").filter(|_| status == 402) {
                webhooks::send(&simulator, "payment_intent.payment_failed", object, how.webhooks);
            }
            (status, body)
        }
    };
    if how.reply == Reply::StoredError {
        (status, body) = (status_of_fault, json!({ "error": { "type": "api_error" } }));
    }
    simulator.change(|book| {
        // Like the provider: 409 and 429 are not kept, results and server errors are.
        if !matches!(status, 409 | 429) {
            book.keys.insert(key.clone(), Kept { request: call.request.clone(), status, body: body.clone() });
        }
    });
    match how.reply {
        Reply::Normal | Reply::StoredError => failure(status, &body),
        Reply::After(ms) => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            failure(status, &body)
        }
        Reply::Dropped => {
            let broken = futures_util::stream::once(async { Err::<Vec<u8>, _>(std::io::Error::other("dropped")) });
            Response::new(Body::from_stream(broken))
        }
        Reply::Never => {
            tokio::time::sleep(Duration::from_mins(2)).await;
            failure(504, &json!({ "error": { "type": "api_error" } }))
        }
    }
}

/// What time alone does to an object is told when it happens: money that comes by itself, a refund that turns out to
/// have failed.
fn tell_later(simulator: &Simulator, object: &Value, how: Behaviour) {
    let Some(id) = object.get("id").and_then(Value::as_str).map(str::to_owned) else { return };
    let simulator = simulator.clone();
    let wait_ms = {
        let book = simulator.book();
        let at_ms = book.intents.get(&id).and_then(|intent| intent.collects_at_ms);
        let at_ms = at_ms.or_else(|| book.refunds.get(&id).and_then(|refund| refund.fails_at_ms));
        at_ms.map(|at_ms| u64::try_from(at_ms - book.now_ms()).unwrap_or(0))
    };
    let Some(wait_ms) = wait_ms else { return };
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(wait_ms + 1)).await;
        let changed = simulator.change(|book| {
            settle_time(book);
            let intent = book.intents.get(&id).map(|intent| intent_json(intent, ""));
            intent.or_else(|| book.refunds.get(&id).map(refund_json))
        });
        if let Some(object) = changed {
            webhooks::send(&simulator, kind_of(&object), &object, how.webhooks);
        }
    });
}

/// A call that is being answered: until its caller has the answer, or is gone.
struct Running {
    simulator: Simulator,
    key: String,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.simulator.book().running.remove(&self.key);
    }
}

/// The rules of idempotency keys: a kept reply again, other parameters refused, a running call not doubled.
fn begin(book: &mut Book, key: &str, call: &Call) -> Result<Option<Fault>, Response> {
    count(book, call.endpoint);
    settle_time(book);
    if let Some(kept) = book.keys.get(key) {
        if kept.request != call.request {
            return Err(failure(400, &json!({ "error": { "type": "idempotency_error" } })));
        }
        let mut again = failure(kept.status, &kept.body);
        again.headers_mut().insert("idempotent-replayed", HeaderValue::from_static("true"));
        return Err(again);
    }
    if !book.running.insert(key.to_owned()) {
        return Err(failure(
            409,
            &json!({ "error": { "type": "idempotency_error", "code": "idempotency_key_in_use" } }),
        ));
    }
    Ok(take_fault(book, call.endpoint))
}

fn take_fault(book: &mut Book, endpoint: &str) -> Option<Fault> {
    let index = book.faults.iter().position(|fault| fault.endpoint == endpoint)?;
    Some(book.faults.remove(index))
}

fn count(book: &mut Book, endpoint: &str) {
    *book.calls.entry(endpoint.to_owned()).or_default() += 1;
}

/// What time alone does: payments that collect by themselves, refunds that turn out to have failed.
fn settle_time(book: &mut Book) {
    let now = book.now_ms();
    for intent in book.intents.values_mut() {
        if intent.status == "processing" && intent.collects_at_ms.is_some_and(|at| at <= now) {
            collect(intent);
        }
    }
    for refund in book.refunds.values_mut() {
        if refund.status == "succeeded" && refund.fails_at_ms.is_some_and(|at| at <= now) {
            refund.status = "failed".to_owned();
        }
    }
}

fn collect(intent: &mut Intent) {
    intent.status = "succeeded".to_owned();
    intent.amount_received = intent.amount;
    intent.captures += 1;
}

fn method_of(simulator: &Simulator, id: &str) -> String {
    simulator.book().intents.get(id).map(|intent| intent.payment_method.clone()).unwrap_or_default()
}

fn kind_of(object: &Value) -> &'static str {
    match (object.get("object").and_then(Value::as_str), object.get("status").and_then(Value::as_str)) {
        (Some("refund"), _) => "refund.updated",
        (_, Some("succeeded")) => "payment_intent.succeeded",
        (_, Some("canceled")) => "payment_intent.canceled",
        (_, Some("requires_action")) => "payment_intent.requires_action",
        (_, Some("processing")) => "payment_intent.processing",
        _ => "payment_intent.amount_capturable_updated",
    }
}

/// How long a reservation lasts.
const CAPTURE_WITHIN_SECONDS: i64 = 7 * 86_400;

fn intent_json(intent: &Intent, public_url: &str) -> Value {
    let next_action = (intent.status == "requires_action").then(|| {
        json!({ "type": "redirect_to_url", "redirect_to_url": { "url": format!("{public_url}/actions/{}", intent.id) } })
    });
    json!({
        "id": intent.id, "object": "payment_intent", "amount": intent.amount, "amount_received": intent.amount_received,
        "currency": intent.currency, "status": intent.status, "metadata": intent.metadata, "created": intent.created,
        "client_secret": format!("{}_secret", intent.id), "next_action": next_action,
        "last_payment_error": intent.decline_code.as_ref().map(|code| json!({ "type": "card_error", "decline_code": code })),
        "latest_charge": { "object": "charge", "payment_method_details": {
            "card": { "capture_before": intent.created + CAPTURE_WITHIN_SECONDS } } },
    })
}

fn refund_json(refund: &Refund) -> Value {
    json!({
        "id": refund.id, "object": "refund", "payment_intent": refund.payment_intent, "amount": refund.amount,
        "currency": refund.currency, "status": refund.status, "metadata": refund.metadata, "created": refund.created,
    })
}

fn declined(intent: &Value) -> Refused {
    let code = intent.pointer("/last_payment_error/decline_code").cloned();
    (
        402,
        json!({ "error": { "type": "card_error", "code": "card_declined", "decline_code": code, "payment_intent": intent } }),
    )
}

fn refused(status: u16, code: &str, intent: Option<&Value>) -> Refused {
    (status, json!({ "error": { "type": "invalid_request_error", "code": code, "payment_intent": intent } }))
}

fn failure(status: u16, body: &Value) -> Response {
    (StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), Json(body.clone())).into_response()
}

fn metadata(form: &Fields) -> HashMap<String, String> {
    let inner = |key: &str| Some(key.strip_prefix("metadata[")?.strip_suffix(']')?.to_owned());
    form.iter().filter_map(|(key, value)| Some((inner(key)?, value.clone()))).collect()
}

fn canonical(endpoint: &str, form: &Fields) -> String {
    let mut pairs: Vec<String> = form.iter().map(|(key, value)| format!("{key}={value}")).collect();
    pairs.sort();
    format!("{endpoint} {}", pairs.join("&"))
}
