#!/bin/bash
# From 16 on the server itself gives up a logical slot on a standby that can no
# longer decode: slots() says why, and the next change replaces the mirror, once.
. "$(dirname "$0")/lib.sh"

pair "hot_standby_feedback = off"
q a "CREATE TABLE t (a int)" >/dev/null
slot a s1

# news N: the slot on the primary goes on past catalog changes
news() {
	local i
	for i in 1 2; do
		q a "CREATE TABLE n$1_$i (a int)" "DROP TABLE n$1_$i" "CHECKPOINT" \
			"SELECT count(*) FROM pg_logical_slot_get_changes('s1', NULL, NULL)" >/dev/null
	done
	caught_up b a
}
reason() { q b "SELECT coalesce(invalidated, 'none') FROM slotkeeper.slots() WHERE name = 's1'"; }
reason_is() { until_true b "SELECT coalesce(invalidated, 'none') = '$1' FROM slotkeeper.slots() WHERE name = 's1'"; }

held_everywhere 1 s1
news 1
is "a mirror" "$(apply b "$(changes a s1)")" "s1|made"
x=$(q b "SELECT catalog_xmin FROM slotkeeper.slots() WHERE name = 's1'")

# --- with the hold in place vacuum takes nothing from it
for i in 2 3; do news $i; done
q a "VACUUM pg_class" "VACUUM pg_attribute" "VACUUM pg_type" >/dev/null
caught_up b a
is "the slot went on without it" "$(q a "SELECT catalog_xmin::text::bigint > $x FROM slotkeeper.slots() WHERE name = 's1'")" t
is "held: never invalidated" "$(reason)" none

# --- the hold is dropped by hand, and vacuum takes the rows
q a "SELECT pg_drop_replication_slot('slotkeeper_hold')" "VACUUM pg_class" "VACUUM pg_attribute" "VACUUM pg_type" >/dev/null
caught_up b a
if [ "$MAJOR" -ge 16 ]; then
	reason_is rows_removed
	ok "rows_removed"
	is "as the server says it" "$(q b "SELECT count(*) FROM pg_replication_slots r, to_jsonb(r) j WHERE slot_name = 's1'
		AND coalesce(j ->> 'invalidation_reason', 'rows_removed') = 'rows_removed'
		AND coalesce((j ->> 'conflicting')::boolean, true)")" 1
else
	is "up to 15 the server does not see it" "$(reason)" none
fi
held_everywhere 2 s1
news 4
if [ "$MAJOR" -ge 16 ]; then
	is "replaced" "$(apply b "$(changes a s1)")" "s1|replaced"
else
	like "not refused: that is the generation's business" "$(apply b "$(changes a s1)")" "s1\|moved"
fi
is "and good again" "$(reason)" none
is "once" "$(apply b "$(changes a s1)")" "s1|unchanged"

# --- wal_level goes below logical on the primary
q a "SELECT pg_drop_replication_slot('s1')" >/dev/null
stop a
echo "wal_level = replica" >>"$(data a)/postgresql.conf"
start a
caught_up b a
if [ "$MAJOR" -ge 16 ]; then
	reason_is wal_level_insufficient
	ok "wal_level_insufficient"
else
	is "up to 15 the server does not see it" "$(reason)" none
fi
is "dropped all the same" "$(q b "SELECT name, code FROM slotkeeper.drop($(fence), '{s1}')")" "s1|dropped"

# --- from 18 on a slot that nobody has touched for long is given up: it keeps its restart_lsn, but no WAL
if [ "$MAJOR" -ge 18 ]; then
	from=$(q b "SELECT pg_last_wal_replay_lsn()")
	wal_hold() { hold b 2 "'{}'::slotkeeper.want[]" "'$from'" | grep slotkeeper_wal; }
	wal_reason() { q b "SELECT coalesce(invalidated, 'none') FROM slotkeeper.slots() WHERE name = 'slotkeeper_wal'"; }
	is "a hold of WAL" "$(wal_hold)" "slotkeeper_wal|held"
	echo "idle_replication_slot_timeout = '1s'" >>"$(data b)/postgresql.conf"
	q b "SELECT pg_reload_conf()" >/dev/null
	until_true b "SELECT clock_timestamp() - inactive_since > '2 s' FROM pg_replication_slots WHERE slot_name = 'slotkeeper_wal'"
	q a "CHECKPOINT" >/dev/null
	caught_up b a
	q b "CHECKPOINT" >/dev/null
	is "given up" "$(wal_reason)" idle_timeout
	is "asked for again" "$(wal_hold)" "slotkeeper_wal|held"
	is "it is another one, which keeps WAL" "$(wal_reason)" none
fi
