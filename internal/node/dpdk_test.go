// SPDX-License-Identifier: Apache-2.0

package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
)

// withDevices is a chain whose external function has two dpdk ports, on links with
// reports in any order.
func withDevices(t *testing.T) (*Live, chain.Function) {
	t.Helper()
	f := chain.Function{Name: "upf", Runtime: chain.RuntimeExternal,
		Ports: []chain.Port{{Name: "n3", Face: chain.FaceDPDK}, {Name: "n6", Face: chain.FaceDPDK}}}
	n := &Node{StateDir: t.TempDir()}
	l := &Live{Chain: &chain.Chain{Name: "c", Functions: []chain.Function{f}}, node: n, dir: n.dir("c")}
	l.State.Plan = &plan.Plan{}
	l.State.Reports = map[string]*transport.Report{}
	for _, port := range []string{"n6", "n3"} {
		l.State.Reports[port] = &transport.Report{Vdevs: []dpdk.Vdev{
			{Function: "peer", Port: port, Driver: dpdk.NetMemif},
			{Function: "upf", Port: port, Driver: dpdk.NetMemif, Options: "socket={dir}/s", Dir: "/links/" + port},
		}}
	}
	return l, f
}

// TestDevice opens only one port, which then is the first of its driver.
func TestDevice(t *testing.T) {
	l, _ := withDevices(t)
	eal, name, err := l.Device(plan.End{Function: "upf", Port: "n6", Face: chain.FaceDPDK})
	if err != nil || name != "net_memif0" || !strings.HasSuffix(strings.Join(eal, " "), " --vdev net_memif0,socket=/links/n6/s") {
		t.Errorf("%q, %q, %v", eal, name, err)
	}
	if eal, name, err := l.Device(plan.End{Function: "upf", Port: "n6", Face: chain.FaceNative}); eal != nil || name != "" || err != nil {
		t.Errorf("a native port: %q, %q, %v", eal, name, err)
	}
	if _, _, err := l.Device(plan.End{Function: "upf", Port: "n9", Face: chain.FaceDPDK}); err == nil {
		t.Error("a port without a device is opened")
	}
}

// TestTellExternal writes the arguments of all ports, in the chain file's order,
// for an external function.
func TestTellExternal(t *testing.T) {
	l, f := withDevices(t)
	dir := l.spec(f).Dir
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := l.tellExternal(f); err != nil {
		t.Fatal(err)
	}
	const want = " --vdev net_memif0,socket=/links/n3/s --vdev net_memif1,socket=/links/n6/s\n"
	if got, err := os.ReadFile(filepath.Join(dir, fileEAL)); err != nil || !strings.HasSuffix(string(got), want) {
		t.Errorf("%q, %v; want %q at the end", got, err, want)
	}
	f.Runtime, f.Name = chain.RuntimeRunc, "other"
	if err := l.tellExternal(f); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(l.spec(f).Dir, fileEAL)); !os.IsNotExist(err) {
		t.Errorf("also written for a runc function: %v", err)
	}
}
