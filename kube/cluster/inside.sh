#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The first process of a machine of the cluster: cluster.sh starts it in new mount, PID, network, UTS and IPC
# namespaces. When it dies, the kernel kills everything else in the machine, as a power cut does.
#
# usage: kube/cluster/inside.sh cp|NODE PROGRAMS IMAGES BOOT-ID
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
readonly here name=$1 programs=$2 images=$3 boot_id=$4
# shellcheck source-path=SCRIPTDIR source=lib/common.sh
. "$here/lib/common.sh"
# shellcheck source-path=SCRIPTDIR source=lib/cgroups.sh
. "$here/lib/cgroups.sh"
readonly root=$state/$name/root
export PATH=/opt/bin:/opt/kube/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root

# announce tells cluster.sh the number that this process has outside: /proc is still that of the outside.
announce() {
	local stat
	read -ra stat </proc/self/stat
	echo "${stat[0]} ${stat[21]}" >"$state/$name/pid.new"
	mv "$state/$name/pid.new" "$state/$name/pid"
}

# bind_read_only shows a folder of the outside in the machine.
bind_read_only() {
	mount --bind "$1" "$2"
	mount -o remount,bind,ro "$2"
}

make_devices() {
	local device
	mount -t tmpfs -o mode=755 tmpfs "$root/dev"
	mkdir "$root"/dev/{net,pts,shm,mqueue,hugepages}
	for device in null zero full random urandom tty kmsg fuse kvm vhost-net net/tun cpu_dma_latency; do
		[ ! -e "/dev/$device" ] || cp -a "/dev/$device" "$root/dev/$device"
	done
	ln -s /proc/self/fd "$root/dev/fd"
	ln -s pts/ptmx "$root/dev/ptmx"
	mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5 devpts "$root/dev/pts"
	mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
	mount -t mqueue mqueue "$root/dev/mqueue"
	! grep -qw hugetlbfs /proc/filesystems || mount -t hugetlbfs hugetlbfs "$root/dev/hugepages"
}

# own_root leaves the file system of the outside behind, and with it every mount that would keep somebody else's
# namespaces alive.
own_root() {
	local folder
	mount --bind "$root" "$root"
	for folder in /usr /bin /sbin /lib*; do
		[ ! -L "$folder" ] || continue
		mkdir -p "$root$folder"
		bind_read_only "$folder" "$root$folder"
	done
	bind_read_only "$programs" "$root/opt/kube"
	bind_read_only "$images" "$root/opt/images"
	make_devices
	mount -t proc proc "$root/proc"
	mount -t sysfs sysfs "$root/sys"
	mount --rbind /sys/fs/cgroup "$root/sys/fs/cgroup"
	mount -t tmpfs -o mode=755 tmpfs "$root/run"
	mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
	mkdir -m 1777 "$root/run/lock"
	cd "$root"
	pivot_root . .
	umount --lazy .
	cd /
}

# pretend shows a value in /proc/sys. The kubelet would set it for the whole machine if it found another one there.
pretend() {
	mkdir -p /run/pretend
	echo "$2" >"/run/pretend/${1//\//_}"
	mount --bind "/run/pretend/${1//\//_}" "/proc/sys/$1"
}

# supervise keeps a daemon running: supervise NAME COMMAND...
supervise() {
	local daemon=$1
	shift
	while :; do
		"$@" >>"/var/log/$daemon.log" 2>&1 || true
		echo "--- $daemon ended at $(date +%T); it is started again" >>"/var/log/$daemon.log"
		sleep 0.2
	done &
}

# reap waits for every process that loses its parent.
reap() {
	while :; do
		wait || true
		sleep 1
	done
}

control_plane() {
	local n etc=/etc/kubernetes
	ip addr add "$api_address/32" dev lo
	# Of its own, a bridge would take the least address of its ports, and change it when a node's power is cut.
	ip link add br0 address 02:64:72:61:79:00 type bridge
	ip addr add "$control_address/24" dev br0
	ip link set br0 up
	for n in $(seq "$most_nodes"); do
		ip route add "$(pod_net "$n")" via "$(node_address "$n")"
	done
	mount -t tmpfs -o mode=700 tmpfs /var/lib/etcd # no other thing here needs a disk that is fast
	supervise etcd etcd --data-dir=/var/lib/etcd/data --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
		--listen-peer-urls=http://127.0.0.1:2380 --logger=zap --log-level=error
	supervise kube-apiserver kube-apiserver --v=1 --etcd-servers=http://127.0.0.1:2379 --secure-port=443 --advertise-address="$control_address" \
		--service-cluster-ip-range="$service_net" --enable-aggregator-routing=true --allow-privileged=true --profiling=false \
		--tls-cert-file=$etc/apiserver.crt --tls-private-key-file=$etc/apiserver.key --client-ca-file=$etc/ca.crt \
		--kubelet-client-certificate=$etc/kubelet-client.crt --kubelet-client-key=$etc/kubelet-client.key --kubelet-certificate-authority=$etc/ca.crt \
		--kubelet-preferred-address-types=InternalIP \
		--service-account-issuer=https://kubernetes.default.svc --service-account-key-file=$etc/sa.pub --service-account-signing-key-file=$etc/sa.key \
		--authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction
	until kubectl --kubeconfig=$etc/admin.conf get --raw=/readyz >/dev/null 2>&1; do sleep 0.2; done
	supervise kube-controller-manager kube-controller-manager --v=1 --kubeconfig=$etc/controller-manager.conf --leader-elect=false --profiling=false \
		--use-service-account-credentials=true --service-account-private-key-file=$etc/sa.key --root-ca-file=$etc/ca.crt \
		--flex-volume-plugin-dir=/var/lib/volume-plugins
	supervise kube-scheduler kube-scheduler --v=1 --kubeconfig=$etc/scheduler.conf --leader-elect=false --profiling=false
}

node_network() {
	local n
	echo 1 >/proc/sys/net/ipv4/ip_forward
	until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done # cluster.sh brings it
	ip addr add "$(node_address "$name")/24" dev eth0
	ip link set eth0 up
	ip route add "$service_net" via "$control_address"
	for n in $(seq "$most_nodes"); do
		[ "n$n" = "$name" ] || ip route add "$(pod_net "$n")" via "$(node_address "$n")"
	done
}

node() {
	local archive
	# A procfs with nothing mounted over its files: without one, no user namespace could mount its own.
	mkdir /run/proc
	mount -t proc proc /run/proc
	pretend vm/overcommit_memory 1
	pretend vm/panic_on_oom 0
	pretend kernel/panic 10
	pretend kernel/panic_on_oops 1
	pretend kernel/keys/root_maxkeys 1000000
	pretend kernel/keys/root_maxbytes 25000000
	pretend kernel/random/boot_id "$boot_id" # one for each boot of the node: the kubelet tells by it that the node was rebooted
	mount --make-rshared /
	node_network
	supervise containerd containerd --config=/etc/containerd/config.toml --log-level=warn
	until ctr version >/dev/null 2>&1; do sleep 0.05; done
	for archive in /opt/images/*.tar; do
		ctr -n k8s.io images import "$archive" >/dev/null
	done
	supervise kubelet kubelet --config=/etc/kubernetes/kubelet.yaml --kubeconfig=/etc/kubernetes/kubelet.conf --hostname-override="$name" \
		--node-ip="$(node_address "$name")"
}

cgroup_enter "$cgroup/$name/node"
announce
own_root
hostname "$name"
ip link set lo up
if [ "$name" = cp ]; then control_plane; else node; fi
reap
