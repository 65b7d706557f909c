-- What money needs when things go wrong: keys that grow old, people who decide, messages that are sent once.

ALTER TABLE booking DROP CONSTRAINT booking_failure_check;
ALTER TABLE booking ADD CONSTRAINT booking_failure_check
    CHECK (failure IN ('DECLINED', 'HOLD_EXPIRED', 'HOLD_RELEASED', 'EVENT_CANCELLED', 'ABANDONED', 'CAPTURE_FAILED', 'AMOUNT_MISMATCH'));

ALTER TABLE payment
    ADD COLUMN key_used_at       timestamptz,
    ADD COLUMN captured_minor    bigint,
    ADD COLUMN captured_currency text,
    ADD COLUMN give_back         boolean NOT NULL DEFAULT false,
    ADD COLUMN escalated_at      timestamptz;
UPDATE payment SET captured_minor = amount_minor, captured_currency = currency WHERE status = 'CAPTURED';
ALTER TABLE payment ADD CHECK (status <> 'CAPTURED' OR (captured_minor IS NOT NULL AND captured_currency IS NOT NULL));
DROP INDEX payment_due;
CREATE INDEX payment_due ON payment (next_check_at) WHERE next_check_at IS NOT NULL AND status <> 'UNKNOWN';
CREATE INDEX payment_due_unknown ON payment (next_check_at) WHERE next_check_at IS NOT NULL AND status = 'UNKNOWN';
CREATE INDEX payment_review ON payment (id) WHERE status = 'NEEDS_REVIEW';
CREATE INDEX payment_unknown ON payment (unknown_since) WHERE status = 'UNKNOWN';
CREATE INDEX payment_event ON payment (event_id, id);
CREATE INDEX payment_created ON payment (created_at);
COMMENT ON COLUMN payment.key_used_at IS 'when the present idempotency key was first used; nothing is posted under it 23 hours later, the provider may have forgotten it';
COMMENT ON COLUMN payment.captured_minor IS 'what the provider collected; differs from amount_minor only where a person decided to give it back';
COMMENT ON COLUMN payment.captured_currency IS 'ISO 4217, of captured_minor';
COMMENT ON COLUMN payment.give_back IS 'a person decided that whatever money moved goes back';
COMMENT ON COLUMN payment.escalated_at IS 'when a person was last called about it';

-- A stray: money that the provider took a second time under our operation id, given back beside the booking's own money.
ALTER TABLE refund ADD COLUMN stray_of text;
COMMENT ON COLUMN refund.stray_of IS 'the provider''s id of a second payment with our operation id, which this refund gives back; else NULL';
CREATE UNIQUE INDEX refund_stray ON refund (stray_of) WHERE stray_of IS NOT NULL AND status <> 'FAILED';

ALTER TABLE refund
    ADD COLUMN key_used_at  timestamptz,
    ADD COLUMN missed_at    timestamptz,
    ADD COLUMN escalated_at timestamptz;
COMMENT ON COLUMN refund.escalated_at IS 'when a person was called about it';
COMMENT ON COLUMN refund.key_used_at IS 'when the present idempotency key was first used; nothing is posted under it 23 hours later';
COMMENT ON COLUMN refund.missed_at IS 'when the provider first did not list a refund whose key is too old; the next key is used after a second look an hour later';

CREATE TABLE job (
    name       text PRIMARY KEY,
    started_at timestamptz NOT NULL
);
COMMENT ON TABLE job IS 'when a job that one process at a time should do was last begun, by whichever process';

CREATE TABLE notification (
    id          uuid PRIMARY KEY,
    booking_id  uuid NOT NULL REFERENCES booking,
    kind        text NOT NULL CHECK (kind IN ('CONFIRMED', 'CANCELLED', 'REFUNDED')),
    subject_id  uuid NOT NULL,
    status      text NOT NULL CHECK (status IN ('WAITING', 'SENT', 'NO_ADDRESS', 'OVERTAKEN', 'REFUSED')),
    attempts    integer NOT NULL DEFAULT 0,
    next_try_at timestamptz,
    error       text,
    created_at  timestamptz NOT NULL DEFAULT clock_timestamp(),
    sent_at     timestamptz,
    UNIQUE (kind, subject_id),
    CHECK ((status = 'WAITING') = (next_try_at IS NOT NULL)),
    CHECK ((status = 'SENT') = (sent_at IS NOT NULL))
);
CREATE INDEX notification_due ON notification (next_try_at) WHERE next_try_at IS NOT NULL;
CREATE INDEX notification_booking ON notification (booking_id);
COMMENT ON TABLE notification IS 'one message about one transition, however often that is delivered; its id is the Message-ID';
COMMENT ON COLUMN notification.kind IS 'CONFIRMED: with the tickets. CANCELLED. REFUNDED: one refund arrived';
COMMENT ON COLUMN notification.subject_id IS 'the booking, or the refund';
COMMENT ON COLUMN notification.next_try_at IS 'put ahead by whoever takes it up, so that one who dies over it is followed by another';
COMMENT ON COLUMN notification.status IS 'WAITING: to be sent. SENT. NO_ADDRESS: the buyer left none. OVERTAKEN: the booking is not confirmed any more. REFUSED: the mail server refused it for good';
