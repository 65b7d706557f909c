//! THE transaction that gives seats to people: many hold requests, of any events, in one commit.
//!
//! Read it top to bottom. What is locked, in this order: events, quotas (so also idempotency keys), seats, tiers,
//! counters; ascending inside each. Overdue holds are locked behind their tiers, and those that somebody has are skipped. Only after the last lock that decides is the clock read, and only then is decided.

use super::best;
use super::counters::{self, Bump};
use super::rules::{self, EventRow, HoldRequest, NewHold, Outcome, Refusal, SeatRow, Tables, TierRow};
use crate::bus::SeatsDelta;
use crate::db::{self, CommitError, Db, Transaction};
use crate::outbox::{Change, Topic};
use crate::sql;
use chrono::{DateTime, Utc};
use parterre_entity::{EventId, EventState, HoldId, SeatState};
use sea_orm::{ConnectionTrait, DbErr, FromQueryResult};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use uuid::Uuid;

/// What a settled batch has to say: an outcome for each request, and the deltas for those who watch.
#[derive(Debug)]
pub(super) struct Settled {
    pub(super) outcomes: Vec<Outcome>,
    pub(super) at: DateTime<Utc>,
    pub(super) deltas: Vec<Arc<SeatsDelta>>,
}

/// Why a batch could not be settled.
#[derive(Debug, thiserror::Error)]
pub(super) enum BatchError {
    #[error(transparent)]
    Database(#[from] DbErr),
    #[error(transparent)]
    Commit(#[from] CommitError),
}

impl db::MayRepeat for BatchError {
    fn may_repeat(&self) -> bool {
        match self {
            Self::Database(error) | Self::Commit(CommitError::RolledBack(error)) => db::may_repeat(error),
            Self::Commit(CommitError::Unknown(_)) => false,
        }
    }
}

impl BatchError {
    /// Whether the database itself is away, so that asking it again at once is of no use.
    pub(super) fn is_connection(&self) -> bool {
        match self {
            Self::Database(error) | Self::Commit(CommitError::RolledBack(error)) => db::is_connection(error),
            Self::Commit(CommitError::Unknown(_)) => false,
        }
    }
}

/// How best-available candidates are locked.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Candidates {
    /// Chosen from an unlocked look, then locked if nobody else is at them.
    SkipLocked,
    /// All free ones, waiting in lock order: the last word before "sold out".
    InOrder,
}

/// Settles a batch in one transaction.
pub(super) async fn settle(db: &Db, requests: &[HoldRequest]) -> Result<Settled, BatchError> {
    match attempt(db, requests, Candidates::SkipLocked).await? {
        Some(settled) => Ok(settled),
        None => attempt(db, requests, Candidates::InOrder)
            .await?
            .ok_or_else(|| DbErr::Custom("an ordered batch asked for another pass".to_owned()).into()),
    }
}

/// One transaction. `None`: rolled back, because best available met rows that others had locked and came up short.
async fn attempt(db: &Db, requests: &[HoldRequest], candidates: Candidates) -> Result<Option<Settled>, BatchError> {
    let tx = db.begin("hold_batch").await?;

    // 1. The sale's rules, held still; then each buyer's quota, which also serializes a buyer's keys.
    let mut tables = lock_events(&tx, requests).await?;
    lock_quotas(&tx, requests).await?;
    // 2. A new statement sees what committed while we waited.
    read_keys(&tx, requests, &mut tables).await?;
    // 3. The wanted rows.
    let wanted = wanted_seats(requests, &tables);
    let mut free = free_seats(&tx, requests, &tables).await?;
    match candidates {
        Candidates::SkipLocked => lock_seats(&tx, &wanted, &mut tables).await?,
        Candidates::InOrder => {
            let all: BTreeSet<(EventId, i32)> = wanted.iter().copied().chain(free.iter().copied()).collect();
            lock_seats(&tx, &all, &mut tables).await?;
        }
    }
    let mut picks = HashMap::new();
    let mut others_were_at_some = false;
    if candidates == Candidates::SkipLocked && !free.is_empty() {
        for seat in &wanted {
            others_were_at_some |= free.remove(seat);
        }
        (picks, others_were_at_some) = lock_candidates(&tx, requests, free, &mut tables, others_were_at_some).await?;
    }
    if crate::chaos::skips("seat_check") {
        tables.seats.values_mut().for_each(|row| row.status = SeatState::Available);
    }
    lock_tiers(&tx, requests, &mut tables).await?;
    look_beside(&tx, requests, &mut tables).await?;
    // 4. What buyers have, and the time: in a statement that locks nothing, after the last lock.
    let now = count_what_buyers_have(&tx, requests, &mut tables).await?;
    reclaim_overdue_admissions(&tx, requests, &mut tables, now).await?;
    // 5. The decision.
    let mut pick = |index: usize, request: &HoldRequest, tables: &Tables| match candidates {
        Candidates::SkipLocked => picks.get(&index).cloned(),
        Candidates::InOrder => {
            let is_free = |seat| {
                // What it names itself is not there to be chosen too.
                !request.seats.contains(&seat)
                    && tables.seats.get(&(request.event, seat)).is_some_and(|row| row.is_free(now))
            };
            best::choose(request.layout.as_ref()?, &is_free, request.best.as_ref()?)
        }
    };
    let outcomes = rules::decide(requests, &mut tables, &mut pick, now);
    if others_were_at_some && came_up_short(requests, &outcomes) {
        tx.rollback().await?;
        return Ok(None);
    }
    // 6. Everything the winners get, a handful of statements for all of them.
    let won: Vec<(&HoldRequest, &NewHold)> = requests
        .iter()
        .zip(&outcomes)
        .filter_map(|(request, outcome)| match outcome {
            Outcome::Held(hold) => Some((request, hold)),
            Outcome::Replayed(_) | Outcome::Refused(_) => None,
        })
        .collect();
    if won.is_empty() {
        tx.rollback().await?;
        return Ok(Some(Settled { outcomes, at: now, deltas: Vec::new() }));
    }
    write_seats(&tx, &won).await?;
    write_tiers(&tx, &won).await?;
    write_holds(&tx, &won, now).await?;
    let deltas = tell(&tx, &won, &tables).await?;
    tx.commit().await?;
    Ok(Some(Settled { outcomes, at: now, deltas }))
}

/// Whether a best-available request got nothing although others might have let go of something.
fn came_up_short(requests: &[HoldRequest], outcomes: &[Outcome]) -> bool {
    requests
        .iter()
        .zip(outcomes)
        .any(|(request, outcome)| request.best.is_some() && matches!(outcome, Outcome::Refused(Refusal::SoldOut(_))))
}

async fn lock_events(tx: &Transaction, requests: &[HoldRequest]) -> Result<Tables, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        id: EventId,
        state: EventState,
        on_sale_at: DateTime<Utc>,
        off_sale_at: DateTime<Utc>,
        hold_seconds: i32,
        max_seats_per_buyer: i32,
        currency: String,
        forbid_single_seats: bool,
    }
    #[derive(FromQueryResult)]
    struct Price {
        event_id: EventId,
        zone_no: i16,
        price_minor: i64,
    }
    let ids: BTreeSet<Uuid> = requests.iter().map(|request| request.event.0).collect();
    let ids: Vec<Uuid> = ids.into_iter().collect();
    let rows = Row::find_by_statement(sql!(
        "WITH gates AS MATERIALIZED (
             SELECT pg_advisory_xact_lock_shared(hashtextextended(id::text, 0)) FROM unnest($1::uuid[]) AS wanted (id)),
         open AS MATERIALIZED (SELECT count(*) FROM gates)
         SELECT event.id, state, on_sale_at, off_sale_at, hold_seconds, max_seats_per_buyer, currency,
                forbid_single_seats
         FROM open CROSS JOIN LATERAL (
             SELECT * FROM event WHERE event.id = ANY ($1) ORDER BY event.id FOR SHARE) AS event",
        ids.clone()
    ))
    .all(&**tx)
    .await?;
    let mut tables = Tables::default();
    for row in rows {
        let event = EventRow {
            state: row.state,
            on_sale_at: row.on_sale_at,
            off_sale_at: row.off_sale_at,
            hold_seconds: row.hold_seconds,
            max_seats_per_buyer: row.max_seats_per_buyer,
            currency: row.currency,
            forbids_single_seats: row.forbid_single_seats,
        };
        tables.events.insert(row.id, event);
    }
    let prices = Price::find_by_statement(sql!(
        "SELECT event_id, zone_no, price_minor FROM event_zone WHERE event_id = ANY ($1)",
        ids
    ))
    .all(&**tx)
    .await?;
    tables.zone_prices = prices.into_iter().map(|row| ((row.event_id, row.zone_no), row.price_minor)).collect();
    Ok(tables)
}

/// Distinct (event, buyer) pairs, ascending as the database orders them: uuid, then bytes.
fn buyers(requests: &[HoldRequest]) -> (Vec<Uuid>, Vec<String>) {
    let pairs: BTreeSet<(Uuid, &str)> =
        requests.iter().map(|request| (request.event.0, request.buyer.as_str())).collect();
    pairs.into_iter().map(|(event, buyer)| (event, buyer.to_owned())).unzip()
}

async fn lock_quotas(tx: &Transaction, requests: &[HoldRequest]) -> Result<(), DbErr> {
    let (events, buyers) = buyers(requests);
    lock_quota_rows(tx, events, buyers).await
}

/// Locks what serializes one buyer at one event: their limit, and their keys.
pub async fn lock_quota(tx: &Transaction, event: EventId, buyer: &str) -> Result<(), DbErr> {
    lock_quota_rows(tx, vec![event.0], vec![buyer.to_owned()]).await
}

/// Pairs in ascending order.
async fn lock_quota_rows(tx: &Transaction, events: Vec<Uuid>, buyers: Vec<String>) -> Result<(), DbErr> {
    let new = tx
        .execute_raw(sql!(
            "INSERT INTO event_quota (event_id, buyer) SELECT * FROM unnest($1::uuid[], $2::text[]) ON CONFLICT DO NOTHING",
            events.clone(),
            buyers.clone()
        ))
        .await?
        .rows_affected();
    if u64::try_from(events.len()) == Ok(new) {
        // Rows of our own are ours until the commit.
        return Ok(());
    }
    tx.execute_raw(sql!(
        "SELECT FROM unnest($1::uuid[], $2::text[]) AS wanted (event_id, buyer)
         CROSS JOIN LATERAL (
             SELECT FROM event_quota AS quota
             WHERE quota.event_id = wanted.event_id AND quota.buyer = wanted.buyer FOR NO KEY UPDATE) AS locked",
        events,
        buyers
    ))
    .await
    .map(drop)
}

async fn read_keys(tx: &Transaction, requests: &[HoldRequest], tables: &mut Tables) -> Result<(), DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        event_id: EventId,
        buyer: String,
        key: String,
        fingerprint: String,
        result_id: HoldId,
    }
    let events: Vec<Uuid> = requests.iter().map(|request| request.event.0).collect();
    let buyers: Vec<String> = requests.iter().map(|request| request.buyer.clone()).collect();
    let keys: Vec<String> = requests.iter().map(|request| request.key.clone()).collect();
    let rows = Row::find_by_statement(sql!(
        "SELECT known.* FROM unnest($1::uuid[], $2::text[], $3::text[]) AS wanted (event_id, buyer, key)
         CROSS JOIN LATERAL (
             SELECT event_id, buyer, key, fingerprint, result_id FROM idempotency AS i
             WHERE i.event_id = wanted.event_id AND i.buyer = wanted.buyer AND i.operation = 'hold' AND i.key = wanted.key
             LIMIT 1) AS known",
        events,
        buyers,
        keys
    ))
    .all(&**tx)
    .await?;
    for row in rows {
        tables.keys.insert((row.event_id, row.buyer, row.key), (row.fingerprint, row.result_id));
    }
    Ok(())
}

/// Whether a request was settled before, so that nothing needs to be locked for it.
fn is_known(request: &HoldRequest, tables: &Tables) -> bool {
    tables.keys.contains_key(&(request.event, request.buyer.clone(), request.key.clone()))
}

fn wanted_seats(requests: &[HoldRequest], tables: &Tables) -> BTreeSet<(EventId, i32)> {
    requests
        .iter()
        .filter(|request| !is_known(request, tables))
        .flat_map(|request| request.seats.iter().map(|seat| (request.event, *seat)))
        .collect()
}

/// Seats that look free, without a lock, of the events in which the server has to choose.
async fn free_seats(
    tx: &Transaction,
    requests: &[HoldRequest],
    tables: &Tables,
) -> Result<BTreeSet<(EventId, i32)>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        event_id: EventId,
        seat_no: i32,
    }
    let events: BTreeSet<Uuid> = requests
        .iter()
        .filter(|request| request.best.is_some() && !is_known(request, tables))
        .map(|request| request.event.0)
        .collect();
    if events.is_empty() {
        return Ok(BTreeSet::new());
    }
    let rows = Row::find_by_statement(sql!(
        "SELECT event_id, seat_no FROM event_seat
         WHERE event_id = ANY ($1) AND (status = 'AVAILABLE' OR (status = 'HELD' AND held_until <= clock_timestamp()))",
        events.into_iter().collect::<Vec<_>>()
    ))
    .all(&**tx)
    .await?;
    Ok(rows.into_iter().map(|row| (row.event_id, row.seat_no)).collect())
}

/// Seats that look free, without a lock, of the sections in which requests may leave no seat alone. A neighbour that is
/// taken meanwhile on another server may still be left so: nobody waits for the seats beside theirs.
async fn look_beside(tx: &Transaction, requests: &[HoldRequest], tables: &mut Tables) -> Result<(), DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        event_id: EventId,
        seat_no: i32,
    }
    let mut sections: BTreeSet<(Uuid, i16)> = BTreeSet::new();
    for request in requests {
        let forbids = tables.events.get(&request.event).is_some_and(|event| event.forbids_single_seats);
        if let Some(layout) = request.layout.as_ref().filter(|_| forbids && !is_known(request, tables)) {
            let seats = request.seats.iter().filter_map(|seat| layout.seat(*seat));
            sections.extend(seats.map(|seat| (request.event.0, seat.section)));
        }
    }
    if sections.is_empty() {
        return Ok(());
    }
    let (events, sections): (Vec<Uuid>, Vec<i16>) = sections.into_iter().unzip();
    let rows = Row::find_by_statement(sql!(
        "SELECT seat.event_id, seat.seat_no FROM unnest($1::uuid[], $2::smallint[]) AS wanted (event_id, section_no)
         CROSS JOIN LATERAL (
             SELECT event_id, seat_no FROM event_seat AS seat
             WHERE seat.event_id = wanted.event_id AND seat.section_no = wanted.section_no
               AND (status = 'AVAILABLE' OR (status = 'HELD' AND held_until <= clock_timestamp()))) AS seat",
        events,
        sections
    ))
    .all(&**tx)
    .await?;
    tables.open = rows.into_iter().map(|row| (row.event_id, row.seat_no)).collect();
    Ok(())
}

#[derive(FromQueryResult)]
struct LockedSeat {
    event_id: EventId,
    seat_no: i32,
    status: SeatState,
    held_until: Option<DateTime<Utc>>,
    section_no: i16,
    zone_no: i16,
}

/// Locks seats in key order. Reads their own rows only: after a lock wait PostgreSQL refreshes nothing else.
async fn lock_seats(tx: &Transaction, wanted: &BTreeSet<(EventId, i32)>, tables: &mut Tables) -> Result<(), DbErr> {
    lock_seats_with(tx, wanted, tables, LOCK_SEATS).await
}

const LOCK_SEATS: &str = "SELECT locked.* FROM unnest($1::uuid[], $2::int[]) AS wanted (event_id, seat_no)
    CROSS JOIN LATERAL (
        SELECT event_id, seat_no, status, held_until, section_no, zone_no FROM event_seat AS seat
        WHERE seat.event_id = wanted.event_id AND seat.seat_no = wanted.seat_no FOR NO KEY UPDATE) AS locked";

const LOCK_SEATS_SKIPPING: &str = "SELECT locked.* FROM unnest($1::uuid[], $2::int[]) AS wanted (event_id, seat_no)
    CROSS JOIN LATERAL (
        SELECT event_id, seat_no, status, held_until, section_no, zone_no FROM event_seat AS seat
        WHERE seat.event_id = wanted.event_id AND seat.seat_no = wanted.seat_no FOR NO KEY UPDATE SKIP LOCKED) AS locked";

async fn lock_seats_with(
    tx: &Transaction,
    wanted: &BTreeSet<(EventId, i32)>,
    tables: &mut Tables,
    statement: &str,
) -> Result<(), DbErr> {
    if wanted.is_empty() {
        return Ok(());
    }
    let (events, seats): (Vec<Uuid>, Vec<i32>) = wanted.iter().map(|(event, seat)| (event.0, *seat)).unzip();
    for row in LockedSeat::find_by_statement(sql!(statement, events, seats)).all(&**tx).await? {
        let seat =
            SeatRow { status: row.status, held_until: row.held_until, section: row.section_no, zone: row.zone_no };
        tables.seats.insert((row.event_id, row.seat_no), seat);
    }
    Ok(())
}

/// Rounds of choosing and locking before the ordered pass takes over.
const CHOOSING_ROUNDS: usize = 4;

/// Chooses seats for each best-available request from the unlocked look and locks those that nobody else is at.
/// Returns the choices that could be locked, and whether others were at some.
async fn lock_candidates(
    tx: &Transaction,
    requests: &[HoldRequest],
    mut free: BTreeSet<(EventId, i32)>,
    tables: &mut Tables,
    mut others_were_at_some: bool,
) -> Result<(HashMap<usize, Vec<i32>>, bool), DbErr> {
    let mut picks: HashMap<usize, Vec<i32>> = HashMap::new();
    for _ in 0..CHOOSING_ROUNDS {
        let mut chosen: BTreeSet<(EventId, i32)> = BTreeSet::new();
        let mut proposed: Vec<(usize, EventId, Vec<i32>)> = Vec::new();
        // The same wish as one that found nothing finds nothing either.
        let mut hopeless: Vec<(EventId, best::Best)> = Vec::new();
        for (index, request) in requests.iter().enumerate() {
            let (Some(want), Some(layout)) = (&request.best, &request.layout) else { continue };
            let settled = picks.contains_key(&index) || is_known(request, tables) || request.exceeds_limit(tables);
            if settled || hopeless.contains(&(request.event, want.clone())) {
                continue;
            }
            let is_free = |seat| free.contains(&(request.event, seat)) && !chosen.contains(&(request.event, seat));
            match best::choose(layout, &is_free, want) {
                Some(seats) => {
                    chosen.extend(seats.iter().map(|seat| (request.event, *seat)));
                    proposed.push((index, request.event, seats));
                }
                None => hopeless.push((request.event, want.clone())),
            }
        }
        if proposed.is_empty() {
            break;
        }
        lock_seats_with(tx, &chosen, tables, LOCK_SEATS_SKIPPING).await?;
        let locked_at = db::clock(&**tx).await?;
        for seat in &chosen {
            let got = tables.seats.get(seat);
            others_were_at_some |= got.is_none();
            if !got.is_some_and(|row| row.is_free(locked_at)) {
                free.remove(seat);
            }
        }
        for (index, event, seats) in proposed {
            if seats.iter().all(|seat| free.contains(&(event, *seat))) {
                for seat in &seats {
                    free.remove(&(event, *seat));
                }
                picks.insert(index, seats);
            }
        }
    }
    let unserved =
        requests.iter().enumerate().any(|(index, request)| request.best.is_some() && !picks.contains_key(&index));
    // Seats were set aside for others of this batch, who may yet be refused: then the ordered pass has the last word.
    let may_come_free = others_were_at_some || !picks.is_empty();
    Ok((picks, may_come_free && unserved))
}

async fn lock_tiers(tx: &Transaction, requests: &[HoldRequest], tables: &mut Tables) -> Result<(), DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        event_id: EventId,
        tier_no: i16,
        available: i32,
        price_minor: i64,
    }
    let wanted: BTreeSet<(Uuid, i16)> = requests
        .iter()
        .filter(|request| !is_known(request, tables))
        .flat_map(|request| request.tiers.iter().map(|(tier, _)| (request.event.0, *tier)))
        .collect();
    if wanted.is_empty() {
        return Ok(());
    }
    let (events, tiers): (Vec<Uuid>, Vec<i16>) = wanted.into_iter().unzip();
    let rows = Row::find_by_statement(sql!(
        "SELECT locked.* FROM unnest($1::uuid[], $2::smallint[]) AS wanted (event_id, tier_no)
         CROSS JOIN LATERAL (
             SELECT event_id, tier_no, available, price_minor FROM event_tier AS tier
             WHERE tier.event_id = wanted.event_id AND tier.tier_no = wanted.tier_no FOR NO KEY UPDATE) AS locked",
        events,
        tiers
    ))
    .all(&**tx)
    .await?;
    for row in rows {
        let tier = TierRow { available: row.available, price_minor: row.price_minor };
        tables.tiers.insert((row.event_id, row.tier_no), tier);
    }
    Ok(())
}

/// Seats and admissions of live holds and of pending and sold items. Holds end by time, so this is counted, not kept.
async fn count_what_buyers_have(
    tx: &Transaction,
    requests: &[HoldRequest],
    tables: &mut Tables,
) -> Result<DateTime<Utc>, DbErr> {
    #[derive(FromQueryResult)]
    struct Row {
        event_id: EventId,
        buyer: String,
        had: i64,
        now: DateTime<Utc>,
    }
    let (events, buyers) = buyers(requests);
    let rows = Row::find_by_statement(sql!(
        "SELECT wanted.event_id, wanted.buyer, counted.had, clock_timestamp() AS now
         FROM unnest($1::uuid[], $2::text[]) AS wanted (event_id, buyer)
         CROSS JOIN LATERAL (
             SELECT coalesce(sum(item.quantity), 0)::bigint AS had
             FROM (SELECT id, status, deadline FROM hold
                   WHERE hold.event_id = wanted.event_id AND hold.buyer = wanted.buyer OFFSET 0) AS hold
             CROSS JOIN LATERAL (
                 SELECT quantity FROM hold_item WHERE hold_id = hold.id
                   AND (state IN ('PENDING', 'SOLD')
                        OR (state = 'HELD' AND hold.status = 'ACTIVE' AND hold.deadline > clock_timestamp()))
                 OFFSET 0) AS item) AS counted",
        events,
        buyers
    ))
    .all(&**tx)
    .await?;
    // Every batch has a buyer, so there is a row.
    let now = rows.iter().map(|row| row.now).max().ok_or_else(|| DbErr::RecordNotFound("clock".to_owned()))?;
    tables.had = rows.into_iter().map(|row| ((row.event_id, row.buyer), row.had)).collect();
    Ok(now)
}

/// A tier that would be short takes back what overdue holds still have of it. Holds that somebody is at are left.
async fn reclaim_overdue_admissions(
    tx: &Transaction,
    requests: &[HoldRequest],
    tables: &mut Tables,
    now: DateTime<Utc>,
) -> Result<(), DbErr> {
    let mut wanted: BTreeMap<(EventId, i16), i32> = BTreeMap::new();
    for request in requests.iter().filter(|request| !is_known(request, tables)) {
        for (tier, quantity) in &request.tiers {
            let sum = wanted.entry((request.event, *tier)).or_default();
            *sum = sum.saturating_add(*quantity);
        }
    }
    for ((event, tier), quantity) in wanted {
        if tables.tiers.get(&(event, tier)).is_none_or(|row| row.available >= quantity) {
            continue;
        }
        let returned = reclaim(tx, event, tier, now).await?;
        if returned > 0 {
            tables.reclaimed.insert((event, tier));
        }
        if let Some(row) = tables.tiers.get_mut(&(event, tier)) {
            row.available = row.available.saturating_add(returned);
        }
    }
    Ok(())
}

/// Takes back what overdue holds still have of a tier, whose row is locked. Returns how many admissions that were.
pub(super) async fn reclaim(tx: &Transaction, event: EventId, tier: i16, now: DateTime<Utc>) -> Result<i32, DbErr> {
    let row = db::Single::<i32>::find_by_statement(sql!(
        "WITH overdue AS MATERIALIZED (
             SELECT hold.id FROM hold
             WHERE hold.id IN (SELECT hold_id FROM hold_item WHERE event_id = $1 AND tier_no = $2 AND state = 'HELD')
               AND hold.status = 'ACTIVE' AND hold.deadline <= $3
             ORDER BY hold.id FOR NO KEY UPDATE SKIP LOCKED),
         items AS (
             UPDATE hold_item SET state = 'RETURNED' FROM overdue
             WHERE hold_item.hold_id = overdue.id AND tier_no = $2 AND state = 'HELD' RETURNING quantity),
         total AS (SELECT coalesce(sum(quantity), 0)::int AS returned FROM items),
         moved AS (
             UPDATE event_tier SET available = available + total.returned, held = held - total.returned FROM total
             WHERE event_id = $1 AND tier_no = $2 AND total.returned > 0 RETURNING event_tier.tier_no)
         SELECT total.returned AS value FROM total LEFT JOIN moved ON true",
        event,
        tier,
        now
    ))
    .one(&**tx)
    .await?;
    Ok(row.map_or(0, |row| row.value))
}

async fn write_seats(tx: &Transaction, won: &[(&HoldRequest, &NewHold)]) -> Result<(), DbErr> {
    let mut rows: Vec<(Uuid, i32, Uuid, DateTime<Utc>)> = Vec::new();
    for (request, hold) in won {
        let seats = hold.items.iter().filter_map(|item| item.seat);
        rows.extend(seats.map(|seat| (request.event.0, seat, request.hold.0, hold.deadline)));
    }
    if rows.is_empty() {
        return Ok(());
    }
    rows.sort_unstable();
    let expected = rows.len();
    let events: Vec<Uuid> = rows.iter().map(|row| row.0).collect();
    let seats: Vec<i32> = rows.iter().map(|row| row.1).collect();
    let holds: Vec<Uuid> = rows.iter().map(|row| row.2).collect();
    let deadlines: Vec<DateTime<Utc>> = rows.iter().map(|row| row.3).collect();
    let written = tx
        .execute_raw(sql!(
            "UPDATE event_seat AS seat SET status = 'HELD', hold_id = won.hold_id, held_until = won.deadline
             FROM unnest($1::uuid[], $2::int[], $3::uuid[], $4::timestamptz[]) AS won (event_id, seat_no, hold_id, deadline)
             WHERE seat.event_id = won.event_id AND seat.seat_no = won.seat_no AND seat.status IN ('AVAILABLE', 'HELD')",
            events,
            seats,
            holds,
            deadlines
        ))
        .await?
        .rows_affected();
    expect_rows("seats given to holds", expected, written)
}

async fn write_tiers(tx: &Transaction, won: &[(&HoldRequest, &NewHold)]) -> Result<(), DbErr> {
    let mut sums: BTreeMap<(Uuid, i16), i32> = BTreeMap::new();
    for (request, _) in won {
        for (tier, quantity) in &request.tiers {
            *sums.entry((request.event.0, *tier)).or_default() += quantity;
        }
    }
    if sums.is_empty() {
        return Ok(());
    }
    let expected = sums.len();
    let events: Vec<Uuid> = sums.keys().map(|key| key.0).collect();
    let tiers: Vec<i16> = sums.keys().map(|key| key.1).collect();
    let quantities: Vec<i32> = sums.into_values().collect();
    let written = tx
        .execute_raw(sql!(
            "UPDATE event_tier AS tier SET available = available - won.quantity, held = held + won.quantity
             FROM unnest($1::uuid[], $2::smallint[], $3::int[]) AS won (event_id, tier_no, quantity)
             WHERE tier.event_id = won.event_id AND tier.tier_no = won.tier_no",
            events,
            tiers,
            quantities
        ))
        .await?
        .rows_affected();
    expect_rows("tiers counted down", expected, written)
}

async fn write_holds(tx: &Transaction, won: &[(&HoldRequest, &NewHold)], now: DateTime<Utc>) -> Result<(), DbErr> {
    let ids: Vec<Uuid> = won.iter().map(|(request, _)| request.hold.0).collect();
    let events: Vec<Uuid> = won.iter().map(|(request, _)| request.event.0).collect();
    let buyers: Vec<String> = won.iter().map(|(request, _)| request.buyer.clone()).collect();
    let keys: Vec<String> = won.iter().map(|(request, _)| request.key.clone()).collect();
    let fingerprints: Vec<String> = won.iter().map(|(request, _)| request.fingerprint.clone()).collect();
    let deadlines: Vec<DateTime<Utc>> = won.iter().map(|(_, hold)| hold.deadline).collect();
    let totals: Vec<i64> = won.iter().map(|(_, hold)| hold.total_minor).collect();
    let currencies: Vec<String> = won.iter().map(|(_, hold)| hold.currency.clone()).collect();
    let items = ItemColumns::of(won);
    tx.execute_raw(sql!(
        "WITH new AS (
             SELECT * FROM unnest($1::uuid[], $2::uuid[], $3::text[], $4::text[], $5::text[], $6::timestamptz[],
                                  $7::bigint[], $8::text[])
                 AS new (id, event_id, buyer, key, fingerprint, deadline, total_minor, currency)),
         keys AS (
             INSERT INTO idempotency (event_id, buyer, operation, key, fingerprint, result_id)
             SELECT event_id, buyer, 'hold', key, fingerprint, id FROM new),
         items AS (
             INSERT INTO hold_item (hold_id, item_no, event_id, seat_no, tier_no, quantity, unit_minor, state)
             SELECT hold_id, item_no, event_id, nullif(seat_no, -1), nullif(tier_no, -1), quantity, unit_minor, 'HELD'
             FROM unnest($10::uuid[], $11::smallint[], $12::uuid[], $13::int[], $14::smallint[], $15::int[], $16::bigint[])
                 AS new (hold_id, item_no, event_id, seat_no, tier_no, quantity, unit_minor))
         INSERT INTO hold (id, event_id, buyer, status, deadline, total_minor, currency, created_at)
         SELECT id, event_id, buyer, 'ACTIVE', deadline, total_minor, currency, $9 FROM new",
        ids,
        events,
        buyers,
        keys,
        fingerprints,
        deadlines,
        totals,
        currencies,
        now,
        items.holds,
        items.numbers,
        items.events,
        items.seats,
        items.tiers,
        items.quantities,
        items.prices
    ))
    .await
    .map(drop)
}

/// The winners' items, a column a field. -1 stands for NULL: arrays can't carry it here.
#[derive(Default)]
struct ItemColumns {
    holds: Vec<Uuid>,
    numbers: Vec<i16>,
    events: Vec<Uuid>,
    seats: Vec<i32>,
    tiers: Vec<i16>,
    quantities: Vec<i32>,
    prices: Vec<i64>,
}

impl ItemColumns {
    fn of(won: &[(&HoldRequest, &NewHold)]) -> Self {
        let mut columns = Self::default();
        for (request, hold) in won {
            for (number, item) in (0_i16..).zip(&hold.items) {
                columns.holds.push(request.hold.0);
                columns.numbers.push(number);
                columns.events.push(request.event.0);
                columns.seats.push(item.seat.unwrap_or(-1));
                columns.tiers.push(item.tier.unwrap_or(-1));
                columns.quantities.push(item.quantity);
                columns.prices.push(item.unit_minor);
            }
        }
        columns
    }
}

/// Moves the counters, locked last, and tells what changed: in the outbox now, on the bus after the commit.
async fn tell(
    tx: &Transaction,
    won: &[(&HoldRequest, &NewHold)],
    tables: &Tables,
) -> Result<Vec<Arc<SeatsDelta>>, DbErr> {
    let mut bump = Bump::default();
    let mut counted: HashSet<(EventId, i16)> = HashSet::new();
    for (request, hold) in won {
        for seat in hold.items.iter().filter_map(|item| item.seat) {
            let section = tables.seats.get(&(request.event, seat)).map_or(0, |row| row.section);
            bump.seat(request.event, section, (seat, 'H', hold.deadline.timestamp_millis()), 0);
        }
        for (tier, _) in &request.tiers {
            if counted.insert((request.event, *tier)) {
                let available = tables.tiers.get(&(request.event, *tier)).map_or(0, |row| row.available);
                bump.tier(request.event, *tier, available, 0);
            }
        }
    }
    for (event, tier) in &tables.reclaimed {
        if counted.insert((*event, *tier)) {
            let available = tables.tiers.get(&(*event, *tier)).map_or(0, |row| row.available);
            bump.tier(*event, *tier, available, 0);
        }
    }
    let holds = won.iter().map(|(request, _)| Change {
        topic: Topic::Hold,
        event: Some(request.event),
        subject: Some(request.hold.0),
        payload: serde_json::json!({ "to": "ACTIVE" }),
    });
    counters::bump_and_tell(tx, bump, holds.collect()).await
}

/// A row count that is not what the locks promised is a bug, and must never be committed.
pub(super) fn expect_rows(what: &str, expected: usize, written: u64) -> Result<(), DbErr> {
    if u64::try_from(expected) == Ok(written) {
        Ok(())
    } else {
        Err(DbErr::Custom(format!("{what}: expected {expected} rows, wrote {written}")))
    }
}
