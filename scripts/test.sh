#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Run one part of the tests in lanes, several at once: most tests wait for a process, a link or a machine to boot, and a CPU that
# waits in one lane computes in another. Nothing is run twice.
#
# The part short, `make test`, covers the whole product:
#
#   program   test/e2e, the program as its user runs it
#   links     the packages of transports, one after another
#   switches  those whose tests start a switch in user space, and wait for it most of the time
#   kernel    every other package that starts goroutines or changes the kernel's state, one after another, but test/hostile
#   measure   those below internal/measure, which make trials, after sanitize
#   sanitize  each C project, built with AddressSanitizer and UBSan
#   check     lint, and the packages that start no goroutine. It waits for nothing, so it gets what the other lanes leave of the CPUs.
#   kube      the unit tests of the module kube, after sanitize
#
# The part long is what `make test-all` adds:
#
#   guest     packages that boot virtual machines, the tests that only a guest's kernel can run, and the attacks of test/hostile
#   projects  each C project as it is released and with ThreadSanitizer, built for 64-bit ARM; what the builds made is hardened
#   flows     most tests of scripts/long-tests.txt
#   extra     two builds that must be the same, a little fuzzing, and the whole matrices of tests that are short in the lane kernel
#   guides    test/docs: the commands of the documentation, after projects
#   packages  the Debian packages in a new root, after flows
#   alone     the tests of scripts/long-tests.txt that take something away from all else, after all those above
#   cluster   Drayage on a Kubernetes cluster of two nodes, after all others: a node that is slow to answer looks like one that has
#             died
#
# Each part begins with the lane compile, so that what the others take depends little on caches. If it takes long, they were empty:
# lint and the module kube then compile more, and no lane is over its budget.
#
# Each line of output begins with its lane. The log of each is out/test-LANE.txt. The output ends with the slowest tests, the CPU
# seconds of each lane next to its budget (scripts/test-budget.txt), and the lane, the test and the log of whatever failed. A lane
# that takes a third more than its budget fails.
#
# usage: scripts/test.sh short|long      (FUZZ_SMOKE=2s: how long to fuzz each target)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export GOTOOLCHAIN=local
# A missing program fails a test here, where it would be skipped in plain go test.
export DRAY_TEST_STRICT=1
# Each test program and helper process would otherwise sleep a second before it ends.
export GORACE=atexit_sleep_ms=0
readonly part=${1:-}
case $part in
short | long) ;;
*)
	echo "test: error: '$part' is neither short nor long" >&2
	exit 2
	;;
esac
go=$(scripts/find-go.sh)
PATH="$(dirname "$go"):$PATH" # tools and tests call go by its name
# Their tests run programs, which are not built for the race detector.
readonly programs='/test/(e2e|docs)$'
readonly transports='/internal/link(/|$)'
readonly makers='/internal/link/(broker|underlay)(/|$)' # what transports are made with
readonly switches='/internal/link/(ovs|ovsdpdk|ovsvxlan|vhost|vhostuser|vpp)$'
readonly measuring='/internal/measure(/|$)'
readonly guests='/internal/function/(guest|lab|vm)(/|$)'
readonly attacks='/test/hostile$'
# The race detector can find nothing in these, for they start no goroutine: a test in
# test/style reads this line and looks. They compute, and it would take six times as long.
readonly sequential='/(internal/(spec|plan|result)|experiments|images|test/(depcheck|hardening|style))(/|$)'
readonly linted='/test/(depcheck|style)$' # scripts/lint.sh tests them
readonly hardened='/test/hardening$' # it reads what the lane projects builds
readonly c_projects=(port gen iq pmd vnf sctp)
readonly cached=300 # CPU seconds of the lane compile, with caches
start=$SECONDS
declare -A lanes # the process of each

# go_test runs the tests of packages. Lint has vetted them.
go_test() {
	"$go" test -v -vet=off -count=1 -timeout 40m -trimpath "$@"
}

plain() { CGO_ENABLED=0 go_test "$@"; }
# raced tests one package after another.
raced() { CGO_ENABLED=1 go_test -race -p 1 "$@"; }

# packages prints the packages that match, or with -v those that do not.
packages() { "$go" list ./... | grep -E "$@"; }

# long_tests prints the tests that are in the part long, or in one lane of it, as a regular expression.
long_tests() {
	awk -v lane="${1-}" '!/^#/ && (lane == "" || $3 == lane) { print $2 }' scripts/long-tests.txt | paste -sd'|' | sed 's/.*/^(&)$/'
}

# step names a command that failed as the tests of Go do, for the end of the output.
step() {
	"$@" || {
		echo "FAIL  $*"
		return 1
	}
}

program_lane() { plain -parallel 5 -skip "$(long_tests)" ./test/e2e; }

kernel_lane() {
	local chosen
	mapfile -t chosen < <(packages -v "$programs|$transports|$measuring|$guests|$attacks|$sequential" && packages "$makers")
	raced -skip "$(long_tests)" "${chosen[@]}"
}

measure_lane() {
	local chosen
	mapfile -t chosen < <(packages "$measuring")
	raced "${chosen[@]}"
}

links_lane() {
	local chosen
	mapfile -t chosen < <(packages "$transports" | grep -vE "$switches|$makers")
	raced "${chosen[@]}"
}

switches_lane() {
	local chosen
	mapfile -t chosen < <(packages "$switches")
	raced "${chosen[@]}"
}

sanitize_lane() {
	local project status=0
	for project in "${c_projects[@]}"; do dataplane/test.sh "$project" asan || status=1; done
	return "$status"
}

# check_lane compiles as lint and make build do, so that nothing is compiled twice.
check_lane() {
	local chosen status=0
	renice -n 15 -p "$BASHPID" >/dev/null
	step scripts/lint.sh sources || status=1
	mapfile -t chosen < <(packages "$sequential" | grep -vE "$hardened|$linted")
	plain "${chosen[@]}" || status=1
	return "$status"
}

# kube_lane tests the module kube, which needs a newer Go than the rest.
kube_lane() (
	cd kube
	export GOTOOLCHAIN=auto
	raced ./api/... ./cmd/... ./internal/... ./test/monitoring ./test/chart
)

guest_lane() {
	local chosen status=0
	mapfile -t chosen < <(packages "$guests|$attacks")
	raced "${chosen[@]}" || status=1
	step scripts/hostile-guest.sh || status=1
	step scripts/unit-guest.sh || status=1
	return "$status"
}

# kinds prints the builds of a C project in the part long. Debian has the libraries that pmd and sctp link for one architecture at a
# time, and ThreadSanitizer does not see DPDK's threads.
kinds() {
	case $1 in
	pmd) echo plain ;;
	sctp) echo plain tsan ;;
	*) echo plain tsan aarch64 ;;
	esac
}

compile_lane() {
	local project kind kinds=(asan) status=0
	if [ "$part" = short ]; then
		CGO_ENABLED=1 step "$go" build -trimpath -race ./... || status=1
		(cd kube && GOTOOLCHAIN=auto CGO_ENABLED=1 step "$go" build -trimpath -race ./...) || status=1
		(cd kube/test/tools && GOTOOLCHAIN=auto CGO_ENABLED=0 GOFLAGS=-trimpath step "$go" tool -n helm) || status=1
	else
		step kube/cluster/build.sh programs || status=1
	fi
	for project in "${c_projects[@]}"; do
		[ "$part" = short ] || read -r -a kinds < <(kinds "$project")
		for kind in "${kinds[@]}"; do step dataplane/build.sh --tests "$project" "$kind" || status=1; done
	done
	return "$status"
}

projects_lane() {
	local project kinds chosen status=0
	for project in "${c_projects[@]}"; do
		read -r -a kinds < <(kinds "$project")
		dataplane/test.sh "$project" "${kinds[@]}" || status=1
	done
	mapfile -t chosen < <(packages "$hardened")
	plain "${chosen[@]}" || status=1
	return "$status"
}

flows_lane() { plain -run "$(long_tests flows)" ./test/e2e; }
alone_lane() { plain -run "$(long_tests alone)" ./test/e2e; }

extra_lane() {
	local status=0
	renice -n 15 -p "$BASHPID" >/dev/null
	step scripts/reproducible.sh quick || status=1
	step scripts/fuzz.sh "${FUZZ_SMOKE:-2s}" go || status=1
	raced -run "$(long_tests extra)" ./cmd/dray ./internal/node || status=1
	return "$status"
}

guides_lane() { plain ./test/docs; }

packages_lane() { step scripts/test-deb.sh; }

# cluster_lane has a cluster of its own, which no other make test or make kube uses.
cluster_lane() {
	local DRAY_KUBE_STATE
	DRAY_KUBE_STATE=/var/lib/dray-kube-test-$(pwd | cksum | cut -d' ' -f1)
	export DRAY_KUBE_STATE
	# down first: a run that was killed leaves its cluster.
	kube/cluster/cluster.sh down && kube/test/run.sh -short
}

# brief leaves out the names of tests that passed. It keeps them in lanes in which one test can take minutes.
brief() {
	local noise='\[no test files\]|^=== (PAUSE|CONT|NAME)'
	case $1 in
	program | flows | guest | alone | cluster) ;;
	*) noise+='|^ *(=== RUN|--- PASS|PASS$)' ;;
	esac
	grep -v --line-buffered -E "$noise" || true
}

# timed runs a lane, and notes its minutes and CPU seconds.
timed() {
	local name=$1 status=0 TIMEFORMAT='%0R %0U %0S' used
	shift
	{ time "$@" 2>&4; } 4>&2 2>"out/test-$name.time" || status=$?
	read -r -a used <"out/test-$name.time"
	echo "lane $name: ${used[0]} s, $((used[1] + used[2])) CPU seconds"
	return "$status"
}

# lane starts a lane as a job of its own, and shows its log. The log is a file and no pipe: a process that a test left would keep a
# pipe open, and the lane would never end.
lane() {
	local name=$1 log=out/test-$1.txt
	: >"$log"
	set -m # so that stop can end all of it
	timed "$name" "${name}_lane" >"$log" 2>&1 </dev/null &
	set +m
	lanes[$name]=$!
	tail --pid=$! --lines=+1 --sleep-interval=0.5 -f "$log" | brief "$name" | sed -u "s/^/$name: /" &
}

# finish waits for lanes.
finish() {
	local name
	for name in "$@"; do
		wait "${lanes[$name]}" || failed+=("$name")
		unset "lanes[$name]"
		ended+=("$name")
	done
}

# failures prints what failed by the log of a lane: tests, packages, steps and races. It takes options of grep.
failures() {
	grep -h -E "${@:2}" '^ *--- FAIL|^FAIL|^panic:|^WARNING: DATA RACE|/test\.txt:.* (FAIL|TIMEOUT|ERROR) ' "out/test-$1.txt"
}

# summary lists the failures of a lane without their context.
summary() {
	printf 'lane %s failed; its log: %s\n' "$1" "$PWD/out/test-$1.txt"
	failures "$1" | cut -c1-150 | sort -u | sed -n 1,12p | grep . || tail -n 5 "out/test-$1.txt"
}

# slowest prints the tests that took longest, subtests left out: seconds, lane, name.
slowest() {
	local name
	for name in "${ended[@]}"; do
		sed -nE 's/^--- [A-Z]+: ([^ ]+) \(([0-9.]+)s\)$/\2 \1/p' "out/test-$name.txt" | sed "s/ / $name /"
	done | sort -rn | sed -n 1,30p
}

# budgets prints the CPU seconds of each lane next to its budget, if it has one. A lane that takes a third more fails.
budgets() {
	local name used budget sum=0 whole=0 empty=
	printf '%-10s %8s %8s %8s\n' lane seconds CPU budget
	for name in "${ended[@]}"; do
		read -r -a used <"out/test-$name.time"
		budget=$(awk -v lane="$name" '$1 == lane { print $2 }' scripts/test-budget.txt)
		printf '%-10s %8d %8d %8s\n' "$name" "${used[0]}" $((used[1] + used[2])) "${budget:--}"
		sum=$((sum + used[1] + used[2])) whole=$((whole + ${budget:-0}))
		[ -z "$budget" ] || ((3 * (used[1] + used[2]) <= 4 * budget)) || over+=("$name")
		[ "$name" != compile ] || ((used[1] + used[2] <= cached)) || empty=yes
	done
	printf '%-10s %8d %8d %8d\n' "$part" $((SECONDS - start)) "$sum" "$whole"
	if [ -n "$empty" ]; then
		over=()
		echo "the caches were empty: no lane is compared with its budget"
	fi
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

mkdir -p out
failed=() ended=() over=()
printf '\n== compiling for the part %s\n' "$part"
lane compile
finish compile
[ ${#failed[@]} -eq 0 ] || {
	summary compile
	exit 1
}
printf '\n== testing, part %s, in lanes; kernel tests use namespaces of their own\n' "$part"
case $part in
short)
	lane program
	lane kernel
	lane links
	lane switches
	lane sanitize
	lane check
	finish sanitize
	lane measure
	lane kube
	finish program kernel measure links switches kube check
	;;
long)
	lane guest
	lane projects
	lane flows
	lane extra
	finish projects
	lane guides
	finish flows
	lane packages
	finish guest guides packages extra
	lane alone
	finish alone
	lane cluster
	finish cluster
	;;
esac
# Once more at the end, which is all that some people read.
for name in "${failed[@]}"; do failures "$name" -B 15 -A 8 || true; done
printf '\n== the 30 slowest tests, in seconds\n'
slowest
printf '\n== CPU seconds\n'
budgets
for name in "${failed[@]}"; do summary "$name"; done
for name in "${over[@]}"; do
	echo "lane $name took more than 4/3 of its CPU budget; make it cheaper, or state in scripts/test-budget.txt what it may take, and why in the commit"
done
[ ${#failed[@]} -eq 0 ] && [ ${#over[@]} -eq 0 ]
