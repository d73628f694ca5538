#!/bin/bash
# A session that began while the clock was ahead is older than the hold that is made
# when it was set right, also when the clock has caught up with it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/sessions.sh"

cc -shared -fPIC -o "$WORK/clock.so" "$(dirname "$0")/clock.c" -ldl
echo 3600 >"$WORK/clock"
chmod 644 "$WORK/clock" "$WORK/clock.so"

pair
outdate a
caught_up b a
remember_or_end
stop b
CLOCK="$WORK/clock" LD_PRELOAD="$WORK/clock.so" start b
is "b's clock is ahead" "$(q b "SELECT now() > '$(q a "SELECT now() + interval '50 min'")'")" "t"
session early
echo 0 >"$WORK/clock"
is "the hold" "$(hold a 1 "$(wants a cdc)")" "cdc|held"
is "the standby's" "$(hold b 1 "$(wants a cdc)")" "cdc|held"
c=$(changes a cdc)
like "no mirror beside a session of before" "$(apply_row b "$c")" 'old_session.*\(early\)'
echo 3700 >"$WORK/clock"
like "nor when the clock has caught up with it" "$(apply_row b "$c")" 'old_session.*\(early\)'
is "it does not pin for that one" "$(q b "SELECT held_for_all_since FROM slotkeeper.node()")" ""
leave early
session young
is "without it" "$(apply b "$c")" "cdc|made"
leave young
