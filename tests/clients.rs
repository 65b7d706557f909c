//! The clients that people use: npm's graphql-http audits, graphql-ws and graphql-sse against a real server.

use crate::support::Stage;
use std::path::Path;
use tokio::process::Command;
use tokio::sync::OnceCell;

/// Runs a command and returns what it said; fails with it if it failed.
pub async fn run(mut command: Command, what: &str) -> String {
    let output = command.output().await.unwrap_or_else(|error| {
        panic!("{what} could not be started: Node comes from nodejs.org, the rest from ./dev test ({error})");
    });
    let told = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{what}:\n{}\n{}", told(&output.stdout), told(&output.stderr));
    told(&output.stdout)
}

/// Installs a folder's packages, unless they are there and of this list.
pub async fn install(folder: &Path) {
    let written = |file: &str| std::fs::metadata(folder.join(file)).and_then(|it| it.modified()).ok();
    if written("node_modules/.package-lock.json") < written("package-lock.json") {
        let mut install = Command::new("npm");
        install.args(["ci", "--no-fund", "--no-audit"]).current_dir(folder);
        run(install, "npm ci").await;
    }
}

/// Runs a file of tests, with what it needs in the environment.
pub async fn node_tests(file: &str, environment: &[(&str, &str)]) {
    static INSTALLED: OnceCell<()> = OnceCell::const_new();
    let folder = Path::new("tests/clients");
    INSTALLED.get_or_init(|| install(folder)).await;
    let mut suite = Command::new("node");
    suite
        .args(["--test", "--test-reporter=spec", "--test-timeout=600000", "--test-force-exit", file])
        .envs(environment.iter().copied())
        .current_dir(folder);
    run(suite, file).await;
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
