//! The loops that tidy and carry on: each takes no input, may run in any number of processes, and is safe to run twice.
//! Woken by a signal, and by a clock in case the signal was lost.

use crate::app::App;
use crate::auditor::Violation;
use crate::booking::{Bookings, ReconcileError};
use crate::db::{Db, Pace};
use crate::discovery::{Indexer, Pass};
use crate::inventory::{HOLDS_KEPT, KEYS_KEPT};
use crate::outbox::{Lag, Progress, consume};
use crate::sql;
use crate::wake::Wake;
use sea_orm::{ConnectionTrait, DbErr};
use std::fmt::Display;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    consumer(app, Arc::new(crate::sales::Marker), app.services.bookings.confirmations().clone());
    let departures = crate::waiting::Departures(app.services.waiting.clone());
    consumer(app, Arc::new(departures), app.services.bookings.confirmations().clone());
    if let Some(mailer) = app.mailer.clone() {
        consumer(app, Arc::new(crate::notification::Notifier), app.services.bookings.confirmations().clone());
        run(app, ("mail", Duration::from_secs(1), Wake::default()), move || {
            let mailer = mailer.clone();
            async move { mailer.send_some().await.map(|sent| if sent > 0 { Next::AtOnce } else { Next::Later }) }
        });
    } else {
        tracing::info!("messages to buyers are not sent: set SMTP_URL, or MAIL_FOLDER for files");
    }
    if let Some(purger) = app.purger.clone() {
        consumer(app, purger, Wake::default());
    }
    let inventory = Arc::clone(&app.services.inventory);
    run(app, ("expiry", Duration::from_millis(500), Wake::default()), move || {
        let inventory = Arc::clone(&inventory);
        async move { inventory.expire_some().await.map(|ended| if ended > 0 { Next::AtOnce } else { Next::Later }) }
    });
    start_money(app);
    let (db, minutes) = (app.db.clone(), app.config.payment_escalate_minutes);
    run(app, ("money_watch", Duration::from_secs(15), Wake::default()), move || {
        let db = db.clone();
        async move { crate::payment::watch(&db, minutes).await.map(|_| Next::Later) }
    });
    let (db, catalogue, kept) = (app.db.clone(), app.services.catalogue.clone(), outbox_kept(app));
    run(app, ("gauges", Duration::from_secs(15), Wake::default()), move || {
        let (db, catalogue) = (db.clone(), catalogue.clone());
        async move {
            let late = crate::outbox::watch_all(&db, kept).await?;
            if !late.is_empty() && take_turn(&db, "late_consumers", LATE_TOLD_EVERY).await? {
                for Lag { consumer, seconds } in late {
                    tracing::warn!(
                        consumer,
                        seconds,
                        "outbox rows are kept for a consumer that is far behind; if it was switched off for good: parterre outbox --forget {consumer}"
                    );
                }
            }
            for (event, remaining) in catalogue.stock(STOCK_MAX).await? {
                let left = f64::from(i32::try_from(remaining).unwrap_or(i32::MAX));
                metrics::gauge!("parterre_event_remaining", "event" => event.to_string()).set(left);
            }
            Ok::<_, DbErr>(Next::Later)
        }
    });
    let (db, maps, shutdown) = (app.db.clone(), app.services.seat_maps.clone(), app.shutdown.clone());
    let begun = Instant::now();
    run(app, ("auditor", Duration::from_mins(1), Wake::default()), move || {
        let (db, maps, shutdown) = (db.clone(), maps.clone(), shutdown.clone());
        async move {
            // What an earlier process left is caught up with first.
            if begun.elapsed() < Duration::from_mins(1) {
                return Ok(Next::Later);
            }
            // It only reads, so nobody waits for it who wants to end.
            let audit = async {
                let violations = crate::auditor::check(&db, chrono::Duration::seconds(60), Pace::Gentle).await?;
                Ok::<_, DbErr>((violations, maps.differences(Pace::Gentle).await?))
            };
            let Some(audited) = shutdown.run_until_cancelled(audit).await else { return Ok(Next::Later) };
            let (mut violations, differences) = audited?;
            let invariant = "I11: snapshot and deltas are the database at that version";
            violations.extend(differences.into_iter().map(|what| Violation { invariant, what }));
            metrics::gauge!("parterre_invariant_violations")
                .set(f64::from(u32::try_from(violations.len()).unwrap_or(u32::MAX)));
            for violation in violations {
                tracing::error!(invariant = violation.invariant, what = violation.what, "an invariant is broken");
            }
            Ok::<_, DbErr>(Next::Later)
        }
    });
    start_forgetting(app);
    let catalogue = app.services.catalogue.clone();
    run(app, ("drafts", Duration::from_secs(30), Wake::default()), move || {
        let catalogue = catalogue.clone();
        async move { catalogue.finish_drafts().await.map(|_| Next::Later) }
    });
}

fn outbox_kept(app: &App) -> chrono::Duration {
    chrono::Duration::minutes(i64::from(app.config.outbox_kept_minutes))
}

/// What removes rows that are kept for a while only, a batch at a time.
fn start_forgetting(app: &App) {
    let (db, kept) = (app.db.clone(), outbox_kept(app));
    run(app, ("outbox_retention", Duration::from_secs(20), Wake::default()), move || {
        let db = db.clone();
        async move {
            crate::outbox::forget_some(&db, kept)
                .await
                .map(|passed| if passed > 0 { Next::Rested } else { Next::Later })
        }
    });
    let inventory = Arc::clone(&app.services.inventory);
    run(app, ("hold_retention", Duration::from_mins(1), Wake::default()), move || {
        let inventory = Arc::clone(&inventory);
        async move {
            let keys = inventory.forget_keys(KEYS_KEPT).await?;
            let holds = inventory.forget_holds(HOLDS_KEPT).await?;
            Ok::<_, DbErr>(if keys.seen + holds.seen > 0 { Next::Rested } else { Next::Later })
        }
    });
}

/// What drives payments, refunds and what was called off.
fn start_money(app: &App) {
    let bookings = app.services.bookings.clone();
    run(app, ("payments", Duration::from_millis(500), app.services.bookings.waker().clone()), move || {
        let bookings = bookings.clone();
        async move { bookings.drive_known().await.map(|due| if due > 0 { Next::Soon } else { Next::Later }) }
    });
    // One after the other, at a quarter of the provider's rate: the rest is for those who pay.
    let rest = Duration::from_secs_f64(4.0 / f64::from(app.config.stripe_calls_per_second.get()));
    let bookings = app.services.bookings.clone();
    run(app, ("unknown_payments", rest, Wake::default()), move || {
        let bookings = bookings.clone();
        async move { bookings.look_for_unknown(1).await.map(|_| Next::Later) }
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
    let (bookings, db) = (app.services.bookings.clone(), app.db.clone());
    let every = Duration::from_mins(u64::from(app.config.reconcile_every_minutes.max(1)));
    run(app, ("reconciliation", every.min(Duration::from_mins(1)), Wake::default()), move || {
        let (bookings, db) = (bookings.clone(), db.clone());
        async move {
            if take_turn(&db, "reconciliation", every).await? {
                reconcile(&bookings).await?;
            }
            Ok::<_, ReconcileError>(Next::Later)
        }
    });
}

/// Starts what tidies a server's own memory.
pub fn start_tidying(app: &App) {
    let (limiter, waiting) = (app.limiter.clone(), app.services.waiting.clone());
    run(app, ("tidying", Duration::from_mins(1), Wake::default()), move || {
        let (limiter, waiting) = (limiter.clone(), waiting.clone());
        async move {
            waiting.tidy();
            if let Some(limiter) = limiter {
                limiter.tidy(crate::clock::now());
            }
            Ok::<_, std::convert::Infallible>(Next::Later)
        }
    });
}

/// How often a consumer that is far behind is told of, by all processes together.
const LATE_TOLD_EVERY: Duration = Duration::from_hours(1);

/// Events whose stock is told as a metric.
const STOCK_MAX: i64 = 200;

/// How far back reconciliation compares.
const RECONCILED: chrono::Duration = chrono::Duration::hours(48);

async fn reconcile(bookings: &Bookings) -> Result<(), ReconcileError> {
    let now = bookings.now().await?;
    let report = bookings.reconcile(now - RECONCILED, now).await?;
    let count = |number: usize| u64::try_from(number).unwrap_or(u64::MAX);
    metrics::counter!("parterre_reconciliation_repaired_total").increment(count(report.repaired.len()));
    for difference in &report.unexplained {
        tracing::error!(difference, "reconciliation found what only a person can explain");
    }
    Ok(())
}

/// Whether it is this process's turn to do a job that one process at a time should do, so often.
async fn take_turn(db: &Db, name: &'static str, every: Duration) -> Result<bool, DbErr> {
    let taken = db
        .pool()
        .execute_raw(sql!(
            "INSERT INTO job (name, started_at) VALUES ($1, clock_timestamp())
             ON CONFLICT (name) DO UPDATE SET started_at = excluded.started_at
             WHERE job.started_at <= clock_timestamp() - make_interval(secs => $2)",
            name,
            every.as_secs_f64()
        ))
        .await?;
    Ok(taken.rows_affected() == 1)
}

/// Starts the worker that keeps this process's search index: every server has its own.
pub fn start_indexer(app: &App) {
    let indexer = Arc::new(tokio::sync::Mutex::new(Indexer::new(app.services.discovery.clone())));
    let (behind, db) = (Arc::clone(&indexer), app.db.clone());
    run(app, ("search_lag", Duration::from_secs(15), Wake::default()), move || {
        let (behind, db) = (Arc::clone(&behind), db.clone());
        async move {
            let position = behind.lock().await.position().unwrap_or_default();
            crate::outbox::watch(&db, "search", position).await.map(|()| Next::Later)
        }
    });
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

/// How long a consumer's pass may take. One that hangs is given up, and what it began is undone and tried again.
const CONSUMER_PATIENCE: Duration = Duration::from_secs(20);

fn consumer(app: &App, consumer: Arc<dyn crate::outbox::Consumer>, wake: Wake) {
    let db = app.db.clone();
    run(app, (consumer.name(), Duration::from_millis(500), wake), move || {
        let (db, consumer) = (db.clone(), Arc::clone(&consumer));
        async move {
            let progress = tokio::time::timeout(CONSUMER_PATIENCE, consume(&db, &*consumer))
                .await
                .map_err(|_| DbErr::Custom(format!("it did not end within {CONSUMER_PATIENCE:?}")))??;
            Ok::<_, DbErr>(match progress {
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
