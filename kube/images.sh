#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Write the container images of Drayage on Kubernetes to out/images, without a daemon or a registry. The same
# commit gives the same bytes, with the same DPDK, Open vSwitch and iperf3 on this machine. Each image holds one static
# program and nothing else; dray-node's also holds what it gives to DPDK applications, draygen's what else measures, and
# dray-switch's Debian's Open vSwitch with DPDK.
#
# usage: kube/images.sh
# To use them: `ctr -n k8s.io images import`, `docker load`, or a tool such as skopeo that copies them to a registry.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. kube/image-programs.sh
# The module kube needs a newer Go than the rest; Go fetches it if it is not here.
export GOTOOLCHAIN=auto CGO_ENABLED=0 GOFLAGS=-trimpath
go=$(scripts/find-go.sh)
version=$(cat VERSION)
release=github.com/drayage/dray/internal/spec/release
commit=$(git -c safe.directory='*' describe --always --dirty --exclude '*' 2>/dev/null || true)
readonly go version release commit

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# image writes the image of one program.
image() {
	local name=$1 program=$2
	install -D "$program" "$work/$name/$name"
	mkdir -p "$work/$name/tmp"
	SOURCE_DATE_EPOCH=0 "$work/mkimage" "dray.local/$name:$version" "$work/$name" "out/images/$name.tar" "/$name"
	echo "  out/images/$name.tar  dray.local/$name:$version"
}

mkdir -p out/images "$work/bin"
(cd kube/image && "$go" build -o "$work/mkimage" ./mkimage)
(cd kube && "$go" build -buildvcs=false -o "$work/bin/" \
	-ldflags "-s -w -X $release.version=$version -X $release.date=$(cd .. && scripts/build-date.sh) -X $release.commit=$commit" ./cmd/...)
# dray-node gives the containers of DPDK applications a program and a driver.
install -D -t "$work/dray-node/dpdk/bin" "$work/bin/dray-eal"
# It can also install a plugin for container runtimes without NRI.
install -D -t "$work/dray-node/cni" "$work/bin/dray-cni"
rm "$work/bin/dray-eal" "$work/bin/dray-cni"
if [ -f bin/librte_net_dray.so ]; then
	abi=$(readelf -d bin/librte_net_dray.so | sed -n 's/.*\[librte_ethdev\.so\.\([0-9]*\)\]/\1/p')
	install -D -t "$work/dray-node/dpdk/lib/$abi" bin/librte_net_dray.so
else
	echo '  without the DPDK driver, which is not built (make pmd): nodes serve no dpdk ports' >&2
fi
ovs=/usr/lib/openvswitch-switch-dpdk/ovs-vswitchd-dpdk
if [ -x "$ovs" ]; then
	for program in "$ovs" $(type -P ovsdb-server ovsdb-tool ovs-vsctl ovs-ofctl ovs-appctl); do
		add_files "$work/dray-switch" "$program"
		add_libraries "$work/dray-switch" "$program" mempool_ring bus_vdev
	done
	install -D -m 644 -t "$work/dray-switch/usr/share/openvswitch" /usr/share/openvswitch/vswitch.ovsschema
else
	rm "$work/bin/dray-switch"
	echo '  without dray-switch: Open vSwitch with DPDK is not installed (apt install openvswitch-switch-dpdk)' >&2
fi
for program in "$work"/bin/*; do
	image "$(basename "$program")" "$program"
done
# The generator, and other instruments of `kubectl dray verify --active`. iperf3 for TCP is bounded by coreutils' timeout.
for program in bin/draygen-dpdk iperf3 timeout; do
	if found=$(type -P "$program"); then
		add_programs "$work/draygen" "$found"
	else
		echo "  draygen without $program, which is not here: links that need it are not measured" >&2
	fi
done
image draygen bin/draygen
