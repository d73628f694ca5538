#!/bin/bash
# What a standby cannot do, slot by slot: each says why, none stops another.
. "$(dirname "$0")/lib.sh"

pair "min_wal_size = 32MB" "max_wal_size = 32MB"
q a "CREATE TABLE t (i int)" >/dev/null
for s in s1 s2 s3 s4; do slot a $s; done
caught_up b a
held_everywhere 1 s1 s2 s3 s4

# --- C17: no free slot
echo "max_replication_slots = 3" >>"$(data b)/postgresql.conf"
stop b
start b
caught_up b a
is "two of four get the room" "$(apply b "$(changes a s1 s2 s3 s4)")" "s1|made
s2|made
s3|no_free_slot
s4|no_free_slot"
like "needed and available are named" "$(apply_row b "$(changes a s3)")" '"s3", 0 are available: 3 of 3'
is "the same ones again" "$(apply b "$(changes a s1 s2 s3 s4)")" "s1|unchanged
s2|unchanged
s3|no_free_slot
s4|no_free_slot"
is "nor is there room for the WAL hold" "$(q b "SELECT name, code FROM slotkeeper.hold($(fence), 1, '{}', pg_last_wal_replay_lsn())")" \
	"slotkeeper_hold|held
slotkeeper_wal|no_free_slot"
q b "SELECT * FROM slotkeeper.drop($(fence), '{s1,s2}')" >/dev/null

# --- C18: wal_level
echo "max_replication_slots = 10" >>"$(data b)/postgresql.conf"
echo "wal_level = replica" >>"$(data b)/postgresql.conf"
stop b
start b
if [ "$MAJOR" -ge 19 ]; then
	is "a standby decodes where its primary does" "$(apply b "$(changes a s1)")" "s1|made"
	q b "SELECT * FROM slotkeeper.drop($(fence), '{s1}')" >/dev/null
else
	is "wal_level" "$(apply b "$(changes a s1)")" "s1|wal_level"
fi
echo "wal_level = logical" >>"$(data b)/postgresql.conf"
stop b
start b
is "plugin_missing" "$(apply b "$(changes a s1 | sed 's/test_decoding/no_such_plugin/')")" "s1|plugin_missing"
# Older minors do not know the setting, and let everybody use every plugin.
if [ "$(q b "SELECT count(*) FROM pg_settings WHERE name = 'output_plugin_libraries'")" = 1 ]; then
	echo "output_plugin_libraries = 'pgoutput, test_decoding_2'" >>"$(data b)/postgresql.conf"
	q b "SELECT pg_reload_conf()" >/dev/null
	until_true b "SELECT setting = 'pgoutput, test_decoding_2' FROM pg_settings WHERE name = 'output_plugin_libraries'"
	like "a plugin that may not be used" "$(apply_row b "$(changes a s1)")" 'plugin_missing.*not among output_plugin_libraries'
	sed -i '/output_plugin_libraries/d' "$(data b)/postgresql.conf"
	q b "SELECT pg_reload_conf()" >/dev/null
fi
caught_up b a

# --- the fence is busy
(
	flock 9
	is "busy_fence" "$(apply b "$(changes a s1)")" "s1|busy_fence"
) 9<>"$(data b)/pg_replslot/slotkeeper.fence"

# --- another database, a snapshot that is none, a resume text that is none
like "database_gone" "$(apply b "$(changes a s1 | sed 's/test_decoding,[0-9]*,/test_decoding,99999,/')")" "s1\|database_gone"
like "a broken resume text is that slot's trouble only" \
	"$(q b "SELECT name, code FROM slotkeeper.apply($(fence), (SELECT array_agg((c.name, c.plugin, c.database_oid, c.two_phase, c.two_phase_at,
		c.restart_lsn, c.confirmed_flush_lsn, c.catalog_xmin, c.snapshot, c.source, CASE c.name WHEN 's1' THEN 'nonsense' END, NULL)::slotkeeper.change)
		FROM unnest($(changes a s1 s2)) c), 1000000) ORDER BY name")" "s2\|made"
is "nothing half made is left" "$(q b "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 's1'")" 0

# --- an in-use slot, an unmarked one, and the good one beside them
as_server "$BIN/pg_receivewal" --no-loop -h "$WORK/nodes/b" -p "$PORT" -U postgres -S slotkeeper_hold -D "$WORK/nodes/b" >/dev/null 2>&1 &
until_true b "SELECT active_pid IS NOT NULL FROM pg_replication_slots WHERE slot_name = 'slotkeeper_hold'"
is "a hold that somebody uses holds nothing" "$(apply b "$(changes a s3)")" "s3|not_pinned"
is "in_use" "$(hold b 1 "$(wants a s1)")" "s1|in_use"
is "nor is it dropped" "$(q b "SELECT name, code FROM slotkeeper.drop($(fence), '{slotkeeper_hold}')")" "slotkeeper_hold|in_use"
q b "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = 'slotkeeper_hold'" >/dev/null
until_true b "SELECT active_pid IS NULL FROM pg_replication_slots WHERE slot_name = 'slotkeeper_hold'"
is "what was used is not continuous" "$(hold b 1 "$(wants a s1)")" "s1|not_pinned"
is "in a new generation it is made anew" "$(hold b 2 "$(wants a s1 s2 s3 s4)")" "s1|held
s2|held
s3|held
s4|held"

# --- WAL: kept by the WAL hold, gone without it
q b "SELECT * FROM slotkeeper.drop($(fence), '{s2}')" >/dev/null
r=$(q a "SELECT restart_lsn FROM pg_replication_slots WHERE slot_name = 's1'")
hold_wal() { q b "SELECT name, code, restart_lsn FROM slotkeeper.hold($(fence), 2, '{}', '$1') WHERE name = 'slotkeeper_wal'"; }
is "made" "$(hold_wal "$r")" "slotkeeper_wal|held|$r"
is "the same again" "$(hold_wal "$r")" "slotkeeper_wal|held|$r"
churn() {
	local i
	for i in 1 2 3 4; do q a "INSERT INTO t SELECT generate_series(1, 1000)" "SELECT pg_switch_wal()" >/dev/null; done
	q a "CHECKPOINT" >/dev/null
	caught_up b a
	q b "CHECKPOINT" >/dev/null
}
churn
is "the WAL is still there" "$(hold_wal "$r")" "slotkeeper_wal|held|$r"
is "and the mirror can be made" "$(apply b "$(changes a s1)")" "s1|made"
q b "SELECT * FROM slotkeeper.drop($(fence), '{s1}')" >/dev/null
is "moved forward as asked" "$(hold_wal "$(q b "SELECT pg_last_wal_replay_lsn()")" | cut -d'|' -f2)" held
segment=$(q a "SELECT pg_walfile_name('$r')")
for try in 1 2 3 4 5 6 7 8 9 10; do # until a restartpoint has taken it
	churn
	[ -e "$(data b)/pg_wal/$segment" ] || break
done
is "the WAL is gone" "$(apply b "$(changes a s1)")" "s1|wal_missing"
like "and cannot be held" "$(hold_wal "$r")" "slotkeeper_wal\|wal_missing\|"
is "it keeps what it kept" "$(q b "SELECT restart_lsn > '$r' FROM pg_replication_slots WHERE slot_name = 'slotkeeper_wal'")" t
is "0/0 drops it" "$(hold_wal 0/0)" "slotkeeper_wal|dropped|"
# from 19 on it is written 9/00000000
is "a position that is not replayed yet can be held" "$(hold_wal 9/0 | sed "s,/0*\$,/0,")" "slotkeeper_wal|held|9/0"
is "0/0 drops it again" "$(hold_wal 0/0)" "slotkeeper_wal|dropped|"

# --- a mirror that lost its WAL is made anew from the next read
for s in s1 s2 s3 s4; do q a "SELECT pg_drop_replication_slot('$s')" >/dev/null; done
slot a s5
caught_up b a
held_everywhere 3 s5
is "made" "$(apply b "$(changes a s5)")" "s5|made"
echo "max_slot_wal_keep_size = 1MB" >>"$(data b)/postgresql.conf"
q b "SELECT pg_reload_conf()" >/dev/null
churn
is "it is lost" "$(q b "SELECT invalidated FROM slotkeeper.slots() WHERE name = 's5'")" wal_removed
is "and goes: it would never decode" "$(apply b "$(changes a s5)")" "s5|wal_missing"
is "an unproven slot does not exist" "$(q b "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 's5'")" 0

# --- transaction ids are in order only within half of all: one that is before the oldest of all and
# after the hold would come between two that are next to each other
x=$(q b "SELECT catalog_xmin FROM pg_replication_slots WHERE slot_name = 'slotkeeper_hold'")
wanted=$(q a "SELECT quote_literal(array_agg((x::text::xid, 'w' || n, incarnation)::slotkeeper.want ORDER BY n)::text) || '::slotkeeper.want[]'
	FROM slotkeeper.slots(), unnest(ARRAY[$((x - 2)), $(((x - 1 + 2147483648) % 4294967296)), $x]) WITH ORDINALITY u(x, n) WHERE name = 's5'")
is "it stands alone" "$(hold b 3 "$wanted")" "w1|held
w2|not_pinned
w3|held"
