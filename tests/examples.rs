//! The example clients, each as its reader would run it.

use crate::clients::{install, run};
use crate::support::Stage;
use std::path::Path;
use tokio::process::Command;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_example_client_buys_two_seats() {
    let stage = Stage::new().await;
    let hall = stage.hall(2, 10, |_| {}).await;
    let examples = Path::new("playground/examples");
    let typescript = examples.join("typescript");
    install(&typescript).await;
    run(npm(&typescript, "check"), "the types of the examples").await;
    let rust = Path::new(env!("CARGO_BIN_EXE_parterre")).with_file_name("parterre-example");
    assert!(rust.exists(), "./dev test builds it: cargo build --workspace --bins");
    let examples = [
        ("curl", Command::new(std::fs::canonicalize(examples.join("curl/buy.sh")).unwrap())),
        ("urql", npm(&typescript, "urql")),
        ("apollo", npm(&typescript, "apollo")),
        ("rust", Command::new(rust)),
    ];
    for (name, mut example) in examples {
        example.env("PARTERRE_URL", &stage.servers[0].url).env("PARTERRE_EVENT", &hall.event);
        example.env("PARTERRE_TOKEN", stage.buyer(name).token.unwrap());
        let said = run(example, name).await;
        match name {
            "curl" => assert!(said.contains("CANCELLED") || said.contains("CANCELLING"), "{said}"),
            "urql" | "apollo" => {
                let map = said.lines().find(|line| line.starts_with("the map says: ")).unwrap();
                // What is told comes a moment later, and by then they may be paid for.
                assert_eq!(map.matches("HELD").count() + map.matches("SOLD").count(), 2, "{said}");
                assert!(said.contains(": CONFIRMED, 2 tickets"), "{said}");
            }
            _ => assert!(said.contains(": Confirmed, 2 tickets"), "{said}"),
        }
    }
    let sold = "SELECT count(*) FROM event_seat WHERE status = 'SOLD'";
    assert_eq!(stage.number(sold).await, 6, "curl gave its seats back");
    stage.finish().await;
}

fn npm(folder: &Path, script: &str) -> Command {
    let mut npm = Command::new("npm");
    npm.args(["run", "--silent", script]).current_dir(folder);
    npm
}
