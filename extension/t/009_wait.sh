#!/bin/bash
# D15: who waits for a change holds nothing back, and is woken by what it waits for.
. "$(dirname "$0")/lib.sh"

node a
start a
standby b a "hot_standby_feedback = on" "wal_receiver_status_interval = 1s"
start b
q a "CREATE EXTENSION slotkeeper" "CREATE TABLE t AS SELECT i FROM generate_series(1, 10000) i" >/dev/null
slot a s1
caught_up b a

token() { q "$1" "CALL slotkeeper.wait_for_change(NULL, '0')"; }

# waits NODE TOKEN: psql in the background, until something changes; what it gives goes to $WORK/woken
waits() {
	psql -X -At -h "$WORK/nodes/$1" -p "$PORT" -U postgres -d postgres \
		-c "CALL slotkeeper.wait_for_change('$2', '1 hour')" >"$WORK/woken" 2>"$WORK/complaint" &
	waiter=$!
	until_true "$1" "SELECT count(*) = 1 FROM ($waiting) w"
}
waiting="SELECT * FROM pg_stat_activity WHERE query LIKE 'CALL slotkeeper.wait%' AND wait_event_type = 'Extension'"
holding="SELECT backend_xmin IS NULL, backend_xid IS NULL FROM ($waiting) w"

waits a "$(token a)"
is "a session that waits on a primary has no snapshot" "$(q a "$holding")" "t|t"
first=$waiter
at_b=$(token b)
waits b "$at_b"
is "nor on a standby" "$(q b "$holding")" "t|t"
q a "DELETE FROM t" >/dev/null
caught_up b a
until_true a "SELECT xmin IS NULL OR age(xmin) = 0 FROM pg_replication_slots WHERE slot_name = 'phys_b'"
q a "VACUUM t" >/dev/null
is "while both wait VACUUM takes what was deleted meanwhile" "$(q a "SELECT pg_relation_size('t')")" 0

q a "SELECT pg_replication_slot_advance('s1', pg_current_wal_lsn())" >/dev/null
wait $first
ok "a slot that moves wakes the one on the primary"
is "the one on the standby waits on" "$(q b "SELECT count(*) FROM ($waiting) w")" 1

q b "SELECT pg_terminate_backend(pid) FROM ($waiting) w" >/dev/null
wait $waiter || true
like "a session that waits can be ended" "$(cat "$WORK/complaint")" "terminating connection"

# a position
q b "SELECT pg_wal_replay_pause()" >/dev/null
until_true b "SELECT pg_is_wal_replay_paused()"
q a "INSERT INTO t VALUES (1)" >/dev/null
at=$(q a "SELECT pg_current_wal_insert_lsn()")
waits b "$at_b@$at"
q a "INSERT INTO t VALUES (1)" >/dev/null
is "a position that is not replayed is waited for" "$(q b "SELECT count(*) FROM ($waiting) w")" 1
q b "SELECT pg_wal_replay_resume()" >/dev/null
wait $waiter
is "replayed, it wakes" "$(cat "$WORK/woken")" "$at_b"

# what ends it early leaves the token as it is
waits b "$at_b@FFFFFFFF/0"
q b "SELECT pg_reload_conf()" >/dev/null
wait $waiter
is "a new configuration" "$(cat "$WORK/woken")" "$at_b@FFFFFFFF/0"
waits b "$at_b"
kill -KILL $waiter
wait $waiter 2>/dev/null || true
until_true b "SELECT count(*) = 0 FROM ($waiting) w"
ok "a client that is gone is not waited for"

waits b "$at_b"
promote b
wait $waiter
ok "promotion wakes"
is "and is another state" "$([ "$(cat "$WORK/woken")" != "$at_b" ] && echo t)" t

before=$(token a)
stop a
start a
q a "CALL slotkeeper.wait_for_change('$before', '1 hour')" >/dev/null
ok "a token of before a restart does not wait"
