#!/bin/bash
# wait_for_change gives up what its portal holds. C code in a background worker can
# call it where there is none: that is an error, and no server dies of it.
. "$(dirname "$0")/lib.sh"

cc -shared -fPIC -I"$("${PG_CONFIG:-pg_config}" --includedir-server)" -o "$WORK/noportal.so" "$(dirname "$0")/noportal.c"
chmod 644 "$WORK/noportal.so"

node a
start a
q a "CREATE EXTENSION slotkeeper" >/dev/null
stop a
{
	echo "shared_preload_libraries = 'noportal'"
	echo "dynamic_library_path = '$WORK:\$libdir'"
} >>"$(data a)/postgresql.conf"
start a
until_true a "SELECT pg_read_file('$WORK/nodes/a/log') ~ 'noportal|wait_for_change|terminated by signal'"
like "an error that says why" "$(grep -A3 wait_for_change "$WORK/nodes/a/log")" "ERROR:  slotkeeper.wait_for_change cannot run where there is no portal"
is "and no crash" "$(grep -c "terminated by signal" "$WORK/nodes/a/log" || true)" 0
