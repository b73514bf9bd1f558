// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/shm"
	"github.com/drayage/dray/internal/node/doctor"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// calibrationOf is a calibration of this machine.
func calibrationOf(t *testing.T, transport string) inventory.Calibration {
	t.Helper()
	h, err := host.Describe()
	must(t, err)
	return inventory.Calibration{
		Transport: transport, Measured: time.Now(), Source: "run 7", Kernel: h.Kernel, CPUModel: h.CPUModel,
		Latency:    []inventory.LatencyPoint{{Percentile: 50, Latency: 9 * time.Microsecond}, {Percentile: 99, Latency: 40 * time.Microsecond}},
		UDPBitrate: 8e9, UDPFrame: 1518, PacketRate: 3e6,
	}
}

// A node's CPUs carry what calibration proves, one port each; and a node of which nothing is
// proven is not limited.
func TestCapacityOfANode(t *testing.T) {
	ok := func(name string) inventory.Transport {
		return inventory.Transport{Item: inventory.Item{Name: name, Status: inventory.OK}}
	}
	inv := &inventory.Inventory{Transports: []inventory.Transport{ok("shm"), ok("bridge"), ok("vxlan"), {Item: inventory.Item{Name: "memif", Status: inventory.Missing}}}}
	inv.Transports[2].Caps.Tunnel = true
	inv.Calibration = []inventory.Calibration{calibrationOf(t, "shm"), calibrationOf(t, "bridge"), calibrationOf(t, "memif")}
	inv.Calibration[1].Stale = "another kernel"
	for cpus, want := range map[int]string{ // the packet rate of the node and of a port, then the bitrates
		1: "6M 3M 16G 8G", 2: "6M 3M 16G 8G", 4: "12M 3M 32G 8G",
	} {
		d := resources("n1", cpus, inv).Pools["n1"].Slices[0].Devices[0]
		packets, bits := d.Capacity["shmPacketRate"], d.Capacity["shmBitrate"]
		got := fmt.Sprintf("%v %v %v %v", packets.Value.String(), packets.RequestPolicy.ValidRange.Max, bits.Value.String(), bits.RequestPolicy.ValidRange.Max)
		if got != want {
			t.Errorf("%d CPUs: %s, want %s", cpus, got, want)
		}
		if other := d.Capacity["bridgePacketRate"]; other.Value.String() != "1P" {
			t.Errorf("a stale figure limits the node: %+v", other)
		}
		if len(d.Capacity) != 5 {
			t.Errorf("capacities %v", d.Capacity)
		}
		for name, c := range d.Capacity { // a request that names no rate takes none
			if unsaid := c.RequestPolicy.Default.Value(); (unsaid == 1) != (name == v1alpha1.CapacityPorts) || unsaid > 1 {
				t.Errorf("%s: %+v", name, c.RequestPolicy)
			}
		}
		if a := d.Attributes; *a["calibrated"].StringValue != "shm" || *a["shmLatencyNs"].IntValue != 40000 || a["bridgeLatencyNs"].IntValue != nil || a["memifLatencyNs"].IntValue != nil {
			t.Errorf("attributes %v", a)
		}
	}
	if huge := rate(1<<63, 4); huge.Value.String() != "1P" {
		t.Errorf("an absurd figure becomes %v", huge.Value)
	}
}

// publishes is an agent whose node has a calibration file, and what the agent logs.
func publishes(t *testing.T) (*fixture, *bytes.Buffer) {
	f, log := newFixture(t, true), &bytes.Buffer{}
	f.agent.o.Log = slog.New(slog.NewTextHandler(log, nil))
	f.agent.o.Calibration = filepath.Join(t.TempDir(), "calibration.json")
	must(t, f.client.Tracker().Add(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1", UID: "node-n1"},
		Status: corev1.NodeStatus{Allocatable: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("7900m")}}}))
	return f, log
}

// inventory publishes what has changed, and returns what the operator then reads.
func (f *fixture) inventory(changes bool) (inv inventory.Inventory) {
	f.t.Helper()
	changed, err := f.agent.publishInventory(context.Background())
	must(f.t, err)
	if changed != changes {
		f.t.Errorf("changed: %v", changed)
	}
	m, err := f.client.CoreV1().ConfigMaps("dray-system").Get(context.Background(), "dray-inventory-n1", metav1.GetOptions{})
	must(f.t, err)
	must(f.t, json.Unmarshal([]byte(m.Data[v1alpha1.KeyInventory]), &inv))
	return inv
}

// The operator and the scheduler learn of a calibration as soon as there is one.
func TestACalibrationIsPublished(t *testing.T) {
	f, log := publishes(t)
	if inv := f.inventory(true); inv.Calibration != nil || inv.CalibrationFault != "" {
		t.Errorf("without a file: %+v", inv)
	}
	f.inventory(false)
	other := calibrationOf(t, "bridge")
	other.Kernel = "2.0"
	must(t, doctor.SaveCalibration(f.agent.o.Calibration, []inventory.Calibration{calibrationOf(t, shm.Name), other, calibrationOf(t, "carrier-pigeon")}))
	inv := f.inventory(true)
	if c := inv.Calibration; len(c) != 2 || c[0].PacketRate != 3e6 || c[0].Stale != "" || c[1].Stale == "" {
		t.Errorf("%+v", c)
	}
	for _, want := range []string{"calibrated=shm", "transport=bridge", "another kernel (2.0)"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("no %q in %s", want, log)
		}
	}
	p := f.agent.published.Load()
	d := resources("n1", p.cpus, p.inventory).Pools["n1"].Slices[0].Devices[0]
	if got := d.Capacity["shmPacketRate"]; got.Value.Value() != 7*3e6 {
		t.Errorf("on 7.9 CPUs: %v", got.Value)
	}
	f.inventory(false)
	must(t, os.Remove(f.agent.o.Calibration))
	if inv := f.inventory(true); inv.Calibration != nil {
		t.Errorf("of a file that has gone: %+v", inv.Calibration)
	}
}

// Of a file that cannot be used, the log and each plan say why; the node goes on.
func TestAnUnusableCalibrationIsNotUsed(t *testing.T) {
	f, log := publishes(t)
	long := calibrationOf(t, shm.Name)
	long.Source = strings.Repeat("x", maxPublished)
	for want, write := range map[string]func(path string) error{
		"not a calibration":         func(path string) error { return os.WriteFile(path, []byte("hello"), 0o600) },
		"is not a file":             func(path string) error { return os.Mkdir(path, 0o700) },
		"bytes cannot be published": func(path string) error { return doctor.SaveCalibration(path, []inventory.Calibration{long}) },
	} {
		_ = os.Remove(f.agent.o.Calibration)
		must(t, write(f.agent.o.Calibration))
		log.Reset()
		inv := f.inventory(true)
		if inv.Calibration != nil || !strings.Contains(inv.CalibrationFault, want) || !strings.Contains(log.String(), want) {
			t.Errorf("want %q: %q, log %.300s", want, inv.CalibrationFault, log)
		}
		p := f.agent.published.Load()
		if d := resources("n1", p.cpus, p.inventory).Pools["n1"].Slices[0].Devices[0]; d.Attributes["calibrated"].StringValue != nil {
			t.Errorf("it is called calibrated: %+v", d)
		}
		f.inventory(false) // and said once
	}
}
