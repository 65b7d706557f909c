//! The clients that people use: npm's graphql-http audits, graphql-ws and graphql-sse against a real server.

use crate::support::Stage;
use std::path::Path;
use tokio::process::Command;
use tokio::sync::OnceCell;

async fn run(command: &mut Command, what: &str) {
    let output = command.current_dir("tests/clients").output().await.unwrap_or_else(|error| {
        panic!("{what} needs Node with npm: install it from nodejs.org ({error})");
    });
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{what}:\n{}\n{}", told(&output.stdout), told(&output.stderr));
}

/// Runs a file of tests, with what it needs in the environment.
pub async fn node_tests(file: &str, environment: &[(&str, &str)]) {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let install = async || {
        let written =
            |file: &str| std::fs::metadata(Path::new("tests/clients").join(file)).and_then(|it| it.modified()).ok();
        // Not there, or of an earlier list.
        if written("node_modules/.package-lock.json") < written("package-lock.json") {
            run(Command::new("npm").args(["ci", "--no-fund", "--no-audit"]), "npm ci").await;
        }
    };
    INSTALLED.get_or_init(install).await;
    let mut suite = Command::new("node");
    suite
        .args(["--test", "--test-reporter=spec", "--test-timeout=120000", "--test-force-exit", file])
        .envs(environment.iter().copied());
    run(&mut suite, file).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn odd_documents_are_answered_as_by_the_reference_implementation() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 1, |_| {}).await;
    let query = "query($id: ID!) { venue(id: $id) { id version name city countryCode timeZone latitude longitude } }";
    let venue = stage.stranger().data(query, serde_json::json!({ "id": hall.venue })).await["venue"].to_string();
    node_tests("corpus.mjs", &[("URL_HTTP", &stage.servers[0].url), ("VENUE", &venue)]).await;
    stage.finish().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_clients_that_people_use_work_without_a_special_case() {
    let stage = Stage::new().await;
    let hall = stage.hall(1, 6, |_| {}).await;
    let secret = stage.config.jwt_secret.expose();
    let environment = [("URL_HTTP", stage.servers[0].url.as_str()), ("EVENT", &hall.event), ("SECRET", secret)];
    node_tests("suite.mjs", &environment).await;
    stage.finish().await;
}
