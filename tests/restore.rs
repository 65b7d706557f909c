//! A database restored into another cluster, where every transaction id of the old one means nothing.

use crate::support::{Api, Setup, Stage, eventually, start};
use parterre::db::Db;
use parterre::dev::{Cluster, Durability};
use parterre::discovery::{Discovery, Indexer, Pass};
use parterre::{auditor, outbox};
use sea_orm::ConnectionTrait as _;
use serde_json::json;
use std::process::Command;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dump_restored_into_a_new_cluster_skips_no_outbox_row_and_rebuilds_index_and_maps() {
    let stage = Stage::with(Setup { workers: false, ..Setup::default() }).await;
    let hall = stage.hall(1, 6, |_| {}).await;
    let (mina, leo) = (stage.buyer("mina"), stage.buyer("leo"));
    let hold = mina.hold(&hall.event, "k", &["A-1"]).await["hold"]["id"].clone();
    let delivered = mina.checkout(&hold, "c", "pm_card_visa").await["booking"]["id"].clone();
    stage.issue_tickets().await;
    let hold = leo.hold(&hall.event, "k", &["A-3"]).await["hold"]["id"].clone();
    let undelivered = leo.checkout(&hold, "c", "pm_card_visa").await["booking"]["id"].clone();
    stage.rest_but_tickets().await;
    let found = |api: Api| async move {
        let answer = api.ask("{ searchEvents(query: \"aida\") { totalCount } }", json!({})).await;
        (answer["data"]["searchEvents"]["totalCount"] == 1).then_some(())
    };
    eventually("the index knows the event", || found(mina.clone())).await;

    let folder = stage.folder.join("elsewhere");
    let cluster = Cluster::start(&folder, Durability::Fast).unwrap();
    let dump = std::env::temp_dir().join(format!("{}.dump", stage.database));
    let source = crate::support::admin_url();
    let source = format!("{}/{}", source.rsplit_once('/').unwrap().0, stage.database);
    let bytes = cluster.run("pg_dump", &["--format=custom", &source]).unwrap().stdout;
    std::fs::write(&dump, bytes).unwrap();
    cluster.create_database("restored").unwrap();
    Command::new("chmod").args(["a+r", &dump.to_string_lossy()]).status().unwrap();
    cluster.run("pg_restore", &["--no-owner", "--dbname", &cluster.url("restored"), &dump.to_string_lossy()]).unwrap();
    std::fs::remove_file(&dump).unwrap();

    let db = Db::connect(&cluster.url("restored"), 2).await.unwrap();
    let rows =
        outbox::read_after(db.pool(), outbox::Position::default(), 10_000, outbox::Topic::ALL).await.unwrap().rows;
    let all = stage.number("SELECT count(*) FROM outbox").await;
    let readable = i64::try_from(rows.len()).unwrap();
    eprintln!("{readable} of {all} outbox rows are readable before the new cluster is noticed");
    // The old cluster was much older, and no worker has noticed yet that this is another one.
    db.pool().execute_unprepared("UPDATE outbox_removed SET xid = '4000000000', id = 1").await.unwrap();
    let mut indexer = Indexer::new(Discovery::open(db.clone(), &stage.folder.join("alone")));
    assert_eq!(indexer.pass().await.unwrap(), Pass::Rebuilt, "there was no index");
    assert_ne!(indexer.pass().await.unwrap(), Pass::Rebuilt, "what the old cluster removed says nothing here");
    // The old index, whose position is of the old cluster, is still there.
    let mut config = stage.config.clone();
    config.database_url = cluster.url("restored");
    config.data = stage.folder.join("moved");
    Command::new("cp")
        .args(["-r", &stage.folder.join("0").to_string_lossy(), &config.data.to_string_lossy()])
        .status()
        .unwrap();
    let shutdown = CancellationToken::new();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = start(config, listener, true, shutdown.clone()).await;
    let (mina, leo) = (Api::new(&server.url, mina.token.clone()), Api::new(&server.url, leo.token.clone()));
    let tickets = |api: Api, id: serde_json::Value| async move {
        (api.booking(&id).await["tickets"].as_array().unwrap().len() == 1).then_some(())
    };
    eventually("the tickets that were not issued yet are", || tickets(leo.clone(), undelivered.clone())).await;
    tickets(mina.clone(), delivered.clone()).await.expect("and those that were are there once");
    eventually("search finds the event", || found(mina.clone())).await;
    let map = "query($id: ID!) { seatMap(eventId: $id) { sections { statuses } } }";
    let read = mina.data(map, json!({ "id": hall.event })).await;
    assert_eq!(read["seatMap"]["sections"][0]["statuses"], "SASAAA");
    let hold = mina.hold(&hall.event, "new", &["A-5"]).await["hold"]["id"].clone();
    let new = mina.checkout(&hold, "new", "pm_card_visa").await["booking"]["id"].clone();
    eventually("what is new is delivered too", || tickets(mina.clone(), new.clone())).await;
    assert_eq!(mina.data(map, json!({ "id": hall.event })).await["seatMap"]["sections"][0]["statuses"], "SASASA");
    eventually("every row is delivered to every consumer", || async {
        let statement = "SELECT count(*) FROM outbox, outbox_cursor AS cursor WHERE (outbox.xid, outbox.id) > (cursor.xid, cursor.id)";
        let row = db.pool().query_one_raw(parterre::sql!(statement)).await.unwrap().unwrap();
        (row.try_get_by_index::<i64>(0).unwrap() == 0).then_some(())
    })
    .await;
    let violations = auditor::check(&db, chrono::Duration::zero(), parterre::db::Pace::Full).await.unwrap();
    assert!(violations.is_empty(), "{violations:#?}");
    shutdown.cancel();
    server.app.drain(std::time::Duration::from_secs(10)).await;
    db.pool().clone().close().await.unwrap();
    cluster.remove().unwrap();
    stage.discard().await;
}
