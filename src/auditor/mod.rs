//! The invariants of the design as checks that list violations, run on a read-only snapshot.
//!
//! Invariant: this room only reads, and knows no noun: it judges the rows alone. A check that holds only at rest gives
//! what is in flight its grace. No rule crosses events, so a pass goes through them in slices, each on a short snapshot
//! of its own.

use crate::db::{Db, Pace, Single};
use crate::sql;
use chrono::Duration;
use sea_orm::{DbErr, FromQueryResult};
use std::time::Instant;
use uuid::Uuid;

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Which promise.
    pub invariant: &'static str,
    /// By what.
    pub what: String,
}

/// A promise and the statement that lists what breaks it; `$1` is the grace in seconds, `$2` the events of the slice.
struct Check {
    invariant: &'static str,
    statement: &'static str,
}

/// Events of one slice, and seats, unless it is one event.
const SLICE_EVENTS: i64 = 50;
const SLICE_SEATS: i64 = 50_000;

/// Violations listed of one promise at the most.
const LISTED_MAX: usize = 100;

/// Lists violations. What changed within the grace is taken to be in flight.
pub async fn check(db: &Db, grace: Duration, pace: Pace) -> Result<Vec<Violation>, DbErr> {
    #[derive(FromQueryResult)]
    struct Event {
        id: Uuid,
        seats_wanted: i32,
    }
    let grace_seconds = f64::from(i32::try_from(grace.num_seconds()).unwrap_or(i32::MAX));
    let mut violations = run(db, OF_ALL, (grace_seconds, &[])).await?;
    let mut last = Uuid::nil();
    loop {
        let events = Event::find_by_statement(sql!(
            "SELECT id, seats_wanted FROM event WHERE id > $1 ORDER BY id LIMIT $2",
            last,
            SLICE_EVENTS
        ))
        .all(db.pool())
        .await?;
        let mut seats = 0;
        let fits = |event: &Event| {
            let is_first = seats == 0;
            seats += i64::from(event.seats_wanted).max(1);
            is_first || seats <= SLICE_SEATS
        };
        let slice: Vec<Uuid> = events.into_iter().take_while(fits).map(|event| event.id).collect();
        let Some(newest) = slice.last().copied() else { return Ok(violations) };
        let begun = Instant::now();
        violations.extend(run(db, OF_EVENTS, (grace_seconds, &slice)).await?);
        last = newest;
        pace.rest_after(begun.elapsed()).await;
    }
}

/// Runs checks on one snapshot.
async fn run(db: &Db, checks: &[Check], (grace_seconds, events): (f64, &[Uuid])) -> Result<Vec<Violation>, DbErr> {
    let snapshot = db.snapshot().await?;
    let mut violations = Vec::new();
    for check in checks {
        let statement = format!(
            "SELECT what AS value FROM ({}) AS found (what) CROSS JOIN (SELECT $1::float8, $2::uuid[]) AS given LIMIT {LISTED_MAX}",
            check.statement
        );
        let rows =
            Single::<String>::find_by_statement(sql!(statement, grace_seconds, events.to_vec())).all(&snapshot).await?;
        violations.extend(rows.into_iter().map(|row| Violation { invariant: check.invariant, what: row.value }));
    }
    snapshot.commit().await?;
    Ok(violations)
}

/// What holds in the whole database.
const OF_ALL: &[Check] = &[
    Check {
        invariant: "I12: no session idles in a transaction",
        statement: "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'
           AND state_change < clock_timestamp() - interval '5 seconds'",
    },
    Check {
        invariant: "I8: what committed is delivered",
        statement: "SELECT cursor.consumer FROM outbox_cursor AS cursor WHERE cursor.consumer IN ('relay', 'tickets')
           AND EXISTS (SELECT FROM outbox WHERE (outbox.xid, outbox.id) > (cursor.xid, cursor.id)
                       AND outbox.created_at < clock_timestamp() - make_interval(secs => greatest($1, 300)))",
    },
    Check {
        invariant: "no outbox row was set aside",
        statement: "SELECT consumer || ' ' || xid::text || ' ' || id || ' ' || error FROM outbox_quarantine",
    },
];

/// What holds in each event. Tickets that their consumer has still to issue are late and not lost: that is I8's, five
/// minutes later.
const OF_EVENTS: &[Check] = &[
    Check {
        invariant: "I1: a seat has one live allocation",
        statement: "SELECT event_id::text || ' ' || seat_no FROM (
             SELECT item.event_id, item.seat_no FROM hold_item AS item JOIN hold ON hold.id = item.hold_id
             JOIN event_seat AS seat ON seat.event_id = item.event_id AND seat.seat_no = item.seat_no
             WHERE item.event_id = ANY($2) AND item.seat_no IS NOT NULL AND (item.state IN ('PENDING', 'SOLD')
                OR (item.state = 'HELD' AND hold.status = 'ACTIVE' AND hold.deadline > clock_timestamp()))) AS live
         GROUP BY event_id, seat_no HAVING count(*) > 1",
    },
    Check {
        invariant: "I1: every live allocation is what the seat's row says",
        statement: "SELECT item.hold_id::text || ' ' || item.seat_no || ' ' || item.state || ' ' || seat.status
         FROM hold_item AS item JOIN hold ON hold.id = item.hold_id
         JOIN event_seat AS seat ON seat.event_id = item.event_id AND seat.seat_no = item.seat_no
         LEFT JOIN booking ON booking.hold_id = hold.id AND booking.status IN ('PAYMENT_PENDING', 'CONFIRMED')
         WHERE item.event_id = ANY($2) AND CASE
             WHEN item.state IN ('PENDING', 'SOLD') THEN seat.status <> item.state OR seat.booking_id IS DISTINCT FROM booking.id
             WHEN item.state = 'HELD' AND hold.status = 'ACTIVE' AND hold.deadline > clock_timestamp()
                 THEN seat.status <> 'HELD' OR seat.hold_id <> hold.id OR seat.held_until <> hold.deadline
             ELSE false END",
    },
    Check {
        invariant: "I1: every taken seat has its item",
        statement: "SELECT seat.event_id::text || ' ' || seat.seat_no || ' ' || seat.status FROM event_seat AS seat
         WHERE seat.event_id = ANY($2) AND seat.status IN ('PENDING', 'SOLD') AND NOT EXISTS (
             SELECT FROM booking JOIN hold_item AS item ON item.hold_id = booking.hold_id
             WHERE booking.id = seat.booking_id AND item.event_id = seat.event_id AND item.seat_no = seat.seat_no
               AND item.state = seat.status)",
    },
    Check {
        invariant: "I2: a confirmed booking owns exactly the items of its hold, all in one event",
        statement: "SELECT booking.id::text FROM booking JOIN hold_item AS item ON item.hold_id = booking.hold_id
         WHERE booking.event_id = ANY($2) AND booking.status = 'CONFIRMED' AND (item.state <> 'SOLD' OR item.event_id <> booking.event_id)",
    },
    Check {
        invariant: "I4: one booking of a hold is confirmed",
        statement: "SELECT hold_id::text FROM booking WHERE event_id = ANY($2) AND status = 'CONFIRMED' GROUP BY hold_id HAVING count(*) > 1",
    },
    Check {
        invariant: "I4: one capture of a hold backs a booking",
        statement: "SELECT booking.hold_id::text FROM booking JOIN payment ON payment.booking_id = booking.id
         WHERE booking.event_id = ANY($2) AND payment.status = 'CAPTURED' AND booking.status IN ('CONFIRMED', 'CANCELLING', 'CANCELLED')
         GROUP BY booking.hold_id HAVING count(*) > 1",
    },
    Check {
        invariant: "I5: a cancelled booking has the refund of its terms",
        statement: "SELECT booking.id::text FROM booking JOIN payment ON payment.booking_id = booking.id
         WHERE booking.event_id = ANY($2) AND booking.cancelled_at IS NOT NULL AND payment.status = 'CAPTURED'
           AND booking.total_minor * booking.refund_ppm >= 1000 * 1000000::bigint
           AND NOT EXISTS (SELECT FROM refund WHERE refund.booking_id = booking.id AND refund.status <> 'FAILED' AND stray_of IS NULL)",
    },
    Check {
        invariant: "I5: money has a booking, or goes back",
        statement: "SELECT payment.id::text || ' ' || booking.status FROM payment JOIN booking ON booking.id = payment.booking_id
         WHERE payment.event_id = ANY($2) AND payment.status = 'CAPTURED' AND booking.status IN ('FAILED', 'PAYMENT_PENDING')
           AND payment.created_at < clock_timestamp() - make_interval(secs => $1)",
    },
    Check {
        invariant: "I5: what was confirmed and not free was captured",
        statement: "SELECT booking.id::text FROM booking LEFT JOIN payment ON payment.booking_id = booking.id
         WHERE booking.event_id = ANY($2) AND booking.confirmed_at IS NOT NULL AND booking.total_minor > 0 AND payment.status IS DISTINCT FROM 'CAPTURED'",
    },
    Check {
        invariant: "I8: what committed has its outbox row",
        statement: "SELECT hold.id::text FROM hold, outbox_removed AS removed WHERE event_id = ANY($2) AND hold.created_at > removed.created_at
           AND NOT EXISTS (SELECT FROM outbox WHERE event_id = hold.event_id AND subject_id = hold.id AND topic = 'hold')
         UNION ALL SELECT booking.id::text FROM booking, outbox_removed AS removed WHERE event_id = ANY($2)
           AND coalesce(cancelled_at, confirmed_at, booking.created_at) > removed.created_at
           AND NOT EXISTS (SELECT FROM outbox WHERE event_id = booking.event_id AND subject_id = booking.id
               AND topic = 'booking' AND payload ->> 'to' = booking.status)",
    },
    Check {
        invariant: "I9: a tier's counts are the sums of its items",
        statement: "SELECT tier.event_id::text || ' ' || tier.tier_no FROM event_tier AS tier
         CROSS JOIN LATERAL (
             SELECT coalesce(sum(quantity) FILTER (WHERE state = 'HELD'), 0) AS held,
                    coalesce(sum(quantity) FILTER (WHERE state = 'PENDING'), 0) AS pending,
                    coalesce(sum(quantity) FILTER (WHERE state = 'SOLD'), 0) AS sold,
                    coalesce(sum(quantity) FILTER (WHERE state = 'WITHDRAWN'), 0) AS withdrawn
             FROM hold_item AS item WHERE item.event_id = tier.event_id AND item.tier_no = tier.tier_no) AS sums
         WHERE tier.event_id = ANY($2) AND (tier.held, tier.pending, tier.sold, tier.withdrawn) IS DISTINCT FROM (sums.held, sums.pending, sums.sold, sums.withdrawn)",
    },
    Check {
        invariant: "what may still be sold is what the counter says",
        statement: "SELECT counter.event_id::text || ' ' || counter.section_no FROM event_counter AS counter
         WHERE counter.event_id = ANY($2) AND counter.remaining <> CASE WHEN section_no = -1
             THEN (SELECT coalesce(sum(available + held + pending), 0) FROM event_tier WHERE event_id = counter.event_id)
             ELSE (SELECT count(*) FROM event_seat AS seat WHERE seat.event_id = counter.event_id
                   AND seat.section_no = counter.section_no AND seat.status IN ('AVAILABLE', 'HELD', 'PENDING')) END",
    },
    Check {
        invariant: "I13: a confirmed booking has one valid ticket an admission, another has none",
        statement: "SELECT booking.id::text FROM booking
         CROSS JOIN LATERAL (SELECT count(*) AS valid FROM ticket WHERE booking_id = booking.id AND status = 'ISSUED') AS tickets
         CROSS JOIN LATERAL (SELECT sum(quantity) AS admissions FROM hold_item WHERE hold_id = booking.hold_id) AS items
         WHERE booking.event_id = ANY($2) AND tickets.valid <> CASE WHEN booking.status = 'CONFIRMED' THEN items.admissions ELSE 0 END
           AND coalesce(booking.cancelled_at, booking.confirmed_at, booking.created_at) < clock_timestamp() - make_interval(secs => $1)
           AND NOT (booking.status = 'CONFIRMED' AND tickets.valid < items.admissions AND EXISTS (
               SELECT FROM outbox JOIN outbox_cursor AS cursor ON cursor.consumer = 'tickets'
               WHERE outbox.event_id = booking.event_id AND outbox.subject_id = booking.id AND topic = 'booking'
                 AND payload ->> 'to' = 'CONFIRMED' AND (outbox.xid, outbox.id) > (cursor.xid, cursor.id)))",
    },
    Check {
        invariant: "I4: refunds that have not failed do not exceed what was captured",
        statement: "SELECT payment.id::text FROM payment JOIN refund ON refund.payment_id = payment.id AND refund.status <> 'FAILED'
           AND refund.stray_of IS NULL
         WHERE payment.event_id = ANY($2)
         GROUP BY payment.id HAVING sum(refund.amount_minor) > payment.captured_minor",
    },
    Check {
        invariant: "I3: money without seats is on its way back",
        statement: "SELECT booking.id::text FROM booking JOIN payment ON payment.booking_id = booking.id
         WHERE booking.event_id = ANY($2) AND booking.status = 'REFUND_REQUIRED' AND payment.status = 'CAPTURED'
           AND booking.created_at < clock_timestamp() - make_interval(secs => $1)
           AND NOT EXISTS (SELECT FROM refund WHERE refund.booking_id = booking.id AND refund.status <> 'FAILED')",
    },
    Check {
        invariant: "I6: a seat's copy of its hold's deadline is the deadline",
        statement: "SELECT hold.id::text FROM event_seat AS seat JOIN hold ON hold.id = seat.hold_id
         WHERE seat.event_id = ANY($2) AND seat.held_until IS DISTINCT FROM hold.deadline",
    },
    Check {
        invariant: "an open payment is due some time",
        statement: "SELECT payment.id::text || ' ' || payment.status FROM payment
         WHERE payment.event_id = ANY($2) AND payment.status IN ('CREATED', 'AUTHORIZING', 'REQUIRES_ACTION', 'AUTHORIZED', 'CAPTURING', 'VOIDING', 'UNKNOWN')
           AND payment.next_check_at IS NULL",
    },
];
