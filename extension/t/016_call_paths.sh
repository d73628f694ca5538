#!/bin/bash
# Every function by the ways and at the moments that a server offers: in parts, nested, in
# places where SQL runs by itself, in what is rolled back, in a walsender and in a server
# of one process, and while the server stops. Whatever comes of a call, the server lives
# on, its session leaves nothing behind, and no error is an internal one.
. "$(dirname "$0")/lib.sh"

pair "max_prepared_transactions = 2"
for s in s1 s2; do slot a $s; done
caught_up b a
held_everywhere 1 s1 s2
F=$(fence)
W=$(wants a s1 s2)
CH=$(changes a s1 s2)
is "mirrors" "$(apply b "$CH")" "s1|made
s2|made"
read -r restart confirmed <<<"$(q a "SELECT restart_lsn || ' ' || confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = 's1'")"
incarnations="(SELECT array_agg(incarnation ORDER BY name) FROM slotkeeper.slots() WHERE name IN ('s1', 's2'))"
calls=(
	"slotkeeper.node()"
	"slotkeeper.slots()"
	"slotkeeper.snapshot('$restart')"
	"slotkeeper.consistent_point('$restart', '$confirmed')"
	"slotkeeper.hold($F, 1, $W, NULL)"
	"slotkeeper.end_sessions($F, 'Patroni')"
	"slotkeeper.apply($F, $CH, 1000000000)"
	"slotkeeper.mark($F, '{s1,s2}', $incarnations)"
	"slotkeeper.stamp($F, 1, '{s1,s2}')"
	"slotkeeper.drop($F, '{no_such_slot}')"
	"slotkeeper.raise_fence($F)"
)
started_a=$(q a "SELECT pg_postmaster_start_time()")
started_b=$(q b "SELECT pg_postmaster_start_time()")

# on NODE [CONNINFO] <statements: all of them in one session, whichever fails; errors by SQLSTATE
on() {
	psql -X -At -v VERBOSITY=sqlstate -v ON_ERROR_STOP=0 \
		"host=$WORK/nodes/$1 port=$PORT user=postgres dbname=postgres ${2:-}" 2>&1 || true
}

# In one statement, in parts, in what is rolled back: for both roles of a server.
reading() {
	cat <<-SQL
		SELECT count(*) FROM (SELECT $1, $1, generate_series(1, 3)) x;
		SELECT count(*) FROM (SELECT g, x FROM generate_series(1, 3) g LEFT JOIN LATERAL $1 x ON true LIMIT 1) y;
		SELECT count(*) FROM ROWS FROM ($1, generate_series(1, 5), $1) WITH ORDINALITY;
		SELECT coalesce((SELECT CASE WHEN true THEN x::text END FROM $1 x LIMIT 1), '') <> '';
		COPY (SELECT x::text FROM $1 x) TO '/dev/null';
		BEGIN; DECLARE c SCROLL CURSOR WITH HOLD FOR SELECT 1 FROM $1 x; FETCH 1 FROM c; COMMIT; FETCH BACKWARD ALL FROM c; CLOSE c;
		BEGIN; DECLARE c CURSOR WITH HOLD FOR SELECT 1 FROM $1 x; COMMIT; FETCH 1 FROM c; CLOSE c;
		BEGIN; SAVEPOINT s; SELECT 1 FROM $1 x LIMIT 1; SELECT 1/0; ROLLBACK TO s; SELECT 1 FROM $1 x LIMIT 1; SELECT 1/0; SELECT 1 FROM $1 x; ROLLBACK;
		BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY DEFERRABLE; SELECT 1 FROM $1 x LIMIT 1; COMMIT;
		BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM $1 x LIMIT 1; COMMIT;
		DO \$\$ DECLARE r record; BEGIN FOR r IN SELECT x FROM $1 x LOOP EXIT; END LOOP; END \$\$;
		DO \$\$ DECLARE r record; BEGIN FOR r IN SELECT x FROM $1 x LOOP COMMIT; ROLLBACK; END LOOP; END \$\$;
		DO \$\$ BEGIN FOR i IN 1..3 LOOP BEGIN PERFORM x FROM $1 x; PERFORM 1/0; EXCEPTION WHEN division_by_zero THEN NULL; END; END LOOP; END \$\$;
		SELECT set_config(name, CASE setting WHEN 'off' THEN 'on' ELSE 'off' END, false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
		SELECT count(*) FROM (SELECT $1) x;
		RESET ALL;
	SQL
}

# Where a primary calls it by itself: checks, defaults, indexes, triggers, policies, two-phase.
writing() {
	cat <<-SQL
		CREATE FUNCTION w(int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS \$\$ BEGIN PERFORM x FROM $1 x; RETURN \$1; END \$\$;
		CREATE FUNCTION t() RETURNS trigger SECURITY DEFINER LANGUAGE plpgsql AS \$\$ BEGIN PERFORM x FROM $1 x; RETURN NEW; END \$\$;
		CREATE FUNCTION e() RETURNS event_trigger LANGUAGE plpgsql AS \$\$ BEGIN PERFORM x FROM $1 x; END \$\$;
		CREATE TABLE u (i int CHECK (w(i) > 0), j int DEFAULT w(1), k int GENERATED ALWAYS AS (w(i)) STORED);
		CREATE INDEX ON u ((w(i)));
		CREATE CONSTRAINT TRIGGER t AFTER INSERT ON u DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION t();
		CREATE EVENT TRIGGER e ON ddl_command_end EXECUTE FUNCTION e();
		INSERT INTO u (i) VALUES (1), (2);
		REINDEX TABLE CONCURRENTLY u;
		VACUUM (FULL, ANALYZE) u;
		ALTER TABLE u ENABLE ROW LEVEL SECURITY;
		CREATE POLICY p ON u USING (w(i) > 0);
		DROP EVENT TRIGGER e;
		CREATE TABLE c AS SELECT 1 FROM $1 x;
		DROP TABLE c;
		BEGIN; INSERT INTO u (i) VALUES (7); SELECT 1 FROM $1 x; PREPARE TRANSACTION 'x'; COMMIT PREPARED 'x';
		ALTER FUNCTION w(int) PARALLEL SAFE;
		SELECT set_config(name, CASE setting WHEN 'off' THEN 'on' ELSE 'off' END, false) FROM pg_settings WHERE name IN ('force_parallel_mode', 'debug_parallel_query');
		SELECT sum(w(i)) FROM u;
		RESET ALL;
		SELECT count(*) FROM pg_create_logical_replication_slot('temporary', 'test_decoding', true);
		SELECT count(*) FROM pg_logical_slot_get_changes('temporary', NULL, (SELECT count(*)::int FROM $1 x)), LATERAL $1 x;
		SELECT 1 FROM $1 x;
		DROP TABLE u; DROP FUNCTION w, t, e;
	SQL
}

# nothing_left NODE STARTED: of sessions that are over
nothing_left() {
	until_true "$1" "SELECT count(*) = 0 FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND query LIKE '%slotkeeper%'"
	is "$1: it is the server that it was" "$(q "$1" "SELECT pg_postmaster_start_time()")" "$2"
	is "$1: no slot is left in use, half made, or more than there were" "$(q "$1" "SELECT name, saved FROM slotkeeper.slots()
		WHERE name !~ '^phys_' AND (name NOT IN ('s1', 's2', 'slotkeeper_hold') OR active_pid IS NOT NULL OR temporary OR NOT saved)")" ""
	is "$1: no lock" "$(q "$1" "SELECT locktype, mode FROM pg_locks WHERE pid <> pg_backend_pid() AND locktype <> 'virtualxid'")" ""
	is "$1: no file" "$(find "$(data "$1")/pg_replslot" "$(data "$1")/pg_logical/snapshots" -name '*tmp*')" ""
	is "$1: nothing leaked" "$(grep -E 'leak|terminated by signal|PANIC' "$WORK/nodes/$1/log" || true)" ""
}

for call in "${calls[@]}"; do
	name=${call#slotkeeper.}
	name=${name%%(*}
	reading "$call" | on a >"$WORK/out"
	reading "$call" | on b >>"$WORK/out"
	writing "$call" | on a >>"$WORK/out"
	is "$name: no internal error, no connection lost" "$(grep -E 'ERROR:  XX|FATAL|connection' "$WORK/out" || true)" ""
done
nothing_left a "$started_a"
nothing_left b "$started_b"
is "one call inside another's argument" "$(q b "SELECT DISTINCT code FROM slotkeeper.apply((SELECT fence FROM slotkeeper.node()), $CH,
	(SELECT count(*) * 1000000 FROM slotkeeper.hold($F, 1, $W, NULL)))")" unchanged
is "and twice in one statement" "$(q b "SELECT DISTINCT x.code, y.code FROM slotkeeper.hold($F, 1, $W, NULL) x, slotkeeper.hold($F, 1, $W, NULL) y")" "held|held"
is "a walsender, with a temporary slot of its own" "$(on a replication=database <<-SQL | grep -v '^temporary|'
	CREATE_REPLICATION_SLOT temporary TEMPORARY LOGICAL test_decoding NOEXPORT_SNAPSHOT;
	SELECT DISTINCT code FROM slotkeeper.hold($F, 1, $W, NULL);
	SELECT count(*) FROM slotkeeper.slots() WHERE temporary;
	SQL
)" "$(printf '%s\n' held 1)"

# --- memory: the longest-lived of a session's contexts does not grow
if [ "$MAJOR" -ge 14 ]; then
	round="DO \$\$ BEGIN FOR i IN 1..200 LOOP $(for call in "${calls[@]}"; do echo "PERFORM x FROM $call x;"; done) END LOOP; END \$\$"
	top="SELECT sum(total_bytes) FROM pg_backend_memory_contexts WHERE name IN ('TopMemoryContext', 'CacheMemoryContext')"
	for node in a b; do
		read -r before after <<<"$(q $node "$round" "$top" "$round" "$round" "$round" "$top" | grep -v DO | paste -sd ' ')"
		is "$node: 600 calls of each later" "$after" "$before"
	done
fi

# --- the server stops while sessions wait
for mode in fast immediate; do
	for node in b a; do
		token=$(q $node "CALL slotkeeper.wait_for_change(NULL, '1s')")
		echo "CALL slotkeeper.wait_for_change('$token', '1 day')" | on $node >/dev/null &
		echo "CALL slotkeeper.wait_for_change('$token', '1 day')" | on $node replication=database >/dev/null &
		until_true $node "SELECT count(*) = 2 FROM pg_stat_activity WHERE query LIKE 'CALL%1 day%' AND state = 'active'"
		stop $node $mode
		start $node
	done
	ok "$mode: a server stops with sessions that wait"
done
wait
nothing_left a "$(q a "SELECT pg_postmaster_start_time()")"

# --- a server of one process
stop a
is "a server of one process" "$(as_server "$BIN/postgres" --single -D "$(data a)" postgres 2>&1 <<-SQL | grep -oE '(code|token) = "[a-z0-9]+|(ERROR|FATAL|PANIC):  .*' | sort | uniq -c | sed -E 's/^ +//'
	SELECT code FROM slotkeeper.hold($F, 1, $W, NULL)
	CALL slotkeeper.wait_for_change(NULL, '1s')
	CALL slotkeeper.wait_for_change('1:0000000000000000', '1s')
	SELECT code FROM slotkeeper.drop($F, '{slotkeeper_hold}')
	SELECT code FROM slotkeeper.hold($F, 2, '{}', NULL)
	SQL
)" "1 code = \"dropped
3 code = \"held
2 token = \"1"
start a
is "and what it wrote is there" "$(q a "SELECT (marker).generation, saved FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold'")" "2|t"
