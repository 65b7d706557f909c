-- Catalogue -----------------------------------------------------------------------------------------------------

CREATE TABLE organization (
    id         uuid PRIMARY KEY,
    name       text NOT NULL UNIQUE,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE organization IS 'who sells: venues, performers and events belong to one organization';
COMMENT ON COLUMN organization.name IS 'what people call it; also what a token''s org claim may name';

CREATE TABLE venue (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organization,
    version         bigint NOT NULL DEFAULT 1,
    name            text NOT NULL,
    city            text NOT NULL,
    country_code    text NOT NULL CHECK (country_code ~ '^[A-Z]{2}$'),
    time_zone       text NOT NULL,
    latitude        double precision CHECK (latitude BETWEEN -90 AND 90),
    longitude       double precision CHECK (longitude BETWEEN -180 AND 180),
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK ((latitude IS NULL) = (longitude IS NULL))
);
CREATE INDEX venue_organization ON venue (organization_id, id);
COMMENT ON TABLE venue IS 'a place; its time zone decides the local dates of its events and never changes';
COMMENT ON COLUMN venue.version IS 'counts edits; what expectedVersion is compared with';
COMMENT ON COLUMN venue.time_zone IS 'IANA name';

CREATE TABLE performer (
    id              uuid PRIMARY KEY,
    organization_id uuid NOT NULL REFERENCES organization,
    version         bigint NOT NULL DEFAULT 1,
    name            text NOT NULL,
    genre           text,
    created_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX performer_organization ON performer (organization_id);
COMMENT ON TABLE performer IS 'who is on stage; edited by the organization that created it, billed by all';

CREATE TABLE layout (
    id            uuid PRIMARY KEY,
    venue_id      uuid NOT NULL REFERENCES venue,
    name          text NOT NULL,
    seat_count    integer NOT NULL CHECK (seat_count BETWEEN 1 AND 200000),
    section_names text[] NOT NULL,
    zone_names    text[] NOT NULL,
    geometry_hash text NOT NULL,
    created_at    timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX layout_venue ON layout (venue_id, id);
COMMENT ON TABLE layout IS 'an immutable seating plan of a venue';
COMMENT ON COLUMN layout.section_names IS 'by section number, from 0; unique in a layout';
COMMENT ON COLUMN layout.zone_names IS 'price zones by number, from 0';
COMMENT ON COLUMN layout.geometry_hash IS 'SHA-256 of the geometry file, hex: part of its immutable URL';

CREATE TABLE layout_seat (
    layout_id  uuid NOT NULL REFERENCES layout,
    seat_no    integer NOT NULL CHECK (seat_no >= 0),
    seat_id    text NOT NULL,
    section_no smallint NOT NULL,
    row_name   text NOT NULL,
    number     text NOT NULL,
    zone_no    smallint NOT NULL,
    accessible boolean NOT NULL,
    x          double precision NOT NULL,
    y          double precision NOT NULL,
    next_no    integer,
    PRIMARY KEY (layout_id, seat_no)
);
COMMENT ON TABLE layout_seat IS 'a place in a layout: never sold itself, copied into event_seat by each event';
COMMENT ON COLUMN layout_seat.seat_no IS 'position in the layout''s order: sections, rows, neighbours';
COMMENT ON COLUMN layout_seat.seat_id IS 'what people call the seat, unique in the layout: A-14';
COMMENT ON COLUMN layout_seat.next_no IS 'the neighbour to the right, NULL at an aisle, a gap or the end of the row';

CREATE TABLE event (
    id                          uuid PRIMARY KEY,
    organization_id             uuid NOT NULL REFERENCES organization,
    venue_id                    uuid NOT NULL REFERENCES venue,
    layout_id                   uuid REFERENCES layout,
    slug                        text NOT NULL UNIQUE,
    version                     bigint NOT NULL DEFAULT 1,
    title                       text NOT NULL,
    description                 text,
    category                    text,
    starts_at                   timestamptz NOT NULL,
    on_sale_at                  timestamptz NOT NULL,
    off_sale_at                 timestamptz NOT NULL,
    state                       text NOT NULL CHECK (state IN ('DRAFT', 'PUBLISHED', 'PAUSED', 'CANCELLED')),
    inventory_mode              text NOT NULL CHECK (inventory_mode IN ('ASSIGNED', 'GENERAL_ADMISSION', 'MIXED')),
    seats_wanted                integer NOT NULL,
    seats_ready                 boolean NOT NULL,
    currency                    text NOT NULL CHECK (currency ~ '^[A-Z]{3}$'),
    hold_seconds                integer NOT NULL CHECK (hold_seconds BETWEEN 1 AND 86400),
    max_seats_per_buyer         integer NOT NULL CHECK (max_seats_per_buyer BETWEEN 1 AND 1000),
    forbid_single_seats         boolean NOT NULL,
    admit_per_minute            integer CHECK (admit_per_minute > 0),
    active_per_remaining_seat   double precision NOT NULL DEFAULT 1.5 CHECK (active_per_remaining_seat > 0),
    admission_seconds           integer NOT NULL DEFAULT 600 CHECK (admission_seconds BETWEEN 60 AND 86400),
    cancel_until_seconds_before integer CHECK (cancel_until_seconds_before >= 0),
    refund_ppm                  integer NOT NULL CHECK (refund_ppm BETWEEN 0 AND 1000000),
    resell                      boolean NOT NULL,
    popularity                  double precision NOT NULL DEFAULT 0,
    created_at                  timestamptz NOT NULL DEFAULT clock_timestamp(),
    CHECK (on_sale_at < off_sale_at),
    CHECK ((layout_id IS NULL) = (inventory_mode = 'GENERAL_ADMISSION')),
    CHECK (seats_ready OR state = 'DRAFT')
);
CREATE INDEX event_organization ON event (organization_id, id);
CREATE INDEX event_venue ON event (venue_id);
CREATE INDEX event_unready ON event (id) WHERE NOT seats_ready;
COMMENT ON TABLE event IS 'something at a venue at a time, and the rules by which it is sold';
COMMENT ON COLUMN event.version IS 'counts catalogue edits only: not holds, not sales';
COMMENT ON COLUMN event.state IS 'DRAFT: its organization sees it. PUBLISHED: sold inside the sale window. PAUSED: published, no new holds. CANCELLED: final';
COMMENT ON COLUMN event.seats_wanted IS 'seats of the layout, all of which event_seat holds once seats_ready';
COMMENT ON COLUMN event.seats_ready IS 'false while a draft''s seats are being created in chunks; publish refuses until then';
COMMENT ON COLUMN event.admit_per_minute IS 'waiting room: people let in a minute; NULL: no waiting room';
COMMENT ON COLUMN event.admission_seconds IS 'waiting room: how long an admitted shopper may stay';
COMMENT ON COLUMN event.cancel_until_seconds_before IS 'a buyer may cancel until so long before the start; NULL: until the start';
COMMENT ON COLUMN event.refund_ppm IS 'share of the price given back on cancellation, in millionths';
COMMENT ON COLUMN event.resell IS 'whether a cancelled seat goes back on sale; else it is withdrawn and reads BLOCKED';
COMMENT ON COLUMN event.popularity IS 'search: larger is more wanted, 0 is unknown';

CREATE TABLE event_performer (
    event_id     uuid NOT NULL REFERENCES event,
    position     smallint NOT NULL,
    performer_id uuid NOT NULL REFERENCES performer,
    PRIMARY KEY (event_id, position),
    UNIQUE (event_id, performer_id)
);
CREATE INDEX event_performer_performer ON event_performer (performer_id);
COMMENT ON TABLE event_performer IS 'the bill of an event, in order';

CREATE TABLE event_zone (
    event_id    uuid NOT NULL REFERENCES event,
    zone_no     smallint NOT NULL,
    name        text NOT NULL,
    price_minor bigint NOT NULL CHECK (price_minor >= 0),
    PRIMARY KEY (event_id, zone_no)
);
COMMENT ON TABLE event_zone IS 'what a seat of a price zone costs at this event';
COMMENT ON COLUMN event_zone.price_minor IS 'in the minor unit of the event''s currency';

-- Inventory: seats, tiers, counters, quotas and holds are written by src/inventory alone -------------------------------

CREATE TABLE event_seat (
    event_id   uuid NOT NULL,
    seat_no    integer NOT NULL,
    section_no smallint NOT NULL,
    zone_no    smallint NOT NULL,
    status     text NOT NULL DEFAULT 'AVAILABLE',
    hold_id    uuid,
    held_until timestamptz,
    booking_id uuid,
    PRIMARY KEY (event_id, seat_no),
    CHECK (CASE status
        WHEN 'AVAILABLE' THEN hold_id IS NULL AND held_until IS NULL AND booking_id IS NULL
        WHEN 'BLOCKED' THEN hold_id IS NULL AND held_until IS NULL AND booking_id IS NULL
        WHEN 'HELD' THEN hold_id IS NOT NULL AND held_until IS NOT NULL AND booking_id IS NULL
        WHEN 'PENDING' THEN hold_id IS NULL AND held_until IS NULL AND booking_id IS NOT NULL
        WHEN 'SOLD' THEN hold_id IS NULL AND held_until IS NULL AND booking_id IS NOT NULL
        ELSE false END)
) WITH (fillfactor = 70);
COMMENT ON TABLE event_seat IS 'the seat one event sells. No secondary index: every update stays HOT';
COMMENT ON COLUMN event_seat.status IS 'AVAILABLE. HELD: by hold_id until held_until, then free to whoever locks it. PENDING: a booking''s while its payment is captured, never free. SOLD. BLOCKED: off sale';
COMMENT ON COLUMN event_seat.held_until IS 'copy of the hold''s deadline, so that a claim reads this row only';

CREATE TABLE event_tier (
    event_id    uuid NOT NULL REFERENCES event,
    tier_no     smallint NOT NULL,
    name        text NOT NULL,
    price_minor bigint NOT NULL CHECK (price_minor >= 0),
    capacity    integer NOT NULL CHECK (capacity BETWEEN 0 AND 1000000),
    available   integer NOT NULL CHECK (available >= 0),
    held        integer NOT NULL DEFAULT 0 CHECK (held >= 0),
    pending     integer NOT NULL DEFAULT 0 CHECK (pending >= 0),
    sold        integer NOT NULL DEFAULT 0 CHECK (sold >= 0),
    withdrawn   integer NOT NULL DEFAULT 0 CHECK (withdrawn >= 0),
    PRIMARY KEY (event_id, tier_no),
    UNIQUE (event_id, name),
    CHECK (available + held + pending + sold + withdrawn = capacity)
) WITH (fillfactor = 70);
COMMENT ON TABLE event_tier IS 'general admission: a count, moved only by the sum of the hold items whose state changed in the same transaction';

CREATE TABLE event_counter (
    event_id   uuid NOT NULL REFERENCES event,
    section_no smallint NOT NULL,
    version    bigint NOT NULL DEFAULT 0,
    remaining  integer NOT NULL CHECK (remaining >= 0),
    PRIMARY KEY (event_id, section_no)
) WITH (fillfactor = 50);
COMMENT ON TABLE event_counter IS 'one counter a section and one for all tiers; a transaction that changes what readers see adds 1, locked last, so there are no gaps';
COMMENT ON COLUMN event_counter.section_no IS '-1: the tiers of the event together';
COMMENT ON COLUMN event_counter.remaining IS 'seats or admissions that are available, held or pending: sold out when all of an event''s are 0';

CREATE TABLE event_quota (
    event_id uuid NOT NULL,
    buyer    text COLLATE "C" NOT NULL,
    PRIMARY KEY (event_id, buyer)
);
COMMENT ON TABLE event_quota IS 'a lock, no number: who has it may count what the buyer holds';

CREATE TABLE hold (
    id          uuid PRIMARY KEY,
    event_id    uuid NOT NULL,
    buyer       text COLLATE "C" NOT NULL,
    status      text NOT NULL CHECK (status IN ('ACTIVE', 'CONVERTED', 'RELEASED', 'EXPIRED')),
    deadline    timestamptz NOT NULL,
    total_minor bigint NOT NULL CHECK (total_minor >= 0),
    currency    text NOT NULL,
    created_at  timestamptz NOT NULL
);
CREATE INDEX hold_buyer ON hold (event_id, buyer, id);
CREATE INDEX hold_buyer_list ON hold (buyer, id);
CREATE INDEX hold_overdue ON hold (deadline) WHERE status = 'ACTIVE';
COMMENT ON TABLE hold IS 'seats and admissions set aside for one buyer until a deadline';
COMMENT ON COLUMN hold.status IS 'ACTIVE: also overdue until a worker tidies; readers compare the deadline. CONVERTED: a booking took over. RELEASED. EXPIRED';
COMMENT ON COLUMN hold.deadline IS 'written once, never moved';
COMMENT ON COLUMN hold.buyer IS 'the sub of the buyer''s token';

CREATE TABLE hold_item (
    hold_id    uuid NOT NULL REFERENCES hold,
    item_no    smallint NOT NULL,
    event_id   uuid NOT NULL,
    seat_no    integer,
    tier_no    smallint,
    quantity   integer NOT NULL CHECK (quantity > 0),
    unit_minor bigint NOT NULL CHECK (unit_minor >= 0),
    state      text NOT NULL CHECK (state IN ('HELD', 'PENDING', 'SOLD', 'RETURNED', 'WITHDRAWN')),
    PRIMARY KEY (hold_id, item_no),
    CHECK ((seat_no IS NULL) <> (tier_no IS NULL)),
    CHECK (seat_no IS NULL OR quantity = 1)
);
CREATE UNIQUE INDEX hold_item_one_owner ON hold_item (event_id, seat_no) WHERE state IN ('PENDING', 'SOLD') AND seat_no IS NOT NULL;
CREATE INDEX hold_item_tier_held ON hold_item (event_id, tier_no) WHERE state = 'HELD' AND tier_no IS NOT NULL;
COMMENT ON TABLE hold_item IS 'what a hold covers, with its price; the booking made of the hold owns the same rows';
COMMENT ON COLUMN hold_item.unit_minor IS 'the price of one when the hold was made: what will be paid';
COMMENT ON COLUMN hold_item.state IS 'HELD. PENDING: converted, being paid. SOLD. RETURNED: given back. WITHDRAWN: cancelled, not resold';
COMMENT ON INDEX hold_item_one_owner IS 'the last line: whatever the code does, a seat has one live owner';

CREATE TABLE idempotency (
    event_id    uuid NOT NULL,
    buyer       text COLLATE "C" NOT NULL,
    operation   text COLLATE "C" NOT NULL CHECK (operation IN ('hold', 'checkout', 'cancel')),
    key         text COLLATE "C" NOT NULL,
    fingerprint text NOT NULL,
    result_id   uuid NOT NULL,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (event_id, buyer, operation, key)
);
COMMENT ON TABLE idempotency IS 'same buyer, operation, event and key: same result. Refusals leave no row';
COMMENT ON COLUMN idempotency.fingerprint IS 'SHA-256 of what was asked for, normalized, hex';
COMMENT ON COLUMN idempotency.result_id IS 'the hold, or the booking';

-- Bookings and money -------------------------------------------------------------------------------------------

CREATE TABLE booking (
    id              uuid PRIMARY KEY,
    code            text NOT NULL UNIQUE,
    hold_id         uuid NOT NULL REFERENCES hold,
    event_id        uuid NOT NULL,
    buyer           text COLLATE "C" NOT NULL,
    version         bigint NOT NULL DEFAULT 1,
    status          text NOT NULL CHECK (status IN ('PAYMENT_PENDING', 'CONFIRMED', 'FAILED', 'CANCELLING', 'CANCELLED', 'REFUND_REQUIRED', 'REFUNDED')),
    total_minor     bigint NOT NULL CHECK (total_minor >= 0),
    currency        text NOT NULL,
    cancel_until    timestamptz NOT NULL,
    refund_ppm      integer NOT NULL CHECK (refund_ppm BETWEEN 0 AND 1000000),
    resell          boolean NOT NULL,
    contact_email   text,
    locale          text,
    failure         text CHECK (failure IN ('DECLINED', 'HOLD_EXPIRED', 'HOLD_RELEASED', 'EVENT_CANCELLED', 'ABANDONED', 'CAPTURE_FAILED')),
    created_at      timestamptz NOT NULL,
    confirmed_at    timestamptz,
    cancelled_at    timestamptz,
    CHECK (status <> 'CONFIRMED' OR confirmed_at IS NOT NULL),
    CHECK (status NOT IN ('CANCELLING', 'CANCELLED') OR cancelled_at IS NOT NULL),
    CHECK (status <> 'FAILED' OR failure IS NOT NULL)
);
CREATE UNIQUE INDEX booking_one_a_hold ON booking (hold_id) WHERE status IN ('PAYMENT_PENDING', 'CONFIRMED', 'CANCELLING', 'CANCELLED');
CREATE INDEX booking_hold ON booking (hold_id, id);
CREATE INDEX booking_buyer ON booking (buyer, id);
CREATE INDEX booking_event ON booking (event_id, id);
COMMENT ON TABLE booking IS 'one attempt to buy a hold; owns the hold''s items from convert on';
COMMENT ON COLUMN booking.code IS 'what people read out at the door';
COMMENT ON COLUMN booking.status IS 'PAYMENT_PENDING. CONFIRMED: paid, seats sold. FAILED: nothing paid, nothing owned. CANCELLING: being undone. CANCELLED: seats released, money is the refunds'' matter. REFUND_REQUIRED: money without seats. REFUNDED: the provider says so';
COMMENT ON COLUMN booking.cancel_until IS 'the terms, frozen at checkout: cancelled before this';
COMMENT ON COLUMN booking.failure IS 'why a FAILED booking failed';

CREATE TABLE payment (
    id             uuid PRIMARY KEY,
    booking_id     uuid NOT NULL UNIQUE REFERENCES booking,
    event_id       uuid NOT NULL,
    operation_id   text NOT NULL UNIQUE,
    status         text NOT NULL CHECK (status IN ('CREATED', 'AUTHORIZING', 'REQUIRES_ACTION', 'AUTHORIZED', 'CAPTURING', 'CAPTURED', 'DECLINED', 'FAILED', 'VOIDING', 'VOIDED', 'UNKNOWN', 'NEEDS_REVIEW')),
    unknown_step   text CHECK (unknown_step IN ('AUTHORIZE', 'CAPTURE', 'VOID')),
    amount_minor   bigint NOT NULL CHECK (amount_minor >= 0),
    currency       text NOT NULL,
    payment_method text NOT NULL,
    return_url     text,
    provider_id    text,
    first_sent_at  timestamptz,
    capture_before timestamptz,
    key_no         smallint NOT NULL DEFAULT 1,
    attempts       integer NOT NULL DEFAULT 0,
    unknown_since  timestamptz,
    missed_at      timestamptz,
    next_check_at  timestamptz,
    lease_token    uuid,
    lease_until    timestamptz,
    decline_code   text,
    next_action    jsonb,
    created_at     timestamptz NOT NULL,
    CHECK ((status = 'UNKNOWN') = (unknown_since IS NOT NULL)),
    CHECK ((status = 'UNKNOWN') = (unknown_step IS NOT NULL)),
    CHECK (status NOT IN ('AUTHORIZED', 'CAPTURING', 'CAPTURED', 'VOIDING', 'VOIDED') OR provider_id IS NOT NULL),
    CHECK (status <> 'REQUIRES_ACTION' OR next_check_at IS NOT NULL)
);
CREATE INDEX payment_due ON payment (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX payment_provider ON payment (provider_id);
COMMENT ON TABLE payment IS 'the money side of one booking, and the task that moves it: due at next_check_at, done by whoever holds the lease';
COMMENT ON COLUMN payment.status IS 'CREATED: not sent. AUTHORIZING: sent. REQUIRES_ACTION: the buyer has to act. AUTHORIZED: reserved. CAPTURING: being collected, the seats are the booking''s. CAPTURED. DECLINED. FAILED: ended, no money moved. VOIDING, VOIDED: the reservation goes, went back. UNKNOWN: the answer to unknown_step is not known, it is asked again. NEEDS_REVIEW: amount or currency do not match';
COMMENT ON COLUMN payment.operation_id IS 'ours, in the provider''s metadata; the root of every idempotency key of this payment';
COMMENT ON COLUMN payment.unknown_step IS 'the step whose outcome is not known';
COMMENT ON COLUMN payment.first_sent_at IS 'when the first create was about to be sent: the provider may know of it from here on';
COMMENT ON COLUMN payment.capture_before IS 'when the provider lets the authorization lapse';
COMMENT ON COLUMN payment.missed_at IS 'when the provider first did not list what we sent; closed after a second look an hour later';
COMMENT ON COLUMN payment.key_no IS 'which idempotency key of the present step: the next one after a stored 5xx';
COMMENT ON COLUMN payment.next_check_at IS 'NULL: at rest';

CREATE TABLE refund (
    id            uuid PRIMARY KEY,
    booking_id    uuid NOT NULL REFERENCES booking,
    payment_id    uuid NOT NULL REFERENCES payment,
    event_id      uuid NOT NULL,
    operation_id  text NOT NULL UNIQUE,
    status        text NOT NULL CHECK (status IN ('REQUESTED', 'PENDING', 'SUCCEEDED', 'FAILED')),
    amount_minor  bigint NOT NULL CHECK (amount_minor > 0),
    currency      text NOT NULL,
    reason        text NOT NULL CHECK (reason IN ('BUYER_CANCELLED', 'EVENT_CANCELLED', 'SEATS_LOST', 'DUPLICATE_CHARGE', 'OTHER')),
    provider_id   text,
    first_sent_at timestamptz,
    key_no        smallint NOT NULL DEFAULT 1,
    attempts      integer NOT NULL DEFAULT 0,
    next_check_at timestamptz,
    lease_token   uuid,
    lease_until   timestamptz,
    created_at    timestamptz NOT NULL,
    CHECK (status <> 'SUCCEEDED' OR provider_id IS NOT NULL)
);
CREATE INDEX refund_due ON refund (next_check_at) WHERE next_check_at IS NOT NULL;
CREATE INDEX refund_booking ON refund (booking_id, id);
CREATE INDEX refund_payment ON refund (payment_id);
COMMENT ON COLUMN refund.status IS 'REQUESTED: saved. PENDING: sent. SUCCEEDED: the provider says so, and may take it back. FAILED: final, another refund follows';
COMMENT ON TABLE refund IS 'money on its way back; those that have not failed never exceed what was captured';

CREATE TABLE ticket (
    id           uuid PRIMARY KEY,
    booking_id   uuid NOT NULL REFERENCES booking,
    event_id     uuid NOT NULL,
    item_no      smallint NOT NULL,
    admission_no smallint NOT NULL,
    seat_no      integer,
    tier_no      smallint,
    status       text NOT NULL CHECK (status IN ('ISSUED', 'REVOKED')),
    created_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    UNIQUE (booking_id, item_no, admission_no),
    CHECK ((seat_no IS NULL) <> (tier_no IS NULL))
);
COMMENT ON COLUMN ticket.status IS 'ISSUED: admits. REVOKED: does not, for good';
COMMENT ON TABLE ticket IS 'one admission; its code is signed from its id, never stored';

CREATE TABLE timeline (
    booking_id uuid NOT NULL REFERENCES booking,
    entry_no   bigint GENERATED ALWAYS AS IDENTITY,
    at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind       text NOT NULL CHECK (kind IN ('BOOKING', 'PAYMENT', 'REFUND', 'TICKET')),
    from_state text,
    to_state   text NOT NULL,
    cause      text NOT NULL,
    detail     text,
    PRIMARY KEY (booking_id, entry_no)
);
COMMENT ON TABLE timeline IS 'every transition of a booking and its money, written in the transaction that made it';

-- Between the parts --------------------------------------------------------------------------------------------

CREATE TABLE outbox (
    xid        xid8 NOT NULL DEFAULT pg_current_xact_id(),
    id         bigint GENERATED ALWAYS AS IDENTITY,
    topic      text NOT NULL,
    event_id   uuid,
    subject_id uuid,
    payload    jsonb NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (xid, id)
);
CREATE INDEX outbox_event ON outbox (event_id, xid, id) WHERE event_id IS NOT NULL;
COMMENT ON TABLE outbox IS 'what was committed, for those who react to it; read in (xid, id) order below the snapshot''s horizon';
COMMENT ON COLUMN outbox.topic IS 'seats: what readers of a seat map see changed. event, venue, performer: catalogue. hold: it changed. booking: it, its payment or a refund changed. ticket: a booking''s tickets did';

CREATE TABLE outbox_cursor (
    consumer          text PRIMARY KEY,
    xid               xid8 NOT NULL,
    id                bigint NOT NULL,
    system_identifier text NOT NULL,
    timeline          integer NOT NULL,
    lease_token       uuid,
    lease_until       timestamptz
);
COMMENT ON TABLE outbox_cursor IS 'the last row each consumer has done, and the cluster it was read from: after a restore the pair means nothing';

CREATE TABLE outbox_quarantine (
    consumer   text NOT NULL,
    xid        xid8 NOT NULL,
    id         bigint NOT NULL,
    error      text NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (consumer, xid, id)
);
COMMENT ON COLUMN outbox_cursor.lease_until IS 'for a consumer that acts outside the database: who may, and until when; a duplicate is harmless';
COMMENT ON TABLE outbox_quarantine IS 'rows a consumer could not digest, set aside so that the feed goes on';

CREATE TABLE webhook_inbox (
    provider_event_id text PRIMARY KEY,
    payload           jsonb NOT NULL,
    received_at       timestamptz NOT NULL DEFAULT clock_timestamp(),
    processed_at      timestamptz,
    attempts          integer NOT NULL DEFAULT 0,
    next_look_at      timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX webhook_inbox_open ON webhook_inbox (next_look_at) WHERE processed_at IS NULL;
COMMENT ON TABLE webhook_inbox IS 'what the payment provider told us, saved before the 2xx; a reason to look, never a fact';

CREATE TABLE audit (
    id              bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    at              timestamptz NOT NULL DEFAULT clock_timestamp(),
    actor           text NOT NULL,
    organization_id uuid,
    action          text NOT NULL,
    subject_id      uuid NOT NULL,
    detail          jsonb NOT NULL DEFAULT '{}'
);
CREATE INDEX audit_subject ON audit (subject_id, id);
COMMENT ON TABLE audit IS 'what organizers and admins wrote, and who';
