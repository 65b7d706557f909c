-- What is kept for a while only, and how far removing it has come.

CREATE TABLE outbox_removed (
    one_row    boolean PRIMARY KEY DEFAULT true CHECK (one_row),
    xid        xid8 NOT NULL DEFAULT '0',
    id         bigint NOT NULL DEFAULT 0,
    created_at timestamptz NOT NULL DEFAULT 'epoch'
);
INSERT INTO outbox_removed DEFAULT VALUES;
COMMENT ON TABLE outbox_removed IS 'one row: the last outbox row that was removed. A reader whose cursor is before it has missed something';
COMMENT ON COLUMN outbox_removed.created_at IS 'when that row was written: what committed earlier may have none any more';

CREATE TABLE hold_sweep (
    name  text PRIMARY KEY CHECK (name IN ('keys', 'holds')),
    after uuid NOT NULL DEFAULT '00000000-0000-0000-0000-000000000000'
);
INSERT INTO hold_sweep (name) VALUES ('keys'), ('holds');
COMMENT ON TABLE hold_sweep IS 'up to which hold, whose ids ascend with time, idempotency keys and ended holds were looked through for removal';

-- Events are counted when somebody looks, so nobody looks for those that should be; without this their marks stay in place.
DROP INDEX event_sales_stale;
ALTER TABLE event_sales SET (fillfactor = 50);
