//! The loops that tidy and carry on: each takes no input, may run in any number of processes, and is safe to run twice.
//! Woken by a signal, and by a clock in case the signal was lost.

use crate::app::App;
use crate::discovery::{Indexer, Pass};
use crate::outbox::{Progress, consume};
use crate::wake::Wake;
use std::fmt::Display;
use std::sync::Arc;
use std::time::Duration;

/// What a pass says about the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// There is more.
    AtOnce,
    /// Something will be there in a moment.
    Soon,
    /// There may be more, but a rest first gathers it.
    Rested,
    /// When woken, or after the interval.
    Later,
}

/// How soon "soon" is: committed outbox rows lie behind an older transaction for about this long.
const SOON: Duration = Duration::from_millis(10);

/// Starts every worker of a process.
pub fn start(app: &App) {
    consumer(app, Arc::new(crate::outbox::Relay { bus: Arc::clone(&app.services.bus) }), app.outbox_wake.clone());
    consumer(app, Arc::new(crate::booking::Issuer), app.services.bookings.confirmations().clone());
    let inventory = Arc::clone(&app.services.inventory);
    run(app, ("expiry", Duration::from_millis(500), Wake::default()), move || {
        let inventory = Arc::clone(&inventory);
        async move { inventory.expire_some().await.map(|ended| if ended > 0 { Next::AtOnce } else { Next::Later }) }
    });
    let bookings = app.services.bookings.clone();
    run(app, ("payments", Duration::from_millis(500), app.services.bookings.waker().clone()), move || {
        let bookings = bookings.clone();
        async move { bookings.drive_due().await.map(|due| if due > 0 { Next::Soon } else { Next::Later }) }
    });
    let bookings = app.services.bookings.clone();
    run(app, ("webhooks", Duration::from_secs(1), app.webhook_wake.clone()), move || {
        let bookings = bookings.clone();
        async move { bookings.process_webhooks().await.map(|done| if done > 0 { Next::AtOnce } else { Next::Later }) }
    });
    let bookings = app.services.bookings.clone();
    run(app, ("cancelled_events", Duration::from_secs(1), Wake::default()), move || {
        let bookings = bookings.clone();
        async move { bookings.undo_cancelled_events().await.map(|done| if done > 0 { Next::AtOnce } else { Next::Later }) }
    });
    let db = app.db.clone();
    run(app, ("auditor", Duration::from_mins(1), Wake::default()), move || {
        let db = db.clone();
        async move {
            let violations = crate::auditor::check(&db, chrono::Duration::seconds(60)).await?;
            metrics::gauge!("parterre_invariant_violations")
                .set(f64::from(u32::try_from(violations.len()).unwrap_or(u32::MAX)));
            for violation in violations {
                tracing::error!(invariant = violation.invariant, what = violation.what, "an invariant is broken");
            }
            Ok::<_, sea_orm::DbErr>(Next::Later)
        }
    });
    let catalogue = app.services.catalogue.clone();
    run(app, ("drafts", Duration::from_secs(30), Wake::default()), move || {
        let catalogue = catalogue.clone();
        async move { catalogue.finish_drafts().await.map(|_| Next::Later) }
    });
}

/// Starts the worker that keeps this process's search index: every server has its own.
pub fn start_indexer(app: &App) {
    let indexer = Arc::new(tokio::sync::Mutex::new(Indexer::new(app.services.discovery.clone())));
    run(app, ("search", Duration::from_millis(300), Wake::default()), move || {
        let indexer = Arc::clone(&indexer);
        async move {
            indexer.lock().await.pass().await.map(|pass| match pass {
                Pass::Rebuilt => Next::AtOnce,
                Pass::Moved | Pass::Behind | Pass::Idle => Next::Later,
            })
        }
    });
}

/// How long a consumer rests after a batch of rows, so that one pass takes many.
const CONSUMER_REST: Duration = Duration::from_millis(50);

fn consumer(app: &App, consumer: Arc<dyn crate::outbox::Consumer>, wake: Wake) {
    let db = app.db.clone();
    run(app, (consumer.name(), Duration::from_millis(500), wake), move || {
        let (db, consumer) = (db.clone(), Arc::clone(&consumer));
        async move {
            consume(&db, &*consumer).await.map(|progress| match progress {
                Progress::Moved => Next::Rested,
                Progress::Behind => Next::Soon,
                Progress::Idle => Next::Later,
            })
        }
    });
}

/// A supervised loop: a failed or broken pass is logged and tried again after a pause that grows.
fn run<F, R, E>(app: &App, (name, interval, wake): (&'static str, Duration, Wake), mut pass: F)
where
    F: FnMut() -> R + Send + 'static,
    R: Future<Output = Result<Next, E>> + Send + 'static,
    E: Display + Send + 'static,
{
    let (shutdown, mut sleeper) = (app.shutdown.clone(), wake.listen());
    app.tasks.spawn(async move {
        let mut failures = 0_u32;
        while !shutdown.is_cancelled() {
            // In a task of its own, so that a panic ends the pass and not the worker.
            let pause = match tokio::spawn(pass()).await {
                Ok(Ok(next)) => {
                    failures = 0;
                    match next {
                        Next::AtOnce => continue,
                        Next::Soon => SOON,
                        Next::Rested => {
                            tokio::time::sleep(CONSUMER_REST).await;
                            continue;
                        }
                        Next::Later => interval,
                    }
                }
                Ok(Err(error)) => {
                    tracing::warn!(worker = name, %error, "a worker's pass failed, trying again");
                    backoff(&mut failures)
                }
                Err(error) => {
                    tracing::error!(worker = name, %error, "a worker's pass broke, trying again");
                    backoff(&mut failures)
                }
            };
            tokio::select! {
                () = shutdown.cancelled() => {}
                () = sleeper.woken() => {}
                () = tokio::time::sleep(pause) => {}
            }
        }
    });
}

/// 0.2, 0.4 … seconds, 10 at the most.
fn backoff(failures: &mut u32) -> Duration {
    *failures = (*failures + 1).min(6);
    Duration::from_millis(100_u64 << *failures).min(Duration::from_secs(10))
}
