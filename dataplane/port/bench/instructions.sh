#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Count the instructions of one 64 B packet: allocated, written, sent, received, read, released; validation and telemetry on.
# Exits 1 above the bound, 77 with a reason where valgrind is missing.
#
# usage: instructions.sh DRAY-BENCH BOUND
set -euo pipefail
readonly bench=$1 bound=$2 few=3200 many=35200
type -P valgrind >/dev/null || { echo "valgrind is missing (Debian: valgrind)"; exit 77; }
out=$(mktemp)
trap 'rm -f "$out"' EXIT

count() {
	valgrind --tool=callgrind --callgrind-out-file="$out" "$bench" --alone "$1" 2>&1 | sed -n 's/.*Collected : \([0-9]*\).*/\1/p'
}

a=$(count $few) b=$(count $many)
per_packet=$(((b - a) / (many - few)))
echo "$per_packet instructions per packet, both ends and the application; bound: $bound"
[ "$per_packet" -gt 50 ] && [ "$per_packet" -le "$bound" ]
