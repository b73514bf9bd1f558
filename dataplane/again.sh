#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the tests that failed in a log of dataplane/test.sh once more, when nothing else runs: on a busy machine one can fail because it
# had no CPU. The exit status is 0 if all pass now. Nothing is tried again after a sanitizer's report or a build that
# failed, nor if more than three tests failed: that is no accident.
#
# usage: dataplane/again.sh LOG
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly log=${1:?usage: dataplane/again.sh LOG}

if grep -qE '^FAIL|exit status 99' "$log"; then
	exit 1
fi
# The lines of the end of dataplane/test.sh: the build's log, then meson's line of the test, which it prints twice.
mapfile -t failed < <(sed -nE 's,^(out/[a-z0-9-]+)/test\.txt: *[0-9]+/[0-9]+ ([^ ]+) +(FAIL|TIMEOUT|ERROR) .*,\1 \2,p' "$log" | sort -u)
[ ${#failed[@]} -gt 0 ] && [ ${#failed[@]} -le 3 ] || exit 1
status=0
for each in "${failed[@]}"; do
	read -r build name <<<"$each"
	printf '\n== once more, alone: %s of %s\n' "$name" "$build"
	meson test -C "$build" --no-rebuild --timeout-multiplier 3 --print-errorlogs "$name" </dev/null || status=1
done
[ "$status" -eq 0 ] && printf '\nThese tests failed while others ran, and passed alone:\n' && printf '%s\n' "${failed[@]}"
exit "$status"
