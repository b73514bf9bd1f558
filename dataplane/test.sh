#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build a project of this folder three times (plain; with AddressSanitizer and UBSan; with ThreadSanitizer) and run all its
# tests in each; then build it for 64-bit ARM, and run nothing of that. pmd has no ThreadSanitizer build, and pmd and sctp no ARM
# build: Debian has the libraries that they link for one architecture at a time.
# Needs meson, ninja-build and gcc; with clang and libclang-rt the fuzzers run for a moment too.
# The last line says: N passed, N failed, N skipped. The exit status is 0 only if none failed.
#
# usage: dataplane/test.sh port|gen|iq|pmd|vnf|sctp [test ...]
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
readonly source=dataplane/${1:?port, gen, iq, pmd, vnf or sctp} builds=out/$1
passed=0 failed=0 skipped=0

# of prints the number after a label in meson's summary; 0 where there is none.
of() {
	sed -n "s/^$1: *\([0-9]*\).*/\1/p" "$2" | tail -n1 | grep . || echo 0
}

# build configures and builds one kind of build.
build() {
	local dir=$builds-$1
	printf '\n== %s, %s build\n' "$source" "$1"
	shift
	# Each time: draygen's list of libdray's sources is made here.
	[ ! -f "$dir/build.ninja" ] || set -- --reconfigure "$@"
	if ! meson setup "$dir" "$source" "$@" >/dev/null; then
		echo "FAIL  configuring $dir (see $dir/meson-logs/meson-log.txt)"
	elif ! ninja -C "$dir" >"$dir/build.txt" 2>&1; then
		tail -n 30 "$dir/build.txt"
		echo "FAIL  building $dir"
	else
		return 0
	fi
	failed=$((failed + 1))
	return 1
}

# run builds, and runs the tests.
run() {
	local dir=$builds-$1 log=$builds-$1/test.txt
	build "$@" || return
	meson test -C "$dir" --no-rebuild --timeout-multiplier 3 --print-errorlogs "${tests[@]}" 2>&1 | tee "$log" |
		grep -vE '^(ninja:|Full log|Expected Fail|Unexpected Pass|$)'
	passed=$((passed + $(of Ok "$log")))
	failed=$((failed + $(of Fail "$log") + $(of Timeout "$log")))
	skipped=$((skipped + $(of Skipped "$log")))
	logs+=("$log")
}

tests=("${@:2}") logs=()
# A sanitizer's exit status is not that of a skipped or a passed test.
export ASAN_OPTIONS=detect_leaks=1:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=exitcode=99
mkdir -p out
run plain -Dbuildtype=release
run asan -Dbuildtype=debugoptimized -Db_sanitize=address,undefined
if [ "$1" != pmd ]; then
	run tsan -Dbuildtype=debugoptimized -Db_sanitize=thread
	[ "$1" = sctp ] || build aarch64 --cross-file dataplane/port/aarch64.ini -Dbuildtype=release
fi
# Once more, where whoever reads only the end of the output finds it.
[ "$failed" -eq 0 ] || grep -HE -m 8 -A 6 ' (FAIL|TIMEOUT|ERROR) ' "${logs[@]}" || true
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
