#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Fuzz libdray for a while from the corpus so far, then count the lines of the code that reads shared memory which the inputs
# have reached. A file below 95 % fails. Exits 77 with a reason if clang, its runtime or llvm-cov is missing.
#
# usage: dataplane/port/fuzz/coverage.sh [seconds for each target]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
readonly seconds=${1:-15} out=$PWD/../../out/port-coverage corpora=$PWD/../../out/port-fuzz least=95
# Whatever loads a word that another process may write, and the geometry that says where those are.
readers=(src/rx_lane.c src/tx_lane.c src/lane.c src/lane.h src/capture.c src/geometry.c)

need() {
	type -P "$1" >/dev/null || {
		echo "$1 is missing (Debian: $2)"
		exit 77
	}
}
need llvm-cov llvm
need llvm-profdata llvm
mkdir -p "$out"
profiles=() programs=()
for target in ring handshake; do
	fuzz/run.sh "$target" "$seconds" | grep -E 'number_of_executed_units|missing'
	clang -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address -fprofile-instr-generate -fcoverage-mapping -DDRAY_VERSION='"fuzz"' \
		-Iinclude -Isrc -Itests src/*.c src/*/*.c tests/{broker,memory,offered,test}.c "fuzz/$target.c" -pthread -o "$out/$target"
	inputs=("$corpora/$target/corpus")
	[ ! -d "$corpora/$target/seeds" ] || inputs+=("$corpora/$target/seeds")
	LLVM_PROFILE_FILE=$out/$target.profraw "$out/$target" -runs=0 "${inputs[@]}" >"$out/$target.txt" 2>&1
	profiles+=("$out/$target.profraw")
	programs+=(-object "$out/$target")
done
llvm-profdata merge -o "$out/all.profdata" "${profiles[@]}"
report() {
	llvm-cov report "${programs[@]:1}" -instr-profile "$out/all.profdata" "${readers[@]}" -show-region-summary=false \
		-show-branch-summary=false
}
report | awk -v least=$least '
	$1 ~ /\.[ch]$|^TOTAL$/ {
		cover = 100 * (1 - $(NF - 1) / $(NF - 2))
		printf "%-12s %5d lines, %4d of them not reached: %5.1f %%\n", $1, $(NF - 2), $(NF - 1), cover
		rows++
		if (cover < least) low = low " " $1
	}
	END {
		if (low != "" || rows < 2) {
			print "below " least " %:" low
			exit 1
		}
	}'
