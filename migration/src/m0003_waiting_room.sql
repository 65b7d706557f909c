CREATE TABLE waiting_room (
    event_id  uuid PRIMARY KEY REFERENCES event,
    opened_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
COMMENT ON TABLE waiting_room IS 'events whose queue has begun to let people in: a queue found empty of everything after that was lost, and lets nobody in until the tokens it gave out have run out';
COMMENT ON COLUMN waiting_room.opened_at IS 'when the first queue of the event was opened';
