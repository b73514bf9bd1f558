// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

/*
The chain of this test. dray-vnf passes packets from its first port to its second, and from its third to its fourth:

	ru (n1) ── fh ──── du (n1) ── far ── cu (n2)      path dl: between nodes
	        ── near ──         ── fy ─── mec (n1)     path local: on one node
*/
const chainOfPaths = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: f1}
spec:
  functions:
  - {name: ru, ports: [{name: fh, face: native}, {name: fx, face: native}]}
  - {name: du, ports: [{name: fh, face: dpdk}, {name: f1, face: dpdk}, {name: fx, face: dpdk}, {name: fy, face: dpdk}]}
  - {name: cu, ports: [{name: f1, face: native}]}
  - {name: mec, ports: [{name: fy, face: native}]}
  links:
  - {name: fh, ends: [ru.fh, du.fh]}
  - {name: far, ends: [du.f1, cu.f1]}
  - {name: near, ends: [ru.fx, du.fx]}
  - {name: fy, ends: [du.fy, mec.fy]}
  paths:
  - {name: dl, from: cu.f1, through: [du], to: ru.fh, requires: {latency: 1s, percentile: 50, packet_loss_ratio: 0.5, min_bitrate: 2Mbps}}
  - {name: local, from: mec.fy, through: [du], to: ru.fx, requires: {latency: 1s, percentile: 50, packet_loss_ratio: 0.5}}
`

// podOfVNF has what a copy of it must have, and the token of an account that it must not.
const podOfVNF = `
apiVersion: v1
kind: ConfigMap
metadata: {name: forwarding}
data: {sleep: 200us}
---
apiVersion: v1
kind: Pod
metadata: {name: du, labels: {chain: f1}}
spec:
  hostUsers: false
  terminationGracePeriodSeconds: 1
  nodeName: n1
  securityContext: {runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
  resourceClaims: [{name: ports, resourceClaimTemplateName: f1-du}]
  volumes: [{name: scratch, emptyDir: {}}]
  containers:
  - name: vnf
    image: dray.local/vnf:1
    imagePullPolicy: Never
    command: [/run/dray/bin/dray-eal, dray-vnf, $(DRAY_EAL), --, l2fwd, --sleep, $(SLEEP)]
    env: [{name: SLEEP, valueFrom: {configMapKeyRef: {name: forwarding, key: sleep}}}]
    volumeMounts: [{name: scratch, mountPath: /scratch}]
    securityContext: {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, capabilities: {drop: [ALL]}}
    resources: {claims: [{name: ports}], requests: {cpu: 100m}, limits: {memory: 256Mi}}
`

// Paths are measured through a copy of the pod between their ends, if the user permits it, and nothing is left.
func TestPathsAreMeasured(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	c.awaitNetwork()
	c.apply(chainOfPaths)
	for function, node := range map[string]string{"ru": "n1", "mec": "n1", "cu": "n2"} {
		c.apply(pod{name: function, function: function, command: sleeps, node: node}.manifest())
	}
	c.apply(strings.Replace(podOfVNF, "  nodeName: n1\n", "  affinity:"+pod{node: "n1"}.affinity()+"\n", 1))
	c.ready("ru", "mec", "cu", "du")
	c.in("wait", "--for=condition=Ready", "chain/f1", "--timeout", patience.String())
	if met := c.in("get", "chain", "f1", "-o", `jsonpath={.status.conditions[?(@.type=="Met")].status}`); met != "Unknown" {
		t.Errorf("Met is %s although nothing has measured the paths", met)
	}
	nothingNew := c.nothingNew()
	dray := c.plugin()
	dir := filepath.Join(t.TempDir(), "run")
	out, code := dray("verify", "f1", "--active", "--paths", "--profile", "quick", "--seed", "1", "--out", dir, "--json")
	want := map[string]string{
		"dl latency": "not measurable", "dl packet_loss_ratio": "met", "dl min_bitrate": "met", // two nodes have two clocks
		"local latency": "met", "local packet_loss_ratio": "met",
	}
	if exit := exitFor(t, decidedPaths(t, out), want); code != exit {
		t.Errorf("exit code %d, not %d", code, exit)
	}
	if !strings.Contains(out, "nothing compares their clocks over a path") {
		t.Error("the reason for the path between nodes is missing")
	}
	c.until("as it was", nothingNew)
	if data := c.recordedRun(dir, "dl", "local"); len(data.Verdicts) != len(want) || len(data.Run.Cluster.Copied) != 1 || !strings.HasSuffix(data.Run.Cluster.Copied[0], "-du on n1") {
		t.Errorf("the records say %+v of %v", data.Verdicts, data.Run.Cluster.Copied)
	}
}

// decidedPaths are the verdicts on paths in a document, by path and requirement.
func decidedPaths(t *testing.T, document string) map[string]string {
	t.Helper()
	var d struct{ Chains []struct{ Paths []shownLink } }
	if err := json.Unmarshal([]byte(document), &d); err != nil || len(d.Chains) != 1 {
		t.Fatalf("%v: %s", err, document)
	}
	all := map[string]string{}
	for _, p := range d.Chains[0].Paths {
		for _, q := range p.Requirements {
			all[p.Name+" "+q.Requirement] = q.Verdict
		}
	}
	return all
}
