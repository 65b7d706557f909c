//! The invariants of the design as checks that list violations.

use super::Stage;
use parterre::sql;
use sea_orm::ConnectionTrait;

/// Name and statement; each row of a result is a violation.
const CHECKS: [(&str, &str); 13] = [
    (
        "I1: a seat has one live allocation",
        "SELECT event_id::text || ' ' || seat_no FROM (
             SELECT item.event_id, item.seat_no FROM hold_item AS item JOIN hold ON hold.id = item.hold_id
             JOIN event_seat AS seat ON seat.event_id = item.event_id AND seat.seat_no = item.seat_no
             WHERE item.seat_no IS NOT NULL AND (item.state IN ('PENDING', 'SOLD')
                OR (item.state = 'HELD' AND hold.status = 'ACTIVE' AND hold.deadline > clock_timestamp()))) AS live
         GROUP BY event_id, seat_no HAVING count(*) > 1",
    ),
    (
        "I1: every live allocation is what the seat's row says",
        "SELECT item.hold_id::text || ' ' || item.seat_no || ' ' || item.state || ' ' || seat.status
         FROM hold_item AS item JOIN hold ON hold.id = item.hold_id
         JOIN event_seat AS seat ON seat.event_id = item.event_id AND seat.seat_no = item.seat_no
         LEFT JOIN booking ON booking.hold_id = hold.id AND booking.status IN ('PAYMENT_PENDING', 'CONFIRMED')
         WHERE CASE
             WHEN item.state IN ('PENDING', 'SOLD') THEN seat.status <> item.state OR seat.booking_id IS DISTINCT FROM booking.id
             WHEN item.state = 'HELD' AND hold.status = 'ACTIVE' AND hold.deadline > clock_timestamp()
                 THEN seat.status <> 'HELD' OR seat.hold_id <> hold.id OR seat.held_until <> hold.deadline
             ELSE false END",
    ),
    (
        "I1: every taken seat has its item",
        "SELECT seat.event_id::text || ' ' || seat.seat_no || ' ' || seat.status FROM event_seat AS seat
         WHERE seat.status IN ('PENDING', 'SOLD') AND NOT EXISTS (
             SELECT FROM booking JOIN hold_item AS item ON item.hold_id = booking.hold_id
             WHERE booking.id = seat.booking_id AND item.event_id = seat.event_id AND item.seat_no = seat.seat_no
               AND item.state = seat.status)",
    ),
    (
        "I2: a confirmed booking owns exactly the items of its hold, all in one event",
        "SELECT booking.id::text FROM booking JOIN hold_item AS item ON item.hold_id = booking.hold_id
         WHERE booking.status = 'CONFIRMED' AND (item.state <> 'SOLD' OR item.event_id <> booking.event_id)",
    ),
    (
        "I4: one booking of a hold is confirmed",
        "SELECT hold_id::text FROM booking WHERE status = 'CONFIRMED' GROUP BY hold_id HAVING count(*) > 1",
    ),
    (
        "I5: money has a booking, or goes back",
        "SELECT payment.id::text || ' ' || booking.status FROM payment JOIN booking ON booking.id = payment.booking_id
         WHERE payment.status = 'CAPTURED' AND booking.status IN ('FAILED', 'PAYMENT_PENDING')",
    ),
    (
        "I5: what was confirmed and not free was captured",
        "SELECT booking.id::text FROM booking LEFT JOIN payment ON payment.booking_id = booking.id
         WHERE booking.confirmed_at IS NOT NULL AND booking.total_minor > 0 AND payment.status IS DISTINCT FROM 'CAPTURED'",
    ),
    (
        "I8: what committed has its outbox row",
        "SELECT hold.id::text FROM hold WHERE NOT EXISTS (SELECT FROM outbox WHERE subject_id = hold.id)
         UNION ALL SELECT id::text FROM booking WHERE NOT EXISTS (SELECT FROM outbox WHERE subject_id = booking.id)",
    ),
    (
        "I9: a tier's counts are the sums of its items",
        "SELECT tier.event_id::text || ' ' || tier.tier_no FROM event_tier AS tier
         CROSS JOIN LATERAL (
             SELECT coalesce(sum(quantity) FILTER (WHERE state = 'HELD'), 0) AS held,
                    coalesce(sum(quantity) FILTER (WHERE state = 'PENDING'), 0) AS pending,
                    coalesce(sum(quantity) FILTER (WHERE state = 'SOLD'), 0) AS sold,
                    coalesce(sum(quantity) FILTER (WHERE state = 'WITHDRAWN'), 0) AS withdrawn
             FROM hold_item AS item WHERE item.event_id = tier.event_id AND item.tier_no = tier.tier_no) AS sums
         WHERE (tier.held, tier.pending, tier.sold, tier.withdrawn) IS DISTINCT FROM (sums.held, sums.pending, sums.sold, sums.withdrawn)",
    ),
    (
        "what may still be sold is what the counter says",
        "SELECT counter.event_id::text || ' ' || counter.section_no FROM event_counter AS counter
         WHERE counter.remaining <> CASE WHEN section_no = -1
             THEN (SELECT coalesce(sum(available + held + pending), 0) FROM event_tier WHERE event_id = counter.event_id)
             ELSE (SELECT count(*) FROM event_seat AS seat WHERE seat.event_id = counter.event_id
                   AND seat.section_no = counter.section_no AND seat.status IN ('AVAILABLE', 'HELD', 'PENDING')) END",
    ),
    (
        "I12: no session idles in a transaction",
        "SELECT pid::text FROM pg_stat_activity WHERE datname = current_database() AND state LIKE 'idle in transaction%'
           AND state_change < clock_timestamp() - interval '5 seconds'",
    ),
    (
        "I13: a confirmed booking has one valid ticket an admission, another has none",
        "SELECT booking.id::text FROM booking
         CROSS JOIN LATERAL (SELECT count(*) AS valid FROM ticket WHERE booking_id = booking.id AND status = 'ISSUED') AS tickets
         CROSS JOIN LATERAL (SELECT sum(quantity) AS admissions FROM hold_item WHERE hold_id = booking.hold_id) AS items
         WHERE tickets.valid <> CASE WHEN booking.status = 'CONFIRMED' THEN items.admissions ELSE 0 END",
    ),
    (
        "nothing was set aside and nothing deadlocked",
        "SELECT error FROM outbox_quarantine
         UNION ALL SELECT 'deadlocks: ' || deadlocks FROM pg_stat_database WHERE datname = current_database() AND deadlocks > 0",
    ),
];

/// Checks them all; a violation fails the test by its name.
pub async fn check(stage: &Stage) {
    for (name, statement) in CHECKS {
        let rows = stage.db.pool().query_all_raw(sql!(statement)).await.unwrap();
        let found: Vec<String> = rows.iter().map(|row| row.try_get_by_index::<String>(0).unwrap_or_default()).collect();
        assert!(found.is_empty(), "{name}: {found:?}");
    }
    check_money(stage).await;
}

/// I3 and I4 against the provider's own ledger: what it collected and gave back is what we say.
async fn check_money(stage: &Stage) {
    for payment in stage.simulator.ledger().payments {
        assert!(payment.captures <= 1, "captured twice: {payment:?}");
        let row = stage
            .db
            .pool()
            .query_one_raw(sql!(
                "SELECT payment.status, booking.status AS booking, payment.amount_minor,
                    (SELECT coalesce(sum(amount_minor), 0)::bigint FROM refund WHERE payment_id = payment.id AND status = 'SUCCEEDED') AS refunded
                 FROM payment JOIN booking ON booking.id = payment.booking_id WHERE operation_id = $1",
                payment.operation_id.clone()
            ))
            .await
            .unwrap()
            .unwrap_or_else(|| panic!("the provider has a payment that we do not know: {payment:?}"));
        let status: String = row.try_get("", "status").unwrap();
        let refunded: i64 = row.try_get("", "refunded").unwrap();
        assert_eq!(status == "CAPTURED", payment.captured > 0, "{payment:?} is {status} here");
        if payment.captured > 0 {
            let ours = parterre::payment::currency::to_provider(&payment.currency.to_uppercase(), refunded);
            assert_eq!(Some(payment.refunded), ours, "{payment:?}");
        }
        assert_ne!(payment.status, "requires_capture", "money is still reserved: {payment:?}");
    }
}
