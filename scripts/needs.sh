#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Show what each line of scripts/setup.sh is for, by taking it away and looking at what breaks. Run it after a change of those lists.
# It prints a table, and fails if something is not needed.
#
# usage: scripts/needs.sh run [PACKAGE...]      make demo in a new Debian 12 root without each package of the list run (an hour)
#        scripts/needs.sh others [PROGRAM...]   hide each program and header of the other lists from what names it (15 minutes)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly logs=out/needs
mkdir -p "$logs"
spare=()

# table prints a list of scripts/setup.sh, "program package" a line.
table() { sed -n "/^readonly $1_needs='/,/^'/p" scripts/setup.sh | sed '1d; $d'; }

# reason prints what a log says of the failure: of what is missing, if it names that.
reason() {
	grep -hF -e "$2" "$1" | grep -iE 'needs|not found|missing|denied|no such' | tail -n 1 | sed 's/^ *//' | cut -c1-110 | grep . ||
	grep -hE 'error:|Error|not found|No such file|cannot|--- FAIL|FAIL' "$1" | grep -vE '^make|^fresh:' | tail -n 1 | cut -c1-110 | grep . || tail -n 1 "$1"
}

# rows prints the programs that a demo built, and the first words of each row of its tables that has figures.
rows() {
	sed -nE '/^  bin\/|[^ ] {2,}[^ ].*[^ ] {2,}[^ ]/{s/ [0-9≤≥–].*//; p}' "$1" | awk '/ by / { print $1, $2, $3, $4; next } { print $1, $2 }' | sort -u
}

# demo makes the demo in a new root without a package; its log is named NAME.
demo() {
	DRAY_FRESH_SEED=$PWD/$logs/seed DRAY_FRESH_WITHOUT=$2 scripts/fresh.sh 12 demo >"$logs/$1.txt" 2>&1
}

# run_packages prints the packages of the list run.
run_packages() {
	table run | awk '{ print $2 }' | sort -u
	# shellcheck disable=SC2016 # a word of the script
	sed -nE '/^missing_needs/,/"\$set" = kube/s/.* \|\| echo "[^ ]+ (.+)"$/\1/p' scripts/setup.sh
	echo golang
}

report() { printf '%-32s %-8s %s\n' "$@"; }

# unbroken reports the files, apart from texts, that name programs whose absence broke nothing. They may stay if there are any.
unbroken() {
	local what=$1 by others=(':!*.md' ':!scripts/setup.sh' ':!scripts/needs.sh' ':!changelog' ':!*.sum' ':!*.mod')
	shift
	by=$(git grep -lwF "${@/#/-e}" -- . "${others[@]}" | paste -sd' ') || true
	if [ -n "$by" ]; then
		report "$what" named "${by:0:100}"
	else
		report "$what" nothing ''
		spare+=("$what")
	fi
}

run_list() {
	local package lost programs packages=("$@")
	[ $# -gt 0 ] || mapfile -t packages < <(run_packages)
	demo all '' || {
		echo "needs: error: make demo fails with every package; see $logs/all.txt" >&2
		exit 1
	}
	for package in "${packages[@]}"; do
		if ! demo "$package" "$package"; then
			report "$package" fails "$(reason "$logs/$package.txt" "$package")"
			continue
		fi
		lost=$(comm -23 <(rows "$logs/all.txt") <(rows "$logs/$package.txt"))
		if [ -n "$lost" ]; then
			report "$package" lacks "${lost//$'\n'/, }"
		else
			mapfile -t programs < <(table run | awk -v package="$package" '$2 == package { print $1 }')
			unbroken "$package" "${programs[@]:-$package}"
		fi
	done
}

# shellcheck disable=SC2016 # expanded where the commands run
# What names each program or header of the other lists: as little as shows whether it is missed. etcd is left out: a cluster sees the
# files of the machine itself.
readonly units='
aarch64-linux-gnu-gcc                     rm -rf out/iq-aarch64; dataplane/build.sh iq aarch64
/usr/aarch64-linux-gnu/include/stdlib.h   rm -rf out/iq-aarch64; dataplane/build.sh iq aarch64
ccache                                    rm -rf out/iq-asan; dataplane/build.sh iq asan
chromium                                  go ./internal/result/report
clang                                     dataplane/gen/fuzz/run.sh 1
/usr/lib/llvm-*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a   dataplane/gen/fuzz/run.sh 1
clang-format                              scripts/format-c.sh --check
containerd                                go ./internal/function/docker
ethtool                                   go ./test/e2e -run GTPOfOursWithTheirs
make                                      go ./test/docs
osmo-ggsn                                 go ./test/e2e -run GTPOfOursWithTheirs
sgsnemu                                   go ./test/e2e -run GTPOfOursWithTheirs
prometheus                                cd kube; go ./test/monitoring
promtool                                  cd kube; go ./test/monitoring
redis-cli                                 go ./test/e2e -run AWorkerPoolKeepsItsSessions
redis-server                              go ./test/e2e -run AWorkerPoolKeepsItsSessions
/usr/lib/python3/dist-packages/scapy      dataplane/test.sh vnf plain
shellcheck                                scripts/lint.sh sources
tcpdump                                   go ./internal/link/capture
tshark                                    go ./test/e2e -run SCTP
valgrind                                  make bench-programs; dataplane/port/bench/instructions.sh out/port-plain/bench/dray-probe 1000
xz                                        go ./internal/function/image
/usr/include/zmq.h                        rm -rf out/iq-plain; dataplane/build.sh --tests iq plain
/usr/include/netinet/sctp.h               rm -rf out/sctp-plain; dataplane/build.sh --tests sctp plain
dh                                        scripts/deb.sh
lintian                                   scripts/deb.sh
busybox                                   kube/program-image.sh needs out/needs/image.tar bin/dray
openssl                                   cluster
/usr/lib/*/pkgconfig/libseccomp.pc        XDG_CACHE_HOME=$PWD/out/needs/cache kube/cluster/build.sh programs
cpio                                      go ./internal/function/guest -run Archive
cyclictest                                go ./internal/measure/instrument -run WakeUp
stress-ng                                 go ./internal/measure/instrument -run StressEnds
oslat                                     go ./internal/measure/instrument -run Spin
depmod                                    go ./internal/function/vm -run Conformance
qemu-system-x86_64                        go ./internal/function/vm -run Conformance
dockerd                                   go ./internal/function/docker
docker                                    go ./internal/function/docker
mmdebstrap                                go ./test/e2e -run EveryTool
'

# places prints every file that would be found.
places() {
	case $1 in
	/*) compgen -G "$1" || true ;;
	*) type -aP "$1" | xargs -r realpath | sort -u ;;
	esac
}

# hide removes a file or folder in this mount namespace. A folder of overlayfs has it no more; one of another mount would still find it.
hide() {
	local dir=${1%/*} layer
	layer=$(mktemp -d -p "$layers")
	mkdir "$layer/upper" "$layer/work"
	mount -t overlay -o "lowerdir=$dir,upperdir=$layer/upper,workdir=$layer/work" overlay "$dir"
	rm -r "$1"
}

# without runs a command while files are hidden from it. scripts/setup.sh cannot bring them back.
without() {
	local file command=$1 root=$PWD layers=$PWD/$logs/layers
	shift
	mkdir -p "$layers"
	mount -t tmpfs tmpfs "$layers"
	for file in "$@"; do hide "$file"; done
	mount --bind /bin/true scripts/setup.sh
	go() { GOTOOLCHAIN=auto "$("$root/scripts/find-go.sh")" test -count=1 -vet=off "$@"; }
	cluster() {
		local status=0
		kube/cluster/cluster.sh up || status=$?
		kube/cluster/cluster.sh down
		return "$status"
	}
	export DRAY_TEST_STRICT=1 DRAY_KUBE_STATE=/var/lib/dray-kube-needs
	eval "$command"
}

other_lists() {
	local program command name log hidden
	while read -r program command; do
		[ -n "$program" ] || continue
		[ $# -eq 0 ] || [[ " $* " == *" $program "* ]] || continue
		mapfile -t hidden < <(places "$program")
		[ ${#hidden[@]} -gt 0 ] || {
			echo "needs: error: $program is not on this machine: scripts/setup.sh test; scripts/setup.sh kube; scripts/setup.sh deb" >&2
			exit 1
		}
		name=${program##*/} name=${name%%\**} log=$logs/$name.txt
		if ! unshare --mount --propagation slave "$0" --without "$command" "${hidden[@]}" >"$log" 2>&1 </dev/null; then
			report "$program" fails "$(reason "$log" "$name")"
			continue
		fi
		unbroken "$program" "$name"
	done <<<"$units"
}

case ${1:-} in
run) shift && run_list "$@" ;;
others) shift && other_lists "$@" ;;
--without) shift && without "$@" ;;
*)
	sed -n '6,7s/^# //p' "$0" >&2
	exit 2
	;;
esac
[ ${#spare[@]} -eq 0 ] || {
	echo "needs: not needed: ${spare[*]}" >&2
	exit 1
}
