//! Messages to buyers: what they say, that each is written once, and what a mail server may do.

use crate::process::{command, dying, start_with};
use crate::support::{Api, PATIENCE, Setup, Stage, eventually};
use mail_parser::{Message, MessageParser, MimeHeaders, PartType};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

async fn booked(stage: &Stage, buyer: &Api, input: Value) -> Value {
    let hall = stage.hall(1, 6, |event| event["title"] = json!("<Aida> & friends")).await;
    let hold = buyer.hold(&hall.event, "k", &["A-2", "A-3"]).await["hold"]["id"].clone();
    let mut request = json!({ "holdId": hold, "idempotencyKey": "c", "paymentMethod": "pm_card_visa" });
    request.as_object_mut().unwrap().extend(input.as_object().unwrap().clone());
    buyer.must("checkout", request, "booking { id code status }").await["booking"].clone()
}

/// The messages in the folder, by their subjects.
fn in_folder(stage: &Stage) -> Vec<String> {
    let Ok(folder) = std::fs::read_dir(stage.folder.join("mail")) else { return Vec::new() };
    let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "eml"));
    files.sort();
    files.into_iter().map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

fn parse(raw: &str) -> Message<'_> {
    MessageParser::default().parse(raw).unwrap()
}

async fn messages(stage: &Stage, count: usize) -> Vec<String> {
    eventually("messages in the folder", || async {
        let found = in_folder(stage);
        (found.len() == count).then_some(found)
    })
    .await
}

/// What a QR code in a PNG says.
fn scan(png: &[u8]) -> String {
    let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    let [width, height] = [info.width, info.height].map(|side| usize::try_from(side).unwrap());
    let mut image = rqrr::PreparedImage::prepare_from_greyscale(width, height, |x, y| pixels[y * width + x]);
    image.detect_grids()[0].decode().unwrap().1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn confirmation_cancellation_and_refund_are_told_once_each_with_the_tickets() {
    let stage = Stage::new().await;
    let mina = stage.buyer("mina");
    let booking = booked(&stage, &mina, json!({ "contactEmail": "mina@box.example" })).await;
    let raw = messages(&stage, 1).await.remove(0);
    let confirmation = parse(&raw);
    assert_eq!(confirmation.subject(), Some("Your tickets: <Aida> & friends"));
    assert_eq!(confirmation.to().unwrap().first().unwrap().address(), Some("mina@box.example"));
    let read = mina.booking(&booking["id"]).await;
    let codes: Vec<&str> =
        read["tickets"].as_array().unwrap().iter().map(|ticket| ticket["code"].as_str().unwrap()).collect();
    let (text, html) = (confirmation.body_text(0).unwrap(), confirmation.body_html(0).unwrap());
    for told in [booking["code"].as_str().unwrap(), "Main, row A, seat 2", "50.00 EUR", codes[0], codes[1]] {
        assert!(text.contains(told) && html.contains(told), "{told}\n{text}\n{html}");
    }
    assert!(html.contains("&#60;Aida&#62; &#38; friends") && !html.contains("<Aida>"), "{html}");
    assert!(text.contains("<Aida> & friends"), "plain text is not escaped: {text}");
    let images: Vec<String> = confirmation
        .parts
        .iter()
        .filter(|part| part.content_id().is_some_and(|id| id.starts_with("ticket-")))
        .map(|part| match &part.body {
            PartType::Binary(bytes) | PartType::InlineBinary(bytes) => scan(bytes),
            other => panic!("not an image: {other:?}"),
        })
        .collect();
    assert_eq!(images, codes, "each image says its ticket's code");
    let name = format!("tickets-{}.pdf", booking["code"].as_str().unwrap());
    let pdf = confirmation.attachments().find(|part| part.attachment_name() == Some(&name));
    assert!(pdf.unwrap().contents().starts_with(b"%PDF-"), "the tickets are attached");

    mina.must("cancel", json!({ "bookingId": booking["id"], "idempotencyKey": "x" }), "booking { status }").await;
    let told = messages(&stage, 3).await;
    let subjects: Vec<String> = told.iter().map(|raw| parse(raw).subject().unwrap().to_owned()).collect();
    for subject in ["Cancelled: <Aida> & friends", "Refunded: <Aida> & friends"] {
        assert_eq!(subjects.iter().filter(|found| *found == subject).count(), 1, "{subjects:?}");
    }
    stage.rest().await;

    // Everything is delivered again, as after a restore.
    stage.execute("UPDATE outbox_cursor SET xid = '0', id = 0").await;
    eventually("delivered again", || async {
        let behind = "SELECT count(*) FROM outbox, outbox_cursor AS c WHERE c.consumer = 'notifications' AND (outbox.xid, outbox.id) > (c.xid, c.id)";
        (stage.number(behind).await == 0).then_some(())
    })
    .await;
    assert_eq!(stage.number("SELECT count(*) FROM notification").await, 3);
    assert_eq!(in_folder(&stage), told);
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_contact_the_verified_address_is_used_in_the_buyers_language() {
    let stage = Stage::new().await;
    booked(&stage, &stage.buyer("leo"), json!({ "locale": "de-AT" })).await;
    let raw = messages(&stage, 1).await.remove(0);
    let message = parse(&raw);
    assert_eq!(message.to().unwrap().first().unwrap().address(), Some("leo@example.com"));
    assert_eq!(message.subject(), Some("Deine Tickets: <Aida> & friends"));
    assert!(message.body_text(0).unwrap().contains("Reihe A, Platz 2"));
    stage.finish().await;
}

/// Moves the notifications of a stage without workers on by hand.
async fn send_by_hand(stage: &Stage) {
    let notifier = parterre::notification::Notifier;
    eventually("nothing is left to tell", || async {
        (parterre::outbox::consume(&stage.db, &notifier).await.unwrap() == parterre::outbox::Progress::Idle)
            .then_some(())
    })
    .await;
    stage.execute("UPDATE notification SET next_try_at = clock_timestamp() WHERE next_try_at IS NOT NULL").await;
    stage.servers[0].app.mailer.as_ref().unwrap().send_some().await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_that_were_revoked_meanwhile_are_not_sent() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let mina = stage.buyer("mina");
    let booking = booked(&stage, &mina, json!({})).await;
    stage.issue_tickets().await;
    mina.must("cancel", json!({ "bookingId": booking["id"], "idempotencyKey": "x" }), "booking { status }").await;
    send_by_hand(&stage).await;
    let subjects: Vec<String> = in_folder(&stage).iter().map(|raw| parse(raw).subject().unwrap().to_owned()).collect();
    assert_eq!(subjects, ["Cancelled: <Aida> & friends"]);
    assert_eq!(stage.text("SELECT status FROM notification WHERE kind = 'CONFIRMED'").await, "OVERTAKEN");
    stage
        .drive_until("refunded", || async {
            (mina.booking(&booking["id"]).await["status"] == "REFUNDED").then_some(())
        })
        .await;
    stage.finish().await;
}

/// A mail server that answers a message's data as told, one after the other, and keeps the Message-IDs it was given.
#[derive(Clone)]
struct MailServer {
    url: String,
    replies: Arc<Mutex<Vec<&'static str>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl MailServer {
    async fn start(replies: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            url: format!("smtp://{}", listener.local_addr().unwrap()),
            replies: Arc::new(Mutex::new(replies.iter().rev().copied().collect())),
            seen: Arc::default(),
        };
        let here = server.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let here = here.clone();
                tokio::spawn(async move { drop(here.talk(stream).await) });
            }
        });
        server
    }

    async fn talk(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut stream = BufReader::new(stream);
        stream.write_all(b"220 test\r\n").await?;
        let (mut line, mut in_data) = (String::new(), false);
        while {
            line.clear();
            stream.read_line(&mut line).await?
        } > 0
        {
            if in_data {
                if let Some(id) = line.strip_prefix("Message-ID: ") {
                    self.seen.lock().unwrap().push(id.trim().to_owned());
                }
                if line == ".\r\n" {
                    in_data = false;
                    let reply = self.replies.lock().unwrap().pop().unwrap_or("250 accepted");
                    stream.write_all(format!("{reply}\r\n").as_bytes()).await?;
                }
                continue;
            }
            let reply = if line.starts_with("DATA") { "354 go on" } else { "250 fine" };
            in_data = line.starts_with("DATA");
            stream.write_all(format!("{reply}\r\n").as_bytes()).await?;
        }
        Ok(())
    }

    fn seen(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn by_hand(server: &MailServer) -> Stage {
    Stage::with(Setup { workers: false, smtp_url: Some(server.url.clone()), ..Setup::default() }).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_busy_is_asked_again_with_the_same_id_and_one_that_refuses_is_not() {
    for (replies, status, copies) in
        [(vec!["451 later", "451 later"], "SENT", 3), (vec!["550 no such user"], "REFUSED", 1)]
    {
        let server = MailServer::start(&replies).await;
        let stage = by_hand(&server).await;
        booked(&stage, &stage.buyer("mina"), json!({})).await;
        stage.issue_tickets().await;
        for _ in 0..4 {
            send_by_hand(&stage).await;
        }
        assert_eq!(stage.text("SELECT status FROM notification").await, status);
        let seen = server.seen();
        assert_eq!(seen.len(), copies, "{seen:?}");
        let id = stage.text("SELECT id::text FROM notification").await;
        assert!(seen.iter().all(|seen| *seen == format!("<{id}@parterre.example>")), "{seen:?}");
        stage.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_copy_is_sent_only_after_a_death_between_acceptance_and_mark() {
    for (death, copies) in [("before_mail", 1), ("after_mail", 2)] {
        let server = MailServer::start(&[]).await;
        let stage = by_hand(&server).await;
        booked(&stage, &stage.buyer("mina"), json!({})).await;
        let mut process = start_with(|| {
            let mut command = dying(&stage, death);
            command.env("SMTP_URL", &server.url);
            command
        })
        .await;
        tokio::time::timeout(PATIENCE, process.child.wait()).await.unwrap().unwrap();
        stage.execute("UPDATE notification SET next_try_at = clock_timestamp() WHERE next_try_at IS NOT NULL").await;
        let _again = start_with(|| {
            let mut command = command(&stage, "serve");
            command.env("SMTP_URL", &server.url);
            command
        })
        .await;
        eventually("sent", || async {
            (stage.number("SELECT count(*) FROM notification WHERE status = 'SENT'").await == 1).then_some(())
        })
        .await;
        let seen = server.seen();
        assert_eq!(seen.len(), copies, "{death}");
        assert!(seen.iter().all(|id| *id == seen[0]), "{seen:?}");
        stage.finish().await;
    }
}
