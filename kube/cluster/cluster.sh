#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A Kubernetes cluster on this machine: a control plane (cp) and nodes (n1, n2), each with namespaces and a root
# file system of its own. It needs root, and programs that build.sh makes.
#
# usage: kube/cluster/cluster.sh COMMAND
#   up                   start what does not run, and wait until every node is Ready
#   down                 stop everything and remove every trace, with all data
#   status               machines with their memory and processor time, and the nodes
#   kubectl ARGUMENT...  run kubectl (also: kube/cluster/kubectl)
#   with COMMAND         run a program of this machine with KUBECONFIG set, on the cluster's network
#   on MACHINE COMMAND   run a program inside cp or a node
#   images FILE...       import image archives on every node
#   halt NODE            cut a node's power: its processes and its /run are gone, its disk stays
#   boot NODE            start a node that was halted, and wait until it is Ready
#   reboot NODE          both
#
# DRAY_KUBE_NODES is how many nodes `up` starts (2, at most 9). DRAY_KUBE_STATE is where everything is kept
# (/var/lib/dray-kube); another folder is another cluster. DRAY_KUBE_PATIENCE is how many seconds a machine may take
# to start (180).
# Exit status: 0 done, 1 failed, 2 wrong usage; of kubectl, with and on, the command's.
set -euo pipefail
here=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
readonly here
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
# shellcheck source-path=SCRIPTDIR source=lib/common.sh
. "$here/lib/common.sh"
# shellcheck source-path=SCRIPTDIR source=lib/cgroups.sh
. "$here/lib/cgroups.sh"
# shellcheck source-path=SCRIPTDIR source=lib/pki.sh
. "$here/lib/pki.sh"
# shellcheck source-path=SCRIPTDIR source=lib/disk.sh
. "$here/lib/disk.sh"
readonly patience=${DRAY_KUBE_PATIENCE:-180}
nodes=${DRAY_KUBE_NODES:-2}

usage() {
	sed -n 's/^# \{0,1\}//; 6,21p' "$here/cluster.sh" >&2
	exit 2
}

# built prints a folder of programs or images of the running cluster.
built() { cat "$state/$1" 2>/dev/null || die "no cluster; start one with: make kube"; }

# in_network runs a program of this machine on the cluster's network.
in_network() {
	local pid
	pid=$(pid_of cp) || die "no cluster; start one with: make kube"
	nsenter --target "$pid" --net -- env KUBECONFIG="$state/admin.conf" PATH="$(built programs)/bin:$PATH" "$@"
}

kubectl() { in_network kubectl "$@"; }

# on runs a program inside a machine.
on() {
	local pid name=$1
	shift
	pid=$(pid_of "$name") || die "$name does not run"
	nsenter --target "$pid" --mount --net --pid --uts --ipc -- env -i TERM="${TERM:-dumb}" HOME=/root KUBECONFIG=/etc/kubernetes/admin.conf \
		PATH=/opt/bin:/opt/kube/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "$@"
}

# images imports archives on all nodes at once.
images() {
	local name file import status=0 imports=()
	for name in $(machines); do
		[ "$name" != cp ] || continue
		for file in "$@"; do
			on "$name" ctr -n k8s.io images import - <"$file" >/dev/null
		done &
		imports+=($!)
	done
	for import in "${imports[@]}"; do
		wait "$import" || status=1
	done
	return "$status"
}

# let_go closes every file of this shell but the standard three.
let_go() {
	local fd
	for fd in "/proc/$BASHPID/fd"/*; do
		fd=${fd##*/}
		[ "$fd" -le 2 ] || exec {fd}>&-
	done
}

# power_on starts a machine that does not run, and returns when it has an address of its own.
power_on() {
	local name=$1 home=$state/$1 boot_id pid starter end=$((SECONDS + patience))
	! pid_of "$name" >/dev/null || return 0
	power_off "$name" # it may be dying
	rm -f "$home/pid"
	disk_make "$name" "$(built programs)"
	cgroup_make "$cgroup/$name/node"
	boot_id=$(</proc/sys/kernel/random/uuid)
	echo "$boot_id" >"$home/boot_id"
	# Nothing of the caller stays with the machine: no lock, no terminal, no environment.
	(
		let_go
		exec setsid env -i PATH="$PATH" DRAY_KUBE_STATE="$state" unshare --mount --pid --net --uts --ipc --fork --propagation private -- \
			"$here/inside.sh" "$name" "$(built programs)" "$(built images)" "$boot_id"
	) </dev/null >>"$home/root/var/log/init.log" 2>&1 &
	starter=$!
	until pid=$(pid_of "$name"); do
		if ! [ -d "/proc/$starter" ] || ((SECONDS >= end)); then break; fi
		sleep 0.05
	done
	pid=$(pid_of "$name") || explain "$name" "it did not start"
	[ "$name" = cp ] || plug_in "$name" "$pid"
}

# plug_in gives a node its network interface: a veth to the control plane's bridge.
plug_in() {
	local name=$1 pid=$2 cp end=$((SECONDS + patience))
	cp=$(pid_of cp) || die "the control plane does not run"
	until nsenter --target "$cp" --net -- ip link show br0 >/dev/null 2>&1; do
		((SECONDS < end)) || explain cp "it has no bridge after $patience s"
		sleep 0.05
	done
	nsenter --target "$cp" --net -- ip link delete "$name" 2>/dev/null || true # of the last boot, still being removed
	nsenter --target "$pid" --net -- ip link add eth0 address "$(node_mac "$name")" mtu "$underlay_mtu" type veth peer name "$name" mtu "$underlay_mtu" netns "$cp"
	nsenter --target "$cp" --net -- ip link set "$name" master br0 up
}

power_off() {
	local name=$1 pid end=$((SECONDS + patience))
	pid=$(recorded_pid "$name") || return 0
	kill -KILL "$pid" 2>/dev/null || true # it may have just ended
	# It is gone only after every process of the machine is.
	while ((SECONDS < end)); do
		[ -d "/proc/$pid" ] || return 0
		sleep 0.05
	done
	die "$name: process $pid cannot be killed"
}

# explain ends with the last lines of the logs of a machine.
explain() {
	say "$1: $2; the ends of its logs:"
	tail -n 5 "$state/$1"/root/var/log/*.log >&2 || true
	say "the logs are in $state/$1/root/var/log; kube/cluster/cluster.sh down removes everything"
	exit 1
}

await_api() {
	local end=$((SECONDS + patience))
	until kubectl get --raw=/readyz >/dev/null 2>&1; do
		pid_of cp >/dev/null || explain cp "it ended"
		((SECONDS < end)) || explain cp "no answer after $patience s"
		sleep 0.2
	done
}

# await_node waits until the kubelet of this boot is Ready. After a power cut the API server goes on calling a node
# Ready for a while, so the boot's name must match.
await_node() {
	local name=$1 boot_id end=$((SECONDS + patience))
	boot_id=$(<"$state/$name/boot_id")
	until [ "$(kubectl get node "$name" -o 'jsonpath={.status.nodeInfo.bootID} {.status.conditions[?(@.type=="Ready")].status}' 2>/dev/null)" = "$boot_id True" ]; do
		pid_of "$name" >/dev/null || explain "$name" "it ended"
		((SECONDS < end)) || explain "$name" "not Ready after $patience s"
		sleep 0.2
	done
}

up() {
	local n begin=$SECONDS programs images
	[[ $nodes =~ ^[1-$most_nodes]$ ]] || die "DRAY_KUBE_NODES is $nodes; it may be 1 to $most_nodes"
	if [ -e "$state" ] && ! pid_of cp >/dev/null; then
		say "the control plane is gone, and with it the cluster's data: starting from nothing"
		down
	fi
	if [ ! -e "$state/images" ]; then
		programs=$("$here/build.sh" programs)
		images=$("$here/build.sh" images)
		mkdir -p "$state"
		chmod 700 "$state" # it holds keys
		echo "$programs" >"$state/programs"
		echo "$images" >"$state/images"
	fi
	authority
	power_on cp
	for n in $(seq "$nodes"); do power_on "n$n"; done
	await_api
	for n in $(seq "$nodes"); do await_node "n$n"; done
	until kubectl get serviceaccount default >/dev/null 2>&1; do sleep 0.1; done # no pod can be made before
	say "$nodes nodes are Ready after $((SECONDS - begin)) s; use it with: $here/kubectl get nodes"
}

down() {
	local name
	[ -e "$state" ] || return 0
	for name in $(machines); do power_off "$name"; done
	cgroup_remove "$cgroup"
	cgroup_restore
	rm -rf --one-file-system "$state"
	[ ! -e "$state" ] || die "$state could not be removed"
}

halt() {
	[[ $1 =~ ^n[1-9]$ ]] || die "only a node can be halted: cp keeps the cluster's data in memory"
	[ -d "$state/$1" ] || die "there is no node $1"
	power_off "$1"
	cgroup_remove "$cgroup/$1"
}

boot() {
	[ -d "$state/$1" ] || die "there is no node $1"
	power_on "$1"
	await_node "$1"
}

status() {
	local name memory seconds
	[ -e "$state" ] || die "no cluster; start one with: make kube"
	for name in $(machines); do
		read -r memory seconds <<<"$(cgroup_usage "$cgroup/$name")"
		printf '%-3s process %-8s memory %5s MiB  processor %5s s\n' "$name" "$(pid_of "$name" || echo none)" "$memory" "$seconds"
	done
	kubectl get nodes -o wide
}

# alone runs a command that changes the cluster while no other does. The lock leaves no file.
alone() {
	[ "$(id -u)" -eq 0 ] || die "needs root: it makes namespaces and control groups"
	exec 9<"$(dirname "$state")"
	flock --nonblock 9 || { say "waiting for another command that changes the cluster" && flock 9; }
	"$@"
}

command=${1:-}
shift || true
case $command,$# in
up,0 | down,0) alone "$command" ;;
halt,1 | boot,1) alone "$command" "$1" ;;
reboot,1)
	alone halt "$1"
	boot "$1"
	;;
status,0) status ;;
kubectl,*) kubectl "$@" ;;
with,[1-9]*) in_network "$@" ;;
on,[2-9] | on,[1-9][0-9]*) on "$@" ;;
images,[1-9]*) images "$@" ;;
*) usage ;;
esac
