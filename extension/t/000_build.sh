#!/bin/bash
# The library does not depend on the folder that it was built in: two clones of
# one source would each install theirs over the other's, without an end.
set -euo pipefail
cd "$(dirname "$0")/.."
if grep -qF "$PWD" slotkeeper.so; then
    echo "not ok: slotkeeper.so names the folder that it was built in"
    exit 1
fi
echo "ok: slotkeeper.so does not name the folder that it was built in"
