#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Build kinds of a project of this folder, with its tests, and run them in each but aarch64, whose programs cannot run here. The
# kinds are those of build.sh; in the kind plain, with clang and libclang-rt, the fuzzers run for a moment too.
# The last line says: N passed, N failed, N skipped. The exit status is 0 only if none failed.
#
# usage: dataplane/test.sh port|gen|iq|pmd|vnf|sctp plain|asan|tsan|aarch64...
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit
[ $# -ge 2 ] || {
	echo 'usage: dataplane/test.sh port|gen|iq|pmd|vnf|sctp plain|asan|tsan|aarch64...' >&2
	exit 2
}
readonly project=$1
passed=0 failed=0 skipped=0 logs=()

# of prints the number after a label in meson's summary; 0 if there is none.
of() {
	sed -n "s/^$1: *\([0-9]*\).*/\1/p" "$2" | tail -n1 | grep . || echo 0
}

# run builds, and runs the tests.
run() {
	local dir=out/$project-$1 log=out/$project-$1/test.txt
	printf '\n== dataplane/%s, %s build\n' "$project" "$1"
	if ! dataplane/build.sh --tests "$project" "$1"; then
		echo "FAIL  building $dir"
		failed=$((failed + 1))
		return
	fi
	[ "$1" != aarch64 ] || return
	meson test -C "$dir" --no-rebuild --timeout-multiplier 3 --print-errorlogs 2>&1 | tee "$log" |
		grep -vE '^(ninja:|Full log|Expected Fail|Unexpected Pass|$)'
	passed=$((passed + $(of Ok "$log")))
	failed=$((failed + $(of Fail "$log") + $(of Timeout "$log")))
	skipped=$((skipped + $(of Skipped "$log")))
	logs+=("$log")
	missed "$dir/meson-logs/testlog.txt"
}

# missed counts a test that skipped because a program is missing as failed on a machine that scripts/setup.sh prepared.
missed() {
	[ -z "${DRAY_TEST_STRICT:-}" ] || ! grep -hoE '[^ ]+ is missing \(Debian: .*' "$1" | sort -u | sed 's/^/FAIL  /' | grep . || failed=$((failed + 1))
}

# A sanitizer's exit status is not that of a skipped or a passed test.
export ASAN_OPTIONS=detect_leaks=1:exitcode=99 UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 TSAN_OPTIONS=exitcode=99
for kind in "${@:2}"; do run "$kind"; done
# Once more, for readers of only the end of the output.
[ "$failed" -eq 0 ] || grep -HE -m 8 -A 6 ' (FAIL|TIMEOUT|ERROR) ' "${logs[@]}" || true
printf '\n%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
[ "$failed" -eq 0 ]
