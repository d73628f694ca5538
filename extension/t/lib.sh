# What the tests on real servers share: nodes that listen on a socket directory
# only, so no port can be taken, and short names for what slotkeeper is given.
#
# Each test is a bash script that sources this file. It ends with 0 when every
# check held. As root the servers run as the user postgres.
set -euo pipefail

BIN=$("${PG_CONFIG:-pg_config}" --bindir)
MAJOR=$("$BIN/postgres" --version | sed -E 's/^[^0-9]*([0-9]+).*/\1/')
PORT=54320
RUN=()
if [ "$(id -u)" = 0 ]; then
	RUN=(setpriv --reuid=postgres --regid=postgres --clear-groups)
fi

WORK=$(mktemp -d)
chmod 755 "$WORK"
mkdir "$WORK/nodes"
if [ "$(id -u)" = 0 ]; then
	chown postgres "$WORK/nodes"
fi
FAILED=0
NODES=()

cleanup() {
	local node
	for node in "${NODES[@]}"; do
		"${RUN[@]}" "$BIN/pg_ctl" -D "$WORK/nodes/$node/data" -m immediate stop >/dev/null 2>&1 || true
	done
	if [ "$FAILED" != 0 ]; then
		for node in "${NODES[@]}"; do
			echo "--- the last lines of $node's log"
			tail -n 30 "$WORK/nodes/$node/log" || true
		done
	fi
	rm -rf "$WORK"
}
trap 'FAILED=1' ERR
trap cleanup EXIT

as_server() { (cd "$WORK" && "${RUN[@]}" "$@"); }

# node NAME [SETTING]...: a new primary, not started
node() {
	local name=$1 dir="$WORK/nodes/$1" setting
	shift
	as_server mkdir "$dir"
	NODES+=("$name")
	as_server "$BIN/initdb" -D "$dir/data" -A trust -U postgres --no-sync >/dev/null
	{
		echo "listen_addresses = ''"
		echo "unix_socket_directories = '$dir'"
		echo "port = $PORT"
		echo "wal_level = logical"
		echo "max_replication_slots = 10"
		echo "autovacuum = off"
		echo "wal_keep_size = 0"
		echo "checkpoint_timeout = 1h"
		for setting in "$@"; do echo "$setting"; done
	} >>"$dir/data/postgresql.conf"
}

# standby NAME PRIMARY [SETTING]...: a copy of a running primary, not started
standby() {
	local name=$1 primary=$2 dir="$WORK/nodes/$1" setting
	shift 2
	as_server mkdir "$dir"
	NODES+=("$name")
	as_server "$BIN/pg_basebackup" -D "$dir/data" -h "$WORK/nodes/$primary" -p "$PORT" -U postgres \
		-R -C -S "phys_$name" -c fast --no-sync
	{
		echo "unix_socket_directories = '$dir'"
		for setting in "$@"; do echo "$setting"; done
	} >>"$dir/data/postgresql.conf"
}

start() { as_server "$BIN/pg_ctl" -D "$WORK/nodes/$1/data" -l "$WORK/nodes/$1/log" -w start >/dev/null; }
stop() { as_server "$BIN/pg_ctl" -D "$WORK/nodes/$1/data" -m "${2:-fast}" -w stop >/dev/null; }
promote() { as_server "$BIN/pg_ctl" -D "$WORK/nodes/$1/data" -w promote >/dev/null; }
data() { echo "$WORK/nodes/$1/data"; }

# q NODE SQL...: values divided by |, one row a line
q() {
	local name=$1 args=() statement
	shift
	for statement in "$@"; do args+=(-c "$statement"); done
	psql -X -At -v ON_ERROR_STOP=1 -h "$WORK/nodes/$name" -p "$PORT" -U postgres -d "${DB:-postgres}" "${args[@]}"
}

# until_true NODE SQL: polls until the query answers t
until_true() {
	local deadline=$((SECONDS + 30))
	while [ "$(q "$1" "$2" 2>/dev/null || true)" != t ]; do
		if [ $SECONDS -ge $deadline ]; then
			FAILED=1
			echo "not ok: waited 30 s in vain on $1 for: $2"
			exit 1
		fi
		sleep 0.05
	done
}

# caught_up STANDBY PRIMARY
caught_up() { until_true "$1" "SELECT pg_last_wal_replay_lsn() >= '$(q "$2" 'SELECT pg_current_wal_lsn()')'"; }

ok() { echo "ok: $1"; }
is() {
	if [ "$2" != "$3" ]; then
		FAILED=1
		printf 'not ok: %s\n  got:      %s\n  expected: %s\n' "$1" "$2" "$3"
		exit 1
	fi
	ok "$1"
}
like() {
	if ! grep -qE -- "$3" <<<"$2"; then
		FAILED=1
		printf 'not ok: %s\n  got:      %s\n  expected: %s\n' "$1" "$2" "$3"
		exit 1
	fi
	ok "$1"
}

# fence [EPOCH [TIMELINE]]: SQL for what a writing call shows; needs $SYSID
fence() { echo "('shop','store-1',${1:-1},'me','$SYSID',${2:-1})::slotkeeper.fence"; }

# changes PRIMARY NAME...: a literal of change[] from one read of the primary
changes() {
	local node=$1
	shift
	q "$node" "SELECT quote_literal(array_agg((name, plugin, database_oid, two_phase, two_phase_at, restart_lsn,
			confirmed_flush_lsn, catalog_xmin, slotkeeper.snapshot(restart_lsn), incarnation, NULL, NULL)::slotkeeper.change
			ORDER BY name)::text) || '::slotkeeper.change[]'
		FROM slotkeeper.slots() WHERE name = ANY (string_to_array('$*', ' ')::name[])"
}

# wants PRIMARY NAME...: a literal of want[] from one read of the primary
wants() {
	local node=$1
	shift
	q "$node" "SELECT quote_literal(array_agg((catalog_xmin, name, incarnation)::slotkeeper.want ORDER BY name)::text) || '::slotkeeper.want[]'
		FROM slotkeeper.slots() WHERE name = ANY (string_to_array('$*', ' ')::name[])"
}

apply() { q "$1" "SELECT name, code FROM slotkeeper.apply($(fence "${3:-1}" "${4:-1}"), $2, 1000000000)"; }
apply_row() { q "$1" "SELECT * FROM slotkeeper.apply($(fence), $2, 1000000000)"; }
hold() { q "$1" "SELECT name, code FROM slotkeeper.hold($(fence), $2, $3, ${4:-NULL})"; }

# pair [SETTING]...: a primary a and a standby b with the extension, fences raised
pair() {
	node a "$@"
	start a
	standby b a
	start b
	q a "CREATE EXTENSION slotkeeper" >/dev/null
	SYSID=$(q a "SELECT system_identifier FROM slotkeeper.node()")
	caught_up b a
	q a "SELECT slotkeeper.raise_fence($(fence))" >/dev/null
	q b "SELECT slotkeeper.raise_fence($(fence))" >/dev/null
}

# slot NODE NAME [PLUGIN]
slot() { q "$1" "SELECT pg_create_logical_replication_slot('$2', '${3:-test_decoding}')" >/dev/null; }

# held_everywhere GENERATION NAME...: the hold for these slots on a, then on b
held_everywhere() {
	local generation=$1 w
	shift
	w=$(wants a "$@")
	hold a "$generation" "$w" >/dev/null
	hold b "$generation" "$w" >/dev/null
}
