#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Test the cluster itself, as root: start it, use it, cut a node's power, stop it, and compare the machine with
# what it was before. A cluster that `make kube` started is not touched.
#
# usage: kube/cluster/test.sh
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here
export DRAY_KUBE_STATE=${DRAY_KUBE_STATE:-/var/lib/dray-kube-test}
export PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export DRAY_KUBE_PATIENCE=${DRAY_KUBE_PATIENCE:-900} # seconds: the machine may have much else to do
readonly patience=$DRAY_KUBE_PATIENCE
work=$(mktemp -d)
passed=0 failed=0

cluster() { "$here/cluster.sh" "$@"; }
kubectl() { cluster kubectl "$@"; }

cleanup() {
	cluster down
	rm -rf "$work"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# check runs one test, a function, and prints its time; its output only if it fails.
check() {
	local name=$1 begin=$SECONDS status=0
	set +e # as a condition, the function would not end at the first command that fails
	(set -ex && "$name") >"$work/output" 2>&1
	status=$?
	set -e
	if [ "$status" -eq 0 ]; then
		passed=$((passed + 1))
		echo "ok    ${name//_/ } ($((SECONDS - begin)) s)"
	else
		failed=$((failed + 1))
		echo "FAIL  ${name//_/ } ($((SECONDS - begin)) s)"
		sed 's/^/      /' "$work/output"
	fi
}

fails() { if "$@"; then return 1; fi; }

# eventually repeats a command until it succeeds, as long as patience lasts.
eventually() {
	local end=$((SECONDS + patience))
	until "$@"; do
		((SECONDS < end)) || return 1
		sleep 0.5
	done
}

# machine_state prints what a cluster could leave on this machine, one thing a line. Other programs of Drayage may
# come and go meanwhile.
machine_state() {
	{ everything; } 2>/dev/null | grep -vE 'dray-[^k]|/dray(/|$)' | LC_ALL=C sort
}

everything() {
	local folder
	awk '{ print "mount", $5 }' /proc/self/mountinfo
	ip -o link | awk '{ print "interface", $2 }'
	ip route show table all | sed 's/^/route /'
	find /sys/fs/cgroup -maxdepth 2 -type d \( -name '*dray-kube*' -o -name '*kubepods*' \) -printf 'cgroup %p\n'
	sed 's/^/controllers /' /sys/fs/cgroup/cgroup.subtree_control || true
	sysctl -a | grep -E '^(kernel\.(panic|keys)|vm\.(overcommit|panic)|net\.ipv4\.(ip_forward|conf\.(all|default)))' | sed 's/^/sysctl /'
	for folder in /etc /etc/cni /etc/cdi /opt /opt/cni /var/lib /var/lib/{kubelet,containerd,cni} /var/log /run /run/{netns,containerd,nri,cdi,lock} /dev /dev/shm /usr/libexec; do
		[ ! -d "$folder" ] || find "$folder" -mindepth 1 -maxdepth 1 -printf 'file %p\n'
	done
	grep -l "$(basename "$DRAY_KUBE_STATE")" /proc/[0-9]*/cgroup | sed 's/^/process /' || true
}

pod() { # NAME NODE [FIELD OF THE POD]
	cat <<-END
		apiVersion: v1
		kind: Pod
		metadata: {name: $1}
		spec:
		  nodeName: $2
		  terminationGracePeriodSeconds: 0
		  automountServiceAccountToken: false
		  ${3:-hostUsers: true}
		  securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
		  containers:
		  - name: c
		    image: dray.local/busybox:1
		    command: [sleep, infinity]
		    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
	END
}

# first_processes prints the numbers of the machines' first processes.
first_processes() { cat "$DRAY_KUBE_STATE"/*/pid; }

two_nodes_are_Ready() {
	[ "$(kubectl get nodes -o 'jsonpath={.items[*].status.conditions[?(@.type=="Ready")].status}')" = 'True True' ]
}

up_again_changes_nothing() {
	first_processes >"$work/before"
	cluster up
	first_processes | diff "$work/before" -
}

dynamic_resource_allocation_and_NRI_are_there() {
	kubectl get --raw /apis/resource.k8s.io/v1 | grep -q resourceclaimtemplates
	cluster on n1 test -S /run/nri/nri.sock
	cluster on n2 test -S /run/nri/nri.sock
}

restricted_pods_run_on_both_nodes() {
	kubectl label namespace default pod-security.kubernetes.io/enforce=restricted
	{
		pod a n1
		echo ---
		pod b n2
		echo ---
		pod u n1 'hostUsers: false'
	} | kubectl create -f -
	kubectl wait --for=condition=Ready --timeout="${patience}s" pod/a pod/b pod/u
}

a_privileged_pod_is_refused() {
	pod refused n1 'hostPID: true' >"$work/refused.yaml"
	fails kubectl create -f "$work/refused.yaml"
}

# Debian's busybox cannot ping without CAP_NET_RAW, which a restricted pod has not.
pods_on_two_nodes_ping_each_other() {
	kubectl create namespace plain
	kubectl -n plain run p1 --image=dray.local/busybox:1 --overrides='{"spec": {"nodeName": "n1"}}' -- sleep infinity
	kubectl -n plain run p2 --image=dray.local/busybox:1 --overrides='{"spec": {"nodeName": "n2"}}' -- sleep infinity
	kubectl -n plain wait --for=condition=Ready --timeout="${patience}s" pod/p1 pod/p2
	kubectl -n plain exec p1 -- ping -c 2 "$(kubectl -n plain get pod p2 -o 'jsonpath={.status.podIP}')"
	kubectl -n plain exec p2 -- ping -c 2 "$(kubectl -n plain get pod p1 -o 'jsonpath={.status.podIP}')"
}

# reach opens a connection between pods of the namespace "default".
reach() { # FROM TO
	local to
	to=$(kubectl get pod "$2" -o 'jsonpath={.status.podIP}')
	kubectl exec "$2" -- timeout "$patience" nc -l -p 5000 &
	eventually kubectl exec "$1" -- sh -c "echo hello | nc -w 5 $to 5000"
	wait $!
}

restricted_pods_reach_each_other_and_the_API_server() {
	reach a b
	reach b u
	eventually kubectl exec u -- nc -w 5 10.96.0.1 443 </dev/null
}

a_pod_with_hostUsers_false_has_its_own_users() {
	kubectl exec u -- cat /proc/self/uid_map | awk '$1 == 0 && $2 > 0 && $3 == 65536 { found = 1 } END { exit !found }'
	kubectl exec u -- grep -q 'CapEff:.0000000000000000' /proc/self/status
}

a_killed_kubelet_and_containerd_come_back() {
	cluster on n2 pkill -KILL -x 'kubelet|containerd'
	pod c n2 | kubectl create -f -
	kubectl wait --for=condition=Ready --timeout="${patience}s" pod/c
	[ "$(kubectl get pod b -o 'jsonpath={.status.containerStatuses[0].restartCount}')" = 0 ]
}

# A container may need a second start on a busy machine.
restarted() {
	kubectl get pod a u -o 'jsonpath={.items[*].status.containerStatuses[0].restartCount}' | grep -qx '[1-9] [1-9]'
}

a_power_cut_ends_pods_and_they_come_back() {
	local home=$DRAY_KUBE_STATE/n1/root
	echo kept >"$home/etc/kept"
	cluster on n1 touch /run/lost
	cluster reboot n1
	[ "$(cluster on n1 cat /etc/kept)" = kept ]
	fails cluster on n1 test -e /run/lost
	eventually restarted
	kubectl wait --for=condition=Ready --timeout="${patience}s" pod/a pod/u
	reach b a
}

a_node_is_halted_and_booted() {
	cluster halt n2
	fails cluster on n2 true
	cluster boot n2
	two_nodes_are_Ready
}

an_image_is_imported_on_every_node() {
	cluster images "$("$here/build.sh" images)/busybox.tar"
	fails cluster images /dev/null
}

# nothing_is_left is patient: the kernel removes a namespace's interfaces some time after its last process. A changed
# value is a new line, too; lines that are missing are other programs' that ended.
nothing_is_left() { eventually nothing_is_new; }
nothing_is_new() {
	machine_state >"$work/after"
	LC_ALL=C comm -13 "$work/machine" "$work/after" >"$work/new"
	[ ! -s "$work/new" ] || { cat "$work/new" && return 1; }
}

a_lost_control_plane_means_a_new_cluster() {
	local pid
	pid=$(cut -d' ' -f1 "$DRAY_KUBE_STATE/cp/pid")
	kill -KILL "$pid"
	eventually test ! -d "/proc/$pid"
	cluster up
	two_nodes_are_Ready
	fails kubectl get namespace plain
}

cluster_down() { cluster down; }
cluster_up() { cluster up; }

cluster down
"$here/build.sh" programs
machine_state >"$work/machine"
check cluster_up
[ "$failed" -eq 0 ] || exit 1
check two_nodes_are_Ready
check up_again_changes_nothing
check dynamic_resource_allocation_and_NRI_are_there
check restricted_pods_run_on_both_nodes
check a_privileged_pod_is_refused
check pods_on_two_nodes_ping_each_other
check restricted_pods_reach_each_other_and_the_API_server
check a_pod_with_hostUsers_false_has_its_own_users
check a_killed_kubelet_and_containerd_come_back
check a_power_cut_ends_pods_and_they_come_back
check a_node_is_halted_and_booted
check an_image_is_imported_on_every_node
cluster status || true
check a_lost_control_plane_means_a_new_cluster
check cluster_down
check nothing_is_left
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
