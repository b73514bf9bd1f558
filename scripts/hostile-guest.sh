#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run the attack tests on a kernel without SO_PASSRIGHTS: build them here, boot Debian's
# kernel in a virtual machine (dray lab), run them there, print each result and what it
# measured. The machine sees this host's files and keeps nothing. Needs bin/dray (make
# build), QEMU, gcc, meson, DPDK and root. The exit status is 0 only if all pass.
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
readonly host=(TestPacketOptionsOfACgroup TestShowMount)
readonly node=(TestEveryCallOnTheLogPipe TestAFloodIsReadAtTheRate TestAFloodOfPacketsIsReadAtTheRate
	TestABrokerThatIsKilledOftenIsSoonBack)
readonly runc=(TestAFunctionLeavesRootItsShare TestNoRingByOtherABIs TestSecurity/give-no-ring-to-a-packet-socket
	TestConformance/directories-of-dpdk-ports-are-small)
readonly report=(TestTopologyWithoutFunctions TestLoadRefuses/links_without_functions)
readonly dray=(TestFunctionsCannotControlTheTerminal)
readonly private=(out/vnf-plain/tests/test-private --no-huge --no-shconf -m 64 --no-pci --no-telemetry --log-level error)

build() {
	local go name
	go=$(scripts/find-go.sh)
	mkdir -p "$builds"
	dataplane/build.sh --tests port plain "${programs[@]/#/tests/test-}"
	if pkg-config --exists libdpdk; then
		dataplane/build.sh --tests vnf plain tests/test-private
	fi
	for name in internal/{host,link/broker,node,function/runc,result/report} cmd/dray; do
		CGO_ENABLED=0 "$go" test -c -trimpath -o "$builds/$(basename "$name").test" "./$name"
	done
}

# result runs one test in a directory, and prints its name, its outcome, how long it took,
# what it measured and, if it failed or was skipped, why.
result() {
	local name=$1 dir=$2 status=0 began=$EPOCHREALTIME outcome=pass log
	shift 2
	log=$(mktemp)
	(cd "$dir" && timeout 300 "$@") >"$log" 2>&1 || status=$?
	if [ "$status" -eq 77 ] || grep -q -e '--- SKIP' "$log"; then
		outcome=skip
	elif [ "$status" -ne 0 ] || { [[ $name == Test* ]] && ! grep -q -e "--- PASS: $name " "$log"; }; then
		outcome=FAIL
		failed=1
	fi
	printf '%-4s %-50s %5.1f s\n' "$outcome" "$name" "$(bc <<<"$EPOCHREALTIME - $began")"
	sed -n 's/.*measured: /       /p' "$log"
	[ "$outcome" = pass ] || tail -n 15 "$log" | cut -c1-200 | sed 's/^/       /'
	rm "$log"
}

# in_package runs tests of one package, each in a process of its own.
in_package() {
	local dir=$1 name
	shift
	for name in "$@"; do
		result "$name" "$dir" "$PWD/$builds/$(basename "$dir").test" -test.v -test.run "^${name//\//\$\/^}\$"
	done
}

run() {
	local name
	failed=0
	echo "kernel $(uname -r)"
	ip link set lo up
	for name in "${programs[@]}"; do result "$name" . "out/port-plain/tests/test-$name"; done
	in_package internal/link/broker "${broker[@]}"
	in_package internal/host "${host[@]}"
	in_package internal/node "${node[@]}"
	in_package internal/function/runc "${runc[@]}"
	in_package internal/result/report "${report[@]}"
	in_package cmd/dray "${dray[@]}"
	[ ! -x "${private[0]}" ] || result private . "${private[@]}"
	[ "${1:-}" = emulated ] || result floods . scripts/flood-cost.sh # its figure needs a CPU of its own
	return "$failed"
}

case ${1:-} in
--inside)
	# Emulated, each step takes longer; but less than the minute that the attacks last.
	export DRAY_TEST_PATIENCE=50
	run emulated
	;;
--here) build && run ;;
*) build && bin/dray lab --guest -- "$PWD/scripts/hostile-guest.sh" --inside ;;
esac
