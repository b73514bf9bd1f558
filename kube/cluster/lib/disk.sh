# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# What is on a machine's disk before it boots: $state/NAME/root, its root file system.

# disk_make fills the root of a machine: disk_make NAME PROGRAMS
disk_make() {
	local name=$1 programs=$2 root=$state/$1/root
	mkdir -p "$root"/{dev,etc,home,mnt,proc,root,run,sys,tmp,usr,opt/{bin,kube,images},var/{lib,log,cache,tmp}}
	etc_make "$name" "$root"
	mkdir -p "$root/etc/kubernetes"
	chmod 700 "$root/etc/kubernetes"
	if [ "$name" = cp ]; then
		mkdir -p "$root/var/lib/etcd"
		control_plane_files "$root/etc/kubernetes"
	else
		mkdir -p "$root"/{etc/cni/net.d,etc/cdi,etc/containerd,opt/cni/bin,var/lib/{kubelet,containerd,cni}}
		node_files "$name" "$root/etc/kubernetes"
		cp -u "$programs"/cni/* "$root/opt/cni/bin/"
		containerd_config >"$root/etc/containerd/config.toml"
		kubelet_config "$name" >"$root/etc/kubernetes/kubelet.yaml"
		pod_network "$name" >"$root/etc/cni/net.d/10-pods.conflist"
	fi
}

# etc_make copies the files that programs of this machine look for, and nothing private.
etc_make() {
	local name=$1 root=$2 file n
	for file in /etc/{passwd,group,nsswitch.conf,ld.so.cache,ld.so.conf,ld.so.conf.d,alternatives,protocols,services,localtime}; do
		[ ! -e "$file" ] || cp -aT "$file" "$root$file"
	done
	for file in /bin /sbin /lib*; do
		[ ! -L "$file" ] || cp -aT "$file" "$root$file"
	done
	ln -sfn /run "$root/var/run"
	ln -sfn ../usr/lib/os-release "$root/etc/os-release"
	: >"$root/etc/resolv.conf"
	echo "$name" >"$root/etc/hostname"
	{
		echo "127.0.0.1 localhost"
		echo "$control_address cp"
		for n in $(seq "$most_nodes"); do echo "$(node_address "$n") n$n"; done
	} >"$root/etc/hosts"
	[ -s "$root/etc/machine-id" ] || tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
}

containerd_config() {
	cat <<-'END'
		version = 3

		[plugins.'io.containerd.cri.v1.images'.pinned_images]
		sandbox = "dray.local/pause:1"

		[plugins.'io.containerd.cri.v1.runtime']
		# Without CAP_SYS_RESOURCE, no process can have a lower score than its parent.
		restrict_oom_score_adj = true

		[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
		runtime_type = "io.containerd.runc.v2"

		[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
		BinaryName = "/opt/kube/bin/runc"
		SystemdCgroup = false
	END
}

# kubelet_config: nothing is evicted, because all nodes share one disk and one memory with the rest of this machine. A
# container that tests kill again and again is started again after seconds, not minutes.
kubelet_config() {
	local name=$1
	cat <<-END
		apiVersion: kubelet.config.k8s.io/v1beta1
		kind: KubeletConfiguration
		containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
		authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: /etc/kubernetes/ca.crt}}
		authorization: {mode: Webhook}
		tlsCertFile: /etc/kubernetes/kubelet.crt
		tlsPrivateKeyFile: /etc/kubernetes/kubelet.key
		failCgroupV1: false
		cgroupDriver: cgroupfs
		cgroupRoot: /$cgroup/$name
		enforceNodeAllocatable: []
		oomScoreAdj: 0
		failSwapOn: false
		makeIPTablesUtilChains: false
		evictionHard: {memory.available: "0%", nodefs.available: "0%", imagefs.available: "0%", nodefs.inodesFree: "0%", imagefs.inodesFree: "0%"}
		crashLoopBackOff: {maxContainerRestartPeriod: 2s}
		imageGCHighThresholdPercent: 100
		imageGCLowThresholdPercent: 99
		resolvConf: ""
		volumePluginDir: /var/lib/kubelet/volume-plugins
		logging: {verbosity: 1}
	END
}

pod_network() {
	cat <<-END
		{
		  "cniVersion": "1.1.0",
		  "name": "pods",
		  "plugins": [{
		    "type": "bridge",
		    "bridge": "cni0",
		    "isGateway": true,
		    "ipMasq": false,
		    "hairpinMode": true,
		    "ipam": {"type": "host-local", "ranges": [[{"subnet": "$(pod_net "$1")"}]], "routes": [{"dst": "0.0.0.0/0"}]}
		  }]
		}
	END
}
