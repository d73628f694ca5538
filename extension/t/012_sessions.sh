#!/bin/bash
# D24: sessions of a standby that are older than its hold remember rows as of no use
# that a mirror needs (from 14 on), and remove them after a promotion.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/sessions.sh"

pair
outdate a
q a "CREATE ROLE keeper LOGIN REPLICATION" "GRANT USAGE ON SCHEMA slotkeeper TO keeper" "GRANT EXECUTE ON ALL ROUTINES IN SCHEMA slotkeeper TO keeper" >/dev/null
want=$(q a "SELECT data FROM pg_logical_slot_peek_changes('cdc', NULL, NULL)")
caught_up b a
remember_or_end

# the sessions of the calls before are older than the hold that they made, until they are gone
calls_gone() {
	until [ "$(q b "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'psql' AND pid <> pg_backend_pid()")" = 0 ]; do :; done
}

# starting_at NODE: the process of a session there that is not through its start yet
starting_at() {
	local parent title
	parent=$(head -n 1 "$(data "$1")/postmaster.pid")
	for title in $(grep -la '\[local\] startup' /proc/[0-9]*/cmdline 2>/dev/null); do
		if grep -q "^PPid:[[:space:]]*$parent\$" "${title%/*}/status" 2>/dev/null; then
			basename "${title%/*}"
			return
		fi
	done
	return 1
}

session first
is "a hold that pins nothing" "$(q b "SELECT name, code FROM slotkeeper.hold($(fence), 1, '{}', NULL)")" "slotkeeper_hold|held"
session second
PGAPPNAME=late PGOPTIONS='-c post_auth_delay=600' psql -X -h "$WORK/nodes/b" -p "$PORT" -U postgres -d postgres -c 'SELECT 1' >/dev/null &
late=$!
until starting=$(starting_at b); do kill -0 "$late"; done
is "the hold" "$(hold a 1 "$(wants a cdc)")" "cdc|held"
is "the standby's" "$(hold b 1 "$(wants a cdc)")" "cdc|held"
# since when the hold pins for every session, as the marker has it; empty while an older one lives
all_held="SELECT n.held_for_all_since = (s.marker).held_since FROM slotkeeper.node() n, slotkeeper.slots() s WHERE s.name = 'slotkeeper_hold'"
is "it does not pin for the sessions that were there" "$(q b "$all_held")" ""
is "what they may take for being of no use" \
	"$(q b "SELECT (marker).unheld_before IS NOT NULL, (marker).held_from <= pg_last_wal_replay_lsn() FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold'")" "t|t"
c=$(changes a cdc)
said=$(apply_row b "$c")
like "no mirror beside the first" "$said" 'old_session.*\(first\)'
like "nor beside the second" "$said" 'old_session.*\(second\)'
like "nor beside one that is still starting" "$said" "old_session.*: .*$starting"
kill -TERM "$starting"
wait "$late" || true
leave first
calls_gone
like "one began before the hold pinned anything" "$(apply_row b "$c")" 'old_session.*: [0-9]+ \(second\)\.'

# A mirror that could be made beside the second, for no row had died since, says
# nothing of what that session has seen when the hold is made anew.
slot a late
caught_up b a
is "a slot of which nothing has died" "$(apply b "$(changes a late)")" "late|made"
q b "SELECT pg_drop_replication_slot('slotkeeper_hold')" >/dev/null
is "the standby's hold, anew" "$(hold b 1 "$(wants a cdc)")" "cdc|held"
calls_gone
like "its making forgets no session" "$(apply_row b "$c")" 'old_session.*: [0-9]+ \(second\)\.'
is "the other mirror goes" "$(q b "SELECT code FROM slotkeeper.drop($(fence), '{late}')")" "dropped"

is "a role may not end what it could not otherwise" \
	"$(q b "SET ROLE keeper" "SELECT code FROM slotkeeper.end_sessions($(fence), '*')" | tail -n 1)" "unchanged"
is "nor does another application's name" "$(q b "SELECT code FROM slotkeeper.end_sessions($(fence), 'sec')")" "unchanged"
session Patroni
is "Patroni's, though older than nothing, stay" "$(q b "SELECT code FROM slotkeeper.end_sessions($(fence), 'Patroni')")" "unchanged"
leave Patroni

ask second "SELECT name, code FROM slotkeeper.apply($(fence), $c, 1000000000)"
is "the session that makes the mirror looks anew itself" "$(grep '^cdc' "$WORK/second.out")" "cdc|made"
is "and is gone again" "$(q b "SELECT code FROM slotkeeper.drop($(fence), '{cdc}')")" "dropped"

session third
is "still not, for one is left" "$(q b "$all_held")" ""
leave second
calls_gone
is "it pins for all that are left" "$(q b "$all_held")" "t"
calls_gone
is "without it" "$(apply b "$c")" "cdc|made"
caught_up b a
stop a immediate
promote b
is "a primary does not say" "$(q b "SELECT held_for_all_since FROM slotkeeper.node()")" ""
is "but its hold still does, since when" "$(q b "SELECT (marker).held_since < now() FROM slotkeeper.slots() WHERE name = 'slotkeeper_hold'")" "t"
look_around third
is "all is decoded" "$(q b "SELECT data FROM pg_logical_slot_peek_changes('cdc', NULL, NULL)")" "$want"
leave third
