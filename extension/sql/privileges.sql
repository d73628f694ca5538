-- Nothing for PUBLIC; reading and writing for a role with REPLICATION and grants, without superuser.
CREATE ROLE rg_nobody;
CREATE ROLE rg_reader;
CREATE ROLE rg_keeper REPLICATION;
GRANT USAGE ON SCHEMA slotkeeper TO rg_nobody, rg_reader, rg_keeper;
GRANT EXECUTE ON ALL ROUTINES IN SCHEMA slotkeeper TO rg_reader, rg_keeper;

SELECT proname FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
WHERE nspname = 'slotkeeper' AND has_function_privilege('rg_nobody', p.oid, 'EXECUTE');

SET ROLE rg_nobody;
SELECT * FROM slotkeeper.node();
SELECT * FROM slotkeeper.slots();
CALL slotkeeper.wait_for_change(NULL, '0');
RESET ROLE;

-- reading needs no REPLICATION, writing does
SET ROLE rg_reader;
SELECT count(*) FROM slotkeeper.node();
SELECT count(*) >= 0 AS ok FROM slotkeeper.slots();
CALL slotkeeper.wait_for_change('1:0000000000000000', '0') \gset now_
SELECT :'now_token' <> '' AS ok;
SELECT slotkeeper.raise_fence(fence());
SELECT slotkeeper.remove_fence(fence());
SELECT * FROM slotkeeper.hold(fence(), 1, '{}', NULL);
SELECT * FROM slotkeeper.apply(fence(), '{}', 1);
SELECT * FROM slotkeeper.mark(fence(), '{}', '{}');
SELECT * FROM slotkeeper.stamp(fence(), 1, '{}');
SELECT * FROM slotkeeper.drop(fence(), '{}');
RESET ROLE;

SET ROLE rg_keeper;
SELECT slotkeeper.raise_fence(fence());
SELECT name, code FROM slotkeeper.hold(fence(), 1, '{}', NULL);
SELECT name, code FROM slotkeeper.drop(fence(), '{slotkeeper_hold}');
SELECT slotkeeper.remove_fence(fence());
RESET ROLE;

REVOKE ALL ON ALL ROUTINES IN SCHEMA slotkeeper FROM rg_reader, rg_keeper;
REVOKE ALL ON SCHEMA slotkeeper FROM rg_nobody, rg_reader, rg_keeper;
DROP ROLE rg_nobody, rg_reader, rg_keeper;
