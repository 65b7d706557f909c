//! The clients that people use: npm's graphql-http audits, graphql-ws and graphql-sse against a real server.

use crate::support::Stage;
use std::path::Path;
use tokio::process::Command;

async fn run(command: &mut Command, what: &str) {
    let output = command.current_dir("tests/clients").output().await.unwrap_or_else(|error| {
        panic!("{what} needs Node with npm: install it from nodejs.org ({error})");
    });
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{what}:\n{}\n{}", told(&output.stdout), told(&output.stderr));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_that_people_use_work_without_a_special_case() {
    if !Path::new("tests/clients/node_modules/.package-lock.json").exists() {
        run(Command::new("npm").args(["ci", "--no-fund", "--no-audit"]), "npm ci").await;
    }
    let stage = Stage::new().await;
    let hall = stage.hall(1, 6, |_| {}).await;
    let mut suite = Command::new("node");
    suite
        .args(["--test", "--test-reporter=spec", "--test-timeout=20000", "--test-force-exit", "suite.mjs"])
        .env("URL_HTTP", &stage.servers[0].url)
        .env("EVENT", &hall.event)
        .env("SECRET", stage.config.jwt_secret.expose());
    run(&mut suite, "the clients' suite").await;
    stage.finish().await;
}
