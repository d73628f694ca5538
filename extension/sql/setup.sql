-- What the other tests use: the extension and short names.
SET client_min_messages = warning;
DROP EXTENSION IF EXISTS slotkeeper CASCADE;
CREATE EXTENSION slotkeeper;
RESET client_min_messages;

-- what a writing call shows here
CREATE FUNCTION fence(epoch bigint DEFAULT 1, scope text DEFAULT 'regress', store text DEFAULT 'store-1',
	owner text DEFAULT 'me', sysid text DEFAULT NULL, tli bigint DEFAULT NULL)
RETURNS slotkeeper.fence LANGUAGE sql AS $$
	SELECT (scope, store, epoch, owner, coalesce(sysid, n.system_identifier), coalesce(tli, n.timeline))::slotkeeper.fence
	FROM slotkeeper.node() n
$$;

CREATE FUNCTION incarnation(slot name) RETURNS slotkeeper.incarnation LANGUAGE sql AS $$
	SELECT incarnation FROM slotkeeper.slots() WHERE name = slot
$$;

-- a want for exactly what a slot pins now
CREATE FUNCTION want(slot name) RETURNS slotkeeper.want LANGUAGE sql AS $$
	SELECT (catalog_xmin, name, incarnation)::slotkeeper.want FROM slotkeeper.slots() WHERE name = slot
$$;
