#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run one step of a build. If it fails, print the last 20 lines of what the tool said, the name of the step and what to do. Nothing
# is written to disk, so that a full disk is reported too.
#
# usage: scripts/step.sh NAME COMMAND [ARGUMENT...]
set -uo pipefail
name=${1:?usage: scripts/step.sh NAME COMMAND [ARGUMENT...]}
shift
output=$("$@" 2>&1 </dev/null)
status=$?
[ "$status" -ne 0 ] || exit 0

case $output in
*'No space left on device'*) fix="free some space: $(df --output=avail -h . | tail -n1 | tr -d ' ') are left on the file system of $PWD (df -h .)" ;;
*'No such file or directory'*'#include'* | *'#include'*'No such file or directory'* | *'ependency '*' not found'* | *'library '*' not found'* | *'command not found'* | *'rogram '*' not found'*)
	fix='install what is missing (scripts/setup.sh run; for tests: scripts/setup.sh test), then run this again' ;;
*) fix='correct what the lines above name, then run this again' ;;
esac
{
	printf '%s\n' "$output" | grep -vE '^ninja: Entering directory|^\[[0-9]+/[0-9]+\] ' | tail -n 20 | sed 's/^/    /'
	echo "error: the step '$name' failed: $1 ended with exit status $status"
	echo "fix: $fix"
} >&2
exit "$status"
