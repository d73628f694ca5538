-- Who may write: the highest epoch of one scope and store.
SELECT slotkeeper.remove_fence(fence());
SELECT fence, heartbeat FROM slotkeeper.node();

-- without a fence nothing is written
SELECT name, code, detail, hint FROM slotkeeper.drop(fence(), '{nosuch}');

SELECT slotkeeper.raise_fence(fence(5));
SELECT (fence).scope, (fence).store, (fence).epoch, (fence).owner, (fence).timeline = timeline AS timeline,
	(fence).system_identifier = system_identifier AS system_identifier, clock - heartbeat < '1 min' AS heartbeat
FROM slotkeeper.node();
SELECT name, code FROM slotkeeper.drop(fence(5), '{nosuch}');

-- the same again moves the heartbeat
SELECT heartbeat AS before FROM slotkeeper.node() \gset
SELECT slotkeeper.raise_fence(fence(5));
SELECT heartbeat > :'before' AS later FROM slotkeeper.node();

-- an epoch that is over, one that was not raised, another owner of the same
SELECT slotkeeper.raise_fence(fence(4)), slotkeeper.remove_fence(fence(4));
SELECT code, detail, hint FROM slotkeeper.drop(fence(4), '{nosuch}');
SELECT code, detail, hint FROM slotkeeper.drop(fence(6), '{nosuch}');
SELECT slotkeeper.raise_fence(fence(5, owner => 'you')), slotkeeper.remove_fence(fence(5, owner => 'you'));
SELECT code, detail, hint FROM slotkeeper.drop(fence(5, owner => 'you'), '{nosuch}');

-- another etcd, another scope
SELECT slotkeeper.raise_fence(fence(9, store => 'store-2')), slotkeeper.raise_fence(fence(9, 'other'));
SELECT slotkeeper.remove_fence(fence(9, store => 'store-2')), slotkeeper.remove_fence(fence(9, 'other'));
SELECT code, detail FROM slotkeeper.drop(fence(9, 'other'), '{nosuch}');

-- another cluster, another timeline
SELECT slotkeeper.raise_fence(fence(9, sysid => '1')), slotkeeper.remove_fence(fence(9, sysid => '1'));
SELECT code, hint FROM slotkeeper.drop(fence(5, sysid => '1'), '{nosuch}');
SELECT code FROM slotkeeper.drop(fence(5, tli => 4294967295), '{nosuch}');

-- the same refusal on every row of every function
SELECT 'apply' AS call, code FROM slotkeeper.apply(fence(4), '{}', 1)
UNION ALL SELECT 'hold', code FROM slotkeeper.hold(fence(4), 1, '{}', '0/0')
UNION ALL SELECT 'mark', code FROM slotkeeper.mark(fence(4), '{a,b}', array_fill('(1,)'::slotkeeper.incarnation, '{2}'))
UNION ALL SELECT 'stamp', code FROM slotkeeper.stamp(fence(4), 1, '{a,b}')
UNION ALL SELECT 'drop', code FROM slotkeeper.drop(fence(4), '{a,b}');

-- a call in a transaction that fails does not keep the lock
BEGIN;
SELECT code FROM slotkeeper.drop(fence(5), '{nosuch}');
SELECT 1 / 0;
ROLLBACK;
SELECT code FROM slotkeeper.drop(fence(5), '{nosuch}');

SELECT slotkeeper.raise_fence(fence(6));
SELECT code FROM slotkeeper.drop(fence(5), '{nosuch}');
SELECT slotkeeper.remove_fence(fence(6));
SELECT slotkeeper.remove_fence(fence(6));
