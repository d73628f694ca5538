-- No input may do more than be refused.
\set VERBOSITY default
SELECT slotkeeper.raise_fence(fence());
CREATE TEMP TABLE before AS SELECT slot_name FROM pg_replication_slots;

-- fences
SELECT slotkeeper.raise_fence(NULL);
SELECT slotkeeper.raise_fence(ROW(NULL, NULL, NULL, NULL, NULL, NULL)::slotkeeper.fence);
SELECT slotkeeper.raise_fence(fence(0));
SELECT slotkeeper.raise_fence(fence(-1));
SELECT slotkeeper.raise_fence(fence(1, ''));
SELECT slotkeeper.raise_fence(fence(1, E'two\nlines'));
SELECT slotkeeper.raise_fence(fence(1, 'größe'));
SELECT slotkeeper.raise_fence(fence(1, repeat('x', 256)));
SELECT slotkeeper.raise_fence(fence(1, sysid => 'abc'));
SELECT slotkeeper.raise_fence(fence(1, sysid => ''));
SELECT slotkeeper.raise_fence(fence(1, sysid => '-1'));
SELECT slotkeeper.raise_fence(fence(1, sysid => '99999999999999999999'));
SELECT slotkeeper.raise_fence(fence(1, tli => 0));
SELECT slotkeeper.raise_fence(fence(1, tli => 4294967296));
SELECT slotkeeper.remove_fence(NULL);

-- names
SELECT * FROM slotkeeper.drop(fence(), NULL);
SELECT * FROM slotkeeper.drop(fence(), '{}');
SELECT * FROM slotkeeper.drop(fence(), ARRAY[NULL]::name[]);
SELECT * FROM slotkeeper.drop(fence(), '{{a},{b}}');
SELECT * FROM slotkeeper.drop(fence(), '{""}');
SELECT * FROM slotkeeper.drop(fence(), '{Upper}');
SELECT * FROM slotkeeper.drop(fence(), '{../x}');
SELECT * FROM slotkeeper.drop(fence(), '{a,b,a}');
SELECT code, count(*) FROM slotkeeper.drop(fence(), ARRAY[repeat('x', 63), repeat('y', 64)]::name[]) GROUP BY 1;
SELECT code, count(*) FROM slotkeeper.drop(fence(), (SELECT array_agg('n' || i) FROM generate_series(1, 10000) i)::name[]) GROUP BY 1;

-- marks
SELECT * FROM slotkeeper.mark(fence(), '{a}', '{}');
SELECT * FROM slotkeeper.mark(fence(), '{a}', NULL);
SELECT * FROM slotkeeper.mark(fence(), '{a}', ARRAY[NULL]::slotkeeper.incarnation[]);
SELECT * FROM slotkeeper.mark(fence(), '{a}', ARRAY[(NULL, NULL)]::slotkeeper.incarnation[]);
SELECT * FROM slotkeeper.mark(fence(), '{a}', ARRAY[('x', NULL)]::slotkeeper.incarnation[]);
SELECT * FROM slotkeeper.stamp(fence(), 0, '{a}');
SELECT * FROM slotkeeper.stamp(fence(), NULL, '{a}');

-- wants
SELECT * FROM slotkeeper.hold(fence(), 0, '{}', NULL);
SELECT * FROM slotkeeper.hold(fence(), 1, NULL, NULL);
SELECT * FROM slotkeeper.hold(fence(), 1, ARRAY[NULL]::slotkeeper.want[], NULL);
SELECT * FROM slotkeeper.hold(fence(), 1, ARRAY[(NULL, NULL, NULL)]::slotkeeper.want[], NULL);
SELECT * FROM slotkeeper.hold(fence(), 1, ARRAY[('0', NULL, NULL)]::slotkeeper.want[], NULL);
SELECT * FROM slotkeeper.hold(fence(), 1, ARRAY[('1', NULL, NULL)]::slotkeeper.want[], NULL);
SELECT * FROM slotkeeper.hold(fence(), 1, ARRAY[('2', NULL, NULL)]::slotkeeper.want[], NULL);
SELECT * FROM slotkeeper.hold(fence(), 1, ARRAY[('700', 'a', NULL)]::slotkeeper.want[], NULL);
SELECT * FROM slotkeeper.hold(fence(), 1, ARRAY[('700', 'a', '(1,)'), ('701', 'a', '(1,)')]::slotkeeper.want[], NULL);

-- changes
CREATE FUNCTION change(name name DEFAULT 'a', plugin name DEFAULT 'test_decoding', db oid DEFAULT 1, two_phase boolean DEFAULT false,
	r pg_lsn DEFAULT '0/1000028', f pg_lsn DEFAULT '0/1000028', x xid DEFAULT '700', source slotkeeper.incarnation DEFAULT '(1,)',
	snapshot_at pg_lsn DEFAULT NULL)
RETURNS slotkeeper.change LANGUAGE sql AS $$
	SELECT (name, plugin, db, two_phase, NULL, r, f, x, NULL, source, NULL, snapshot_at)::slotkeeper.change
$$;
SELECT * FROM slotkeeper.apply(fence(), NULL, 1);
SELECT * FROM slotkeeper.apply(fence(), '{}', NULL);
SELECT * FROM slotkeeper.apply(fence(), '{}', 0);
SELECT * FROM slotkeeper.apply(fence(), '{}', 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[NULL]::slotkeeper.change[], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[ROW(NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL)]::slotkeeper.change[], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change('')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change('Bad')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change('slotkeeper_hold')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change('slotkeeper_wal')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(plugin => '')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(db => 0)], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(two_phase => NULL)], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(r => '0/0')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(f => '0/0')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(r => '0/2')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(r => '1/0', f => '0/FFFFFFFF')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(x => '0')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(x => '1')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(x => '2')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(source => NULL)], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(f => '0/1000060', snapshot_at => '0/1000020')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change(f => '0/1000060', snapshot_at => '0/1000060')], 1);
SELECT * FROM slotkeeper.apply(fence(), ARRAY[change('a'), change('b'), change('a')], 1);
SELECT name, code, detail FROM slotkeeper.apply(fence(), ARRAY[change('a'), change('b')], 1);
SELECT code, count(*) FROM slotkeeper.apply(fence(), (SELECT array_agg(change(('n' || i)::name)) FROM generate_series(1, 10000) i), 1) GROUP BY 1;

SELECT * FROM slotkeeper.end_sessions(NULL, 'Patroni');
SELECT * FROM slotkeeper.end_sessions(fence(), NULL);
SELECT * FROM slotkeeper.end_sessions(fence(), '');
SELECT * FROM slotkeeper.end_sessions(fence(), repeat('P', 64));
SELECT name, code FROM slotkeeper.end_sessions(fence(), 'Patroni');

-- nothing was made on the way
SELECT slot_name FROM pg_replication_slots EXCEPT SELECT slot_name FROM before;
SELECT slotkeeper.remove_fence(fence());
