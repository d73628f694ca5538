#!/bin/bash
# Tests slotkeeper on servers of several majors of PostgreSQL, one after the other:
#
#     [SHORT=1] [SUITES="..."] [TABLE=FILE] test/majors.sh [MAJOR...]
#
# without arguments 13, 17 and 18, which with Debian 12's own 15 (make test) are
# those that CI tests. For each, the extension is built and installed, then come
#
#     regress   the extension's regression suite
#     servers   its tests on servers of its own, with faults, promotions, switchovers
#     nodes     the Go tests of what is read and done on primaries and standbys, also with
#               a thousand slots
#     cases     those of the cases by which people lost rows, and of many and cascading
#               standbys, with the controller at work
#     protection  (in the short form) those of them that rest on what differs between majors
#     fuzz      hostile calls, kills, promotions and rivals, in their short form (SLOTKEEPER_FUZZ_CALLS: more)
#     lab       those of the lab in which the others run
#     demo      ROUNDS (2) failovers under load
#
# Needs bin/slotkeeper (make build). SHORT=1, as in CI, leaves out fuzz and lab, and, but
# on 18, the newest, those cases that come out alike on every major. SUITES runs only
# those that it names. A case of something that only later majors have runs on the first of them that
# is tested (test/harness/major.go), so nothing is skipped.
#
# Goes on after a failure, and ends with 1 if anything failed. What each suite
# printed is left in .cache/majors-<version>-<suite>.log. TABLE=README.md writes what
# came of it into the table there, between the marks, after each major: how many
# tests passed, at which commit. What was not run keeps what stands there.
set -uo pipefail
cd "$(dirname "$0")/.."

all=(regress servers nodes cases fuzz lab demo)
suites=${SUITES:-${all[*]}}
ROUNDS=${ROUNDS:-2}
majors=("$@")
[ ${#majors[@]} -gt 0 ] || majors=(13 17 18)
commit=$(git describe --always --exclude='*' 2>/dev/null || echo unknown)
# The table itself is no change: the run before this one may have written it.
if [ -n "$(git status --porcelain -- . ${TABLE:+":(exclude)$TABLE"} 2>/dev/null)" ]; then commit+=-dirty; fi
declare -A versions cells
failed=0
TIMEFORMAT='%R %U %S'

for suite in $suites; do
    case " ${all[*]} " in *" $suite "*) ;; *)
        echo "majors: there is no suite \"$suite\"; they are: ${all[*]}" >&2
        exit 2
        ;;
    esac
done

# server MAJOR prints the folder of its programs: this machine's own, or one unpacked
server() {
    local own=/usr/lib/postgresql/$1/bin
    if [ -x "$own/postgres" ] && [ -d "$("$own/pg_config" --includedir-server 2>/dev/null)" ]; then
        echo "$own"
    else
        test/servers.sh "$1" | tail -n 1 | xargs -r realpath
    fi
}

# Most of these tests wait most of the time: more of them at once than processors.
gotest() { go test -count=1 -v -parallel 4 -timeout 40m "$@"; }

# Of the cases, those that rest on what differs between the majors: how a standby's rows
# are kept, two-phase, invalidation, the server's own worker.
protection='^Test(D01|D05|D06|D09|D10|D15|D16|D17|D19|D2[0-4]|C05|C12|C24|C36)'

suite() { # suite NAME: runs it
    case $1 in
        build) "${make[@]}" install ;;
        regress) "${make[@]}" check-regress ;;
        servers) "${make[@]}" check-servers ;;
        nodes) gotest ./test/nodes ./cluster/postgres ./test/scale ;;
        cases) gotest ./test/cases ./test/topology ;;
        protection) gotest -run "$protection" ./test/cases ;;
        fuzz) gotest ./test/fuzz ;;
        lab) gotest ./cluster/lab ;;
        demo) bin/slotkeeper demo --rounds "$ROUNDS" ;;
    esac
}

# passed NAME LOG: how much of it there was
passed() {
    case $1 in
        regress) grep -oE 'All [0-9]+ tests passed' "$2" | grep -oE '[0-9]+' ;;
        servers) grep -cE '^# (.*/)?t/[0-9]' "$2" ;;
        demo) echo "$ROUNDS" ;;
        *) grep -c '^--- PASS' "$2" ;;
    esac
}

# failures LOG: what each test that failed had said, which comes before it says so and
# between what others do, the middle left out where that is long; of a suite without
# such tests, or a crash, the end
failures() {
    awk '
        /^=== (RUN|CONT|NAME) / { test = $3; next }
        /^ *--- FAIL: /         { print; printf "%s%s", begins[$3], ends[$3]; found = 1; next }
        /^ *--- /               { delete begins[$3]; delete ends[$3]; next }
        /^panic: |^fatal error: /{ crash = 1 }
        crash                   { if (++lines <= 60) print; next }
        length(begins[test]) < 4000 { begins[test] = begins[test] $0 "\n"; next }
                                { ends[test] = ends[test] $0 "\n"
                                  if (length(ends[test]) > 6000) ends[test] = "[...]\n" substr(ends[test], 3000) }
        END                     { exit !(found || crash) }' "$1" || tail -n 40 "$1"
}

# step MAJOR NAME: runs a suite and says what came of it
step() {
    local major=$1 name=$2 version=${versions[$1]} result=ok log times
    log=".cache/majors-$version-$name.log"
    mkdir -p .cache
    times=$({ time suite "$name" >"$log" 2>&1; } 2>&1) || result=FAILED
    cells[$major:$name]="$(passed "$name" "$log") @$commit"
    if [ "$result" = FAILED ]; then
        failed=1
        cells[$major:$name]="**failed** @$commit"
        failures "$log"
    fi
    # shellcheck disable=SC2086 # three numbers
    printf '%-6s %-8s %-6s %6.0f s, %6.0f s of CPU\n' "$version" "$name" "$result" $(awk '{print $1, $2 + $3}' <<<"$times")
    [ "$result" = ok ]
}

# wanted MAJOR prints the suites to run
wanted() {
    case ${SHORT:+short}:$1 in
        :*) echo "$suites" ;;
        *:18) echo regress servers nodes cases demo ;;
        *) echo regress servers nodes protection demo ;;
    esac
}

test_major() {
    local bin name
    bin=$(server "$1")
    if [ -z "$bin" ]; then
        failed=1
        return
    fi
    versions[$1]=$("$bin/postgres" --version | sed -E 's/^postgres \(PostgreSQL\) ([^ ]+).*/\1/')
    export "SLOTKEEPER_MAJOR=$1" "SLOTKEEPER_TEST_MAJOR=$1" "SLOTKEEPER_PG$1=$bin"
    make=(make -C extension "PG_CONFIG=$bin/pg_config" with_llvm=no)
    step "$1" build || return
    for name in $(wanted "$1"); do step "$1" "$name"; done
}

marks=("<!-- majors: begin -->" "<!-- majors: end -->")

# table OLD prints the table; OLD is the one that stood there
table() {
    local major i
    local -a old
    echo "| PostgreSQL | $(sed 's/ / | /g' <<<"${all[*]}") |"
    echo "|---|$(printf -- '---|%.0s' "${all[@]}")"
    for major in 13 14 15 16 17 18 19; do
        IFS='|' read -ra old < <(grep -E "^\| $major([^0-9]|$)" "$1")
        printf '| %s |' "${versions[$major]:-$(xargs <<<"${old[1]:-$major}")}"
        for i in "${!all[@]}"; do
            case $major:$i in
                14:0 | 16:0) printf ' written for, not compiled here |' ;;
                14:* | 16:*) printf ' |' ;;
                *) printf ' %s |' "${cells[$major:${all[i]}]:-$(xargs <<<"${old[i + 2]:-not run}")}" ;;
            esac
        done
        echo
    done
}

# write FILE: the table between the marks, all else as it is
write() {
    local old new
    grep -qF "${marks[0]}" "$1" && grep -qF "${marks[1]}" "$1" || {
        echo "majors: $1 has no marks to write a table between: ${marks[*]}" >&2
        return 1
    }
    old=$(mktemp)
    new=$(mktemp)
    sed -n "/${marks[0]}/,/${marks[1]}/p" "$1" >"$old"
    {
        sed "/${marks[0]}/q" "$1"
        table "$old"
        sed -n "/${marks[1]}/,\$p" "$1"
    } >"$new"
    cat "$new" >"$1"
    rm "$old" "$new"
}

for major in "${majors[@]}"; do
    test_major "$major"
    if [ -n "${TABLE:-}" ]; then write "$TABLE" || failed=1; fi
done
echo
table /dev/null
exit $failed
