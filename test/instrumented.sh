#!/bin/bash
# Runs the extension's regression suite where the compiler or valgrind watches it:
#
#     test/instrumented.sh undefined    built with -fsanitize=undefined; the short form of test/fuzz too
#     test/instrumented.sh valgrind     the server and all its processes under valgrind (memcheck)
#
# on a copy of the server of PG_CONFIG (Debian's of 15 unless it says otherwise),
# so that the installed one stays as it is. Ends with 0 when nothing was found.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=${1:-}
pg_config=${PG_CONFIG:-/usr/lib/postgresql/15/bin/pg_config}
suite=$(sed -n 's/^REGRESS = //p' extension/Makefile)
work=$(mktemp -d)
chmod 755 "$work"
trap 'rm -rf "$work"' EXIT

# A server finds its own folders from where its programs are, so its tree is
# copied as it stands below the root.
copy() { # copy FOLDER
    mkdir -p "$work$(dirname "$1")"
    cp -a "$1" "$work$1"
}

server() {
    local bin
    bin=$("$pg_config" --bindir)
    copy "$(dirname "$bin")"
    copy "$("$pg_config" --sharedir)"
    copy "$("$pg_config" --includedir)"
    BIN=$work$bin
}

extension() { # extension CFLAGS LIBRARIES
    cp -r extension "$work/extension"
    rm -f "$work"/extension/src/*.o "$work"/extension/*.so
    make -s -C "$work/extension" PG_CONFIG="$BIN/pg_config" with_llvm=no COPT="$1" SHLIB_LINK="$2" install
}

regress() {
    # shellcheck disable=SC2086 # a list of names
    PG_CONFIG=$BIN/pg_config "$work/extension/t/regress.sh" $suite
}

# The program that starts a server runs it under valgrind; initdb's do not. Each
# process writes its findings as XML, of which only those count that pass through
# the extension: this server is not built for valgrind, and what it does by itself
# is not ours to judge.
watch_memory() {
    mkdir -m 777 "$work/found"
    mv "$BIN/postgres" "$BIN/postgres.real"
    cat >"$BIN/postgres" <<EOT
#!/bin/bash
case \$1 in
-D) exec valgrind -q --trace-children=yes --track-origins=no --xml=yes --xml-file=$work/found/%p.xml "$BIN/postgres.real" "\$@" ;;
*) exec "$BIN/postgres.real" "\$@" ;;
esac
EOT
    chmod 755 "$BIN/postgres"
}

found() {
    awk 'BEGIN { RS = "</error>" } /<error>/ && /slotkeeper\.so/ { print; n++ } END { print n + 0 " findings" > "/dev/stderr"; exit n > 0 }' "$work"/found/*.xml
}

case $mode in
undefined)
    server
    extension "-g -O1 -fsanitize=undefined -fno-sanitize-recover=undefined" -lubsan
    regress
    major=$("$BIN/pg_config" --version | sed 's/^PostgreSQL \([0-9]*\).*/\1/')
    env "SLOTKEEPER_TEST_MAJOR=$major" "SLOTKEEPER_PG$major=$BIN" go test -count=1 -timeout 40m ./test/fuzz
    ;;
valgrind)
    command -v valgrind >/dev/null || {
        echo "valgrind is missing; as root: apt-get install -y --no-install-recommends valgrind" >&2
        exit 2
    }
    server
    extension "-g -O1" ""
    watch_memory
    regress
    found
    ;;
*)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
