-- A slot that decodes prepared transactions; 13 has none (two_phase_1.out).
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_two_phase', 'pgoutput', false, true);
SELECT name, two_phase, two_phase_at = confirmed_flush_lsn AS at, saved
FROM slotkeeper.slots() WHERE name = 'rg_two_phase';
SELECT count(pg_drop_replication_slot(name)) FROM slotkeeper.slots() WHERE name = 'rg_two_phase';

-- a mirror of one is refused where there can be none, before anything is looked at, and where its
-- position is missing; from 18 on (two_phase_2.out) a slot that was altered has none
CREATE FUNCTION rg_two_phase(at pg_lsn, OUT code text, OUT message text, OUT detail text, OUT hint text)
LANGUAGE plpgsql AS $$
BEGIN
	SELECT a.code INTO code FROM slotkeeper.apply(
		('shop', 'store-1', 1, 'me', (SELECT system_identifier FROM slotkeeper.node()), 1)::slotkeeper.fence,
		ARRAY[('rg_mirror', 'pgoutput', 1, true, at, '0/1', '0/2', '700', NULL, ('1', NULL), NULL, NULL)]::slotkeeper.change[], 1000) a;
EXCEPTION WHEN OTHERS THEN
	GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, message = MESSAGE_TEXT, detail = PG_EXCEPTION_DETAIL, hint = PG_EXCEPTION_HINT;
END $$;
\x on
SELECT position, r.* FROM (VALUES ('given', '0/1'::pg_lsn), ('null', NULL), ('zero', '0/0')) v(position, at), rg_two_phase(at) r;
\x off
DROP FUNCTION rg_two_phase;
