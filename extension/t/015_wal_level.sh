#!/bin/bash
# A server whose wal_level is minimal does not start where a slot is. So no call makes one
# there: not on a primary, and not on a standby that takes its WAL from an archive.
. "$(dirname "$0")/lib.sh"

level() { echo "wal_level = $2" >>"$(data "$1")/postgresql.conf"; }
restarts() {
	stop "$1"
	start "$1"
	is "$1 has no slot of ours, and starts" "$(q "$1" "SELECT count(*) FROM pg_replication_slots WHERE slot_name ~ '^(s1|slotkeeper_.*)$'")" 0
}

node a "max_wal_senders = 0"
start a
q a "CREATE EXTENSION slotkeeper" >/dev/null
SYSID=$(q a "SELECT system_identifier FROM slotkeeper.node()")
q a "SELECT slotkeeper.raise_fence($(fence))" >/dev/null
stop a
NODES+=(b)
as_server cp -a "$WORK/nodes/a" "$WORK/nodes/b"
as_server touch "$(data b)/standby.signal"
{
	echo "unix_socket_directories = '$WORK/nodes/b'"
	echo "restore_command = 'cp $(data a)/pg_wal/%f %p'"
} >>"$(data b)/postgresql.conf"
level b minimal
start a
slot a s1
q a "SELECT pg_switch_wal()" >/dev/null
start b
caught_up b a
changes=$(changes a s1)
wants=$(wants a s1)
is "a standby: no holds" "$(hold b 1 "$wants" pg_last_wal_replay_lsn\(\))" "s1|wal_level
slotkeeper_wal|wal_level"
is "and no mirror" "$(apply b "$changes")" "s1|wal_level"
restarts b

q a "SELECT pg_drop_replication_slot('s1')" >/dev/null
stop a
level a minimal
start a
is "a primary: no hold" "$(hold a 1 "'{}'")" "slotkeeper_hold|wal_level"
restarts a
