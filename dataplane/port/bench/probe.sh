#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run each case of dray-probe once, briefly: every line is answered with samples, no kill loses a packet or leaks a buffer,
# and no probe leaves a file behind.
# The cases that fork run in a probe without threads, as in the bench.
#
# usage: probe.sh DRAY-PROBE
set -euo pipefail
readonly probe=$1
TMPDIR=$(mktemp -d) # short: the probe puts sockets into it
export TMPDIR
trap 'rm -rf "$TMPDIR"' EXIT

# check runs the lines of stdin in one probe.
check() {
	local lines answers
	lines=$(cat)
	answers=$("$probe" <<<"$lines")
	[ "$(grep -c '"values": \[[0-9]' <<<"$answers")" -eq "$(wc -l <<<"$lines")" ] || {
		echo "a line has no samples:"
		cut -c 1-200 <<<"$answers"
		exit 1
	}
}

check <<'END'
1 bare-ring 200000
1 bare-line 1000
1 bare-trips 1000
1 link-rate 64 0 200000
1 link-rate 64 1 200000
1 link-rate 9000 0 200000
1 link-trips 1000
1 socket-rate 0 30
1 socket-trips 0 20
1 socket-rate 1 30
1 socket-trips 1 20
2 bare-ring 200000
2 link-rate 64 0 200000
END
check <<'END'
1 adaptive 0 0 1000 500
1 adaptive 1 1 1000 200
1 adaptive 0 2 1000 200
1 adaptive-rate 0 200000
1 wake 0 20
1 wake 1 20
1 wake 2 20
END
check <<<'1 set-up 20'
check <<'END'
1 kill 0 14
1 kill 1 2
1 kill 2 2
1 kill 3 2
1 kill 4 2
1 kill 5 2
1 kill 6 2
1 kill 7 2
1 kill 8 2
END
left=$(ls "$TMPDIR")
[ -z "$left" ] || { echo "left in $TMPDIR: $left"; exit 1; }
