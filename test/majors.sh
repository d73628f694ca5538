#!/bin/bash
# Tests slotkeeper on servers of several majors of PostgreSQL, one after the other:
#
#     test/majors.sh [MAJOR...]
#
# without arguments 13, 17 and 18, which with Debian 12's own 15 (make test) are
# those that CI tests. For each: the extension is built and installed into its
# tree, then its regression suite and its tests on real servers, the Go tests of
# nodes and pairs, and two failovers. Needs bin/slotkeeper (make build). SHORT=1, as
# in CI, leaves out the extension's tests on pairs of servers and those of the lab.
#
# Goes on after a failure, prints a table at the end, and ends with 1 if anything
# failed. What each step printed is left in .cache/majors-<major>-<step>.log.
set -uo pipefail
cd "$(dirname "$0")/.."

ROUNDS=${ROUNDS:-2}
majors=("$@")
[ ${#majors[@]} -gt 0 ] || majors=(13 17 18)
table=()
failed=0

# step MAJOR NAME COMMAND...
step() {
    local major=$1 name=$2 log=".cache/majors-$1-$2.log" begun=$SECONDS result=ok
    shift 2
    mkdir -p .cache
    if ! "$@" >"$log" 2>&1; then
        result=FAILED
        failed=1
        tail -n 40 "$log"
    fi
    printf '%-4s %-10s %-6s %4d s\n' "$major" "$name" "$result" $((SECONDS - begun))
    table+=("$(printf '| %-5s | %-10s | %-6s |' "$major" "$name" "$result")")
    [ "$result" = ok ]
}

for major in "${majors[@]}"; do
    bin=$(test/servers.sh "$major" | tail -n 1)
    if [ -z "$bin" ]; then
        failed=1
        table+=("$(printf '| %-5s | %-10s | %-6s |' "$major" server FAILED)")
        continue
    fi
    bin=$(realpath "$bin")
    version=$("$bin/postgres" --version | sed -E 's/^postgres \(PostgreSQL\) ([^ ]+).*/\1/')
    export SLOTKEEPER_MAJOR=$major
    export "SLOTKEEPER_PG$major=$bin"
    make=(make -C extension "PG_CONFIG=$bin/pg_config" with_llvm=no)
    step "$version" build "${make[@]}" install || continue
    step "$version" regress "${make[@]}" check-regress
    [ -n "${SHORT:-}" ] || step "$version" servers "${make[@]}" check-servers
    step "$version" pairs go test -count=1 -timeout 20m ./test/nodes ./cluster/postgres
    [ -n "${SHORT:-}" ] || step "$version" lab go test -count=1 -timeout 20m ./cluster/lab
    step "$version" demo bin/slotkeeper demo --rounds "$ROUNDS"
done

echo
echo "| major | suite      | result |"
echo "|-------|------------|--------|"
printf '%s\n' "${table[@]}"
exit $failed
