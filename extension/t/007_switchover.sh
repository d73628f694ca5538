#!/bin/bash
# a to b and back to a: a's own slots become mirrors of b's.
. "$(dirname "$0")/lib.sh"

pair
q a "CREATE TABLE t (i int)" >/dev/null
for s in s1 foreign; do slot a $s; done
caught_up b a
mark() { q "$1" "SELECT name, code FROM slotkeeper.mark($(fence "$2" "$3"), '{s1}', array(SELECT incarnation FROM slotkeeper.slots() WHERE name = 's1'))"; }
is "the original is marked" "$(mark a 1 1)" "s1|marked"
held_everywhere 1 s1
is "made" "$(apply b "$(changes a s1)")" "s1|made"
q a "INSERT INTO t VALUES (1), (2)" >/dev/null

# a clean shutdown, b is promoted, a follows b
stop a
promote b
cat >>"$(data a)/postgresql.conf" <<CONF
primary_conninfo = 'host=$WORK/nodes/b port=$PORT user=postgres'
CONF
as_server touch "$(data a)/standby.signal"
q b "SELECT slotkeeper.raise_fence($(fence 2 2))" >/dev/null
start a
until_true a "SELECT timeline = 2 FROM slotkeeper.node()"
is "the fork is known" "$(q a "SELECT history_timelines, cardinality(history_lsns) FROM slotkeeper.node()")" "{1}|1"
q a "SELECT slotkeeper.raise_fence($(fence 2 2))" >/dev/null
is "the fence of a is that of the new leader" "$(q a "SELECT (fence).epoch, (fence).timeline FROM slotkeeper.node()")" "2|2"

is "b's mirror is the original now" "$(mark b 2 2)" "s1|marked"
hold2() { q "$1" "SELECT name, code FROM slotkeeper.hold($(fence 2 2), 1, $2, NULL)"; }
w=$(wants b s1)
is "b's hold goes on" "$(hold2 b "$w")" "s1|held"
is "a's hold goes on" "$(hold2 a "$w")" "s1|held"
is "originals are marked on primaries only" "$(mark a 2 2)" "s1|retry"

q b "INSERT INTO t VALUES (3)" >/dev/null
is "the consumer goes on at b" "$(q b "SELECT data FROM pg_logical_slot_get_changes('s1', NULL, NULL)" | grep -c INSERT)" 3
q b "INSERT INTO t VALUES (4)" "CHECKPOINT" "INSERT INTO t VALUES (5)" >/dev/null
caught_up a b
is "a's own slot follows b's" "$(apply a "$(changes b s1)" 2 2)" "s1|moved"
is "as a mirror of b's" \
	"$(q a "SELECT (marker).kind, (marker).timeline, ((marker).source).inode FROM slotkeeper.slots() WHERE name = 's1'")" \
	"mirror|2|$(q b "SELECT (incarnation).inode FROM slotkeeper.slots() WHERE name = 's1'")"
slot b foreign
caught_up a b
is "an unmarked one is not ours" "$(hold2 a "$(wants b s1 foreign)" >/dev/null; apply a "$(changes b foreign)" 2 2)" "foreign|not_ours"

stop b immediate
promote a
is "nothing is lost" "$(q a "SELECT data FROM pg_logical_slot_get_changes('s1', NULL, NULL)" | grep -o 'INSERT: i.*')" "INSERT: i[integer]:4
INSERT: i[integer]:5"
