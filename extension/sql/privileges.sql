-- Nothing for PUBLIC; everything for a role with REPLICATION and the grants, without superuser.
CREATE ROLE rg_stranger;
CREATE ROLE rg_nobody;
CREATE ROLE rg_reader;
CREATE ROLE rg_keeper REPLICATION;
GRANT USAGE ON SCHEMA slotkeeper TO rg_nobody, rg_reader, rg_keeper;
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA slotkeeper TO rg_reader, rg_keeper;

-- what a call comes to for whoever asks
CREATE FUNCTION answer(call text) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
	EXECUTE call;
	RETURN 'answered';
EXCEPTION WHEN OTHERS THEN
	RETURN SQLSTATE || ' ' || SQLERRM;
END $$;

CREATE TABLE tries AS SELECT row_number() OVER () AS nr, f AS name, format('%s slotkeeper.%s(%s)', CASE f WHEN 'wait_for_change' THEN 'CALL' ELSE 'SELECT * FROM' END, f, args) AS call
FROM (VALUES
		('node', ''),
		('slots', ''),
		('snapshot', $$'0/28'$$),
		('consistent_point', $$'0/28', '0/28'$$),
		('raise_fence', 'fence'),
		('hold', $$fence, 1, '{}', NULL$$),
		('end_sessions', $$fence, 'Patroni'$$),
		('apply', $$fence, '{}', 1$$),
		('mark', $$fence, '{}', '{}'$$),
		('stamp', $$fence, 1, '{}'$$),
		('drop', $$fence, '{slotkeeper_hold}'$$),
		('remove_fence', 'fence'),
		('wait_for_change', $$NULL, '0'$$)) AS f(f, shown),
	LATERAL (SELECT replace(shown, 'fence', format('%L::slotkeeper.fence', fence()::text))) AS a(args);
GRANT SELECT ON tries TO PUBLIC;

-- nothing of the extension is left out here
SELECT proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE nspname = 'slotkeeper' AND proname NOT IN (SELECT name FROM tries);
SELECT name, has_function_privilege('rg_nobody', p.oid, 'EXECUTE') AS public
FROM tries JOIN pg_proc p ON proname = name JOIN pg_namespace n ON n.oid = p.pronamespace AND nspname = 'slotkeeper'
ORDER BY nr;

-- who has nothing does not even see the schema
SET ROLE rg_stranger;
SELECT name, answer(call) FROM tries ORDER BY nr;
RESET ROLE;
SET ROLE rg_nobody;
SELECT name, answer(call) FROM tries ORDER BY nr;
RESET ROLE;
-- reading needs no REPLICATION, writing does
SET ROLE rg_reader;
SELECT name, answer(call) FROM tries ORDER BY nr;
SELECT slotkeeper.raise_fence(fence());
RESET ROLE;
-- with both everything is answered, and done
SET ROLE rg_keeper;
SELECT name, answer(call) FROM tries ORDER BY nr;
SELECT slotkeeper.raise_fence(fence());
SELECT name, code FROM slotkeeper.hold(fence(), 1, '{}', NULL);
SELECT name, code FROM slotkeeper.drop(fence(), '{slotkeeper_hold}');
SELECT slotkeeper.remove_fence(fence());
RESET ROLE;
-- REPLICATION alone is not enough: one grant less, one call less
REVOKE EXECUTE ON FUNCTION slotkeeper.apply FROM rg_keeper;
SET ROLE rg_keeper;
SELECT name, answer(call) FROM tries WHERE name IN ('slots', 'apply') ORDER BY nr;
RESET ROLE;

DROP TABLE tries;
DROP FUNCTION answer;
REVOKE ALL ON ALL ROUTINES IN SCHEMA slotkeeper FROM rg_reader, rg_keeper;
REVOKE ALL ON SCHEMA slotkeeper FROM rg_nobody, rg_reader, rg_keeper;
DROP ROLE rg_stranger, rg_nobody, rg_reader, rg_keeper;
