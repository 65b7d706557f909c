-- A position in the outbox means something in one cluster only, here as in outbox_cursor.

ALTER TABLE outbox_removed ADD system_identifier text NOT NULL DEFAULT '', ADD timeline integer NOT NULL DEFAULT 0;
UPDATE outbox_removed SET system_identifier = cluster.system_identifier::text, timeline = checkpoint.timeline_id
FROM pg_control_system() AS cluster, pg_control_checkpoint() AS checkpoint;
COMMENT ON COLUMN outbox_removed.system_identifier IS 'the cluster in which xid means something, with its timeline; empty: none was removed';
