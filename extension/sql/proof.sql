-- What proves a mirror: consistent_point() and snapshot(). The walk needs no slot,
-- so most of it is shown with positions alone. One session is enough: CHECKPOINT
-- inside a transaction that has an xid writes a running-xacts record that names it.
-- "COMMIT \; BEGIN \; ..." leaves no moment in which nothing runs.
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS slotkeeper;
RESET client_min_messages;
CREATE TABLE proof_t (id serial, v text);
CREATE TABLE proof_u (a int);

-- Nothing running at the record at restart_lsn.
SELECT pg_current_wal_insert_lsn() AS r \gset
CHECKPOINT;
INSERT INTO proof_t (v) VALUES ('x');
SELECT pg_current_wal_flush_lsn() AS f \gset
SELECT way, proven_at >= :'r' AND proven_at < :'f' AS between, resume
  FROM slotkeeper.consistent_point(:'r', :'f');
-- the record at confirmed_flush_lsn, or after it, proves nothing
SELECT way, proven_at, resume FROM slotkeeper.consistent_point(:'r', :'r');

-- START, BUILDING, FULL, CONSISTENT.
BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS w;
SELECT pg_current_wal_insert_lsn() AS r \gset
CHECKPOINT;
COMMIT \; BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS t2;
CHECKPOINT;
-- as long as it is running: FULL, no more
SELECT pg_current_wal_flush_lsn() AS f2 \gset
SELECT way, proven_at, resume FROM slotkeeper.consistent_point(:'r', :'f2');
-- D04: consistent at C after confirmed_flush_lsn, and no commit in between but a message
SELECT pg_logical_emit_message(false, 'proof', 'in between') IS NOT NULL AS message;
COMMIT \; BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS t3;
CHECKPOINT;
SELECT way, proven_at, resume FROM slotkeeper.consistent_point(:'r', :'f2');
-- confirmed_flush_lsn beyond C
SELECT pg_current_wal_flush_lsn() AS f3 \gset
SELECT way, proven_at > :'f2' AND proven_at < :'f3' AS between, resume
  FROM slotkeeper.consistent_point(:'r', :'f3');
COMMIT;

-- D03: catalogs change on the way; nothing running after FULL does not mend it.
BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS w;
SELECT pg_current_wal_insert_lsn() AS r \gset
CHECKPOINT;
COMMIT \; BEGIN \; ALTER TABLE proof_u ADD COLUMN b text;
COMMIT \; BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS t_old;
CHECKPOINT;
COMMIT;
CHECKPOINT;
INSERT INTO proof_u VALUES (1, 'bb');
SELECT pg_current_wal_flush_lsn() AS f \gset
SELECT way, proven_at, resume FROM slotkeeper.consistent_point(:'r', :'f');
-- the same where the transaction that spans FULL is the one that changes the table
BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS w;
SELECT pg_current_wal_insert_lsn() AS r \gset
CHECKPOINT;
COMMIT \; BEGIN \; ALTER TABLE proof_u ADD COLUMN c text;
CHECKPOINT;
COMMIT;
CHECKPOINT;
INSERT INTO proof_u VALUES (1, 'bb', 'cc');
SELECT pg_current_wal_flush_lsn() AS f \gset
SELECT way, proven_at, resume FROM slotkeeper.consistent_point(:'r', :'f');
-- before FULL nothing running is enough, whatever happened to catalogs
BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS w;
SELECT pg_current_wal_insert_lsn() AS r \gset
CHECKPOINT;
ALTER TABLE proof_u ADD COLUMN d text;
COMMIT;
CHECKPOINT;
INSERT INTO proof_u VALUES (1, 'bb', 'cc', 'dd');
SELECT pg_current_wal_flush_lsn() AS f \gset
SELECT way, proven_at > :'r' AND proven_at < :'f' AS between, resume
  FROM slotkeeper.consistent_point(:'r', :'f');

-- In steps: the resume text goes on where the last call stopped, to the same end.
CREATE FUNCTION proof_steps(r pg_lsn, f pg_lsn, step bigint, OUT calls int, OUT way text, OUT proven_at pg_lsn)
LANGUAGE plpgsql AS $$
DECLARE
	resume text;
BEGIN
	calls := 0;
	LOOP
		SELECT p.resume, p.way, p.proven_at INTO resume, way, proven_at
		  FROM slotkeeper.consistent_point(r, f, resume, step) p;
		calls := calls + 1;
		IF length(resume) > 160 THEN RAISE 'resume text too long: %', resume; END IF;
		EXIT WHEN resume IS NULL;
	END LOOP;
END $$;
SELECT calls > 3 AS several, s.way, s.proven_at = p.proven_at AS same
  FROM proof_steps(:'r', :'f', 1) s, slotkeeper.consistent_point(:'r', :'f') p;
SELECT calls, s.way, s.proven_at = p.proven_at AS same
  FROM proof_steps(:'r', :'f', 1000000) s, slotkeeper.consistent_point(:'r', :'f') p;

-- The file at exactly restart_lsn. A slot is needed now: decoding writes the file.
SELECT count(*) FROM pg_create_logical_replication_slot('proof', 'test_decoding');
BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS w;
CHECKPOINT;
COMMIT;
INSERT INTO proof_t (v) VALUES ('y');
SELECT count(*) > 0 AS changes FROM pg_logical_slot_get_changes('proof', NULL, NULL);
BEGIN \; INSERT INTO proof_t (v) VALUES ('z') \; CHECKPOINT \; COMMIT;
SELECT count(*) > 0 AS changes FROM pg_logical_slot_get_changes('proof', NULL, NULL);
SELECT restart_lsn AS r, confirmed_flush_lsn AS f FROM pg_replication_slots WHERE slot_name = 'proof' \gset
SELECT way, proven_at = :'r' AS at_restart_lsn, resume FROM slotkeeper.consistent_point(:'r', :'f');
SELECT encode(substr(slotkeeper.snapshot(:'r'), 1, 4), 'hex') AS magic, length(slotkeeper.snapshot(:'r')) > 100 AS bytes;
SELECT slotkeeper.snapshot('0/1') AS absent;

-- Hostile bytes at restart_lsn: every bit flipped, every length. None is believed.
CREATE TABLE proof_good AS SELECT slotkeeper.snapshot(:'r') AS good;
CREATE FUNCTION proof_with(r pg_lsn, f pg_lsn, bytes bytea) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
	o oid := lo_from_bytea(0, bytes);
	way text;
BEGIN
	PERFORM lo_export(o, format('pg_logical/snapshots/%s.snap', regexp_replace(r::text, '/0*', '-')));
	PERFORM lo_unlink(o);
	SELECT p.way INTO way FROM slotkeeper.consistent_point(r, f) p;
	RETURN way;
END $$;
SELECT count(*) > 800 AS flipped, count(proof_with(:'r', :'f', set_bit(good, i, 1 - get_bit(good, i)))) AS believed
  FROM proof_good, generate_series(0, 8 * length(good) - 1) i;
SELECT count(*) > 100 AS cut, count(proof_with(:'r', :'f', substr(good, 1, i))) AS believed
  FROM proof_good, generate_series(0, length(good) - 1) i;
SELECT count(*) AS longer, count(proof_with(:'r', :'f', good || substr(good, 1, i))) AS believed
  FROM proof_good, generate_series(1, 16) i;
-- snapshot() shows what is there, valid or not
SELECT slotkeeper.snapshot(:'r') = good || substr(good, 1, 16) AS as_it_is FROM proof_good;
SELECT proof_with(:'r', :'f', good) AS good_again FROM proof_good;
SELECT pg_drop_replication_slot('proof');

-- WAL that is not there yet, never was, or is no record.
SELECT way, proven_at, resume IS NOT NULL AS later FROM slotkeeper.consistent_point('FF/28', 'FF/60');
SELECT way, proven_at, resume FROM slotkeeper.consistent_point('0/28', 'FF/60');
SELECT way, proven_at, resume FROM slotkeeper.consistent_point(overlay(:'r' placing '3' from length(:'r'))::pg_lsn, 'FF/60');
SELECT way, proven_at, resume FROM slotkeeper.consistent_point('0/2', 'FF/60');

-- Wrong calls.
CREATE FUNCTION proof_error(call text, OUT code text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE call;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT,
		detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
\x on
SELECT * FROM proof_error($$SELECT slotkeeper.consistent_point('0/0', '0/1')$$);
SELECT * FROM proof_error($$SELECT slotkeeper.consistent_point('0/1', NULL)$$);
SELECT * FROM proof_error($$SELECT slotkeeper.consistent_point('0/2', '0/1')$$);
SELECT * FROM proof_error($$SELECT slotkeeper.consistent_point('0/1', '0/2', NULL, 0)$$);
SELECT * FROM proof_error($$SELECT slotkeeper.consistent_point('0/1', '0/2', NULL, NULL)$$);
SELECT * FROM proof_error($$SELECT slotkeeper.consistent_point('0/1', '0/2', '1 restart=0/9 timeline=1 at=0/2000028 phase=start next=0 catalog=f')$$);
SELECT * FROM proof_error($$SELECT slotkeeper.snapshot('0/0')$$);
\x off
-- Nothing but its own text is a resume text.
SELECT t AS resume, (proof_error(format('SELECT slotkeeper.consistent_point(%L, %L, %L)', '1/28', '1/60', t))).*
  FROM (VALUES (1, ''), (2, 'x'),
	(3, '1 restart=1/28 timeline=0 at=1/28 phase=start next=0 catalog=f'),
	(4, '1 restart=1/28 timeline=1 at=0/28 phase=start next=0 catalog=f'),
	(5, '1 restart=1/28 timeline=1 at=1/2 phase=start next=0 catalog=f'),
	(6, '1 restart=1/28 timeline=1 at=1/28 phase=start next=5 catalog=f'),
	(7, '1 restart=1/28 timeline=1 at=1/28 phase=full next=0 catalog=f'),
	(8, '1 restart=1/28 timeline=1 at=1/28 phase=done next=5 catalog=f'),
	(9, '1 restart=1/28 timeline=1 at=1/28 phase=full next=5 catalog=x'),
	(10, '1 restart=1/28 timeline=1 at=1/28 phase=full next=4294967301 catalog=f'),
	(11, '1 restart=1/28 timeline=+1 at=1/28 phase=full next=5 catalog=f'),
	(12, '1 restart=1/028 timeline=1 at=1/28 phase=full next=5 catalog=f'),
	(13, '1 restart=1/28 timeline=1 at=1/28 phase=full next=5 catalog=f ')) v (n, t)
 ORDER BY n;
SELECT (proof_error(format('SELECT slotkeeper.consistent_point(%L, %L, %L)', '1/28', '1/60', repeat('1 ', 500000)))).code;

-- Nothing stays behind after a thousand calls, refused ones among them.
-- (13 does not show its memory: there it is not looked at)
CREATE FUNCTION proof_memory(what text, condition text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
	answer bigint := 0;
BEGIN
	IF to_regclass('pg_backend_memory_contexts') IS NOT NULL THEN
		EXECUTE format('SELECT %s FROM pg_backend_memory_contexts WHERE %s', what, condition) INTO answer;
	END IF;
	RETURN answer;
END $$;
CREATE FUNCTION proof_many(n int, r pg_lsn, f pg_lsn) RETURNS bigint
LANGUAGE plpgsql AS $$
BEGIN
	FOR i IN 1..n LOOP
		PERFORM slotkeeper.consistent_point(r, f);
		PERFORM slotkeeper.consistent_point(r, f, NULL, 100);
		PERFORM slotkeeper.consistent_point('0/28', f);
		PERFORM slotkeeper.snapshot(r);
		PERFORM proof_error('SELECT slotkeeper.consistent_point(''1/28'', ''1/60'', ''x'')');
	END LOOP;
	RETURN proof_memory('sum(total_bytes)', 'true');
END $$;
SELECT proof_many(100, :'r', :'f') AS before \gset
SELECT proof_many(1000, :'r', :'f') - :before < 100000 AS steady,
	proof_memory('count(*)', $$name = 'slotkeeper walk'$$) AS contexts;

DROP FUNCTION proof_many, proof_memory, proof_error, proof_with, proof_steps;
DROP TABLE proof_t, proof_u, proof_good;
