//! Amounts at the provider that are not the booking's: never confirmed, decided by a person, with a row in the trail.

use crate::process::command;
use crate::support::{Api, Setup, Stage};
use serde_json::{Value, json};

/// What the command line prints.
async fn review(stage: &Stage, arguments: &[&str]) -> String {
    let mut process = command(stage, "payments");
    process.arg("review").args(arguments).env("USER", "ada");
    process.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let output = process.output().await.unwrap();
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

/// A booking of 25.00 whose payment is another one at the provider, noticed after a step whose reply was lost.
async fn mismatch(stage: &Stage, buyer: &Api, lost: &str, amount: i64) -> (Value, String) {
    let hall = stage.hall(1, 4, |_| {}).await;
    let hold = buyer.hold(&hall.event, "k", &["A-2"]).await["hold"]["id"].clone();
    stage.simulate(json!({ "faults": [{ "endpoint": lost, "dropped": true }] })).await;
    let booking = buyer.checkout(&hold, "c", "pm_card_visa").await["booking"].clone();
    assert_eq!(booking["status"], "PAYMENT_PENDING");
    stage.nobody_drives().await;
    let operation = booking["payment"]["operationId"].as_str().unwrap().to_owned();
    stage.simulate(json!({ "amounts": { &operation: amount } })).await;
    stage
        .drive_until("a person has to decide", || async {
            (stage.number("SELECT count(*) FROM payment WHERE status = 'NEEDS_REVIEW'").await == 1).then_some(())
        })
        .await;
    assert_eq!(buyer.booking(&booking["id"]).await["status"], "PAYMENT_PENDING", "never confirmed");
    (booking, stage.text("SELECT id::text FROM payment").await)
}

async fn by_hand() -> Stage {
    Stage::with(Setup { workers: false, checkout_wait_ms: 300, ..Setup::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_collected_wrongly_is_given_back_by_decision_and_the_seats_are_free() {
    let stage = by_hand().await;
    let mina = stage.buyer("mina");
    let (booking, payment) = mismatch(&stage, &mina, "capture", 1_999).await;
    let listed = review(&stage, &[]).await;
    assert!(listed.contains(&payment) && listed.contains("1999 EUR") && listed.contains("2500 EUR"), "{listed}");
    assert!(review(&stage, &[&payment]).await.contains("--decide"), "it says what is missing");
    assert!(review(&stage, &[&payment, "--decide", "give-back"]).await.contains("--reason"));
    let done = review(&stage, &[&payment, "--decide", "give-back", "--reason", "tampered with"]).await;
    assert!(done.contains("decided"), "{done}");
    let twice = review(&stage, &[&payment, "--decide", "give-back", "--reason", "again"]).await;
    assert!(twice.contains("does not wait for a decision"), "{twice}");
    stage
        .drive_until("the money is back", || async {
            (mina.booking(&booking["id"]).await["status"] == "REFUNDED").then_some(())
        })
        .await;
    let read = mina.booking(&booking["id"]).await;
    assert_eq!(
        (&read["refunds"][0]["amount"]["amount"], &read["refunds"][0]["reason"]),
        (&json!("19.99"), &json!("OTHER"))
    );
    assert_eq!(stage.number("SELECT count(*) FROM event_seat WHERE status = 'AVAILABLE'").await, 4);
    let trail = "SELECT actor || ' ' || action || ' ' || (detail ->> 'reason') FROM audit WHERE subject_id::text = (SELECT id::text FROM payment)";
    assert_eq!(stage.text(trail).await, "ada payment_give_back tampered with");
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_only_reserved_wrongly_is_voided_by_decision() {
    let stage = by_hand().await;
    let mina = stage.buyer("mina");
    let (booking, payment) = mismatch(&stage, &mina, "create", 99).await;
    review(&stage, &[&payment, "--decide", "give-back", "--reason", "wrong amount"]).await;
    stage
        .drive_until("voided", || async {
            (stage.number("SELECT count(*) FROM payment WHERE status = 'VOIDED'").await == 1).then_some(())
        })
        .await;
    assert_eq!(mina.booking(&booking["id"]).await["status"], "FAILED");
    assert_eq!(stage.calls("capture"), 0);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_put_right_at_the_provider_is_confirmed_after_another_look() {
    for lost in ["create", "capture"] {
        let stage = by_hand().await;
        let mina = stage.buyer("mina");
        let (booking, payment) = mismatch(&stage, &mina, lost, 1).await;
        review(&stage, &[&payment, "--decide", "look-again", "--reason", "is it still wrong?"]).await;
        let operation = booking["payment"]["operationId"].as_str().unwrap();
        stage
            .drive_until("it is still wrong", || async {
                (stage.number("SELECT count(*) FROM payment WHERE status = 'NEEDS_REVIEW'").await == 1).then_some(())
            })
            .await;
        stage.simulate(json!({ "amounts": { operation: 2_500 } })).await;
        review(&stage, &[&payment, "--decide", "look-again", "--reason", "put right"]).await;
        stage
            .drive_until("confirmed", || async {
                (mina.booking(&booking["id"]).await["status"] == "CONFIRMED").then_some(())
            })
            .await;
        stage.issue_tickets().await;
        stage.finish().await;
    }
}
