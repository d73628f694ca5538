#!/bin/bash
# A mirror is shown only with a proof. R is a record at which a transaction runs and another one goes
# on beyond F: then nothing but the file at exactly R proves anything.
. "$(dirname "$0")/lib.sh"

pair
q a "CREATE TABLE t (who text)" >/dev/null
slot a s1

# session FD: a psql on a that runs what is written to that descriptor
session() {
	mkfifo "$WORK/session$1"
	psql -X -q -h "$WORK/nodes/a" -p "$PORT" -U postgres postgres <"$WORK/session$1" >/dev/null &
	eval "exec $1>'$WORK/session$1'"
}
running() { until_true a "SELECT count(*) = $1 FROM pg_stat_activity WHERE state = 'idle in transaction' AND backend_xid IS NOT NULL"; }
consume() { q a "CHECKPOINT" "SELECT 1 FROM pg_logical_slot_get_changes('s1', NULL, NULL)" >/dev/null; }
r() { q "$1" "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 's1'"; }

session 7
session 8
echo "BEGIN; INSERT INTO t VALUES ('first, one');" >&7
running 1
before=$(r a)
consume
echo "BEGIN; INSERT INTO t VALUES ('second, one');" >&8
running 2
echo "INSERT INTO t VALUES ('first, two'); COMMIT;" >&7
running 1
consume
consume
is "R has moved on to a record at which the first one ran" "$(q a "SELECT restart_lsn > '$before', snapshot FROM slotkeeper.slots() WHERE name = 's1'")" "t|valid"

caught_up b a
held_everywhere 1 s1
c=$(changes a s1)
without() {
	q a "SELECT quote_literal(array_agg((name, plugin, database_oid, two_phase, two_phase_at, restart_lsn, confirmed_flush_lsn, catalog_xmin,
		$1, incarnation, NULL, NULL)::slotkeeper.change)::text) || '::slotkeeper.change[]' FROM slotkeeper.slots() WHERE name = 's1'"
}
is "without the file: no proof, no mirror" "$(apply b "$(without NULL)")" "s1|no_consistent_point"
is "with another file: no proof, no mirror" "$(apply b "$(without "'\\x0011'::bytea")")" "s1|bad_snapshot"
is "with half of it" "$(apply b "$(without "substr(slotkeeper.snapshot(restart_lsn), 1, 60)")")" "s1|bad_snapshot"
is "nothing is left of them" "$(r b)" ""
like "a walk that is not finished says where it goes on" \
	"$(q b "SELECT code, resume IS NOT NULL FROM slotkeeper.apply($(fence), $(without NULL), 1)")" "no_consistent_point\|t"
is "with the file" "$(q b "SELECT name, code, way FROM slotkeeper.apply($(fence), $c, 1000000000)")" "s1|made|file"
is "it is in its marker" "$(q b "SELECT (marker).way, snapshot FROM slotkeeper.slots() WHERE name = 's1'")" "file|valid"

# D20: the file goes, and is shipped again; without it there is no proof
rm "$(data b)/pg_logical/snapshots/"*.snap
is "gone" "$(q b "SELECT snapshot FROM slotkeeper.slots() WHERE name = 's1'")" absent
is "no proof meanwhile" "$(apply b "$(without NULL)")" "s1|no_consistent_point"
is "shipped again" "$(q b "SELECT name, code, way FROM slotkeeper.apply($(fence), $c, 1000000000)")" "s1|unchanged|file"
is "it is back" "$(q b "SELECT snapshot FROM slotkeeper.slots() WHERE name = 's1'")" valid

# no restartpoint takes it while the mirror needs it
q a "CHECKPOINT" >/dev/null
caught_up b a
q b "CHECKPOINT" >/dev/null
is "a restartpoint keeps it" "$(q b "SELECT snapshot FROM slotkeeper.slots() WHERE name = 's1'")" valid

# promotion, with the second one still open and then lost
echo "INSERT INTO t VALUES ('second, two'); COMMIT;" >&8
running 0
caught_up b a
stop a immediate
exec 7>&- 8>&-
promote b
is "the second transaction is whole" "$(q b "SELECT data FROM pg_logical_slot_get_changes('s1', NULL, NULL)" | grep -o "second, [a-z]*")" "second, one
second, two"
