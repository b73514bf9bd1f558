// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/test/testenv"
)

// routedPath is [ a ]──ab──[ r ]──bc──[ c ], where r routes in the kernel.
const routedPath = `apiVersion: drayage/v1
kind: Chain
name: routed
functions:
  - {name: a, runtime: process, ports: [{name: p0, ip: 10.61.1.1/24}]}
  - name: r
    runtime: process
    command: [sh, -c, "sysctl -qw net.ipv4.ip_forward=1 && exec sleep 1000"]
    ports:
      - {name: west, ip: 10.61.1.2/24}
      - {name: east, ip: 10.61.2.1/24}
  - {name: c, runtime: process, ports: [{name: p0, ip: 10.61.2.2/24}]}
links:
  - {name: ab, ends: [a.p0, r.west]}
  - {name: bc, ends: [r.east, c.p0]}
paths:
  - {name: through, from: a.p0, through: [r], to: c.p0, requires: {latency: 500ms, percentile: 50, packet_loss_ratio: 0.5, min_bitrate: 1Mbps}}
`

// A path is judged while its router runs, and missed if the router forwards nothing. A busy machine may leave
// verdicts open.
func TestAPathThroughARouter(t *testing.T) {
	b := newBench(t)
	r := b.dray("run", b.file(routedPath), "--profile", "quick", "--json", "--out", filepath.Join(t.TempDir(), "out"))
	got := decode[verdicts](t, r)
	for _, requirement := range []string{"latency", "packet_loss_ratio", "min_bitrate"} {
		if word := got.of(requirement); word == "missed" || word == "absent" {
			t.Errorf("%s is %s", requirement, word)
		}
	}
	if first := got.Verdicts[0]; first.Link != "through" || len(first.Directions) != 2 || !strings.HasPrefix(first.Basis, "udp, 1,472-byte payload") {
		t.Errorf("%+v", first)
	}
	closed := b.file(edited(t, routedPath, "ip_forward=1", "ip_forward=0", "through: [r]", "through: [r], directions: forward", "latency: 500ms, percentile: 50, packet_loss_ratio: 0.5, ", ""))
	r = b.want(missed, "run", closed, "--profile", "quick", "--json", "--out", filepath.Join(t.TempDir(), "out"))
	if !strings.Contains(r.Err, "nothing from a.p0 arrives at c.p0") {
		t.Errorf("with a router that forwards nothing: %s", r)
	}
}

// n3 is [ gnb ]──n3──[ upf ]──n6──[ dn ], where the UPF takes packets out of GTP-U tunnels and puts them in.
const n3 = `apiVersion: drayage/v1
kind: Chain
name: n3
functions:
  - name: gnb
    runtime: process
    ports: [{name: n3, face: native, ip: 10.60.0.1/16, mac: "02:00:00:00:00:01"}]
  - name: upf
    runtime: process
    command: [VNF, $(DRAY_EAL), --, gtpu, --role, upf, --tunnels, "1000", --teid, "1", --ue, 10.60.0.1, --qfi, "9", --ip, 0=198.18.0.1, --peer, 0=198.18.0.2,
      --next-hop, "0=02:00:00:00:00:01", --next-hop, "1=02:00:00:00:00:02", --sleep, 200us]
    ports:
      - {name: n3, face: dpdk, ip: 10.60.255.1/16}
      - {name: n6, face: dpdk, ip: 203.0.113.1/24}
  - name: dn
    runtime: process
    ports: [{name: n6, face: native, ip: 203.0.113.9/24, mac: "02:00:00:00:00:02"}]
links:
  - {name: n3, ends: [gnb.n3, upf.n3], transport: shm}
  - {name: n6, ends: [upf.n6, dn.n6], transport: shm}
paths:
  - name: pdu
    from: gnb.n3
    through: [upf]
    to: dn.n6
    gtpu: {at: from, from: 198.18.0.2, to: 198.18.0.1, teid: 1, tunnels: 1000, pdu: up, qfi: 9}
    load: 5Mbps
    requires: {latency: 500ms, percentile: 50}
`

// Packets pass a UPF that drops all but those in its tunnels, in both directions, and are traced through it.
func TestAPathInTunnels(t *testing.T) {
	b := newDPDKBench(t)
	b.want(0, "up", b.file(strings.Replace(n3, "VNF", testenv.Built(t, "dray-vnf"), 1)))
	for _, direction := range [][]string{nil, {"--back"}} {
		r := b.want(0, append([]string{"trace", "n3", "--duration", "1s", "--rounds", "2", "--json"}, direction...)...)
		paths := decode[struct {
			Paths []struct {
				Hops []struct {
					Name string
					Loss *struct{ Lost, Of int }
				}
			}
		}](t, r).Paths
		if len(paths) != 1 || len(paths[0].Hops) != 3 || paths[0].Hops[1].Name != "upf" {
			t.Fatalf("%s", r)
		}
		if loss := paths[0].Hops[1].Loss; loss == nil || loss.Of < 20 || loss.Lost > loss.Of/2 {
			t.Errorf("%v: the UPF lost %+v", direction, loss)
		}
	}
	b.want(0, "down", "n3")
}

// slowPath is [ a ]──ab──[ f ]──bc──[ c ], where f takes 2 ms for each packet.
const slowPath = `apiVersion: drayage/v1
kind: Chain
name: slow
functions:
  - {name: a, runtime: process, ports: [{name: p0, face: native}]}
  - name: f
    runtime: process
    command: [VNF, $(DRAY_EAL), --, l2fwd, --sleep, 100us, --work, 2ms]
    ports:
      - {name: p0, face: dpdk}
      - {name: p1, face: dpdk}
  - {name: c, runtime: process, ports: [{name: p0, face: native}]}
links:
  - {name: ab, ends: [a.p0, f.p0], transport: shm}
  - {name: bc, ends: [f.p1, c.p0], transport: shm}
paths:
  - {name: through, from: a.p0, through: [f], to: c.p0, requires: {latency: 500ms, percentile: 50}}
`

// A known delay of a function is found within the bound that docs/method.md states.
func TestTraceFindsASlowFunction(t *testing.T) {
	b := newDPDKBench(t)
	b.want(0, "up", b.file(strings.Replace(slowPath, "VNF", testenv.Built(t, "dray-vnf"), 1)))
	// 85 packets a second: one in a burst. A busy machine may make even the median longer, but never shorter.
	r := b.want(0, "trace", "slow", "--load", "1Mbps", "--duration", "1s", "--rounds", "3", "--json")
	type bounded struct{ Percentile, Low, High float64 }
	paths := decode[struct {
		Paths []struct {
			Decides string
			Hops    []struct {
				Name  string
				Delay []bounded
				Loss  *struct{ Lost, Of int }
				CPU   *struct{ Thread string }
			}
		}
	}](t, r).Paths
	if len(paths) != 1 || len(paths[0].Hops) != 3 {
		t.Fatalf("%s", r)
	}
	f := paths[0].Hops[1]
	if f.Name != "f" || len(f.Delay) == 0 || f.CPU == nil || f.Loss == nil || paths[0].Decides == "" {
		t.Fatalf("%s", r)
	}
	if median := f.Delay[0]; median.Percentile != 50 || median.Low < 2e6 || median.Low > 500e6 {
		t.Errorf("2 ms are found as %.0f to %.0f ns at p%v", median.Low, median.High, median.Percentile)
	}
	// An end that a command holds has no room for the generator.
	b.want(0, "down", "slow")
	b.want(0, "up", b.file(edited(t, slowPath, "VNF", testenv.Built(t, "dray-vnf"), "{name: c, runtime: process,", "{name: c, runtime: process, command: [\""+testenv.Built(t, "draygen")+"\", sink, --port, \"dray:p0\"],")))
	b.awaitLinks("slow", 2, func(l broker.LinkStatus) bool { return l.Name == "ab" || l.State == broker.StateActive })
	if r := b.want(1, "trace", "slow"); !strings.Contains(r.String(), "the port is open elsewhere") {
		t.Errorf("%s", r)
	}
	b.want(0, "down", "slow")
}
