#!/bin/bash
# A new slot's restart_lsn is the end of WAL of that moment: where somebody holds a table exclusively it
# is the record of that lock, which no snapshot file belongs to. Catalogs change before the slot is
# ready, and it stays idle. The file that another slot's decoder wrote just after it proves it.
. "$(dirname "$0")/lib.sh"

pair
q a "CREATE TABLE t (who text)" "CREATE TABLE u (who text)" >/dev/null
slot a other

# session FD: a psql on a that runs what is written to that descriptor
session() {
	mkfifo "$WORK/session$1"
	PGAPPNAME=session$1 psql -X -q -h "$WORK/nodes/a" -p "$PORT" -U postgres postgres <"$WORK/session$1" >/dev/null &
	eval "exec $1>'$WORK/session$1'"
}
in_transaction() { until_true a "SELECT count(*) = 1 FROM pg_stat_activity WHERE application_name = 'session$1' AND state = 'idle in transaction' AND backend_xid IS NOT NULL"; }
# waits_for FD: the slot's maker (session 6) waits for that session's transaction to end
waits_for() {
	until_true a "SELECT count(*) = 1 FROM pg_locks l JOIN pg_stat_activity m USING (pid) JOIN pg_stat_activity s ON s.backend_xid = l.transactionid
		WHERE NOT l.granted AND m.application_name = 'session6' AND s.application_name = 'session$1'"
}

session 6
session 7
session 8
session 9
echo "BEGIN; ALTER TABLE t ADD COLUMN a int;" >&7
in_transaction 7
echo "SELECT pg_create_logical_replication_slot('idle', 'test_decoding');" >&6
waits_for 7
echo "BEGIN; ALTER TABLE u ADD COLUMN b int;" >&8
in_transaction 8
echo "COMMIT;" >&7
waits_for 8
echo "BEGIN; INSERT INTO t VALUES ('nine, one', 9);" >&9
in_transaction 9
echo "COMMIT;" >&8
until_true a "SELECT count(*) = 1 FROM pg_replication_slots WHERE slot_name = 'idle' AND active_pid IS NULL AND confirmed_flush_lsn IS NOT NULL"
caught_up b a
held_everywhere 1 idle

point() { q "$1" "SELECT p.way, p.proven_at > s.restart_lsn FROM slotkeeper.slots() s, slotkeeper.consistent_point(s.restart_lsn, s.confirmed_flush_lsn) p WHERE s.name = 'idle'"; }
is "restart_lsn has no file" "$(q a "SELECT snapshot FROM slotkeeper.slots() WHERE name = 'idle'")" absent
is "nothing proves it" "$(point a)" "|"
is "no mirror" "$(apply b "$(changes a idle)")" "idle|no_consistent_point"

# the other slot's decoder passes there
q a "SELECT 1 FROM pg_logical_slot_get_changes('other', NULL, NULL)" >/dev/null
is "the file that it wrote does" "$(point a)" "later_file|t"
at=$(q a "SELECT p.proven_at FROM slotkeeper.slots() s, slotkeeper.consistent_point(s.restart_lsn, s.confirmed_flush_lsn) p WHERE s.name = 'idle'")

# with FILE AT: the change with that file
with() {
	q a "SELECT quote_literal(array_agg((name, plugin, database_oid, two_phase, two_phase_at, restart_lsn, confirmed_flush_lsn, catalog_xmin,
		$1, incarnation, NULL, $2)::slotkeeper.change)::text) || '::slotkeeper.change[]' FROM slotkeeper.slots() WHERE name = 'idle'"
}
c=$(with "slotkeeper.snapshot('$at')" "'$at'::pg_lsn")
is "the same at restart_lsn proves nothing" "$(apply b "$(with "slotkeeper.snapshot('$at')" NULL)")" "idle|no_consistent_point"
rm "$(data b)/pg_logical/snapshots/"*.snap
is "half of it is refused" "$(apply b "$(with "substr(slotkeeper.snapshot('$at'), 1, 60)" "'$at'::pg_lsn")")" "idle|bad_snapshot"
is "it is shipped to where it belongs" "$(q b "SELECT name, code, way, proven_at FROM slotkeeper.apply($(fence), $c, 1000000000)")" "idle|made|later_file|$at"
is "the marker names it" "$(q b "SELECT (marker).way, (marker).witness, snapshot FROM slotkeeper.slots() WHERE name = 'idle'")" "later_file|$at|valid"
is "a stamp keeps that" "$(q b "SELECT code FROM slotkeeper.stamp($(fence), 2, '{idle}')" "SELECT (marker).generation, (marker).witness FROM slotkeeper.slots() WHERE name = 'idle'")" "marked
2|$at"
is "unchanged" "$(q b "SELECT name, code, way FROM slotkeeper.apply($(fence), $c, 1000000000)")" "idle|unchanged|later_file"

# D20: the file goes, and is shipped again; without it there is no proof
rm "$(data b)/pg_logical/snapshots/"*.snap
is "gone" "$(q b "SELECT snapshot FROM slotkeeper.slots() WHERE name = 'idle'")" absent
is "no proof meanwhile" "$(apply b "$(with NULL NULL)")" "idle|no_consistent_point"
is "shipped again" "$(q b "SELECT name, code, way FROM slotkeeper.apply($(fence), $c, 1000000000)")" "idle|unchanged|later_file"
is "it is back" "$(q b "SELECT snapshot FROM slotkeeper.slots() WHERE name = 'idle'")" valid

# no restartpoint takes it while the mirror needs it
q a "CHECKPOINT" >/dev/null
caught_up b a
q b "CHECKPOINT" >/dev/null
is "a restartpoint keeps it" "$(q b "SELECT snapshot FROM slotkeeper.slots() WHERE name = 'idle'")" valid

echo "INSERT INTO u VALUES ('nine, two', 9); COMMIT;" >&9
until_true a "SELECT count(*) = 1 FROM u"
caught_up b a
expected=$(q a "SELECT data FROM pg_logical_slot_peek_changes('idle', NULL, NULL)")
stop a immediate
exec 6>&- 7>&- 8>&- 9>&-
promote b
is "what the mirror sends is what the slot would have sent" "$(q b "SELECT data FROM pg_logical_slot_peek_changes('idle', NULL, NULL)")" "$expected"
is "with all columns" "$(grep -c "'nine, .*\(a\|b\)\[integer\]:9" <<<"$expected")" 2
