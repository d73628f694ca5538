#!/bin/bash
# Runs the extension's regression tests on a server of their own, which listens
# on a socket only and is gone afterwards. The extension must be installed.
set -euo pipefail
cd "$(dirname "$0")/.."

pg_config=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
bin=$("$pg_config" --bindir)
dir=$(mktemp -d)

# PostgreSQL's programs refuse to run as root.
as=()
if [ "$(id -u)" = 0 ]; then
    as=(setpriv --reuid=postgres --regid=postgres --clear-groups)
    chown postgres:postgres "$dir"
fi

finish() {
    "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -m immediate stop >/dev/null 2>&1 || true
    rm -rf "$dir"
}
trap finish EXIT

"${as[@]}" "$bin/initdb" -D "$dir/data" -A trust -U postgres -N --encoding=UTF8 --locale=C >"$dir.log" 2>&1 ||
    { cat "$dir.log" >&2; exit 1; }
rm -f "$dir.log"
cat >>"$dir/data/postgresql.conf" <<EOF
listen_addresses = ''
unix_socket_directories = '$dir'
wal_level = logical
max_replication_slots = 20
max_wal_senders = 10
autovacuum = off
fsync = off
EOF
(cd "$dir" && "${as[@]}" "$bin/pg_ctl" -D "$dir/data" -w -l "$dir/log" start >/dev/null) ||
    { cat "$dir/log" >&2; exit 1; }

chmod 0755 "$dir"
if ! make -C extension PG_CONFIG="$pg_config" with_llvm=no PGHOST="$dir" PGUSER=postgres installcheck; then
    cat extension/regression.diffs 2>/dev/null >&2 || true
    exit 1
fi
