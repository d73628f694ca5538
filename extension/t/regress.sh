#!/bin/bash
# Runs the regression suite named by the arguments on a server of its own; as
# root too, where pg_regress and postgres refuse. The extension must be installed.
here=$(cd "$(dirname "$0")/.." && pwd)
. "$here/t/lib.sh"

node a "max_replication_slots = 20"
start a

# The background writer adds a record of the running transactions every 15 s, which
# proves what a slow run has just shown not to be proven.
writer=$(q a "SELECT pid FROM pg_stat_activity WHERE backend_type = 'background writer'")
kill -STOP "$writer"
trap 'kill -CONT "$writer"; cleanup' EXIT

# copies that the user postgres can read and write, wherever the sources lie
as_server mkdir "$WORK/nodes/suite"
cp -r "$here/sql" "$here/expected" "$WORK/nodes/suite/"
if [ "$(id -u)" = 0 ]; then
	chown -R postgres "$WORK/nodes/suite"
fi

regress=$(dirname "$("${PG_CONFIG:-pg_config}" --pgxs)")/../test/regress/pg_regress
if ! as_server "$regress" --bindir="$BIN" --inputdir="$WORK/nodes/suite" --outputdir="$WORK/nodes/suite" \
	--host="$WORK/nodes/a" --port="$PORT" --user=postgres --dbname=contrib_regression "$@"; then
	rm -rf "$here/results"
	cp -r "$WORK/nodes/suite/results" "$here/results"
	cp "$WORK/nodes/suite/regression.diffs" "$here/regression.diffs"
	cat "$here/regression.diffs"
	exit 1
fi
