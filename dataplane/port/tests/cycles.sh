#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The library's files call each other in one direction: no file calls one that calls it back, not even through others.
set -euo pipefail
readonly library=$1
# One pair a line: the file that calls, the file that is called.
calls=$(nm -A "$library" | awk '
	{ split($1, part, ":"); file = part[2]; symbol = $NF }
	$(NF - 1) == "U" { uses[file, symbol]; next }
	$(NF - 1) ~ /^[TDBR]$/ { definer[symbol] = file }
	END {
		for (use in uses) {
			split(use, u, SUBSEP)
			if (u[2] in definer && definer[u[2]] != u[1])
				print u[1], definer[u[2]]
		}
	}')
[ "$(wc -l <<<"$calls")" -gt 20 ] || { echo "too few calls were found: $calls"; exit 1; }
# tsort names the files of a cycle.
tsort <<<"$calls" >/dev/null
