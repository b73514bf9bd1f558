#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Test the Helm chart: what it renders, and then on a cluster that runs, has the images, and does not have Drayage.
# Install it in a namespace of another name, run the example, read a metric, uninstall it, and compare the cluster with
# what it was before.
#
# usage: kube/test/helm.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
readonly cluster=$PWD/kube/cluster/cluster.sh chart=kube/deploy/helm/drayage namespace=drayage
go=$(scripts/find-go.sh)
helm=$(cd kube/test/tools && GOTOOLCHAIN=auto CGO_ENABLED=0 GOFLAGS=-trimpath "$go" tool -n helm)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

kubectl() { "$cluster" kubectl "$@"; }
say() { echo "helm.sh: $*"; }

# everything lists the objects of the cluster and the files of its nodes, but what comes and goes by itself.
everything() {
	local types node
	types=$(kubectl api-resources --verbs=list -o name | grep -vE '^(events|leases|endpoints|componentstatuses)' | paste -sd,) || return
	kubectl get "$types" --all-namespaces -o 'jsonpath={range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}' || return
	for node in n1 n2; do
		"$cluster" on "$node" find /var/run/cdi /etc/cdi /var/lib/kubelet/plugins /var/lib/kubelet/plugins_registry -type f -o -type s 2>/dev/null | sed "s/^/$node /" || true
	done
}

# metric prints the value of a metric of a component.
metric() { # COMPONENT PORT NAME-AND-LABELS
	local pod
	pod=$(kubectl -n "$namespace" get pods -l "app.kubernetes.io/name=$1" -o 'jsonpath={.items[0].metadata.name}')
	kubectl get --raw "/api/v1/namespaces/$namespace/pods/$pod:$2/proxy/metrics" | awk -v name="$3" '$1 == name { print $2 }'
}

# is waits until a command prints this.
is() { # WANT COMMAND...
	local want=$1 got='' attempt
	shift
	for ((attempt = 0; attempt < 300; attempt++)); do
		if got=$("$@") && [ "$got" = "$want" ]; then
			return 0
		fi
		sleep 1
	done
	say "$*: '$got', not '$want'"
	return 1
}

install() {
	# Its labels permit the directories of nodes, should the cluster not permit them everywhere.
	sed "s/dray-system/$namespace/" kube/deploy/base/namespace.yaml | kubectl create -f - >/dev/null
	"$cluster" with "$helm" install drayage "$chart" --namespace "$namespace" --wait --timeout 15m 2>"$work/log" || {
		cat "$work/log"
		return 1
	}
}

run_example() {
	kubectl apply -k examples/kubernetes/f1-split
	kubectl -n f1-split wait --for=condition=Met chain/f1 --timeout=15m
	is 1 metric dray-operator 8080 'dray_chain_status_condition{chain="f1",condition="Met",namespace="f1-split",status="True"}'
	kubectl delete -k examples/kubernetes/f1-split
}

uninstall() {
	"$cluster" with "$helm" uninstall drayage --namespace "$namespace" --wait --timeout 15m 2>/dev/null
	kubectl delete customresourcedefinition chains.drayage.io
	kubectl delete namespace "$namespace"
}

# nothing_new fails if the cluster has something that it did not have before.
nothing_new() {
	everything | LC_ALL=C sort >"$work/after" && LC_ALL=C comm -13 "$work/before" "$work/after"
}

(cd kube && GOTOOLCHAIN=auto CGO_ENABLED=0 "$go" test -trimpath -count=1 ./test/chart)
! kubectl get crd chains.drayage.io >/dev/null 2>&1 || {
	say "not run: this cluster has Drayage already"
	exit 0
}
everything | LC_ALL=C sort >"$work/before"
say "$(wc -l <"$work/before") objects and files before"
install
say "installed"
run_example
say "the example met its requirements"
uninstall
is '' nothing_new
say "nothing is left"
