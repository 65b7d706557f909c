//! Buys the best two seats with cynic: the queries are Rust types, checked against the schema by the compiler.
//!
//! `PARTERRE_TOKEN=$(./dev token buyer ada) cargo run -p parterre-example`

use anyhow::{Context as _, bail};
use cynic::{GraphQlResponse, MutationBuilder, QueryBuilder};
use std::time::Duration;

#[cynic::schema("parterre")]
mod schema {}

#[derive(cynic::QueryVariables, Debug)]
struct FindVariables {
    words: Option<String>,
}

#[derive(cynic::QueryFragment, Debug)]
#[cynic(graphql_type = "Query", variables = "FindVariables")]
struct Find {
    #[arguments(query: $words, first: 5)]
    search_events: Option<Found>,
}

#[derive(cynic::QueryFragment, Debug)]
#[cynic(graphql_type = "EventSearchConnection")]
struct Found {
    nodes: Vec<Event>,
}

#[derive(cynic::QueryFragment, Debug)]
struct Event {
    id: cynic::Id,
    title: String,
}

#[derive(cynic::QueryVariables, Debug)]
struct HoldVariables {
    input: HoldSeatsInput,
}

#[derive(cynic::InputObject, Debug)]
struct HoldSeatsInput {
    event_id: cynic::Id,
    idempotency_key: String,
    best_available: BestAvailableInput,
}

#[derive(cynic::InputObject, Debug)]
struct BestAvailableInput {
    quantity: i32,
}

#[derive(cynic::QueryFragment, Debug)]
#[cynic(graphql_type = "Mutation", variables = "HoldVariables")]
struct HoldTwo {
    #[arguments(input: $input)]
    hold_seats: Option<HoldSeatsPayload>,
}

#[derive(cynic::QueryFragment, Debug)]
struct HoldSeatsPayload {
    hold: Option<Hold>,
    user_errors: Vec<UserError>,
}

#[derive(cynic::QueryFragment, Debug)]
struct Hold {
    id: cynic::Id,
    items: Vec<HoldItem>,
}

#[derive(cynic::QueryFragment, Debug)]
struct HoldItem {
    seat: Option<EventSeat>,
}

#[derive(cynic::QueryFragment, Debug)]
struct EventSeat {
    seat_id: cynic::Id,
}

#[derive(cynic::QueryFragment, Debug)]
struct UserError {
    message: String,
}

#[derive(cynic::QueryVariables, Debug)]
struct PayVariables {
    input: CheckoutInput,
}

#[derive(cynic::InputObject, Debug)]
struct CheckoutInput {
    hold_id: cynic::Id,
    idempotency_key: String,
    payment_method: String,
}

#[derive(cynic::QueryFragment, Debug)]
#[cynic(graphql_type = "Mutation", variables = "PayVariables")]
struct Pay {
    #[arguments(input: $input)]
    checkout: Option<CheckoutPayload>,
}

#[derive(cynic::QueryFragment, Debug)]
struct CheckoutPayload {
    booking: Option<Booking>,
    user_errors: Vec<UserError>,
}

#[derive(cynic::QueryVariables, Debug)]
struct BookingVariables {
    id: cynic::Id,
}

#[derive(cynic::QueryFragment, Debug)]
#[cynic(graphql_type = "Query", variables = "BookingVariables")]
struct Look {
    #[arguments(id: $id)]
    booking: Option<Booking>,
}

#[derive(cynic::QueryFragment, Debug)]
struct Booking {
    id: cynic::Id,
    code: String,
    status: BookingStatus,
    tickets: Vec<Ticket>,
}

#[derive(cynic::QueryFragment, Debug)]
struct Ticket {
    code: String,
}

#[derive(cynic::Enum, Clone, Copy, Debug, PartialEq)]
#[cynic(non_exhaustive)]
enum BookingStatus {
    PaymentPending,
    Confirmed,
    Failed,
    #[cynic(fallback)]
    Other,
}

struct Client {
    http: reqwest::Client,
    url: String,
    token: String,
}

impl Client {
    async fn ask<R, V>(&self, operation: cynic::Operation<R, V>) -> anyhow::Result<R>
    where
        cynic::Operation<R, V>: serde::Serialize,
        R: serde::de::DeserializeOwned,
    {
        let request = self.http.post(&self.url).bearer_auth(&self.token).json(&operation);
        let answer: GraphQlResponse<R> = request.send().await?.json().await?;
        if let Some(error) = answer.errors.into_iter().flatten().next() {
            bail!("{error}");
        }
        answer.data.context("no data")
    }
}

fn refuse_if_any(errors: &[UserError]) -> anyhow::Result<()> {
    errors.first().map_or(Ok(()), |error| bail!("{}", error.message))
}

#[tokio::main(flavor = "current_thread")]
#[expect(
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "an example speaks, and has no settings of its own"
)]
async fn main() -> anyhow::Result<()> {
    drop(rustls::crypto::ring::default_provider().install_default());
    let setting = |name: &str| std::env::var(name).ok();
    let client = Client {
        http: reqwest::Client::new(),
        url: setting("PARTERRE_URL").unwrap_or_else(|| "http://127.0.0.1:8000".to_owned()) + "/graphql",
        token: setting("PARTERRE_TOKEN").context("set PARTERRE_TOKEN: ./dev token buyer ada")?,
    };

    let found = client.ask(Find::build(FindVariables { words: None })).await?;
    let first = found.search_events.and_then(|found| found.nodes.into_iter().next());
    let event = match setting("PARTERRE_EVENT") {
        Some(id) => cynic::Id::new(id),
        None => first.inspect(|event| println!("{}", event.title)).context("no event is on sale")?.id,
    };

    let key = uuid::Uuid::new_v4().to_string();
    let best_available = BestAvailableInput { quantity: 2 };
    let input = HoldSeatsInput { event_id: event, idempotency_key: key.clone(), best_available };
    let held = client.ask(HoldTwo::build(HoldVariables { input })).await?.hold_seats.context("no answer")?;
    refuse_if_any(&held.user_errors)?;
    let hold = held.hold.context("no hold")?;
    let seats: Vec<&str> = hold.items.iter().filter_map(|item| Some(item.seat.as_ref()?.seat_id.inner())).collect();
    println!("held {}", seats.join(" and "));

    let input = CheckoutInput { hold_id: hold.id, idempotency_key: key, payment_method: "pm_card_visa".to_owned() };
    let paid = client.ask(Pay::build(PayVariables { input })).await?.checkout.context("no answer")?;
    refuse_if_any(&paid.user_errors)?;
    let mut booking = paid.booking.context("no booking")?;
    while booking.tickets.is_empty() {
        if booking.status == BookingStatus::Failed {
            bail!("the payment failed");
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
        let look = Look::build(BookingVariables { id: booking.id.clone() });
        booking = client.ask(look).await?.booking.context("the booking is gone")?;
    }
    println!("{}: {:?}, {} tickets", booking.code, booking.status, booking.tickets.len());
    for ticket in &booking.tickets {
        println!("  {}", ticket.code);
    }
    Ok(())
}
