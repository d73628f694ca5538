#!/bin/bash
# The tests beside Patroni, on each version with the PostgreSQL of the Debian suite
# that packs it: 3.0 with 15, 4.0 with 17, 4.1 with 18.
#
# SHORT=1: a few of them, on 3.0 alone, whose PostgreSQL is this machine's own; that
# is for CI. VERSIONS="4.0 4.1" says which else.
set -euo pipefail
cd "$(dirname "$0")/.."

major_of() {
    case $1 in
        3.0) echo 15 ;;
        4.0) echo 17 ;;
        4.1) echo 18 ;;
        *)
            echo "patroni.sh: Patroni $1 is not tested; 3.0, 4.0 and 4.1 are" >&2
            exit 2
            ;;
    esac
}

# What would break for everybody: the leader's death with the gate asked, and under
# load, a planned promotion, and the page that tells how to install.
short='^Test(FailoversLoseNothing|GateTheSafeStandbyIsPromoted|SwitchoverUnderALiveConsumer|Page.*|Samples.*)$'

versions=${VERSIONS:-3.0 4.0 4.1}
arguments=(-timeout 60m)
failovers=20
if [ -n "${SHORT:-}" ]; then
    versions=${VERSIONS:-3.0}
    arguments=(-timeout 15m -run "$short" -parallel 4)
    failovers=2
    export SLOTKEEPER_PATRONI_KILLS=${SLOTKEEPER_PATRONI_KILLS:-2}
fi
export SLOTKEEPER_FAILOVERS=${SLOTKEEPER_FAILOVERS:-$failovers}
for version in $versions; do
    major=$(major_of "$version")
    test/servers.sh "patroni-$version" >/dev/null
    if [ "$major" != 15 ]; then
        bin=$(test/servers.sh "$major" | tail -n 1)
        PG_CONFIG=$bin/pg_config test/setup.sh
    fi
    SLOTKEEPER_PATRONI=$version "${GO:-go}" test -tags patroni -count=1 -v "${arguments[@]}" ./test/patroni
done
