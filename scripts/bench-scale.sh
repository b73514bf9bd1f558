#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Print what chains of many functions cost on this host: a line of processes, each joined to the next over veth. For each number of
# functions: seconds to come up and to go down, the most memory of `dray up`, and the memory of the supervisor and of the log keeper.
# It needs root and bin/dray (make build).
#
# usage: scripts/bench-scale.sh [NUMBER...]      (50 100 200 500 1000)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[ $# -gt 0 ] || set -- 50 100 200 500 1000
dray=$PWD/bin/dray
work=$(mktemp -d)
export DRAY_STATE=$work/state

finish() {
	if "$dray" --quiet down --all >/dev/null; then
		rm -rf "$work"
	else
		echo "bench-scale: error: not all is down; remove it by: DRAY_STATE=$DRAY_STATE $dray gc; then remove $work" >&2
	fi
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# line writes the chain file of n functions.
line() {
	local n=$1 i ports
	printf 'apiVersion: drayage/v1\nkind: Chain\nname: line\nfunctions:\n'
	for ((i = 0; i < n; i++)); do
		ports=
		((i == 0)) || ports='{name: l}'
		((i == n - 1)) || ports+="${ports:+, }{name: r}"
		echo "  - {name: f$i, runtime: process, command: [sleep, infinity], ports: [$ports]}"
	done
	echo 'links:'
	for ((i = 0; i < n - 1; i++)); do
		echo "  - {name: l$i, transport: veth, ends: [f$i.r, f$((i + 1)).l]}"
	done
}

# timed runs a command, and prints its seconds, and the most memory that it had, in MB, to 20 ms before its end.
timed() {
	local begin=$EPOCHREALTIME most=0 now pid
	"$@" >/dev/null &
	pid=$!
	while now=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status" 2>/dev/null) && [ -n "$now" ]; do
		most=$now
		sleep 0.02
	done
	wait "$pid"
	awk -v begin="$begin" -v end="$EPOCHREALTIME" -v most="$most" 'BEGIN { printf "%8.1f %8.0f", end - begin, most / 1024 }'
}

# resident is the memory of the process with these arguments, in MB.
resident() {
	local pid
	pid=$(pgrep -f -- "^$dray $*" | head -n 1)
	awk '/^VmRSS/ { printf "%10.0f", $2 / 1024 }' "/proc/$pid/status"
}

printf '%9s %8s %8s %9s %9s %8s %8s\n' functions 'up, s' 'up, MB' supervisor keeper 'down, s' 'down, MB'
for n; do
	line "$n" >"$work/line.yaml"
	printf '%9d ' "$n"
	timed "$dray" --quiet up "$work/line.yaml"
	resident supervise line
	resident keep-output line
	printf ' '
	timed "$dray" --quiet down line
	echo
done
