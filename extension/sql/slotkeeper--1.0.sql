/* extension/sql/slotkeeper--1.0.sql */

-- complain if the script is sourced in psql, rather than by CREATE EXTENSION
\echo Use "CREATE EXTENSION slotkeeper" to load this file. \quit

-- A schema that stands here already is used as it is. Whoever owns it, or may create in
-- it, could put a function of the same name before ours, and the controller's role, which
-- has REPLICATION, would run it. Names and operators are qualified: that schema is in the
-- search path of this script.
DO LANGUAGE plpgsql $$
DECLARE
	other pg_catalog.name;
BEGIN
	SELECT r.rolname INTO other
	FROM pg_catalog.pg_namespace n, pg_catalog.pg_roles r
	WHERE n.nspname OPERATOR(pg_catalog.=) 'slotkeeper'::pg_catalog.name AND NOT r.rolsuper
		AND (n.nspowner OPERATOR(pg_catalog.=) r.oid OR pg_catalog.has_schema_privilege(r.oid, n.oid, 'CREATE'))
	ORDER BY r.oid DESC LIMIT 1;
	IF FOUND THEN
		RAISE EXCEPTION 'schema "slotkeeper" is open to others'
			USING ERRCODE = 'insufficient_privilege',
				DETAIL = pg_catalog.format('The role %I owns it or may create objects in it, and could have functions of its own run by the role of the controller.', other),
				HINT = 'Look what is in it and drop it: CREATE EXTENSION makes it. Or: ALTER SCHEMA slotkeeper OWNER TO a superuser, and REVOKE CREATE on it.';
	END IF;
END $$;

-- What a writing call shows, and what a node's fence file holds.
CREATE TYPE slotkeeper.fence AS (
	scope text,
	store text,
	epoch bigint,
	owner text,
	system_identifier text,
	timeline bigint
);

-- Tells one slot directory from a later one of the same name.
CREATE TYPE slotkeeper.incarnation AS (
	inode text,
	birth timestamptz
);

-- The file that makes a slot ours.
CREATE TYPE slotkeeper.marker AS (
	version integer,
	kind text,
	scope text,
	store text,
	system_identifier text,
	timeline bigint,
	generation bigint,
	source slotkeeper.incarnation,
	way text,
	witness pg_lsn,
	unheld_before xid,
	held_since timestamptz,
	held_from pg_lsn
);

-- One mirror to be made or moved. snapshot_at NULL: the snapshot is of restart_lsn.
CREATE TYPE slotkeeper.change AS (
	name name,
	plugin name,
	database_oid oid,
	two_phase boolean,
	two_phase_at pg_lsn,
	restart_lsn pg_lsn,
	confirmed_flush_lsn pg_lsn,
	catalog_xmin xid,
	snapshot bytea,
	source slotkeeper.incarnation,
	resume text,
	snapshot_at pg_lsn
);

-- One catalog_xmin that the hold shall pin. slot_name NULL: keep what is held.
CREATE TYPE slotkeeper.want AS (
	catalog_xmin xid,
	slot_name name,
	source slotkeeper.incarnation
);

CREATE TYPE slotkeeper.outcome AS (
	name name,
	code text,
	restart_lsn pg_lsn,
	confirmed_flush_lsn pg_lsn,
	catalog_xmin xid,
	way text,
	proven_at pg_lsn,
	resume text,
	detail text,
	hint text
);

CREATE FUNCTION slotkeeper.node(
	OUT system_identifier text,
	OUT timeline bigint,
	OUT history_timelines bigint[],
	OUT history_lsns pg_lsn[],
	OUT in_recovery boolean,
	OUT insert_lsn pg_lsn,
	OUT flush_lsn pg_lsn,
	OUT receive_lsn pg_lsn,
	OUT replay_lsn pg_lsn,
	OUT started timestamptz,
	OUT wal_level text,
	OUT primary_slot_name text,
	OUT hot_standby_feedback boolean,
	OUT max_slots integer,
	OUT used_slots integer,
	OUT clock timestamptz,
	OUT fence slotkeeper.fence,
	OUT heartbeat timestamptz,
	OUT library text,
	OUT protocol integer,
	OUT held_for_all_since timestamptz)
RETURNS record
AS 'MODULE_PATHNAME', 'slotkeeper_node'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION slotkeeper.slots(
	OUT name name,
	OUT kind text,
	OUT plugin name,
	OUT database name,
	OUT database_oid oid,
	OUT temporary boolean,
	OUT two_phase boolean,
	OUT two_phase_at pg_lsn,
	OUT restart_lsn pg_lsn,
	OUT confirmed_flush_lsn pg_lsn,
	OUT xmin xid,
	OUT catalog_xmin xid,
	OUT effective_catalog_xmin xid,
	OUT invalidated text,
	OUT active_pid integer,
	OUT incarnation slotkeeper.incarnation,
	OUT wal_ok boolean,
	OUT snapshot text,
	OUT saved boolean,
	OUT marker slotkeeper.marker,
	OUT failover boolean,
	OUT synced boolean)
RETURNS SETOF record
AS 'MODULE_PATHNAME', 'slotkeeper_slots'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION slotkeeper.snapshot(at pg_lsn)
RETURNS bytea
AS 'MODULE_PATHNAME', 'slotkeeper_snapshot'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION slotkeeper.consistent_point(
	restart_lsn pg_lsn,
	confirmed_flush_lsn pg_lsn,
	INOUT resume text DEFAULT NULL,
	max_bytes bigint DEFAULT 67108864,
	OUT way text,
	OUT proven_at pg_lsn)
RETURNS record
AS 'MODULE_PATHNAME', 'slotkeeper_consistent_point'
LANGUAGE C VOLATILE PARALLEL RESTRICTED;

CREATE FUNCTION slotkeeper.hold(
	fence slotkeeper.fence,
	generation bigint,
	want slotkeeper.want[],
	wal pg_lsn)
RETURNS SETOF slotkeeper.outcome
AS 'MODULE_PATHNAME', 'slotkeeper_hold'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

-- Ends the idle sessions of an application (Patroni; or '*', everybody's) that stand
-- in the way of mirrors, since they are older than this standby's hold.
CREATE FUNCTION slotkeeper.end_sessions(
	fence slotkeeper.fence,
	application text)
RETURNS SETOF slotkeeper.outcome
AS 'MODULE_PATHNAME', 'slotkeeper_end_sessions'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION slotkeeper.apply(
	fence slotkeeper.fence,
	change slotkeeper.change[],
	max_bytes bigint)
RETURNS SETOF slotkeeper.outcome
AS 'MODULE_PATHNAME', 'slotkeeper_apply'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION slotkeeper.mark(
	fence slotkeeper.fence,
	name name[],
	incarnation slotkeeper.incarnation[])
RETURNS SETOF slotkeeper.outcome
AS 'MODULE_PATHNAME', 'slotkeeper_mark'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION slotkeeper.stamp(
	fence slotkeeper.fence,
	generation bigint,
	name name[])
RETURNS SETOF slotkeeper.outcome
AS 'MODULE_PATHNAME', 'slotkeeper_stamp'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION slotkeeper.drop(
	fence slotkeeper.fence,
	name name[])
RETURNS SETOF slotkeeper.outcome
AS 'MODULE_PATHNAME', 'slotkeeper_drop'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION slotkeeper.raise_fence(fence slotkeeper.fence)
RETURNS text
AS 'MODULE_PATHNAME', 'slotkeeper_raise_fence'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

CREATE FUNCTION slotkeeper.remove_fence(fence slotkeeper.fence)
RETURNS text
AS 'MODULE_PATHNAME', 'slotkeeper_remove_fence'
LANGUAGE C VOLATILE PARALLEL UNSAFE;

-- Returns when a slot, the server's role or timeline is no longer as the token
-- says, when the position after the token's @ is replayed, or at the timeout.
CREATE PROCEDURE slotkeeper.wait_for_change(
	INOUT token text,
	timeout interval)
AS 'MODULE_PATHNAME', 'slotkeeper_wait_for_change'
LANGUAGE C;

REVOKE ALL ON ALL ROUTINES IN SCHEMA slotkeeper FROM PUBLIC;
