-- wait_for_change: tokens, the timeout, and where it may not wait. What happens while it
-- waits takes a second session: t/009_wait.sh.

CREATE TABLE tokens (at text, token text);
CREATE PROCEDURE note(label text) LANGUAGE plpgsql AS $$
DECLARE now text;
BEGIN
	CALL slotkeeper.wait_for_change(now, '0');
	INSERT INTO tokens VALUES (label, now);
END $$;

-- NULL begins, at once
CALL note('begun');
SELECT token ~ '^1:[0-9a-f]{16}$' AS form FROM tokens;

-- the timeout, with nothing changed: the same text again
CALL note('again');
SELECT count(DISTINCT token) AS tokens FROM tokens;
SELECT token FROM tokens WHERE at = 'begun' \gset
SELECT clock_timestamp() AS begun \gset
CALL slotkeeper.wait_for_change(:'token', '200 ms') \gset now_
SELECT :'now_token' = :'token' AS same, clock_timestamp() - :'begun' >= '200 ms' AS waited;

-- a slot made, moved, dropped: each is another token; a temporary one is not
SELECT 'slot' FROM pg_create_logical_replication_slot('wait_temporary', 'test_decoding', true);
CALL note('temporary');
SELECT pg_drop_replication_slot('wait_temporary');
SELECT 'slot' FROM pg_create_logical_replication_slot('wait_slot', 'test_decoding');
CALL note('made');
SELECT 'moved' FROM pg_replication_slot_advance('wait_slot', pg_current_wal_insert_lsn());
CALL note('moved');
-- a physical slot counts when it comes and goes, not when it moves
SELECT 'slot' FROM pg_create_physical_replication_slot('wait_physical', true);
CALL note('physical');
SELECT 'moved' FROM pg_replication_slot_advance('wait_physical', pg_current_wal_flush_lsn());
CALL note('physical moved');
SELECT pg_drop_replication_slot('wait_physical');
SELECT pg_drop_replication_slot('wait_slot');
CALL note('dropped');
SELECT string_agg(at, ', ' ORDER BY at) AS same FROM tokens GROUP BY token ORDER BY 1;

-- a token behind: at once, whatever the timeout
CALL slotkeeper.wait_for_change('1:0000000000000000', '1 day') \gset now_
SELECT :'now_token' = :'token' AS up_to_date;

-- a position: reached, its @ is gone; not reached, the text is the same
SELECT :'token' || '@0/00000001' AS near, :'token' || '@FFFFFFFF/FFFFFFFF' AS far \gset
CALL slotkeeper.wait_for_change(:'near', '1 day') \gset now_
SELECT :'now_token' = :'token' AS reached;
CALL slotkeeper.wait_for_change(:'far', '1 ms') \gset now_
SELECT :'now_token' = :'far' AS still_waiting;

-- what is not a token
CALL slotkeeper.wait_for_change('', '0');
CALL slotkeeper.wait_for_change('1:', '0');
CALL slotkeeper.wait_for_change('2:0000000000000000', '0');
CALL slotkeeper.wait_for_change('1:000000000000000', '0');
CALL slotkeeper.wait_for_change('1:000000000000000A', '0');
CALL slotkeeper.wait_for_change('1:0000000000000000 ', '0');
CALL slotkeeper.wait_for_change('1:0000000000000000@', '0');
CALL slotkeeper.wait_for_change('1:0000000000000000@0/0', '0');
CALL slotkeeper.wait_for_change('1:0000000000000000@0/', '0');
CALL slotkeeper.wait_for_change('1:0000000000000000@0/1 ', '0');
CALL slotkeeper.wait_for_change('1:0000000000000000@/1', '0');
CALL slotkeeper.wait_for_change('1:0000000000000000@0/-1', '0');
CALL slotkeeper.wait_for_change('1:0000000000000000@0/000000001', '0');
CALL slotkeeper.wait_for_change('1:0000000000000000@0/1@0/1', '0');
CALL slotkeeper.wait_for_change(repeat('1', 100000), '0');

-- what is not a timeout
CALL slotkeeper.wait_for_change(NULL, NULL);
CALL slotkeeper.wait_for_change(NULL, '-1 ms');
CALL slotkeeper.wait_for_change(NULL, '1 month');
CALL slotkeeper.wait_for_change(NULL, '1 day 1 microsecond');
CALL slotkeeper.wait_for_change(NULL, '-2147483648 days');
CALL slotkeeper.wait_for_change(NULL, interval '2147483647 days' + interval '100000000:00:00');

-- only where it can give up its snapshot
BEGIN;
CALL slotkeeper.wait_for_change(NULL, '0');
ROLLBACK;
CREATE FUNCTION wait_inside() RETURNS text LANGUAGE plpgsql AS $$
DECLARE t text;
BEGIN
	CALL slotkeeper.wait_for_change(t, '0');
	RETURN t;
END $$;
SELECT wait_inside();
DO $$
DECLARE t text;
BEGIN
	CALL slotkeeper.wait_for_change(t, '0');
EXCEPTION WHEN division_by_zero THEN NULL;
END $$;
DO $$
DECLARE t text; r record;
BEGIN
	FOR r IN SELECT 1 FROM pg_class LOOP
		CALL slotkeeper.wait_for_change(t, '0');
	END LOOP;
END $$;
SET default_transaction_isolation = 'repeatable read';
CALL slotkeeper.wait_for_change(NULL, '0');
RESET default_transaction_isolation;
CREATE FUNCTION wait_function(text, interval) RETURNS record LANGUAGE c AS 'slotkeeper', 'slotkeeper_wait_for_change';
SELECT * FROM wait_function(NULL, '0') AS f(t text);

-- the statements after it have a snapshot as ever
DO $$
DECLARE t text;
BEGIN
	CALL slotkeeper.wait_for_change(t, '0');
	PERFORM count(*) FROM pg_class;
	COMMIT;
	CALL slotkeeper.wait_for_change(t, '0');
	PERFORM count(*) FROM pg_class;
END $$;

DROP FUNCTION wait_inside, wait_function;
DROP PROCEDURE note;
DROP TABLE tokens;
