#!/bin/bash
# Making, moving and refusing one mirror on a real primary and standby.
. "$(dirname "$0")/lib.sh"

pair
q a "CREATE TABLE t (i int)" >/dev/null
slot a s1
caught_up b a

c=$(changes a s1)
is "no hold on the standby: nothing is made" "$(apply b "$c")" "s1|not_pinned"
is "there is no slot then" "$(q b "SELECT count(*) FROM pg_replication_slots")" 0

is "the slot itself is the witness on the primary" "$(hold a 1 "$(wants a s1)")" "s1|held"
is "a standby is set without a witness" "$(hold b 1 "$(wants a s1)")" "s1|held"
like "but not with what no database has any more" \
	"$(q b "SELECT name, code, detail FROM slotkeeper.hold($(fence), 1, ARRAY[('3', 's9', '(1,)')]::slotkeeper.want[], NULL)")" "s9\|not_pinned\|.*older"
is "made" "$(apply b "$c")" "s1|made"
is "the same again" "$(apply b "$c")" "s1|unchanged"
is "all three fields are the primary's" \
	"$(q b "SELECT plugin, database, restart_lsn, confirmed_flush_lsn, catalog_xmin, saved, wal_ok FROM slotkeeper.slots() WHERE name = 's1'")" \
	"$(q a "SELECT plugin, database, restart_lsn, confirmed_flush_lsn, catalog_xmin, true, true FROM slotkeeper.slots() WHERE name = 's1'")"
is "its marker" \
	"$(q b "SELECT (marker).kind, (marker).scope, (marker).store, (marker).generation, ((marker).source).inode FROM slotkeeper.slots() WHERE name = 's1'")" \
	"mirror|shop|store-1|1|$(q a "SELECT (incarnation).inode FROM slotkeeper.slots() WHERE name = 's1'")"

advance() {
	local i
	for i in 1 2 3; do
		q a "INSERT INTO t VALUES ($i)" "CHECKPOINT" "SELECT 1 FROM pg_logical_slot_get_changes('s1', NULL, NULL)" >/dev/null
	done
}
advance
old=$c
c=$(changes a s1)
caught_up b a
is "moved" "$(apply b "$c")" "s1|moved"
is "where the primary is" "$(changes b s1 | grep -o '0/[0-9A-F]*' | head -2)" "$(changes a s1 | grep -o '0/[0-9A-F]*' | head -2)"
is "never backward" "$(apply b "$old")" "s1|backward"
like "the row of a refusal tells where the mirror is" "$(apply_row b "$old")" "$(q b "SELECT restart_lsn FROM slotkeeper.slots() WHERE name = 's1'")"

q b "SELECT pg_wal_replay_pause()" >/dev/null
advance
is "not beyond replay" "$(apply b "$(changes a s1)")" "s1|ahead_of_replay"
q b "SELECT pg_wal_replay_resume()" >/dev/null
caught_up b a
is "and then it is" "$(apply b "$(changes a s1)")" "s1|moved"

# confirmed_flush_lsn alone. The bgwriter may write a running-xacts record between
# two statements, by which restart_lsn moves too: then it is done once more.
for try in 1 2 3 4 5 6 7 8 9 10; do
	q a "SELECT pg_replication_slot_advance('s1', pg_current_wal_lsn())" >/dev/null
	r1=$(q a "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 's1'")
	q a "INSERT INTO t VALUES (9)" "SELECT 1 FROM pg_logical_slot_get_changes('s1', NULL, NULL)" >/dev/null
	[ "$(q a "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 's1'")" != "$r1" ] || break
done
is "restart_lsn stands here" "$(q a "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 's1'")" "$r1"
caught_up b a
apply b "$(changes a s1)" >/dev/null
is "still saved after a move of confirmed_flush_lsn alone" "$(q b "SELECT saved FROM slotkeeper.slots() WHERE name = 's1'")" t

# a new incarnation under the same name
q a "SELECT pg_drop_replication_slot('s1')" >/dev/null
slot a s1
caught_up b a
held_everywhere 2 s1
is "replaced by a new incarnation" "$(apply b "$(changes a s1)")" "s1|replaced"
is "with the generation of the hold" "$(q b "SELECT (marker).generation FROM slotkeeper.slots() WHERE name = 's1'")" 2

# what is not ours
q b "SELECT pg_create_physical_replication_slot('foreign')" >/dev/null
q b "SELECT slotkeeper.raise_fence($(fence 1))" >/dev/null
slot a foreign
held_everywhere 2 s1 foreign
caught_up b a
is "a slot without a marker is left alone" "$(apply b "$(changes a s1 foreign)" | sort)" "foreign|not_ours
s1|unchanged"
is "and not dropped" "$(q b "SELECT name, code FROM slotkeeper.drop($(fence), '{foreign}')")" "foreign|not_ours"
is "physical still" "$(q b "SELECT slot_type FROM pg_replication_slots WHERE slot_name = 'foreign'")" physical

is "dropped" "$(q b "SELECT name, code FROM slotkeeper.drop($(fence), '{s1}')")" "s1|dropped"
is "dropped once" "$(q b "SELECT name, code FROM slotkeeper.drop($(fence), '{s1}')")" "s1|unchanged"
