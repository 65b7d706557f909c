//! One integration binary: the tests speak GraphQL over HTTP to real servers on a real PostgreSQL, one database a test.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::print_stderr,
    clippy::too_many_lines,
    reason = "tests fail by panicking, and say what they did"
)]

mod support;

mod access;
mod audit;
mod authorization;
mod calloff;
mod catalogue;
mod choices;
mod clients;
mod connections;
mod contract;
mod edge;
mod examples;
mod feed;
mod holds;
mod hostile;
mod keys;
mod livemap;
mod messages;
mod model;
mod money;
mod page;
mod playground;
mod process;
mod restore;
mod retention;
mod review;
mod rooms;
mod sales;
mod story;
mod tokens;
mod uncertain;
mod waiting;
mod webhooks;
