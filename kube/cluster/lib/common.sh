# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Names and addresses of the cluster, and how to find its machines. Sourced by cluster.sh and inside.sh.

# The state is not below /run or /tmp, which a machine without a disk of its own may lose. Everything of a second
# cluster is apart from the first if its folder has another name.
readonly state=${DRAY_KUBE_STATE:-/var/lib/dray-kube}
readonly cgroup=${state##*/} # the name of the control group
readonly most_nodes=9

readonly service_net=10.96.0.0/16 # of Service addresses
readonly api_address=10.96.0.1    # of the Service "kubernetes", and of the API server itself
readonly control_address=10.90.0.1
readonly underlay_mtu=9000 # between nodes, as in a data centre: tunnels need room

node_address() { echo "10.90.0.$((10 + ${1#n}))"; } # NODE
# node_mac is the same after a power cut, as that of a real machine: others would need half a minute to learn another.
node_mac() { printf '02:64:72:61:79:%02x\n' "${1#n}"; } # NODE
pod_net() { echo "10.244.${1#n}.0/24"; }            # NODE

say() { echo "cluster: $*" >&2; }
die() {
	say "error: $*"
	exit 1
}

# machines prints the names of the machines that exist, nodes first.
machines() {
	local home
	for home in "$state"/n[0-9]/ "$state"/cp/; do
		[ ! -d "$home" ] || basename "$home"
	done
}

# recorded_pid prints the first process of a machine, and fails if it does not exist. The start time tells it from
# another process that has the same number by now.
recorded_pid() {
	local pid started stat
	{ read -r pid started <"$state/$1/pid"; } 2>/dev/null || return 1
	{ read -ra stat <"/proc/$pid/stat"; } 2>/dev/null || return 1
	[ "${stat[21]}" = "$started" ] || return 1
	echo "$pid"
}

# pid_of is the same, but fails as well if the process is dying: it stays until the kernel has killed all others.
pid_of() {
	local pid stat
	pid=$(recorded_pid "$1") || return 1
	{ read -ra stat <"/proc/$pid/stat"; } 2>/dev/null || return 1
	(((stat[8] & 4) == 0)) || return 1 # PF_EXITING
	echo "$pid"
}
