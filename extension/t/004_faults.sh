#!/bin/bash
# Full disks, failed saves and kills: nothing half made, nothing held that is not on disk.
. "$(dirname "$0")/lib.sh"

cc -shared -fPIC -o "$WORK/fault.so" "$(dirname "$0")/fault.c" -ldl
touch "$WORK/fault"
chmod 644 "$WORK/fault" "$WORK/fault.so"
full() { echo "$1" >"$WORK/fault"; }
not_full() { : >"$WORK/fault"; }
start_faulty() { FAULT="$WORK/fault" LD_PRELOAD="$WORK/fault.so" start "$1"; }

pair
stop a
start_faulty a
stop b
start_faulty b
q a "CREATE TABLE t (i int)" >/dev/null
for s in s1 s2 s3 s4 s5 s6; do slot a $s; done
caught_up b a
slots_of() { q "$1" "SELECT slot_name FROM pg_replication_slots WHERE slot_name LIKE 's_' ORDER BY 1"; }

# --- D22: the hold's save fails: memory is low, nothing is held until the file says so
full slotkeeper_hold/state.tmp
is "no hold at all" "$(hold a 1 "$(wants a s1)")" "s1|save_failed"
is "its save failed, so it is not there" "$(q a "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 'slotkeeper_hold'")" 0
not_full
is "held once there is room" "$(hold a 1 "$(wants a s1)")" "s1|held"
q a "SELECT pg_drop_replication_slot('slotkeeper_hold')" "SELECT * FROM slotkeeper.hold($(fence), 1, '{}', NULL)" >/dev/null
full slotkeeper_hold/state.tmp
is "save_failed" "$(hold a 1 "$(wants a s1)")" "s1|save_failed"
is "memory is low, the file is not" \
	"$(q a "SELECT effective_catalog_xmin = (SELECT catalog_xmin FROM pg_replication_slots WHERE slot_name = 's1'), saved FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold'")" "t|f"
keep=$(q a "SELECT quote_literal(ARRAY[(catalog_xmin, NULL, NULL)::slotkeeper.want]::text) || '::slotkeeper.want[]' FROM pg_replication_slots WHERE slot_name = 's1'")
not_full
is "what was never saved is no reason to keep" "$(hold a 1 "$keep")" "slotkeeper_hold|not_pinned"
is "but the slot itself is a witness" "$(hold a 1 "$(wants a s1)")" "s1|held"
is "then it is kept" "$(hold a 1 "$keep")" "slotkeeper_hold|held"

# --- D19: a state.tmp that a failed save left behind
as_server touch "$(data a)/pg_replslot/slotkeeper_hold/state.tmp"
q a "INSERT INTO t VALUES (1)" "SELECT pg_drop_replication_slot('s1')" >/dev/null
slot a s1
is "removed before the next save" "$(hold a 2 "$(wants a s1)")" "s1|held"
is "and so it is on disk" "$(q a "SELECT saved FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold'")" t
for s in s2 s3 s4 s5 s6; do q a "SELECT pg_drop_replication_slot('$s')" >/dev/null; done
for s in s2 s3 s4 s5 s6; do slot a $s; done
caught_up b a
held_everywhere 3 s1 s2 s3 s4 s5 s6

# --- what may not be looked at is not gone
full "stat pg_replslot/s1"
like "a read fails, and says why" "$(q a "SELECT name FROM slotkeeper.slots()" 2>&1)" \
	'ERROR:  could not look at the directory "pg_replslot/s1": Operation not permitted'
not_full
is "and then it is there" "$(q a "SELECT incarnation IS NOT NULL FROM slotkeeper.slots() WHERE name = 's1'")" t

# --- D07: no room for the marker, the state file, the directory
all=$(changes a s1 s2 s3 s4 s5 s6)
full /s2/slotkeeper
is "one marker cannot be written" "$(apply b "$(changes a s1 s2 s3)")" "s1|made
s2|save_failed
s3|made"
is "nothing is left of it" "$(slots_of b)" "s1
s3"
full /s2/slotkeeper.tmp
is "nor its temporary file" "$(apply b "$(changes a s2)")" "s2|save_failed"
full /s2/state.tmp
is "nor the state file when it becomes permanent" "$(apply b "$(changes a s2)")" "s2|save_failed"
full /s2
is "nor the directory" "$(apply b "$(changes a s2)")" "s2|save_failed"
not_full
is "nothing is left of any" "$(slots_of b)" "s1
s3"
is "made once there is room" "$(apply b "$(changes a s2)")" "s2|made"

# --- a move that cannot be saved stays where it was
for i in 1 2 3; do q a "INSERT INTO t VALUES ($i)" "CHECKPOINT" "SELECT 1 FROM pg_logical_slot_get_changes('s1', NULL, NULL)" >/dev/null; done
caught_up b a
position() { q b "SELECT restart_lsn, confirmed_flush_lsn, catalog_xmin, effective_catalog_xmin FROM slotkeeper.slots() WHERE name = 's1'"; }
before=$(position)
full /s1/state.tmp
is "save_failed" "$(apply b "$(changes a s1)")" "s1|save_failed"
is "nothing moved" "$(position)" "$before"
not_full
is "moved once there is room" "$(apply b "$(changes a s1)")" "s1|moved"
is "and saved" "$(q b "SELECT saved FROM slotkeeper.slots() WHERE name = 's1'")" t

# --- what a kill has left half written goes with the next call
left="slotkeeper.fence.tmp s1/slotkeeper.tmp slotkeeper_hold/slotkeeper.tmp ../pg_logical/snapshots/0-1000028.snap.slotkeeper.tmp"
for file in $left; do as_server touch "$(data b)/pg_replslot/$file"; done
q b "SELECT slotkeeper.raise_fence($(fence))" >/dev/null
for file in $left; do is "$file is gone" "$(find "$(data b)/pg_replslot/$file" 2>/dev/null)" ""; done

# --- what is no file at all is waited for by nobody, or no cancel would end it
fence_file=$(data b)/pg_replslot/slotkeeper.fence
in_time() { timeout 60 psql -X -At -h "$WORK/nodes/b" -p "$PORT" -U postgres -d postgres -c "$1" 2>&1 || true; }
as_server mv "$fence_file" "$WORK/nodes/fence"
as_server mkfifo "$fence_file"
is "a pipe is no fence" "$(in_time "SELECT fence IS NULL FROM slotkeeper.node()")" t
like "nor does it become one" "$(in_time "SELECT slotkeeper.raise_fence($(fence))")" 'slotkeeper.fence" is damaged'
as_server mv "$WORK/nodes/fence" "$fence_file"
marker=$(data b)/pg_replslot/s1/slotkeeper
as_server mv "$marker" "$WORK/nodes/marker"
as_server mkfifo "$marker"
is "nor a marker" "$(in_time "SELECT marker IS NULL FROM slotkeeper.slots() WHERE name = 's1'")" t
as_server mv "$WORK/nodes/marker" "$marker"

# --- a cancel on the way
q b "SELECT * FROM slotkeeper.drop($(fence), '{s1,s2,s3}')" >/dev/null
for i in 1 2 3 4 5; do
	PGOPTIONS="-c statement_timeout=$((i * 8))ms" apply b "$(changes a s1 s2 s3 s4 s5 s6)" >/dev/null 2>&1 || true
	is "after a cancel there are only whole ones" "$(q b "SELECT count(*) FROM slotkeeper.slots() WHERE name LIKE 's_' AND ((marker).kind IS DISTINCT FROM 'mirror' OR restart_lsn IS NULL OR temporary OR active_pid IS NOT NULL)")" 0
	q b "SELECT * FROM slotkeeper.drop($(fence), '{s1,s2,s3,s4,s5,s6}')" >/dev/null
done

# --- a terminated session on the way
started=$(q b "SELECT pg_postmaster_start_time()")
for i in $(seq 1 10); do
	apply b "$(changes a s1 s2 s3 s4 s5 s6)" >/dev/null 2>&1 &
	caller=$!
	q b "SELECT pg_sleep(random() * 0.05)" "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE '%slotkeeper.apply(%' AND pid <> pg_backend_pid()" >/dev/null
	wait $caller || true
	bad=$(q b "SELECT name FROM slotkeeper.slots() WHERE name LIKE 's_' AND ((marker).kind IS DISTINCT FROM 'mirror' OR restart_lsn IS NULL OR temporary OR active_pid IS NOT NULL)")
	if [ -n "$bad" ]; then is "termination $i leaves whole slots or none" "$bad" ""; fi
	q b "SELECT * FROM slotkeeper.drop($(fence), '{s1,s2,s3,s4,s5,s6}')" >/dev/null
done
is "10 terminations leave whole slots or none, and the server" "$(q b "SELECT pg_postmaster_start_time()")" "$started"

# --- kill -9 in the middle of making and dropping, ten times
all=$(changes a s1 s2 s3 s4 s5 s6)
calls=()
for n in $(seq 1 200); do
	calls+=("SELECT name, code FROM slotkeeper.apply($(fence), $all, 1000000000)")
	calls+=("SELECT * FROM slotkeeper.drop($(fence), '{s1,s2,s3,s4,s5,s6}')")
done
hits=0
for i in $(seq 1 40); do
	q b "${calls[@]}" >/dev/null 2>&1 &
	caller=$!
	until_true b "SELECT count(*) = 1 FROM pg_stat_activity WHERE query ~ 'slotkeeper.(apply|drop)' AND pid <> pg_backend_pid()"
	pid=$(q b "SELECT pid FROM pg_stat_activity WHERE query ~ 'slotkeeper.(apply|drop)' AND pid <> pg_backend_pid()")
	sleep "0.0$((RANDOM % 80 + 10))"
	if [ -n "$pid" ]; then kill -9 "$pid" 2>/dev/null || true; fi
	wait $caller || true
	until_true b "SELECT pg_is_in_recovery()"
	bad=$(q b "SELECT name, (marker).kind, restart_lsn, temporary, saved FROM slotkeeper.slots() WHERE name LIKE 's_' AND
		((marker).kind IS DISTINCT FROM 'mirror' OR (marker).way IS NULL OR restart_lsn IS NULL OR temporary OR NOT saved)")
	if [ -n "$bad" ]; then is "kill $i leaves whole slots or none" "$bad" ""; fi
	q b "SELECT * FROM slotkeeper.drop($(fence), (SELECT coalesce(array_agg(name), '{}') FROM slotkeeper.slots() WHERE name LIKE 's_'))" >/dev/null
	hits=$(grep -c 'was terminated by signal 9' "$WORK/nodes/b/log" || true)
	[ "$hits" -lt 10 ] || break
done
is "ten kills have hit" "$hits" 10
ok "10 kills leave whole slots or none"
is "and all can be made afterwards" "$(apply b "$all" | sort -u | cut -d'|' -f2 | sort -u)" made
