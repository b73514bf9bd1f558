// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

/*
The chain of this test. Each link has ends of another kind:

	pod a (n1) ── tcp ────── pod c (n2)      interfaces, judged by TCP
	           ── shaped ─── pod c           interfaces with a token bucket
	           ── narrow ─── pod b (n1)      ports of libdray with a token bucket
	           ── mixed ──── pod b           an interface and a port of libdray
	           ── device ─── pod b           devices of DPDK's net_memif
*/
const chainOfKinds = `
apiVersion: drayage.io/v1alpha1
kind: Chain
metadata: {name: f1}
spec:
  functions:
  - name: a
    ports:
    - {name: tcp, face: netdev, mtu: 1400}
    - {name: shaped, face: netdev, mtu: 1400}
    - {name: narrow, face: native, mtu: 1500}
    - {name: mixed, face: netdev, mtu: 1500}
    - {name: device, face: dpdk, mtu: 1500}
  - {name: b, ports: [{name: narrow, face: native, mtu: 1500}, {name: mixed, face: native, mtu: 1500}, {name: device, face: dpdk, mtu: 1500}]}
  - {name: c, ports: [{name: tcp, face: netdev, mtu: 1400}, {name: shaped, face: netdev, mtu: 1400}]}
  links:
  - {name: tcp, ends: [a.tcp, c.tcp], traffic: tcp, requires: {min_bitrate: 20Mbps}}
  - {name: shaped, ends: [a.shaped, c.shaped], requires: {min_bitrate: 10Mbps, max_bitrate: 30Mbps}}
  - {name: narrow, ends: [a.narrow, b.narrow], requires: {min_bitrate: 10Mbps, max_bitrate: 30Mbps}}
  - {name: mixed, ends: [a.mixed, b.mixed], requires: {min_bitrate: 20Mbps, mtu: 1500, latency: 100ms, percentile: 75, packet_loss_ratio: 0.1}}
  - {name: device, ends: [a.device, b.device], transport: memif, isolation: slice, requires: {min_bitrate: 20Mbps, latency: 100ms, percentile: 75}}
`

// An active verification measures links of every kind of port.
func TestActiveVerificationOfEveryKind(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestAnActiveVerification shows that copies are measured; run make test-kube")
	}
	c := newCluster(t)
	c.awaitNetwork()
	c.apply(chainOfKinds)
	for function, node := range map[string]string{"a": "n1", "b": "n1", "c": "n2"} {
		c.apply(pod{name: function, function: function, command: sleeps, node: node}.manifest())
	}
	c.ready("a", "b", "c")
	c.in("wait", "--for=condition=Ready", "chain/f1", "--timeout", patience.String())
	nothingNew := c.nothingNew()
	dray := c.plugin()
	want := map[string]string{
		"tcp min_bitrate":    "met",
		"shaped min_bitrate": "met", "shaped max_bitrate": "met", "narrow min_bitrate": "met", "narrow max_bitrate": "met",
		"mixed min_bitrate": "met", "mixed mtu": "met", "mixed latency": "met", "mixed packet_loss_ratio": "met",
		"device min_bitrate": "met", "device latency": "met",
	}
	out, code := dray("verify", "f1", "--active", "--profile", "quick", "--seed", "1", "--out", filepath.Join(t.TempDir(), "run"), "--json")
	if exit := exitFor(t, decided(t, out), want); code != exit {
		t.Errorf("exit code %d, not %d", code, exit)
	}
	if !strings.Contains(out, `"basis": "tcp`) {
		t.Error("no bitrate is of TCP")
	}
	c.until("as it was", nothingNew)
}

// Of a function with instances, the links of each pair of nodes are measured once. Others show the same.
func TestActiveVerificationOfInstances(t *testing.T) {
	if testing.Short() {
		t.Skip("not with -short: TestInstancesShareMeasurements shows which links are measured; run make test-kube")
	}
	c := newCluster(t)
	c.awaitNetwork()
	c.apply(strings.Replace(strings.Replace(workers, "face: native}", "face: native, mtu: 1400}", -1), "latency: 100ms, percentile: 90", "min_bitrate: 10Mbps, mtu: 1400", 1))
	c.apply(pod{name: "hub", function: "hub", command: sleeps, node: "n1"}.manifest())
	for name, node := range map[string]string{"near": "n1", "far": "n2", "also-far": "n2"} {
		c.apply(pod{name: name, function: "worker", command: sleeps, node: node}.manifest())
	}
	c.ready("hub", "near", "far", "also-far")
	c.in("wait", "--for=condition=Ready", "chain/f1", "--timeout", patience.String())
	before, err := c.chain()
	if err != nil {
		t.Fatal(err)
	}
	out, code := c.plugin()("verify", "f1", "--active", "--profile", "quick", "--seed", "1", "--out", filepath.Join(t.TempDir(), "run"), "--json")
	want := map[string]string{}
	for i := range 3 {
		want[fmt.Sprintf("w-%d min_bitrate", i)], want[fmt.Sprintf("w-%d mtu", i)] = "met", "met"
	}
	if exit := exitFor(t, decided(t, out), want); code != exit {
		t.Errorf("exit code %d, not %d", code, exit)
	}
	for _, l := range before.Status.Links {
		shown := linkIn(t, out, l.Name)
		if l.Idle != shown.Idle || !l.Idle && (shown.Transport != l.Transport || shown.Ends[1].Node != l.Ends[1].Node || !strings.HasPrefix(shown.Ends[1].Pod, "f1-dray-verify-worker-")) {
			t.Errorf("link %s is %+v, and was measured as %+v", l.Name, l, shown)
		}
	}
}
