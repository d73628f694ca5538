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

-- Catalogs change on the way, but by transactions older than all that run at
-- FULL: a decoder looks them up in the commit log.
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
SELECT way, proven_at > :'r' AND proven_at < :'f' AS between, resume
  FROM slotkeeper.consistent_point(:'r', :'f');
-- D03: the transaction that spans FULL is the one that changes the table. Nothing
-- running after FULL does not mend it.
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
-- so does a subtransaction of it, and what was rolled back is counted too
BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS w;
SELECT pg_current_wal_insert_lsn() AS r \gset
CHECKPOINT;
COMMIT \; BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS t2;
SAVEPOINT s \; ALTER TABLE proof_u ADD COLUMN x text \; ROLLBACK TO s;
CHECKPOINT;
COMMIT;
CHECKPOINT;
SELECT pg_current_wal_flush_lsn() AS f \gset
SELECT way, proven_at, resume FROM slotkeeper.consistent_point(:'r', :'f');
-- from FULL on the decoder follows changes itself
BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS w;
SELECT pg_current_wal_insert_lsn() AS r \gset
CHECKPOINT;
COMMIT \; BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS t2;
CHECKPOINT;
ALTER TABLE proof_u ADD COLUMN y text;
COMMIT;
CHECKPOINT;
SELECT pg_current_wal_flush_lsn() AS f \gset
SELECT way, proven_at > :'r' AND proven_at < :'f' AS between, resume
  FROM slotkeeper.consistent_point(:'r', :'f');
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
		IF length(resume) > 240 THEN RAISE 'resume text too long: %', resume; END IF;
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
-- A file after restart_lsn. D03 again, with a slot whose decoder passes there.
BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS w;
SELECT pg_current_wal_insert_lsn() AS r \gset
INSERT INTO proof_t (v) VALUES ('restart_lsn');
CHECKPOINT;
COMMIT \; BEGIN \; ALTER TABLE proof_u ADD COLUMN z text;
SELECT pg_current_wal_insert_lsn() AS f1 \gset
CHECKPOINT;
SELECT pg_current_wal_insert_lsn() AS f2 \gset
COMMIT;
CHECKPOINT;
SELECT pg_current_wal_flush_lsn() AS f \gset
SELECT way, proven_at, resume FROM slotkeeper.consistent_point(:'r', :'f') AS no_file_yet;
SELECT count(*) > 0 AS changes FROM pg_logical_slot_get_changes('proof', NULL, NULL);
-- it is found although this session remembers the walk; what ran there must have ended
SELECT way, proven_at > :'r' AND proven_at < :'f1' AS at_the_first, resume,
	slotkeeper.snapshot(proven_at) IS NOT NULL AS file
  FROM slotkeeper.consistent_point(:'r', :'f');
SELECT calls > 3 AS several, s.way, s.proven_at = p.proven_at AS same
  FROM proof_steps(:'r', :'f', 1) s, slotkeeper.consistent_point(:'r', :'f') p;
SELECT way FROM slotkeeper.consistent_point(:'r', :'f2') AS at_the_next;
SELECT way, resume FROM slotkeeper.consistent_point(:'r', :'f1') AS none_after_it;
-- the first file counts; without it the next one
SELECT proven_at AS l FROM slotkeeper.consistent_point(:'r', :'f') \gset
CREATE FUNCTION proof_file(at pg_lsn, bytes bytea) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
	o oid := lo_from_bytea(0, bytes);
BEGIN
	PERFORM lo_export(o, format('pg_logical/snapshots/%s.snap', regexp_replace(at::text, '/0*', '-')));
	PERFORM lo_unlink(o);
	RETURN true;
END $$;
CREATE TABLE proof_later AS SELECT slotkeeper.snapshot(:'l') AS good;
SELECT proof_file(:'l', substr(good, 1, 20)) AS damaged FROM proof_later;
SELECT way, resume FROM slotkeeper.consistent_point(:'r', :'f') AS a_decoder_would_fail;
SELECT proof_file(:'l', good) AS mended FROM proof_later;
SELECT way, proven_at = :'l' AS same FROM slotkeeper.consistent_point(:'r', :'f');
-- D02: something that ran at the file goes on
BEGIN \; SELECT pg_current_xact_id() IS NOT NULL AS w;
SELECT pg_current_wal_insert_lsn() AS r \gset
INSERT INTO proof_t (v) VALUES ('restart_lsn');
CHECKPOINT;
INSERT INTO proof_t (v) VALUES ('not ended');
CHECKPOINT;
SELECT pg_current_wal_flush_lsn() AS f \gset
COMMIT;
SELECT count(*) > 0 AS changes FROM pg_logical_slot_get_changes('proof', NULL, NULL);
SELECT way, proven_at, resume FROM slotkeeper.consistent_point(:'r', :'f');
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
SELECT * FROM proof_error($$SELECT slotkeeper.consistent_point('0/1', '0/2', '2 restart=0/9 timeline=1 at=0/2000028 phase=start next=0 changed=0 lacks=f file=0/0 file_next=0 restarted=f barred=f')$$);
SELECT * FROM proof_error($$SELECT slotkeeper.snapshot('0/0')$$);
\x off
-- Nothing but its own text is a resume text.
\set resume '2 restart=1/28 timeline=1 at=1/28 phase=start next=0 changed=0 lacks=f file=0/0 file_next=0 restarted=f barred=f'
\set with_file '2 restart=1/28 timeline=1 at=1/60 phase=full next=9 changed=9 lacks=t file=1/40 file_next=7 restarted=t barred=f'
SELECT n, old, new, (proof_error(format('SELECT slotkeeper.consistent_point(%L, %L, %L)', '1/28', '1/60', replace(:'resume', old, new)))).*
  FROM (VALUES (0, '', ''), (1, :'resume', ''), (2, :'resume', 'x'),
	(3, 'timeline=1', 'timeline=0'),
	(4, 'at=1/28', 'at=0/28'),
	(5, 'at=1/28', 'at=1/2'),
	(6, 'next=0 changed', 'next=5 changed'),
	(7, 'start', 'full'),
	(8, 'start next=0', 'done next=5'),
	(9, 'lacks=f', 'lacks=x'),
	(10, 'lacks=f', 'lacks=t'),
	(11, 'start next=0', 'stale next=5'),
	(12, 'changed=0', 'changed=2'),
	(13, 'changed=0', 'changed=4294967301'),
	(14, 'timeline=1', 'timeline=+1'),
	(15, 'restart=1/28', 'restart=1/028'),
	(16, 'file_next=0', 'file_next=5'),
	(17, 'barred=f', 'barred=t'),
	(18, 'barred=f', 'barred=f '),
	(19, '2 restart', '1 restart')) v (n, old, new)
 ORDER BY n;
SELECT n, old, new, (proof_error(format('SELECT slotkeeper.consistent_point(%L, %L, %L)', '1/28', '1/60', replace(:'with_file', old, new)))).code
  FROM (VALUES (0, '', ''),
	(1, 'file=1/40', 'file=1/20'),
	(2, 'file=1/40', 'file=1/60'),
	(3, 'file=1/40', 'file=1/2002'),
	(4, 'file=1/40', 'file=0/0'),
	(5, 'file_next=7', 'file_next=1'),
	(6, 'file_next=7 restarted=t', 'file_next=0 restarted=f'),
	(7, 'changed=9', 'changed=0')) v (n, old, new)
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

DROP FUNCTION proof_many, proof_memory, proof_error, proof_with, proof_steps, proof_file;
DROP TABLE proof_t, proof_u, proof_good, proof_later;
