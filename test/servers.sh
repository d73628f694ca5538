#!/bin/bash
# Makes PostgreSQL servers of other majors than Debian 12's own ready for tests:
#
#     test/servers.sh MAJOR...
#
# prints, for each, the folder with its programs; pg_config is one of them. A
# server is Debian's own build of a neighbouring suite, unpacked below .cache (or
# $SLOTKEEPER_CACHE) and never installed. What is there already is only printed.
#
# The programs are those of the package; only where they look for libraries is
# changed: in their own tree first. Where that suite's C library is older than this
# machine's it is left out, so that what is compiled here can be loaded there;
# where it is newer the tree brings its own.
#
# Which suite has which major stands in suite_of. 19 is not released: its packages
# lie in experimental, and stand on the libraries that 18 has. The mirror is the one
# that this machine's apt uses.
#
#     test/servers.sh patroni-3.0
#
# does the same for Patroni, of 3.0, 4.0 and 4.1, and prints the folder that
# PYTHONPATH must name. It runs on this machine's own Python and on the libraries
# that test/setup.sh installs.
set -euo pipefail
cd "$(dirname "$0")/.."

layout=1 # raise it when what is unpacked must be unpacked anew
arch=$(dpkg --print-architecture)
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

say() { echo "servers: $*" >&2; }

fail() {
    say "$@"
    exit 1
}

suite_of() {
    case $1 in
        13) echo bullseye ;;
        15) echo bookworm ;;
        17) echo trixie ;;
        18) echo forky ;;
        19) echo experimental ;;
        *) fail "no suite of Debian is known to have PostgreSQL $1; they are for 13, 15, 17, 18 and 19" ;;
    esac
}

# patroni_suite VERSION
patroni_suite() {
    case $1 in
        3.0) echo bookworm ;;
        4.0) echo trixie ;;
        4.1) echo forky ;;
        *) fail "no suite of Debian is known to have Patroni $1; they are for 3.0, 4.0 and 4.1" ;;
    esac
}

# cache prints the folder to unpack into. Servers started by root run as the user
# postgres, who must get there: a clone in root's home is no place for them.
cache() {
    local dir=${SLOTKEEPER_CACHE:-$PWD/.cache}
    mkdir -p "$dir"
    dir=$(realpath "$dir")
    if [ "$(id -u)" = 0 ] && ! setpriv --reuid=nobody --regid=nogroup --clear-groups test -x "$dir"; then
        mkdir -p /var/cache/slotkeeper/postgresql
        ln -sfn /var/cache/slotkeeper/postgresql "$dir/postgresql"
    fi
    mkdir -p "$dir/postgresql"
    realpath "$dir/postgresql"
}

# mirror prints where this machine gets Debian's packages from
mirror() {
    local found
    found=$(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' |
        grep -E '/debian/?$' | grep -v snapshot | sort -u | head -n 1)
    [ -n "$found" ] || fail "this machine's apt has no source of Debian's packages"
    echo "$found"
}

# private_apt DIR SUITE: an apt of its own that sees only that suite, and takes
# nothing for installed
private_apt() {
    local dir=$1 suite=$2
    mkdir -p "$dir"/{lists/partial,archives/partial,debs}
    : >"$dir/status"
    echo "deb [signed-by=$keyring] $(mirror) $suite main" >"$dir/sources.list"
    if [ "$suite" = experimental ]; then
        echo "deb [signed-by=$keyring] $(mirror) $(suite_of 18) main" >>"$dir/sources.list"
    fi
    cat >"$dir/apt.conf" <<CONF
Dir::State "$dir";
Dir::State::Lists "$dir/lists";
Dir::State::Status "$dir/status";
Dir::Cache "$dir";
Dir::Etc::SourceList "$dir/sources.list";
Dir::Etc::SourceParts "/dev/null";
Dir::Etc::PreferencesParts "/dev/null";
APT::Sandbox::User "";
APT::Install-Recommends "false";
Acquire::Languages "none";
Acquire::Check-Valid-Until "false";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Debug::NoLocking "true";
CONF
    export APT_CONFIG="$dir/apt.conf"
}

# closure MAJOR: the server, its client and the libraries that they need. The
# compiler behind JIT is left out, it is larger than all the rest.
closure() {
    local from=$1
    if [ "$from" = 19 ]; then
        from=18
        echo postgresql-19
        echo postgresql-client-19
    fi
    apt-get -s install "postgresql-$from" "postgresql-client-$from" | awk '/^Inst / {print $2}' |
        grep -E "^(postgresql-(client-)?$1|lib.+)\$" |
        grep -vE '^(libllvm|libz3|libperl|libpython|libpam-(modules|runtime)|libsystemd-shared|lib.*-perl$)'
}

# download MAJOR DIR
download() {
    local packages
    mapfile -t packages < <(closure "$1")
    [ ${#packages[@]} -gt 2 ] || fail "apt does not say what PostgreSQL $1 needs"
    (cd "$2/debs" && apt-get -q download "${packages[@]}" "postgresql-server-dev-$1")
}

# unpack APT_DIR TREE
unpack() {
    local deb version
    for deb in "$1"/debs/libc6_*.deb; do
        version=$(dpkg-deb -f "$deb" Version)
        if dpkg --compare-versions "${version%%-*}" lt "$(getconf GNU_LIBC_VERSION | cut -d ' ' -f 2)"; then
            rm "$deb"
        fi
    done
    for deb in "$1"/debs/*.deb; do dpkg-deb -x "$deb" "$2"; done
    rm -rf "$2"/usr/share/{doc,man,locale,lintian} "$2"/usr/lib/postgresql/*/lib/{bitcode,llvmjit*}
}

# adapt TREE FINAL_PLACE: the programs find their tree's libraries
adapt() {
    local tree=$1 final=$2 loader file lib
    lib=$(gcc -print-multiarch)
    loader=$(cd "$tree" && find . -name 'ld-linux*.so.*' | head -n 1)
    find "$tree/usr/lib/postgresql" -type f -perm -u+x ! -name '*.so*' | while read -r file; do
        patchelf --print-interpreter "$file" >/dev/null 2>&1 || continue
        patchelf --force-rpath --set-rpath "$final/usr/lib/$lib:$final/lib/$lib" "$file"
        if [ -n "$loader" ]; then patchelf --set-interpreter "$final/${loader#./}" "$file"; fi
    done
    # flags of that suite's compiler which this machine's may not know
    find "$tree" -name Makefile.global -exec sed -i \
        -e 's/-Wmissing-variable-declarations//g' -e "s,-f[a-z]*-prefix-map=[^ ]*,,g" {} +
    chmod -R a+rX "$tree"
}

# answer_from_tree BIN: pg_config of 13 knows only where the package would lie
answer_from_tree() {
    local bin=$1 root
    root=${bin%/usr/lib/postgresql/*}
    case $("$bin/pg_config" --includedir-server) in "$root"/*) return ;; esac
    mv "$bin/pg_config" "$bin/pg_config.package"
    cat >"$bin/pg_config" <<'WRAPPER'
#!/bin/sh
bin=$(dirname "$(readlink -f "$0")")
root=${bin%/usr/lib/postgresql/*}
"$bin/pg_config.package" "$@" | sed -E "s,(^|[ =])($root)?/usr/,\1$root/usr/,g"
WRAPPER
    chmod 755 "$bin/pg_config"
}

# make_server MAJOR PLACE
make_server() {
    local major=$1 place=$2
    command -v patchelf >/dev/null || fail "patchelf is missing: apt-get install -y patchelf"
    say "getting PostgreSQL $major from Debian's $(suite_of "$major"), once"
    work=$(mktemp -d) # not local: the trap outlives this function
    trap 'rm -rf "$work"' EXIT
    private_apt "$work" "$(suite_of "$major")"
    {
        apt-get -q update
        download "$major" "$work"
    } >"$work/log" 2>&1 || {
        tail -n 20 "$work/log" >&2
        fail "getting PostgreSQL $major failed"
    }
    rm -rf "$place" "$place.new"
    mkdir "$place.new"
    unpack "$work" "$place.new"
    adapt "$place.new" "$place"
    mv "$place.new" "$place"
    answer_from_tree "$place/usr/lib/postgresql/$major/bin"
    "$place/usr/lib/postgresql/$major/bin/postgres" --version >&2
    echo "$layout" >"$place/.complete"
}

# server MAJOR: makes it where it is missing, one process at a time
server() {
    local major=$1 root place
    suite_of "$major" >/dev/null
    root=$(cache)
    place="$root/$major-$arch"
    (
        flock 9
        if [ "$(cat "$place/.complete" 2>/dev/null)" != "$layout" ]; then make_server "$major" "$place"; fi
        ln -sfn "$major-$arch/usr/lib/postgresql/$major" "$root/$major"
    ) 9>"$root/.lock"
    echo "$root/$major/bin"
}

# make_patroni VERSION PLACE
make_patroni() {
    local version=$1 place=$2 found
    say "getting Patroni $version from Debian's $(patroni_suite "$version"), once"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    private_apt "$work" "$(patroni_suite "$version")"
    (
        apt-get -q update
        cd "$work/debs" && apt-get -q download patroni
    ) >"$work/log" 2>&1 || {
        tail -n 20 "$work/log" >&2
        fail "getting Patroni $version failed"
    }
    rm -rf "$place" "$place.new"
    mkdir "$place.new"
    dpkg-deb -x "$work"/debs/patroni_*.deb "$place.new"
    found=$(sed -n "s/^__version__ = '\(.*\)'/\1/p" "$place.new/usr/lib/python3/dist-packages/patroni/version.py")
    case $found in
        "$version".*) say "it is $found" ;;
        *) fail "Debian's $(patroni_suite "$version") has Patroni $found by now, not $version" ;;
    esac
    chmod -R a+rX "$place.new"
    mv "$place.new" "$place"
    echo "$layout" >"$place/.complete"
}

# patroni VERSION: makes it where it is missing
patroni() {
    local version=$1 root place
    patroni_suite "$version" >/dev/null
    root=$(cache)
    place="$root/patroni-$version"
    (
        flock 9
        if [ "$(cat "$place/.complete" 2>/dev/null)" != "$layout" ]; then make_patroni "$version" "$place"; fi
    ) 9>"$root/.lock"
    echo "$place/usr/lib/python3/dist-packages"
}

[ $# -gt 0 ] || fail "usage: test/servers.sh MAJOR|patroni-VERSION..."
for wanted in "$@"; do
    case $wanted in
        patroni-*) patroni "${wanted#patroni-}" ;;
        *) server "$wanted" ;;
    esac
done
