//! What the provider reports by itself: saved before it is acknowledged, and then a reason to look, never a fact.

use super::Bookings;
use super::settle::Reporter;
use super::store::BookingError;
use super::strays::is_stray;
use crate::db::{Single, Transaction};
use crate::sql;
use parterre_entity::{PaymentId, RefundId};
use sea_orm::{ConnectionTrait, DbErr, EntityTrait, FromQueryResult};

/// Reports that a pass takes at the most.
const A_PASS: i64 = 50;
/// Looks at one report, the last ones an hour apart, before it is left alone.
const ATTEMPTS_MAX: i32 = 60;

/// Marks a saved report as done with, in the transaction that settled what it is about.
pub(super) async fn done_with(tx: &Transaction, id: &str) -> Result<(), DbErr> {
    tx.execute_raw(sql!(
        "UPDATE webhook_inbox SET processed_at = clock_timestamp(), attempts = attempts + 1
         WHERE provider_event_id = $1 AND processed_at IS NULL",
        id
    ))
    .await
    .map(drop)
}

impl Bookings {
    /// Saves a report under the provider's own id of it. A known one is kept as it is.
    pub async fn save_webhook(&self, id: &str, payload: serde_json::Value) -> Result<bool, BookingError> {
        let written = self
            .db
            .pool()
            .execute_raw(sql!(
                "INSERT INTO webhook_inbox (provider_event_id, payload) VALUES ($1, $2) ON CONFLICT DO NOTHING",
                id,
                payload
            ))
            .await?
            .rows_affected();
        Ok(written == 1)
    }

    /// Looks at what some saved reports are about. Returns how many were done with: none while the provider is down.
    pub async fn process_webhooks(&self) -> Result<usize, BookingError> {
        #[derive(FromQueryResult)]
        struct Row {
            provider_event_id: String,
            payload: serde_json::Value,
        }
        if !self.provider.is_up() {
            return Ok(0);
        }
        let rows = Row::find_by_statement(sql!(
            "SELECT provider_event_id, payload FROM webhook_inbox
             WHERE processed_at IS NULL AND next_look_at <= (SELECT clock_timestamp())
             ORDER BY next_look_at LIMIT $1",
            A_PASS
        ))
        .all(self.db.pool())
        .await?;
        let mut done = 0;
        for row in rows {
            let id = row.provider_event_id.as_str();
            let settled = self.look_at_what_it_is_about(id, &row.payload).await.unwrap_or_else(|error| {
                tracing::warn!(webhook.id = id, %error, "what a webhook is about could not be settled yet");
                false
            });
            if settled {
                done += 1;
                continue;
            }
            self.db
                .pool()
                .execute_raw(sql!(
                    // One that nothing is known about for days is kept, and not looked at any more.
                    "UPDATE webhook_inbox SET attempts = attempts + 1,
                        next_look_at = CASE WHEN attempts + 1 >= $2 THEN 'infinity'
                            ELSE clock_timestamp() + make_interval(secs => least(power(2, least(attempts, 12)) / 4, 3600)) END
                     WHERE provider_event_id = $1 AND processed_at IS NULL",
                    id,
                    ATTEMPTS_MAX
                ))
                .await?;
        }
        Ok(done)
    }

    /// A report may be about a second payment with an operation id of ours. What can't be done now, reconciliation does.
    async fn look_for_stray(&self, payment: PaymentId, provider_id: Option<String>) {
        let Some(provider_id) = provider_id.filter(|id| !id.is_empty()) else { return };
        let known = parterre_entity::payment::Entity::find_by_id(payment).one(self.db.pool()).await.ok().flatten();
        let Some(row) = known.filter(|row| is_stray(row, &provider_id)) else { return };
        match self.provider.retrieve(&provider_id).await {
            Ok(intent) => {
                if let Err(error) = self.give_stray_back(&row, &intent).await {
                    tracing::warn!(payment.id = %payment, %error, "a second payment could not be given back yet");
                }
            }
            Err(error) => tracing::warn!(payment.id = %payment, %error, "a second payment could not be read yet"),
        }
    }

    /// Whether it was settled, and with that done with.
    async fn look_at_what_it_is_about(&self, id: &str, payload: &serde_json::Value) -> Result<bool, BookingError> {
        let text = |pointer: &str| payload.pointer(pointer).and_then(serde_json::Value::as_str).map(str::to_owned);
        let operation = text("/data/object/metadata/operation_id");
        let intent = text("/data/object/payment_intent").or_else(|| text("/data/object/id"));
        if text("/data/object/object").as_deref() == Some("refund") {
            let refund = Single::<RefundId>::find_by_statement(sql!(
                "SELECT id AS value FROM refund WHERE operation_id = $1",
                operation.unwrap_or_default()
            ))
            .one(self.db.pool())
            .await?;
            return match refund {
                Some(row) => super::refunds::look_at(self, row.value, id).await,
                None => Ok(false),
            };
        }
        let payment = Single::<PaymentId>::find_by_statement(sql!(
            "SELECT id AS value FROM payment WHERE operation_id = $1 OR provider_id = $2 LIMIT 1",
            operation.unwrap_or_default(),
            intent.unwrap_or_default()
        ))
        .one(self.db.pool())
        .await?;
        match payment {
            Some(row) => {
                self.look_for_stray(row.value, text("/data/object/id")).await;
                self.look_at(row.value, Reporter { cause: "webhook", webhook: Some(id) }).await
            }
            // It may be about a payment whose commit is not there yet: kept, and looked at again.
            None => Ok(false),
        }
    }
}
