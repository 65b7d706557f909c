//! The box office in a real browser.

use crate::clients::node_tests;
use crate::process::free_port;
use crate::support::{Setup, Stage};
use serde_json::{Value, json};
use std::path::Path;

/// Twenty sections of 25 rows of a hundred seats.
fn arena() -> Value {
    let row = |row: usize| {
        let seats: Vec<Value> = (1..=100).map(|n| json!({ "number": n.to_string(), "zone": "Stalls" })).collect();
        json!({ "name": row.to_string(), "seats": seats })
    };
    let rows: Vec<Value> = (1..=25).map(row).collect();
    (1..=20).map(|section| json!({ "name": format!("Block {section}"), "rows": rows })).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_works_in_a_real_browser_for_two_buyers_at_once() {
    let found = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    let browser = found.into_iter().find(|path| Path::new(path).exists());
    let browser = browser.expect("the page is tested in Chromium: install it (Debian: apt-get install chromium)");
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(3, 8, |_| {}).await;
    let arena = stage
        .event(Some(arena()), |input| {
            input["title"] = json!("Stadium night");
            input["category"] = json!("Rock");
        })
        .await;
    let listen = format!("127.0.0.1:{}", free_port().await);
    let (data, screenshots) = (stage.folder.join("page"), Path::new(env!("CARGO_TARGET_TMPDIR")).join("page"));
    let environment = [
        ("SERVER", env!("CARGO_BIN_EXE_parterre")),
        ("LISTEN", listen.as_str()),
        ("PARTERRE_LISTEN", listen.as_str()),
        ("PARTERRE_PUBLIC_URL", &format!("http://{listen}")),
        ("PARTERRE_PLAYGROUND_TOKEN", "true"),
        ("PARTERRE_LIMITS", "off"),
        ("PARTERRE_DATA", data.to_str().unwrap()),
        ("DATABASE_URL", &stage.config.database_url),
        ("STRIPE_API_BASE", &stage.config.stripe_api_base),
        ("EVENT", &hall.event),
        ("ARENA", &arena.event),
        ("CHROMIUM", browser),
        ("SCREENSHOTS", screenshots.to_str().unwrap()),
    ];
    node_tests("page.mjs", &environment).await;
    eprintln!("screenshots are in {}", screenshots.display());
    // Its last server was killed: what it left is done here.
    stage
        .drive_until("its money is at rest", || async {
            (stage.number("SELECT count(*) FROM payment WHERE next_check_at IS NOT NULL").await
                + stage
                    .number("SELECT count(*) FROM refund WHERE next_check_at IS NOT NULL AND status <> 'SUCCEEDED'")
                    .await
                == 0)
                .then_some(())
        })
        .await;
    stage.issue_tickets().await;
    stage.finish().await;
}
