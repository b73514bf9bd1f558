#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run every fuzz target for the given time each (5s, 2m): those in Go, and those
# in C but for a time so short that the tests of the C code have done it already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=local
time=${1:?usage: scripts/fuzz.sh TIME}
[[ $time =~ ^([1-9][0-9]*)(s|m)$ ]] || {
	echo "fuzz: error: $time is no time such as 5s or 2m" >&2
	exit 2
}
seconds=${BASH_REMATCH[1]}
[ "${BASH_REMATCH[2]}" = s ] || seconds=$((seconds * 60))
go=$(scripts/find-go.sh)
PATH="$(dirname "$go"):$PATH" # tools and tests call go by its name
log=$(mktemp)
trap 'rm -f "$log"' EXIT

# targets prints "file:name" of each fuzz target.
targets() {
	git -c safe.directory='*' grep -E '^func Fuzz[A-Za-z0-9_]+\(' -- '*_test.go' |
		sed -E 's/^([^:]+):func (Fuzz[A-Za-z0-9_]+)\(.*/\1:\2/'
}

# fuzz runs one target. The go command may call it a failure when the time ends
# while an input is being tried (golang.org/issue/56238); that is tried again.
fuzz() {
	local attempt
	for attempt in 1 2 3; do
		if "$go" test -run '^$' -fuzz "^$2\$" -fuzztime "$time" "$1" >"$log" 2>&1; then
			return 0
		fi
		if ! grep -q 'context deadline exceeded' "$log" || grep -q 'Failing input written' "$log"; then
			return 1
		fi
		echo "      $1 $2: the time ended within an input (attempt $attempt)"
	done
	return 1
}

printf '\n== fuzzing every target for %s\n' "$time"
while IFS=: read -r file target; do
	package=./$(dirname "$file")
	if ! fuzz "$package" "$target"; then
		cat "$log"
		echo "FAIL  $package $target"
		exit 1
	fi
	echo "ok    $package $target, $(grep -oE 'execs: [0-9]+|baseline coverage: [0-9]+.[0-9]+ completed' "$log" | tail -n1)"
done < <(targets)

# fuzz_c runs one target of libFuzzer, which prints its statistics.
fuzz_c() {
	if ! "$@" "$seconds" >"$log" 2>&1; then
		cat "$log"
		echo "FAIL  $*"
		exit 1
	fi
	echo "ok    $*, $(grep -oE 'number_of_executed_units: [0-9]+' "$log")"
}

if [ "$seconds" -ge 10 ]; then
	fuzz_c dataplane/port/fuzz/run.sh ring
	fuzz_c dataplane/port/fuzz/run.sh handshake
	fuzz_c dataplane/gen/fuzz/run.sh
	fuzz_c dataplane/vnf/fuzz/run.sh
fi
