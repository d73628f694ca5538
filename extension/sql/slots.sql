-- slots() shows every slot, whatever its kind and state.
SELECT 1 AS made FROM pg_create_physical_replication_slot('rg_empty');
SELECT 1 AS made FROM pg_create_physical_replication_slot('rg_physical', true);
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_logical', 'test_decoding');
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_logical_2', 'pgoutput');
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_temporary', 'test_decoding', true);

SELECT name, kind, plugin, database = current_database() AS database, temporary, two_phase,
	two_phase_at IS NOT NULL AS two_phase_at, restart_lsn IS NOT NULL AS restart_lsn,
	confirmed_flush_lsn IS NOT NULL AS confirmed, invalidated, active_pid IS NOT NULL AS active,
	wal_ok, snapshot, saved
FROM slotkeeper.slots() WHERE name LIKE 'rg\_%' ORDER BY name COLLATE "C";

-- nothing else than the server's view where that has the same columns
SELECT count(*) FROM (
	(SELECT name, kind, plugin, database_oid, database, temporary, active_pid, xmin, catalog_xmin, restart_lsn, confirmed_flush_lsn,
			two_phase, failover, synced, invalidated
		FROM slotkeeper.slots()
	EXCEPT
	SELECT slot_name, slot_type, plugin, datoid, database, temporary, active_pid, xmin, catalog_xmin, restart_lsn, confirmed_flush_lsn,
			coalesce((j ->> 'two_phase')::boolean, false), coalesce((j ->> 'failover')::boolean, false),
			coalesce((j ->> 'synced')::boolean, false), j ->> 'invalidation_reason'
		FROM pg_replication_slots v, to_jsonb(v) j)) AS more
WHERE name LIKE 'rg\_%';
SELECT count(*) = (SELECT count(*) FROM pg_replication_slots) AS all_of_them FROM slotkeeper.slots();

-- a slot pins its catalog rows, and its directory is its own
SELECT effective_catalog_xmin = catalog_xmin AS effective, (incarnation).inode ~ '^[0-9]+$' AS inode
FROM slotkeeper.slots() WHERE name = 'rg_logical';
SELECT count(DISTINCT incarnation) FROM slotkeeper.slots() WHERE name LIKE 'rg\_%';
SELECT incarnation AS before FROM slotkeeper.slots() WHERE name = 'rg_empty' \gset
SELECT pg_drop_replication_slot('rg_empty');
SELECT 1 AS made FROM pg_create_physical_replication_slot('rg_empty');
SELECT incarnation <> :'before'::slotkeeper.incarnation OR (incarnation).birth IS NULL AS another
FROM slotkeeper.slots() WHERE name = 'rg_empty';

SELECT count(pg_drop_replication_slot(name)) FROM slotkeeper.slots() WHERE name LIKE 'rg\_%';
