#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run every fuzz target for the given time each (5s, 2m): those in Go, and those
# in C but for a time so short that the tests of the C code have done it already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=local
time=${1:?usage: scripts/fuzz.sh TIME}
[[ $time =~ ^([1-9][0-9]*)(s|m)$ ]] || {
	echo "fuzz: error: $time is not a time such as 5s or 2m" >&2
	exit 2
}
seconds=${BASH_REMATCH[1]}
[ "${BASH_REMATCH[2]}" = s ] || seconds=$((seconds * 60))
go=$(scripts/find-go.sh)
PATH="$(dirname "$go"):$PATH" # tools and tests call go by its name
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$("$go" env GOCACHE)/fuzz

# targets prints "directory name" of each fuzz target.
targets() {
	git -c safe.directory='*' grep -E '^func Fuzz[A-Za-z0-9_]+\(' -- '*_test.go' |
		sed -E 's,^([^:]+)/[^:/]+:func (Fuzz[A-Za-z0-9_]+)\(.*,\1 \2,'
}

# program is the test program of a package, compiled once for all its targets.
program() { echo "$work/${1//\//-}.test"; }

# fuzz runs one target. It may be called a failure when the time ends while an
# input is being tried (golang.org/issue/56238); that is tried again.
fuzz() {
	local dir=$1 target=$2 log attempt package
	package=$(cd "$dir" && "$go" list)
	log=$(program "$dir")-$target.txt
	for attempt in 1 2 3; do
		if (cd "$dir" && "$(program "$dir")" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" -test.parallel 1 \
			-test.fuzzcachedir "$cache/$package") >"$log" 2>&1; then
			echo "ok    ./$dir $target, $(grep -oE 'execs: [0-9]+|baseline coverage: [0-9]+.[0-9]+ completed' "$log" | tail -n1)"
			return 0
		fi
		if ! grep -q 'context deadline exceeded' "$log" || grep -q 'Failing input written' "$log"; then
			break
		fi
		echo "      ./$dir $target: the time ended within an input (attempt $attempt)"
	done
	cat "$log"
	echo "FAIL  ./$dir $target"
	return 1
}

printf '\n== fuzzing every target for %s, one on each CPU\n' "$time"
while read -r dir; do
	"$go" test -c -fuzz . -vet=off -o "$(program "$dir")" "./$dir" >/dev/null
done < <(targets | cut -d' ' -f1 | sort -u)
status=0
while read -r dir target; do
	if [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; then
		wait -n || status=1
	fi
	fuzz "$dir" "$target" &
done < <(targets)
while [ -n "$(jobs -p)" ]; do
	wait -n || status=1
done
[ "$status" -eq 0 ] || exit 1

# fuzz_c runs one target of libFuzzer, which prints its statistics.
fuzz_c() {
	local log=$work/c.txt
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
