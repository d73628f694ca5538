#!/bin/bash
# A slot whose directory cannot be taken away is not dropped, and nobody says that it is.
. "$(dirname "$0")/lib.sh"

pair
slot a s1
caught_up b a
held_everywhere 1 s1
is "a mirror" "$(apply b "$(changes a s1)")" "s1|made"
drop() { q b "SELECT name, code FROM slotkeeper.drop($(fence), '{s1}')" 2>/dev/null; }

chmod 500 "$(data b)/pg_replslot"
like "not dropped" "$(drop)" '^s1\|(save_failed|retry)$'
chmod 700 "$(data b)/pg_replslot"
stop b
start b
is "it is there after a restart" "$(q b "SELECT count(*) FROM pg_replication_slots WHERE slot_name = 's1'")" 1
is "and goes now" "$(drop)" "s1|dropped"
