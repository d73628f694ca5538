#!/bin/bash
# After a promotion the mirror gives every transaction that was not confirmed.
. "$(dirname "$0")/lib.sh"

pair "hot_standby_feedback = off"
q a "CREATE TABLE t (id serial, who text)" "CREATE PUBLICATION p FOR TABLE t" >/dev/null
slot a s1
caught_up b a
held_everywhere 1 s1
is "made" "$(apply b "$(changes a s1)")" "s1|made"

# writers that hold transactions open across each other until the primary dies, and a consumer
writer() {
	local i=0
	while q a "BEGIN; INSERT INTO t (who) VALUES ('$1-$i-a'); SELECT pg_sleep(0.1 * $1); INSERT INTO t (who) VALUES ('$1-$i-b'); COMMIT"; do
		i=$((i + 1))
	done
}
consume() { q "$1" "SELECT data FROM pg_logical_slot_get_changes('s1', NULL, NULL)" >>"$WORK/consumed"; }
for i in 1 2 3; do writer $i >/dev/null 2>&1 & done
for i in 1 2 3 4 5 6 7 8; do
	consume a
	q a "CHECKPOINT" >/dev/null
	w=$(wants a s1)
	c=$(changes a s1)
	caught_up b a
	hold a 1 "$w" >/dev/null
	apply b "$c" >>"$WORK/codes"
	if [ $i = 4 ]; then q a "ALTER TABLE t ADD COLUMN more int DEFAULT 1" "VACUUM pg_attribute" "VACUUM pg_class" >/dev/null; fi
done
stop a immediate
wait
promote b

like "it moved" "$(cat "$WORK/codes")" "moved"
consume b
is "nothing is lost" "$(grep -o "[0-9]*-[0-9]*-[ab]" "$WORK/consumed" | sort -u)" "$(q b "SELECT who FROM t" | sort -u)"
like "something was written" "$(q b "SELECT count(*) > 20 FROM t")" t

# the new primary: the hold goes on, the mirror is marked as an original
is "the old timeline is refused" "$(q b "SELECT DISTINCT code FROM slotkeeper.hold($(fence 1 1), 1, '{}', NULL)")" "timeline_mismatch"
q b "SELECT slotkeeper.raise_fence($(fence 2 2))" >/dev/null
is "an epoch that is over" "$(q b "SELECT DISTINCT code FROM slotkeeper.hold($(fence 1 2), 1, '{}', NULL)")" "fenced"
is "held on the new primary" \
	"$(q b "SELECT name, code FROM slotkeeper.hold($(fence 2 2), 1, $(wants b s1), '0/0')" | sort)" "s1|held
slotkeeper_wal|unchanged"
is "marked as an original" \
	"$(q b "SELECT name, code FROM slotkeeper.mark($(fence 2 2), '{s1}', array(SELECT incarnation FROM slotkeeper.slots() WHERE name = 's1'))")" "s1|marked"
is "apply is for standbys" "$(apply b "$(changes b s1)" 2 2)" "s1|not_in_recovery"
is "an original loses its marker only" "$(q b "SELECT name, code, detail FROM slotkeeper.drop($(fence 2 2), '{s1}')")" \
	"s1|dropped|marker removed, slot kept"
is "the slot is there" "$(q b "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 's1'")" 1
