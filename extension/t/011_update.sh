#!/bin/bash
# The way to a next version, made up here as there is none yet: library, control
# file and script are of one version, and ALTER EXTENSION ... UPDATE finds a script
# of the name that ours will have, and leaves what is granted and mirrored.
. "$(dirname "$0")/lib.sh"

cd "$(dirname "$0")/.."
version=$(sed -n "s/^default_version = '\(.*\)'/\1/p" slotkeeper.control)
next="$version.next"
is "the library is of the control file's version" "$(sed -n 's/^#define SK_LIBRARY_VERSION "\(.*\)"/\1/p' include/slotkeeper.h)" "$version"
is "there is a script that makes it" "$(ls "sql/slotkeeper--$version.sql")" "sql/slotkeeper--$version.sql"

script="$("${PG_CONFIG:-pg_config}" --sharedir)/extension/slotkeeper--$version--$next.sql"
trap 'rm -f "$script"; cleanup' EXIT
cat >"$script" <<-'SQL'
	\echo Use "ALTER EXTENSION slotkeeper UPDATE" to load this file. \quit
	DROP FUNCTION slotkeeper.snapshot(pg_lsn);
	CREATE FUNCTION slotkeeper.snapshot(at pg_lsn, made_up text DEFAULT NULL) RETURNS bytea
	AS 'MODULE_PATHNAME', 'slotkeeper_snapshot' LANGUAGE C VOLATILE PARALLEL RESTRICTED;
	REVOKE ALL ON FUNCTION slotkeeper.snapshot FROM PUBLIC;
SQL
chmod 644 "$script"

pair
q a "CREATE ROLE controller LOGIN REPLICATION; GRANT USAGE ON SCHEMA slotkeeper TO controller; GRANT EXECUTE ON ALL ROUTINES IN SCHEMA slotkeeper TO controller" >/dev/null
slot a s1
caught_up b a
held_everywhere 1 s1
is "made" "$(apply b "$(changes a s1)")" "s1|made"
is "a database that has it stays at its version" "$(q a "SELECT extversion FROM pg_extension WHERE extname = 'slotkeeper'")" "$version"
q a "ALTER EXTENSION slotkeeper UPDATE TO '$next'" >/dev/null
caught_up b a
is "updated, on the standby too" "$(q b "SELECT extversion FROM pg_extension WHERE extname = 'slotkeeper'")" "$next"
is "the library serves what it knows" "$(apply b "$(changes a s1)")" "s1|unchanged"
is "grants on what was not made anew stay" "$(q a "SELECT has_function_privilege('controller', 'slotkeeper.slots()', 'EXECUTE'), has_function_privilege('controller', 'slotkeeper.snapshot(pg_lsn, text)', 'EXECUTE')")" "t|f"
like "a function that the library does not know is refused" \
	"$(q a "CREATE FUNCTION next_node(OUT a text, OUT b text) RETURNS record AS '\$libdir/slotkeeper', 'slotkeeper_node' LANGUAGE C" "SELECT * FROM next_node()" 2>&1 || true)" \
	"slotkeeper.node\(\) is not declared as this library knows it"
is "what the update made belongs to the extension" "$(q a "DROP FUNCTION next_node" "DROP EXTENSION slotkeeper CASCADE" "SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace WHERE n.nspname = 'slotkeeper'" | tail -1)" 0
