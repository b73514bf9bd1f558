// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/test/testenv"
)

// TestDPDKInMachine: dray-vnf in a virtual machine forwards packets from its first
// port to its second, as in a container. While it polls, the machine's agent
// answers.
//
//	process                       vm
//	+------------+  vhost-user  +-------------------+
//	| draygen n3 |= = = = = = = | n3 dray-vnf l2fwd |
//	|         n6 |= = = = = = = | n6                |
//	+------------+              +-------------------+
func TestDPDKInMachine(t *testing.T) {
	testenv.Program(t, guest.Emulator, "depmod", "dpdk-testpmd")
	generator, function := testenv.Built(t, "draygen-dpdk"), testenv.Built(t, "dray-vnf")
	b := newBench(t)
	b.env = append(b.env, "DRAY_GUEST="+testenv.Built(t, guest.AgentProgram))
	b.want(0, "up", b.file(fmt.Sprintf(`
apiVersion: drayage/v1
kind: Chain
name: vmdpdk
functions:
  - name: app
    runtime: process
    ports: [{name: n3, face: dpdk, mac: "02:00:00:00:03:0a"}, {name: n6, face: dpdk, mac: "02:00:00:00:06:0a"}]
  - name: upf
    runtime: vm
    cpus: 1
    hugepages: {2Mi: 64Mi}
    command: [%s, $(DRAY_EAL), --, l2fwd, --mtu, "1500", --next-hop, 1=02:00:00:00:06:0a]
    ports: [{name: n3, face: dpdk, mac: "02:00:00:00:03:0b"}, {name: n6, face: dpdk, mac: "02:00:00:00:06:0b"}]
links:
  - {name: n3, ends: [app.n3, upf.n3]}
  - {name: n6, ends: [app.n6, upf.n6]}
`, function)))
	end := time.Now().Add(5 * time.Minute)
	// Ports in chain file order, not bus order. A generator that polled meanwhile
	// would only take CPU time from the machine.
	ready := `"ports":[{"name":"0000:00:1d.0","mac":"02:00:00:00:03:0b",`
	for !strings.Contains(b.dray("logs", "vmdpdk", "upf").Stdout, ready) {
		if time.Now().After(end) {
			t.Fatalf("dray-vnf does not forward: %s", b.dray("logs", "vmdpdk", "upf"))
		}
		time.Sleep(500 * time.Millisecond)
	}
	send := fmt.Sprintf(`exec %s loop --port dpdk:net_virtio_user0 --to-port dpdk:net_virtio_user1 --to-mac 02:00:00:00:03:0b --eal "$DRAY_EAL" --packets 200 --rate 1kpps --catch-up 1s --peer-timeout 60s`, generator)
	var last result
	var got struct {
		Forward struct {
			Sink struct{ Received int }
		}
	}
	for got.Forward.Sink.Received == 0 {
		if time.Now().After(end) {
			t.Fatalf("no packet arrived: %s\n%s", last, b.dray("logs", "vmdpdk", "upf"))
		}
		last = b.dray("exec", "vmdpdk", "app", "--", "sh", "-c", send)
		lines := strings.Split(strings.TrimSpace(last.Stdout), "\n")
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil && last.Code == 0 {
			t.Fatalf("%v: %s", err, last)
		}
	}
	inside := b.want(0, "exec", "vmdpdk", "upf", "--", "sh", "-c", `echo $DRAY_EAL; cat /proc/sys/vm/nr_hugepages; readlink /sys/bus/pci/devices/0000:00:1e.0/driver; ls /sys/class/net`)
	for _, want := range []string{"-a 0000:00:1d.0 -a 0000:00:1e.0\n", "\n32\n", "/uio_pci_generic\n"} {
		if !strings.Contains(inside.Stdout, want) {
			t.Errorf("in the machine there is no %q: %s", want, inside)
		}
	}
	if strings.Contains(inside.Stdout, "eth0") {
		t.Errorf("the machine's kernel still has the device: %s", inside)
	}
	b.want(0, "down", "vmdpdk")
}
