#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run lint and all tests in lanes, several at once: most tests wait for a process, a link
# or a machine to boot, and a core that waits in one lane computes in another.
#
#   program  test/e2e, the program as its user runs it; the packages that boot machines
#   kernel   every other package that starts goroutines or changes the kernel's state,
#            one package after another
#   compute  the C projects, and whether what their builds made is hardened
#   check    lint, two builds that must be the same, packages that start no goroutine, a little
#            fuzzing. It waits for nothing, so it only gets what the other lanes leave of the CPUs, to the very end.
#
# When compute is done:
#
#   guides   test/docs: the commands of the documentation, some of which build the C projects
#
# When program and kernel are done:
#
#   kube     the module kube
#
# Then, with no lane but check, for a node that is slow to answer looks like one that has died:
#
#   cluster  Drayage on a Kubernetes cluster of two nodes; the long tests are in make test-kube
#
# What failed in any lane but check is run once more when no other lane runs (scripts/again.sh and dataplane/again.sh). The end of
# the output names the tests that passed only then.
#
# Each line of output begins with its lane. The log of each is out/test-LANE.txt, with
# every test and how long it took; the output ends with the slowest.
#
# usage: scripts/test.sh [package...]      (FUZZ_SMOKE=2s: how long to fuzz each target)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=local
# A missing program fails a test here, where it would be skipped in plain go test.
export DRAY_TEST_STRICT=1
[ $# -gt 0 ] || set -- ./...
go=$(scripts/find-go.sh)
PATH="$(dirname "$go"):$PATH" # tools and tests call go by its name
readonly program='/test/e2e$|/internal/function/(guest|lab|vm)(/|$)' guides='/test/docs$'
# The race detector can find nothing in these, for they start no goroutine: a test in
# test/style reads this line and looks. They compute, and it would take six times as long.
readonly sequential='/(internal/(spec|plan|result)|experiments|images|test/(depcheck|hardening|style))(/|$)'
readonly hardened='/test/hardening$' # it reads what the lane compute builds
start=$SECONDS
declare -A lanes # the process of each

# Lint has vetted the packages.
readonly go_test=("$go" test -v -vet=off -count=1 -timeout 40m)

# go_test runs the tests of packages.
go_test() {
	"${go_test[@]}" "$@" 2>&1 |
		{ grep -v --line-buffered -E '\[no test files\]|^=== (PAUSE|CONT|NAME)' || true; }
}

# raced is go_test with the race detector, one package after another.
raced() {
	CGO_ENABLED=1 go_test -trimpath -race -p 1 "$@"
}

# matching prints those of the packages whose path matches, or with -v does not.
matching() {
	printf '%s\n' "${packages[@]}" | grep -E "$@" || true
}

program_lane() {
	local chosen
	mapfile -t chosen < <(matching "$program")
	[ ${#chosen[@]} -eq 0 ] || raced "${chosen[@]}"
}

kernel_lane() {
	local chosen
	mapfile -t chosen < <(matching -v "$program|$guides|$sequential")
	[ ${#chosen[@]} -eq 0 ] || raced "${chosen[@]}"
}

# step names a command that failed as the tests of Go do, for the end of the output.
step() {
	"$@" || {
		echo "FAIL  $*"
		return 1
	}
}

# check_lane compiles as lint and make build do, so that nothing is compiled twice.
check_lane() {
	local chosen status=0
	renice -n 15 -p "$BASHPID" >/dev/null
	step scripts/lint.sh sources || status=1
	step scripts/reproducible.sh quick || status=1
	mapfile -t chosen < <(matching "$sequential" | grep -vE "$hardened")
	[ ${#chosen[@]} -eq 0 ] || CGO_ENABLED=0 go_test -trimpath "${chosen[@]}" || status=1
	step scripts/fuzz.sh "${FUZZ_SMOKE:-2s}" || status=1
	return "$status"
}

compute_lane() {
	local status=0 project chosen
	for project in port gen iq pmd vnf sctp; do
		dataplane/test.sh "$project" || status=1
	done
	mapfile -t chosen < <(matching "$hardened")
	[ ${#chosen[@]} -eq 0 ] || CGO_ENABLED=0 go_test -trimpath "${chosen[@]}" || status=1
	return "$status"
}

guides_lane() {
	local chosen
	mapfile -t chosen < <(matching "$guides")
	[ ${#chosen[@]} -eq 0 ] || raced "${chosen[@]}"
}

# kube_lane tests the module kube, which needs a newer Go than the rest.
kube_lane() (
	cd kube
	export GOTOOLCHAIN=auto
	raced ./api/... ./cmd/... ./internal/... ./test/monitoring
)

# cluster_lane has a cluster of its own, which no other make test or make kube uses.
cluster_lane() {
	local DRAY_KUBE_STATE
	DRAY_KUBE_STATE=/var/lib/dray-kube-test-$(pwd | cksum | cut -d' ' -f1)
	export DRAY_KUBE_STATE
	# down first: a run that was killed leaves its cluster.
	kube/cluster/cluster.sh down && kube/test/run.sh -short
}

# brief leaves out the names of tests that passed. It keeps them in the lanes program and
# cluster, because one test there can take minutes.
brief() {
	if [ "$1" = program ] || [ "$1" = cluster ]; then
		cat
	else
		grep -v --line-buffered -E '^ *(=== RUN|--- PASS|PASS$)' || true
	fi
}

# slowest prints the tests that took longest, subtests left out: seconds, lane, name.
slowest() {
	sed -nE 's/^--- [A-Z]+: ([^ ]+) \(([0-9.]+)s\)$/\2 \1/p' "out/test-$1.txt" | sed "s/ / $1 /"
}

# timed runs a lane and says how long it took.
timed() {
	local status=0 TIMEFORMAT="lane $1: %0R s, of the CPUs %0U + %0S s"
	time "${@:2}" || status=$?
	return "$status"
}

# lane starts a lane, its name and a command, as a job of its own.
lane() {
	set -m # so that stop can end all of it
	(timed "$@" 2>&1 </dev/null | tee "out/test-$1.txt" | brief "$1" | sed -u "s/^/$1: /") &
	set +m
	lanes[$1]=$!
}

# finish waits for a lane after which nothing is tried again.
finish() {
	wait "${lanes[$1]}" || broken+=("$1")
	unset "lanes[$1]"
}

# failures prints what failed by the log of a lane: tests, packages, steps and races. It takes options of grep.
failures() {
	grep -h -E "${@:2}" '^ *--- FAIL|^FAIL|^panic:|^WARNING: DATA RACE|/test\.txt:.* (FAIL|TIMEOUT|ERROR) ' "out/test-$1.txt"
}

# summary lists the failures of a lane without their context: those of the second run, if there was one.
summary() {
	local log
	printf 'lane %s failed\n' "$1"
	for log in "$1" "${1%-again}"; do
		failures "$log" | cut -c1-150 | sort -u | sed -n 1,12p | grep . && return
	done
	tail -n 5 "out/test-$1.txt"
}

stop() {
	local pid
	for pid in "${lanes[@]}"; do
		kill -TERM -- "-$pid" 2>/dev/null || true
	done
	exit "$1"
}
trap 'stop 130' INT
trap 'stop 143' TERM HUP

mapfile -t packages < <("$go" list "$@")
mkdir -p out
printf '\n== compiling for the race detector\n'
CGO_ENABLED=1 "$go" build -trimpath -race "$@"

printf '\n== testing in lanes; kernel tests use namespaces of their own\n'
failed=() computed=0 broken=()
lane program program_lane
lane kernel kernel_lane
lane compute compute_lane
lane check check_lane
wait "${lanes[compute]}" || computed=1
lane guides guides_lane
wait "${lanes[program]}" || failed+=(program)
wait "${lanes[kernel]}" || failed+=(kernel)
lane kube kube_lane
wait "${lanes[guides]}" || failed+=(guides)
wait "${lanes[kube]}" || failed+=(kube)
rm -f out/test-*-again.txt
if [ "$computed" -ne 0 ] || [ ${#failed[@]} -gt 0 ]; then
	finish check # then nothing else runs
fi
for name in "${failed[@]}"; do
	place=()
	[ "$name" != kube ] || place=(-C kube GOTOOLCHAIN=auto)
	lane "$name-again" scripts/again.sh "out/test-$name.txt" env "${place[@]}" CGO_ENABLED=1 "${go_test[@]}" -trimpath -race
	finish "$name-again"
done
if [ "$computed" -ne 0 ]; then
	lane compute-again dataplane/again.sh out/test-compute.txt
	finish compute-again
fi
if [ -n "$(matching '/test/e2e$')" ]; then
	lane cluster cluster_lane
	finish cluster
else
	: >out/test-cluster.txt
fi
[ -z "${lanes[check]:-}" ] || finish check
# Once more at the end, which is all that some people read.
for lane in "${broken[@]%-again}"; do
	failures "$lane" -B 15 -A 8 || true
done
grep -s -h -A 3 '^These tests failed while others ran' out/test-*-again.txt out/test-cluster.txt || true
printf '\n== the 30 slowest tests, in seconds\n'
for lane in program kernel guides check kube cluster; do slowest "$lane"; done | sort -rn | sed -n 1,30p
echo "tests took $((SECONDS - start)) s"
for lane in "${broken[@]}"; do summary "$lane"; done
[ ${#broken[@]} -eq 0 ]
