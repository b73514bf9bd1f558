#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the tests that failed in a log of `go test -v` once more, when nothing else runs: on a busy machine one can fail because it had
# no CPU. The exit status is 0 if all pass now. Nothing is tried again after a data race, a panic or a program that does
# not compile, nor if more than three tests failed: that is no accident.
#
# usage: scripts/again.sh LOG COMMAND [ARGUMENT...]      (COMMAND takes arguments of go test, such as -run, and a package)
set -euo pipefail
log=${1:?usage: scripts/again.sh LOG COMMAND [ARGUMENT...]}
shift

if grep -qE '^WARNING: DATA RACE|^panic: |^fatal error: |\[(build|setup) failed\]' "$log"; then
	exit 1
fi
# A package's last line follows those of its tests.
failed=$(awk '
	/^--- FAIL: / { tests = tests (tests == "" ? "" : "|") $3; count++ }
	/^FAIL\t/ { if (tests == "") exit 1; print $2, tests }
	/^(FAIL|ok)[ \t]/ { tests = "" }
	END { if (count == 0 || count > 3) exit 1 }
' "$log") || exit 1
status=0
while read -r package tests; do
	printf '\n== once more, alone: %s in %s\n' "$tests" "$package"
	"$@" -run "^($tests)\$" "$package" </dev/null || status=1
done <<<"$failed"
[ "$status" -eq 0 ] && printf '\nThese tests failed while others ran, and passed alone:\n%s\n' "$failed"
exit "$status"
