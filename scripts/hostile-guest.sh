#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the attack tests on a kernel without SO_PASSRIGHTS: build them here, boot Debian's
# kernel in a virtual machine (dray lab), run them there, print each result. The machine
# sees this host's files and keeps nothing. Needs bin/dray (make build), QEMU, gcc, meson
# and root. The exit status is 0 only if all pass.
#
# usage: scripts/hostile-guest.sh          in a guest
#        scripts/hostile-guest.sh --here   the same tests on this kernel
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=local
readonly builds=out/hostile
readonly programs=(hostile_bells hostile_broker hostile_greeting hostile_sender hostile_receiver hostile_holder hostile_scribble)
readonly broker=(TestSocketsThatWaitInClose TestHolesAreRefused TestFlagsOfTelemetry TestHoarder TestTelemetryHoarder
	TestMemoryThatCannotBeCountedIsNotLent TestEveryCallOnADescriptor TestEveryCallOnCaptureMemory TestEveryCallOnAPacketSocket
	TestANewConnectionReplacesTheOldestSilentOne)
readonly node=(TestEveryCallOnTheLogPipe TestAFloodIsReadAtTheRate TestAFloodOfPacketsIsReadAtTheRate)

build() {
	local go name
	go=$(scripts/find-go.sh)
	[ -f "$builds/build.ninja" ] || meson setup "$builds" dataplane/port -Dbuildtype=release >/dev/null
	ninja -C "$builds" "${programs[@]/#/tests/test-}" >/dev/null
	for name in link/broker node; do
		CGO_ENABLED=0 "$go" test -c -trimpath -o "$builds/$(basename "$name").test" "./internal/$name"
	done
}

# result runs one test in a directory, and prints its name, its outcome, how long it took
# and, if it failed or was skipped, why.
result() {
	local name=$1 dir=$2 status=0 began=$EPOCHREALTIME outcome=pass log
	shift 2
	log=$(mktemp)
	(cd "$dir" && timeout 300 "$@") >"$log" 2>&1 || status=$?
	if [ "$status" -eq 77 ] || grep -q -e '--- SKIP' "$log"; then
		outcome=skip
	elif [ "$status" -ne 0 ] || grep -q 'no tests to run' "$log"; then
		outcome=FAIL
		failed=1
	fi
	printf '%-4s %-50s %5.1f s\n' "$outcome" "$name" "$(bc <<<"$EPOCHREALTIME - $began")"
	[ "$outcome" = pass ] || tail -n 15 "$log" | cut -c1-200 | sed 's/^/       /'
	rm "$log"
}

run() {
	local name
	failed=0
	echo "kernel $(uname -r)"
	ip link set lo up
	for name in "${programs[@]}"; do result "$name" . "$builds/tests/test-$name"; done
	for name in "${broker[@]}"; do result "$name" internal/link/broker "$PWD/$builds/broker.test" -test.v -test.run "^$name\$"; done
	for name in "${node[@]}"; do result "$name" internal/node "$PWD/$builds/node.test" -test.v -test.run "^$name\$"; done
	return "$failed"
}

case ${1:-} in
--inside)
	# Emulated, each step takes longer; but less than the minute that the attacks last.
	export DRAY_TEST_PATIENCE=50
	run
	;;
--here) build && run ;;
*) build && bin/dray lab --guest -- "$PWD/scripts/hostile-guest.sh" --inside ;;
esac
