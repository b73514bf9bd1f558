#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Measure what three functions that print without end cost outside their limits: the CPU
# time of the supervisor and of runc in 10 s, from /proc. Needs root and runc. The exit
# status is 1 if the supervisor takes over 10 % of a CPU. Not for an emulated
# machine, which counts the time that it waits for the host's CPU.
#
# usage: scripts/flood-cost.sh [DRAY]      DRAY: the program to measure, bin/dray if not given
set -euo pipefail
dray=$(realpath "${1:-$(dirname "${BASH_SOURCE[0]}")/../bin/dray}")
readonly dray seconds=10 burst=10 most=10
state=$(mktemp -d /run/dray-flood-XXXXXX)
export DRAY_STATE=$state
chmod 711 "$state"
trap '"$dray" -q down flood >/dev/null || true; rm -rf "$state"' EXIT

chain() {
	local i
	printf '%s\n' 'apiVersion: drayage/v1' 'kind: Chain' 'name: flood' 'functions:'
	for i in 1 2 3; do
		printf '  - {name: f%d, runtime: runc, command: ["yes", "a line of an endless output"], ports: [{name: p, ip: 10.99.0.%d/24}]}\n' $i $i
	done
	printf '%s\n' 'links:' '  - {name: x, transport: bridge, ends: [f1.p, f2.p, f3.p]}'
}

# ticks prints the CPU time of processes and of their children that have ended.
ticks() {
	local sum=0 pid fields
	for pid in "$@"; do
		fields=$(sed 's/.*) //' "/proc/$pid/stat")
		# shellcheck disable=SC2086 # one word for each field
		set -- $fields
		sum=$((sum + ${12} + ${13} + ${14} + ${15}))
	done
	echo "$sum"
}

percent() { awk -v ticks="$1" -v all="$((seconds * $(getconf CLK_TCK)))" 'BEGIN { printf "%.1f", 100 * ticks / all }'; }

chain >"$state/flood.yaml"
"$dray" -q up "$state/flood.yaml" >/dev/null
sleep "$burst" # the first 8 MiB of each are read at once
mapfile -t supervisor < <(pgrep -f "^$dray supervise flood\$")
mapfile -t runc < <(pgrep -f "^[^ ]*runc .*$state/")
if [ ${#supervisor[@]} -ne 1 ] || [ ${#runc[@]} -ne 3 ]; then
	echo "${#supervisor[@]} supervisors and ${#runc[@]} runc, not 1 and 3" >&2
	exit 2
fi
before=$(ticks "${supervisor[@]}") engines=$(ticks "${runc[@]}")
sleep "$seconds"
took=$(($(ticks "${supervisor[@]}") - before)) engines=$(($(ticks "${runc[@]}") - engines))
echo "measured: $(percent $took) % of a CPU in the supervisor, $(percent $engines) % in runc"
[ "$took" -le $((seconds * $(getconf CLK_TCK) * most / 100)) ]
