#!/bin/bash
# The copies that the server's own slot synchronization keeps (17 and later) are
# never touched, and ours do not get into its way.
. "$(dirname "$0")/lib.sh"

if [ "$MAJOR" -lt 17 ]; then
	ok "this server has no slot synchronization"
	exit 0
fi

pair "hot_standby_feedback = on"
echo "primary_conninfo = 'host=$WORK/nodes/a port=$PORT user=postgres dbname=postgres'" >>"$(data b)/postgresql.auto.conf"
q b "SELECT pg_reload_conf()" >/dev/null
q a "CREATE TABLE t (a int)" \
	"SELECT pg_create_logical_replication_slot('native', 'test_decoding', false, false, true)" >/dev/null
slot a plain
slot a stranger
held_everywhere 1 plain native stranger

# --- made by the server; the slot on the primary must have gone beyond the standby's own
synced() {
	q a "INSERT INTO t VALUES (1)" "CHECKPOINT" "SELECT count(*) FROM pg_logical_slot_get_changes('native', NULL, NULL)" >/dev/null
	caught_up b a
	q b "SELECT pg_sync_replication_slots()" >/dev/null 2>&1 || true
	[ "$(q b "SELECT synced AND NOT temporary FROM slotkeeper.slots() WHERE name = 'native'")" = t ]
}
for i in $(seq 60); do synced && break; done
is "the server's copy" "$(q b "SELECT failover, synced, marker IS NULL FROM slotkeeper.slots() WHERE name = 'native'")" "t|t|t"
before=$(q b "SELECT restart_lsn, confirmed_flush_lsn, catalog_xmin, incarnation FROM slotkeeper.slots() WHERE name = 'native'")

# --- and ours beside it
is "not touched" "$(apply b "$(changes a plain native)" | sort)" "native|not_ours
plain|made"
like "and why" "$(apply_row b "$(changes a native)")" "slot synchronization"
is "not dropped" "$(q b "SELECT name, code FROM slotkeeper.drop($(fence), '{native}')")" "native|not_ours"
is "not stamped" "$(q b "SELECT name, code FROM slotkeeper.stamp($(fence), 2, '{native}')")" "native|not_ours"
is "as it was" "$(q b "SELECT restart_lsn, confirmed_flush_lsn, catalog_xmin, incarnation FROM slotkeeper.slots() WHERE name = 'native'")" "$before"
is "ours is not the server's" "$(q b "SELECT failover, synced FROM slotkeeper.slots() WHERE name = 'plain'")" "f|f"

# --- the server goes on with its own and leaves ours
q a "INSERT INTO t VALUES (2)" "CHECKPOINT" "SELECT count(*) FROM pg_logical_slot_get_changes('native', NULL, NULL)" >/dev/null
caught_up b a
q b "SELECT pg_sync_replication_slots()" >/dev/null
is "it moved" "$(q b "SELECT (restart_lsn, confirmed_flush_lsn, catalog_xmin, incarnation)::text <> '($(tr '|' ',' <<<"$before"))' FROM slotkeeper.slots() WHERE name = 'native'")" t
is "ours stays" "$(q b "SELECT count(*) FROM slotkeeper.slots() WHERE name = 'plain' AND (marker).kind = 'mirror'")" 1
is "no clash in the log" "$(grep -c "same name slot" "$WORK/nodes/b/log" || true)" 0

# --- after the promotion both decode
promote b
is "all rows" "$(q b "SELECT count(*) FROM pg_logical_slot_get_changes('native', NULL, NULL)" "SELECT count(*) > 0 FROM pg_logical_slot_get_changes('plain', NULL, NULL)" | tail -1)" t
