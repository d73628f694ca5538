-- The hold on a primary: what it pins must be pinned by the slot itself when it is set.
SELECT slotkeeper.raise_fence(fence());
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_one', 'test_decoding');
SELECT catalog_xmin AS x FROM slotkeeper.slots() WHERE name = 'rg_one' \gset

-- a keep without a hold: the hold is made, but what was asked is not pinned
SELECT name, code, catalog_xmin FROM slotkeeper.hold(fence(), 1, ARRAY[(:'x', NULL, NULL)::slotkeeper.want], NULL);
SELECT kind, restart_lsn, xmin, catalog_xmin, effective_catalog_xmin, active_pid, invalidated, saved,
	(marker).kind AS marker, (marker).generation
FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold';

-- the slot as a witness
SELECT name, code, catalog_xmin::text = :'x' AS x, detail FROM slotkeeper.hold(fence(), 1, ARRAY[want('rg_one')], NULL);
SELECT catalog_xmin::text = :'x' AS x, effective_catalog_xmin::text = :'x' AS effective, saved
FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold';

-- kept once pinned, by name or without
SELECT name, code FROM slotkeeper.hold(fence(), 1, ARRAY[(:'x', NULL, NULL), want('rg_one')]::slotkeeper.want[], NULL);
-- nothing wanted: it stays as it is
SELECT name, code, catalog_xmin::text = :'x' AS x FROM slotkeeper.hold(fence(), 1, '{}', NULL);

-- older than what the slot pins, gone, another incarnation
CREATE FUNCTION older(x text) RETURNS xid LANGUAGE sql AS $$ SELECT (x::bigint - 1)::text::xid $$;
SELECT name, code, detail ~ 'does not pin' AS detail FROM slotkeeper.hold(fence(), 1,
	ARRAY[(older(:'x'), 'rg_one', incarnation('rg_one'))::slotkeeper.want], NULL);
SELECT name, code FROM slotkeeper.hold(fence(), 1,
	ARRAY[(older(:'x'), 'rg_nosuch', incarnation('rg_one'))::slotkeeper.want], NULL);
SELECT catalog_xmin::text = :'x' AS x FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold';

-- generations only grow, and a greater one does not end what is held
SELECT name, code FROM slotkeeper.hold(fence(), 4, ARRAY[(:'x', NULL, NULL)::slotkeeper.want], NULL);
SELECT (marker).generation FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold';
SELECT name, code, detail, hint FROM slotkeeper.hold(fence(), 3, ARRAY[want('rg_one')], NULL);

-- raised when only something later is wanted
CREATE TABLE rg_t (i int);
INSERT INTO rg_t VALUES (1);
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_two', 'test_decoding');
SELECT want('rg_two') AS two \gset
SELECT name, code FROM slotkeeper.hold(fence(), 4, ARRAY[:'two']::slotkeeper.want[], NULL);
SELECT h.catalog_xmin = s.catalog_xmin AS raised, h.effective_catalog_xmin = s.catalog_xmin AS effective, h.saved
FROM slotkeeper.slots() h, slotkeeper.slots() s WHERE h.name = 'slotkeeper_hold' AND s.name = 'rg_two';
-- what no transaction has yet is pinned by nobody, and moves nothing
SELECT name, code, regexp_replace(detail, '\d+', 'N', 'g') AS detail
FROM slotkeeper.hold(fence(), 4, ARRAY[(((pg_current_xact_id()::text::bigint + 1000) % 4294967296)::text::xid, NULL, NULL),
	(((pg_current_xact_id()::text::bigint + 1000) % 4294967296)::text::xid, 'rg_two', (:'two'::slotkeeper.want).source)]::slotkeeper.want[], NULL);
SELECT h.catalog_xmin = s.catalog_xmin AS stays FROM slotkeeper.slots() h, slotkeeper.slots() s WHERE h.name = 'slotkeeper_hold' AND s.name = 'rg_two';
-- another slot of the same name is no witness
SELECT pg_drop_replication_slot('rg_two');
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_two', 'test_decoding');
SELECT pg_drop_replication_slot('slotkeeper_hold');
SELECT name, code FROM slotkeeper.hold(fence(), 5,
	ARRAY[((want('rg_two')).catalog_xmin, 'rg_two', (:'two'::slotkeeper.want).source)::slotkeeper.want], NULL);
SELECT name, code FROM slotkeeper.hold(fence(), 5, ARRAY[want('rg_two')], NULL);

-- dropped by hand: what was kept is not pinned any more, what a slot pins is held again
SELECT pg_drop_replication_slot('slotkeeper_hold');
SELECT name, code FROM slotkeeper.hold(fence(), 5, ARRAY[(:'x', NULL, NULL), want('rg_one')]::slotkeeper.want[], NULL);

-- not ours
SELECT pg_drop_replication_slot('slotkeeper_hold');
SELECT 1 AS made FROM pg_create_physical_replication_slot('slotkeeper_hold');
SELECT name, code, detail, hint FROM slotkeeper.hold(fence(), 5, ARRAY[want('rg_one')], NULL);
SELECT pg_drop_replication_slot('slotkeeper_hold');

-- the WAL hold is for standbys
SELECT * FROM slotkeeper.hold(fence(), 5, '{}', '0/1000000');
SELECT name, code, detail FROM slotkeeper.hold(fence(), 5, '{}', '0/0');

SELECT name, code FROM slotkeeper.drop(fence(), '{slotkeeper_hold,slotkeeper_wal}');
SELECT pg_drop_replication_slot('rg_one'), pg_drop_replication_slot('rg_two');
-- half of all transaction ids away is neither before nor after what is held
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_three', 'test_decoding');
SELECT name, code FROM slotkeeper.hold(fence(), 5, ARRAY[want('rg_three')], NULL);
SELECT catalog_xmin AS held_x, ((catalog_xmin::text::bigint + 2147483648) % 4294967296)::text::xid AS opposite
FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold' \gset
SELECT name, code FROM slotkeeper.hold(fence(), 5, ARRAY[(:'held_x', NULL, NULL), (:'opposite', NULL, NULL)]::slotkeeper.want[], NULL);
SELECT name, code FROM slotkeeper.drop(fence(), '{slotkeeper_hold}');
SELECT pg_drop_replication_slot('rg_three');

DROP TABLE rg_t;
SELECT slotkeeper.remove_fence(fence());
