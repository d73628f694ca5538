#!/bin/bash
# D08, D09: DROP DATABASE replayed while its slots are made, moved and dropped. The standby goes on,
# replay goes on, and no slot stays on a database that is gone.
. "$(dirname "$0")/lib.sh"

pair
started=$(q b "SELECT pg_postmaster_start_time()")

# makes, and drops again, until it is told to stop
hammer() {
	until [ -e "$WORK/stop" ]; do
		apply b "$1" >>"$WORK/codes" 2>>"$WORK/errors" || true
		q b "SELECT * FROM slotkeeper.drop($(fence), '{d1,d2}')" >/dev/null 2>>"$WORK/errors" || true
	done
}

ended="terminating connection due to conflict with recovery|canceling statement due to conflict"
for round in $(seq 1 60); do
	if [ "$round" = 11 ]; then
		# from here on replay does not wait for us: it ends our session in the middle
		echo "max_standby_streaming_delay = 0" >>"$(data b)/postgresql.conf"
		q b "SELECT pg_reload_conf()" >/dev/null
	fi
	q a "CREATE DATABASE d" >/dev/null
	DB=d slot a d1
	DB=d slot a d2
	caught_up b a
	held_everywhere 1 d1 d2
	c=$(changes a d1 d2)
	rm -f "$WORK/stop"
	hammer "$c" &
	hammer "$c" &
	q a "SELECT pg_drop_replication_slot('d1')" "SELECT pg_drop_replication_slot('d2')" >/dev/null
	q a "DROP DATABASE d" >/dev/null
	caught_up b a
	touch "$WORK/stop"
	wait
	left=$(q b "SELECT slot_name FROM pg_replication_slots WHERE slot_type = 'logical'")
	if [ -n "$left" ]; then is "round $round leaves no slot on a database that is gone" "$left" ""; fi
	# a session is ended only when replay comes in its middle: on until one was
	if [ "$round" -ge 20 ] && grep -qE "$ended" "$WORK/errors"; then break; fi
done
ok "20 rounds or more leave no slot on a database that is gone"
is "the standby has not been restarted" "$(q b "SELECT pg_postmaster_start_time()")" "$started"
like "sessions were ended by replay" "$(cat "$WORK/errors")" "$ended"
like "slots were made meanwhile" "$(cat "$WORK/codes")" "made"
like "and refused" "$(cat "$WORK/codes")" "database_gone"
is "afterwards too" "$(apply b "$c")" "d1|database_gone
d2|database_gone"
