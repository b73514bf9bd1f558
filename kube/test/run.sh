#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Test Drayage on a cluster of two nodes: start the cluster, test the Helm chart, install Drayage, run the tests of e2e.
#
# usage: kube/test/run.sh [GO-TEST-ARGUMENT...]      e.g. -run TestTwoPods; then the chart is not tested
# DRAY_KUBE_KEEP=1 leaves the cluster running; then `make kube-down` stops it. A cluster that runs is used as it is,
# and stays.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cluster=$PWD/kube/cluster/cluster.sh
readonly cluster
work=$(mktemp -d)
keep=${DRAY_KUBE_KEEP:-}
go=$(scripts/find-go.sh)
export DRAY_KUBE_PATIENCE=${DRAY_KUBE_PATIENCE:-900} # seconds: the machine may have much else to do
"$cluster" status >/dev/null 2>&1 && keep=1

finish() {
	rm -rf "$work"
	[ -n "$keep" ] || "$cluster" down
}
trap finish EXIT

# test_image is draygen with a shell.
test_image() {
	local program
	mkdir -p "$work/root"/{bin,tmp,proc,run,dev,etc}
	cp "$(type -P busybox)" "$work/root/bin/busybox"
	for program in $("$work/root/bin/busybox" --list); do
		[ "$program" = busybox ] || ln -s busybox "$work/root/bin/$program"
	done
	cp bin/draygen "$work/root/bin/"
	(cd kube/image && "$go" run ./mkimage dray.local/dray-test:1 "$work/root" "$work/dray-test.tar")
}

make --no-print-directory programs gen pmd vnf images
test_image
kube/program-image.sh testpmd "$work/testpmd.tar" dpdk-testpmd
kube/program-image.sh vnf "$work/vnf.tar" bin/dray-vnf
kube/program-image.sh redis "$work/redis.tar" redis-server redis-cli
"$cluster" up
kube/program-image.sh verify "$work/verify.tar" bin/kubectl-dray "$("$cluster" with which kubectl)"
"$cluster" images out/images/*.tar "$work"/*.tar
[ $# -gt 0 ] || kube/test/helm.sh
mapfile -t old < <("$cluster" kubectl -n dray-system get pods -o name) # of images before these
"$cluster" kubectl apply -k kube/deploy/base
[ ${#old[@]} -eq 0 ] || "$cluster" kubectl -n dray-system delete --ignore-not-found "${old[@]}"
for workload in daemonset/dray-node deployment/dray-operator; do
	"$cluster" kubectl -n dray-system rollout status "$workload" --timeout=15m
done
"$cluster" kubectl -n dray-system wait --for=condition=Ready pods --all --timeout=15m
cd kube
export DRAY_KUBE_CLUSTER=$cluster GOTOOLCHAIN=auto CGO_ENABLED=0
"$go" test -trimpath -count=1 -v -timeout 90m -parallel 4 "$@" ./test/e2e
