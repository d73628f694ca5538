-- The markers of originals on a primary.
SELECT slotkeeper.raise_fence(fence());
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_logical', 'test_decoding');
SELECT 1 AS made FROM pg_create_physical_replication_slot('rg_physical');
SELECT 1 AS made FROM pg_create_logical_replication_slot('rg_temporary', 'test_decoding', true);
SELECT marker FROM slotkeeper.slots() WHERE name = 'rg_logical';

SELECT name, code, detail FROM slotkeeper.mark(fence(), '{rg_logical,rg_physical,rg_temporary}',
	ARRAY[incarnation('rg_logical'), incarnation('rg_physical'), incarnation('rg_temporary')]);
SELECT name, code, detail FROM slotkeeper.mark(fence(), '{rg_logical}', ARRAY[incarnation('rg_logical')]);
SELECT (s.marker).version, (s.marker).kind, (s.marker).scope, (s.marker).store, (s.marker).generation, (s.marker).way,
	(s.marker).source = s.incarnation AS source,
	(s.marker).timeline = n.timeline AS timeline, (s.marker).system_identifier = n.system_identifier AS system_identifier
FROM slotkeeper.slots() s, slotkeeper.node() n WHERE s.name = 'rg_logical';
SELECT name FROM slotkeeper.slots() WHERE (marker).version IS NOT NULL;

-- gone, and another incarnation
SELECT name, code, detail FROM slotkeeper.mark(fence(), '{rg_nosuch}', ARRAY[incarnation('rg_logical')]);
SELECT name, code, detail FROM slotkeeper.mark(fence(), '{rg_logical}', ARRAY[('1', 'epoch')::slotkeeper.incarnation]);

-- a marker of another scope is not ours
SELECT slotkeeper.remove_fence(fence());
SELECT slotkeeper.raise_fence(fence(1, 'other'));
SELECT name, code, detail FROM slotkeeper.mark(fence(1, 'other'), '{rg_logical}', ARRAY[incarnation('rg_logical')]);
SELECT name, code, detail FROM slotkeeper.drop(fence(1, 'other'), '{rg_logical}');
SELECT slotkeeper.remove_fence(fence(1, 'other'));
SELECT slotkeeper.raise_fence(fence());

-- another store of the same scope takes it over
SELECT slotkeeper.remove_fence(fence());
SELECT slotkeeper.raise_fence(fence(store => 'store-2'));
SELECT name, code FROM slotkeeper.mark(fence(store => 'store-2'), '{rg_logical}', ARRAY[incarnation('rg_logical')]);
SELECT (marker).store FROM slotkeeper.slots() WHERE name = 'rg_logical';
SELECT slotkeeper.remove_fence(fence(store => 'store-2'));
SELECT slotkeeper.raise_fence(fence());

-- only mirrors have generations
SELECT name, code, detail FROM slotkeeper.stamp(fence(), 3, '{rg_logical,rg_physical,rg_nosuch}');

-- on a primary an original loses its marker, and its consumer nothing
SELECT name, code, detail FROM slotkeeper.drop(fence(), '{rg_logical}');
SELECT marker IS NULL AS unmarked FROM slotkeeper.slots() WHERE name = 'rg_logical';
SELECT name, code, detail FROM slotkeeper.drop(fence(), '{rg_logical,rg_physical,rg_temporary}');

SELECT pg_drop_replication_slot('rg_logical'), pg_drop_replication_slot('rg_physical'), pg_drop_replication_slot('rg_temporary');
SELECT slotkeeper.remove_fence(fence());
