#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Count the instructions of one 64 B packet: allocated, written, sent, received, read, released; validation and telemetry on.
# With --where, also of each function. Exits 1 above the bound, 77 with a reason if valgrind is missing.
#
# usage: instructions.sh DRAY-PROBE BOUND [--where]
set -euo pipefail
readonly probe=$1 bound=$2 where=${3:-} few=3200 many=163200
type -P valgrind >/dev/null || { echo "valgrind is missing (Debian: valgrind)"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# once COUNT prints the instructions of one run.
once() {
	valgrind --tool=callgrind --callgrind-out-file="$out/$1" "$probe" --alone "$1" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

# count prints the least of three runs: while a link is set up, its ends wait for the broker, for longer if the machine is busy.
count() {
	for _ in 1 2 3; do once "$1"; done | sort -n | head -n1
}

# functions prints NAME INSTRUCTIONS of the functions in the probe itself.
functions() {
	callgrind_annotate --threshold=100 "$out/$1" | grep -F "[$(realpath "$probe")]" |
		sed -n 's/^ *\([0-9,]*\) ([^)]*)  [^:]*:\([a-z_0-9]*\).*/\2 \1/p' | tr -d , |
		awk '{ n[$1] += $2 } END { for (f in n) print f, n[f] }' | sort -k1,1
}

a=$(count $few) b=$(count $many)
per_packet=$(((b - a) / (many - few)))
echo "$per_packet instructions per packet, both ends and the application; bound: $bound"
if [ -n "$where" ]; then
	join <(functions $few) <(functions $many) |
		awk -v n=$((many - few)) '{ p = ($3 - $2) / n; if (p >= 1) printf "%6.1f %s\n", p, $1 }' | sort -rn
fi
[ "$per_packet" -gt 50 ] && [ "$per_packet" -le "$bound" ]
