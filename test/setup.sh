#!/bin/bash
# Makes a Debian 12 machine ready to build and test slotkeeper: installs the
# packages that are missing, then the extension's files where they are not there
# or differ from what the source gives. Silent when there is nothing to do.
#
# As root it does it. As somebody else it prints the commands that would, and
# ends with 2. PG_CONFIG names another server than Debian's of version 15; that
# one is never installed.
set -euo pipefail
cd "$(dirname "$0")/.."

debian_pg_config=/usr/lib/postgresql/15/bin/pg_config
pg_config=${PG_CONFIG:-$debian_pg_config}
export DEBIAN_FRONTEND=noninteractive

say() { echo "setup: $*" >&2; }

# refuse prints what somebody else has to do.
refuse() {
    say "$1"
    shift
    printf '    %s\n' "$@" >&2
    exit 2
}

missing=()
need() { # need PACKAGES TEST...: the packages, where the test fails
    local packages=$1
    shift
    if ! "$@" >/dev/null 2>&1; then
        read -ra packages <<<"$packages"
        missing+=("${packages[@]}")
    fi
}

need_server() {
    if [ "$pg_config" = "$debian_pg_config" ]; then
        need postgresql-15 test -x "$(dirname "$pg_config")/postgres"
        # pg_config stands in the server's package too, but speaks only with the headers there.
        need postgresql-server-dev-15 test -f /usr/include/postgresql/15/server/postgres.h
    elif ! [ -x "$pg_config" ] && ! command -v "$pg_config" >/dev/null; then
        say "PG_CONFIG=$pg_config is not a program; name a server's pg_config, or unset it for Debian's"
        exit 2
    fi
}

look() {
    missing=()
    need_server
    need libkrb5-dev test -f /usr/include/gssapi/gssapi.h
    need "gcc libc6-dev" test -x /usr/bin/cc -a -f /usr/include/stdio.h
    need make command -v make
    need patchelf command -v patchelf
    need etcd-server command -v etcd
    need etcd-client command -v etcdctl
    need systemd command -v systemd-analyze # the unit is verified by it; nothing of it runs
    # What Patroni stands on: its own Python is the system's, whatever comes first in PATH.
    need "python3 python3-etcd python3-urllib3 python3-dateutil python3-yaml python3-psycopg2 python3-psutil \
        python3-click python3-prettytable python3-cdiff python3-pkg-resources" \
        /usr/bin/python3 -c 'import etcd, urllib3, dateutil, yaml, psycopg2, psutil, click, prettytable, cdiff, pkg_resources'
}

# Packages start their services; ours are for tests, which start their own. Both
# switches are put back as they were.
quiet_services() {
    if ! [ -e /usr/sbin/policy-rc.d ]; then
        printf '#!/bin/sh\nexit 101\n' >/usr/sbin/policy-rc.d
        chmod 755 /usr/sbin/policy-rc.d
        undo+=("rm -f /usr/sbin/policy-rc.d")
    fi
}

no_main_cluster() {
    local file=/etc/postgresql-common/createcluster.conf
    [ -f "$file" ] || return 0
    cp -p "$file" "$file.slotkeeper"
    undo+=("mv $file.slotkeeper $file")
    echo "create_main_cluster = false" >>"$file"
}

undo=()
put_back() {
    for command in "${undo[@]}"; do $command; done
}
trap put_back EXIT

apt() {
    apt-get -o Dpkg::Use-Pty=0 -qq "$@" >"$log" 2>&1 || {
        cat "$log" >&2
        say "apt-get $* failed"
        exit 1
    }
}

install_packages() {
    if ! command -v apt-get >/dev/null; then
        refuse "these Debian packages, or what they are called here, are missing and there is no apt-get:" "${missing[*]}"
    fi
    if [ "$(id -u)" != 0 ]; then
        refuse "packages are missing; run as root:" "apt-get update" \
            "apt-get install -y --no-install-recommends ${missing[*]}" \
            "make -C extension PG_CONFIG=$pg_config with_llvm=no install"
    fi
    say "installing ${missing[*]}"
    log=$(mktemp)
    undo+=("rm -f $log")
    quiet_services
    apt update
    case " ${missing[*]} " in *" postgresql-15 "*)
        apt install -y --no-install-recommends postgresql-common
        no_main_cluster
        ;;
    esac
    apt install -y --no-install-recommends "${missing[@]}"
    look
    if [ ${#missing[@]} -gt 0 ]; then
        say "still missing after the installation: ${missing[*]}"
        exit 1
    fi
}

# same reports whether the extension's files are installed as they stand here.
same() {
    cmp -s extension/slotkeeper.so "$library/slotkeeper.so" || return 1
    local file
    for file in extension/slotkeeper.control extension/sql/slotkeeper--*.sql; do
        cmp -s "$file" "$share/extension/$(basename "$file")" || return 1
    done
}

install_extension() {
    local library share output
    library=$("$pg_config" --pkglibdir)
    share=$("$pg_config" --sharedir)
    local make=(make -C extension "PG_CONFIG=$pg_config" with_llvm=no)
    output=$("${make[@]}" all 2>&1) || {
        echo "$output" >&2
        say "building the extension failed"
        exit 1
    }
    if same; then return; fi
    if ! [ -w "$library" ] || ! [ -w "$share/extension" ]; then
        refuse "the extension is not installed, or another one than this source gives; run as one who may write to $library:" \
            "${make[*]} install"
    fi
    say "installing the extension into $library"
    output=$("${make[@]}" install 2>&1) || {
        echo "$output" >&2
        say "installing the extension failed"
        exit 1
    }
}

go_hint="install Go 1.26 from https://go.dev/dl/ and put it into PATH"
if ! command -v go >/dev/null; then
    refuse "Go is missing, and Debian 12 has none that is new enough:" "$go_hint"
fi
# Debian 12's own Go cannot even read go.mod, and says so in riddles; newer ones fetch what they need.
if ! output=$(go list -m 2>&1); then
    refuse "this Go ($(go version 2>/dev/null || echo unknown)) cannot build slotkeeper: $output" "$go_hint"
fi
look
if [ ${#missing[@]} -gt 0 ]; then
    install_packages
fi
install_extension
