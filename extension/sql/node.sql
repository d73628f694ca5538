-- node() says of this server what the server's own views say.
SELECT n.system_identifier = s.system_identifier::text AS system_identifier,
	n.timeline = c.timeline_id AS timeline,
	n.in_recovery,
	n.insert_lsn >= pg_current_wal_flush_lsn() AS insert_lsn,
	n.flush_lsn <= n.insert_lsn AS flush_lsn,
	n.receive_lsn, n.replay_lsn,
	n.started = pg_postmaster_start_time() AS started,
	n.wal_level,
	n.primary_slot_name,
	n.hot_standby_feedback = current_setting('hot_standby_feedback')::boolean AS feedback,
	n.max_slots = current_setting('max_replication_slots')::integer AS max_slots,
	n.used_slots = (SELECT count(*) FROM pg_replication_slots) AS used_slots,
	n.clock BETWEEN now() AND clock_timestamp() AS clock,
	n.library, n.protocol
FROM slotkeeper.node() n, pg_control_system() s, pg_control_checkpoint() c;

-- its timeline has as many ancestors as there are forks
SELECT cardinality(history_timelines) = cardinality(history_lsns) AS pairs FROM slotkeeper.node();
