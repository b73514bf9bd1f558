// SPDX-License-Identifier: Apache-2.0

package vhostuser

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

func spec() transport.Spec {
	s := transport.Spec{Chain: "c", Link: "l", Dir: "/run/dray/c/link/l", MTU: 1500, Cgroup: host.Cgroup{Path: "/dray/c/link-l"}}
	for i, name := range []string{"a", "b"} {
		s.Ends = append(s.Ends, transport.End{
			Function: name, Name: "p", Face: chain.FaceDPDK, User: 1000 + i, Dir: "/run/dray/c/fn/" + name + "/links/p",
			MAC: net.HardwareAddr{2, 0, 0, 0, 0, byte(i)}, Queues: 2, Netns: host.Netns{Path: "/run/" + name},
		})
	}
	return s
}

// TestArguments: huge pages if both applications have some, one polling thread
// on the given CPU, and a buffer that holds the longest frame.
func TestArguments(t *testing.T) {
	s := spec()
	plain := strings.Join(testpmd(s, []int{3}).Args, " ")
	for _, want := range []string{
		"--no-huge --no-shconf -m 83 ", "--lcores 0@(3),1@(3) ", "--nb-cores=1 ", "--rxq=2 --txq=2 ", "--mbuf-size=2176 ", "--forward-mode=io ",
		"net_vhost0,iface=/links/1/vhost.sock,client=1,queues=2 ", "net_vhost1,iface=/links/2/vhost.sock,client=1,queues=2 ",
	} {
		if !strings.Contains(plain, want) {
			t.Errorf("no %q in %s", want, plain)
		}
	}
	s.Ends[0].HugePages = true
	if one := testpmd(s, []int{3}); one.HugePages {
		t.Error("it uses huge pages although one application has none")
	}
	s.Ends[1].HugePages, s.MTU = true, 9000
	huge := testpmd(s, []int{0, 2, 3})
	args := strings.Join(huge.Args, " ")
	if !huge.HugePages || !strings.Contains(args, "--in-memory -m ") || strings.Contains(args, "--no-huge") ||
		!strings.Contains(args, "--mbuf-size=9152 ") || !strings.Contains(args, "0@(0,2-3),1@(0,2-3)") {
		t.Errorf("with huge pages and jumbo frames: %s", args)
	}
}

// TestQueuesMustBeTheSame: testpmd forwards queue to queue.
func TestQueuesMustBeTheSame(t *testing.T) {
	s := spec()
	if _, err := New().Build(s); err != nil {
		t.Error(err)
	}
	s.Ends[1].Queues = 1
	if _, err := New().Build(s); err == nil || !strings.Contains(err.Error(), "give both the same") {
		t.Errorf("2 and 1: %v", err)
	}
}

// TestMachines: a machine's interface is reached like an application's, and a
// container's is not.
func TestMachines(t *testing.T) {
	s := spec()
	s.MTU = 4000
	s.Ends[0].Face, s.Ends[0].Runtime = chain.FaceNetdev, chain.RuntimeVM
	s.Ends[1].IP = netip.MustParsePrefix("10.0.0.2/24")
	build, err := New().Build(s)
	if err != nil {
		t.Fatal(err)
	}
	v := build.Report.Vdevs[0]
	if v.Interface == nil || v.Interface.MTU != 4000 || v.Interface.MAC != "02:00:00:00:00:00" || len(v.Interface.Neighbours) != 1 || v.Dir != s.Ends[0].Dir {
		t.Errorf("the machine's: %+v, %+v", v, v.Interface)
	}
	if build.Report.Vdevs[1].Interface != nil {
		t.Errorf("the application's: %+v", build.Report.Vdevs[1])
	}
	e := testpmd(s, nil)
	if len(e.Binds) != 2 || len(e.Files) != 2 {
		t.Errorf("testpmd reaches %v as %v", e.Binds, e.Files)
	}
	s.Ends[0].Runtime = chain.RuntimeRunc
	if _, err := New().Build(s); err == nil || !strings.Contains(err.Error(), "face netdev") {
		t.Errorf("a container's interface: %v", err)
	}
}
