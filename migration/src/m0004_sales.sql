CREATE TABLE event_sales (
    event_id uuid PRIMARY KEY REFERENCES event,
    marked   bigint NOT NULL DEFAULT 0,
    counted  bigint NOT NULL DEFAULT 0,
    figures  jsonb,
    as_of    timestamptz
);
CREATE INDEX event_sales_stale ON event_sales (event_id) WHERE marked > counted;
COMMENT ON TABLE event_sales IS 'how an event sells, counted anew a moment after something of it changed; rebuilt from the inventory and the bookings at any time';
COMMENT ON COLUMN event_sales.marked IS 'how often something changed';
COMMENT ON COLUMN event_sales.counted IS 'the mark up to which the figures are true';
COMMENT ON COLUMN event_sales.figures IS 'NULL: not counted yet';
