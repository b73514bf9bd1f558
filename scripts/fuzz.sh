#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run every fuzz target for the given time each (5s, 2m): those in Go, and those
# in C but for a time so short that the tests of the C code have done it already.
# With a language, only its targets, for any time; "list" prints one on each line.
#
# usage: scripts/fuzz.sh TIME|list [go|c]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=local
time=${1:?usage: scripts/fuzz.sh TIME|list [go|c]} only=${2:-}
[ "$time" = list ] || [[ $time =~ ^([1-9][0-9]*)(s|m)$ ]] || {
	echo "fuzz: error: $time is not a time such as 5s or 2m" >&2
	exit 2
}
seconds=${BASH_REMATCH[1]:-0}
[ "${BASH_REMATCH[2]:-s}" = s ] || seconds=$((seconds * 60))
go=$(scripts/find-go.sh)
PATH="$(dirname "$go"):$PATH" # tools and tests call go by its name
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cache=$("$go" env GOCACHE)/fuzz

# targets prints "directory name" of each fuzz target. It leaves out the module kube,
# whose libraries take minutes to compile for fuzzing: run `go test -fuzz .` there.
targets() {
	git -c safe.directory='*' grep -E '^func Fuzz[A-Za-z0-9_]+\(' -- '*_test.go' ':!kube' |
		sed -E 's,^([^:]+)/[^:/]+:func (Fuzz[A-Za-z0-9_]+)\(.*,\1 \2,'
}

# targets_c prints the command of each fuzz target in C, without its time.
targets_c() {
	printf 'dataplane/port/fuzz/run.sh %s\n' ring handshake
	printf 'dataplane/%s/fuzz/run.sh\n' gen vnf
}

if [ "$time" = list ]; then
	[ "$only" = c ] || targets
	[ "$only" = go ] || targets_c
	exit 0
fi

# program is the test program of a package, compiled once for all its targets.
program() { echo "$work/${1//\//-}.test"; }

# fuzz runs one target. Go calls it a failure if the time ends while an input is being
# tried (golang.org/issue/56238); the target failed only if Go kept an input.
fuzz() {
	local dir=$1 target=$2 log package
	package=$(cd "$dir" && "$go" list)
	log=$(program "$dir")-$target.txt
	if (cd "$dir" && "$(program "$dir")" -test.run '^$' -test.fuzz "^$target\$" -test.fuzztime "$time" -test.parallel 1 \
		-test.fuzzcachedir "$cache/$package") >"$log" 2>&1 ||
		{ grep -q 'context deadline exceeded' "$log" && ! grep -q 'Failing input written' "$log"; }; then
		echo "ok    ./$dir $target, $(grep -oE 'execs: [0-9]+|baseline coverage: [0-9]+.[0-9]+ completed' "$log" | tail -n1)"
		return 0
	fi
	cat "$log"
	echo "FAIL  ./$dir $target"
	return 1
}

# fuzz_go runs every target in Go, one on each CPU.
fuzz_go() {
	local dir target status=0
	while read -r dir; do
		"$go" test -c -fuzz . -vet=off -o "$(program "$dir")" "./$dir" >/dev/null
	done < <(targets | cut -d' ' -f1 | sort -u)
	while read -r dir target; do
		if [ "$(jobs -rp | wc -l)" -ge "$(nproc)" ]; then
			wait -n || status=1
		fi
		fuzz "$dir" "$target" &
	done < <(targets)
	while [ -n "$(jobs -p)" ]; do
		wait -n || status=1
	done
	return "$status"
}

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

printf '\n== fuzzing every target for %s, one on each CPU\n' "$time"
if [ "$only" != c ]; then
	fuzz_go
fi
if [ "$only" = c ] || { [ -z "$only" ] && [ "$seconds" -ge 10 ]; }; then
	while read -r -a command; do
		fuzz_c "${command[@]}"
	done < <(targets_c)
fi
