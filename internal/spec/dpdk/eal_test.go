// SPDX-License-Identifier: Apache-2.0

package dpdk

import (
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/sockpath"
)

var dray = Vdev{Function: "a", Port: "f1u", Driver: NetDray, Options: "port=f1u"}

// TestEAL compares the arguments of functions with the expected ones.
func TestEAL(t *testing.T) {
	memif := Vdev{Function: "a", Port: "n3", Driver: NetMemif, Options: "socket={dir}/memif.sock,role=client,zero-copy=yes",
		Dir: "/run/dray/c/fn/b/links/n3", SingleFileSegments: true}
	second := dray
	second.Port, second.Options = "e1", "port=e1"
	cases := []struct {
		name string
		app  Application
		want string
	}{
		{"container on one CPU",
			Application{CPUs: []int{1}, Pinned: true, Vdevs: []Vdev{dray}, Inside: true, Driver: "/opt/bin/librte_net_dray.so"},
			"--no-huge --no-shconf -m 1024 --iova-mode=va --no-pci --no-telemetry --lcores 0@1,1@1 -d /run/dray/lib/librte_net_dray.so --vdev net_dray0,port=f1u"},
		{"devices are counted by driver, in the order of ports",
			Application{CPUs: []int{2, 5, 7}, Pinned: true, Vdevs: []Vdev{dray, memif, second}, Inside: true, Memory: 512 << 20, Driver: "/x/librte_net_dray.so"},
			"--no-huge --no-shconf -m 384 --single-file-segments --iova-mode=va --no-pci --no-telemetry --lcores 0@2,1@5,2@7 -d /run/dray/lib/librte_net_dray.so " +
				"--vdev net_dray0,port=f1u --vdev net_memif0,socket=/run/dray/links/n3/memif.sock,role=client,zero-copy=yes --vdev net_dray1,port=e1"},
		{"a process sees the host's paths",
			Application{CPUs: []int{0, 1}, Vdevs: []Vdev{memif, dray}, Driver: "/x/librte_net_dray.so", Ports: "/run/dray/c/fn/a/ports"},
			"--no-huge --no-shconf -m 1024 --single-file-segments --iova-mode=va --no-pci --no-telemetry --lcores 0@(0,1),1@(0,1) -d /x/librte_net_dray.so " +
				"--vdev net_memif0,socket=/run/dray/c/fn/b/links/n3/memif.sock,role=client,zero-copy=yes --vdev net_dray0,port=f1u,dir=/run/dray/c/fn/a/ports"},
		{"huge pages",
			Application{CPUs: []int{3}, Pinned: true, Nodes: 2, Vdevs: []Vdev{memif}, Inside: true, Memory: 64 << 20,
				HugePages: []chain.HugePages{{Size: 2 << 20, Limit: 256 << 20}}},
			"--in-memory --single-file-segments --socket-limit 256,256 --iova-mode=va --no-pci --no-telemetry --lcores 0@3,1@3 " +
				"--vdev net_memif0,socket=/run/dray/links/n3/memif.sock,role=client,zero-copy=yes"},
		{"a primary process",
			Application{CPUs: []int{3}, Pinned: true, Vdevs: []Vdev{primary}, Driver: "/x/librte_net_dray.so", HugePages: pages},
			"--single-file-segments --socket-limit 64 --file-prefix ring --huge-dir /l/ring/huge --proc-type primary -m 32 " +
				"--iova-mode=va --no-pci --no-telemetry --lcores 0@3,1@3 -d /x/librte_net_dray.so --vdev net_mpring0,socket=/l/ring/s"},
		{"its secondary one: with lcores of other numbers",
			Application{CPUs: []int{3}, Pinned: true, Vdevs: []Vdev{secondary}, Driver: "/x/librte_net_dray.so", HugePages: pages},
			"--single-file-segments --socket-limit 64 --file-prefix ring --huge-dir /l/ring/huge --proc-type secondary " +
				"--iova-mode=va --no-pci --no-telemetry --lcores 64@3,65@3 -d /x/librte_net_dray.so --vdev net_mpring_peer0,socket=/l/ring/s"},
		{"in a machine: by the address on its bus, and physical ones of memory",
			Application{CPUs: []int{1}, Pinned: true, Nodes: 1, Inside: true, HugePages: pages,
				Vdevs: []Vdev{{Port: "n3", Driver: NetVirtio, PCI: "0000:00:1e.0", Dir: "/l/n3", SingleFileSegments: true}, {Port: "n6", Driver: NetVirtio, PCI: "0000:00:1d.0"}}},
			"--in-memory --single-file-segments --socket-limit 64 --iova-mode=pa --no-telemetry --lcores 0@1,1@1 -a 0000:00:1e.0 -a 0000:00:1d.0"},
		{"more threads than two, on any CPU",
			Application{CPUs: []int{0, 1, 2, 3}, Lcores: 3, Vdevs: []Vdev{{Port: "p", Driver: NetRing}}},
			"--no-huge --no-shconf -m 1024 --iova-mode=va --no-pci --no-telemetry --lcores 0@(0,1,2,3),1@(0,1,2,3),2@(0,1,2,3) --vdev net_ring0"},
		{"a driver without options",
			Application{CPUs: []int{0}, Pinned: true, Vdevs: []Vdev{{Port: "p", Driver: NetRing}}},
			"--no-huge --no-shconf -m 1024 --iova-mode=va --no-pci --no-telemetry --lcores 0@0,1@0 --vdev net_ring0"},
	}
	for _, c := range cases {
		got, err := c.app.EAL()
		if err != nil || strings.Join(got, " ") != c.want {
			t.Errorf("%s (%v):\ngot  %s\nwant %s", c.name, err, strings.Join(got, " "), c.want)
		}
	}
}

// The two ends of a ring, and the required arguments of their applications.
var (
	primary   = Vdev{Port: "r", Driver: NetMPRing, Options: "socket={dir}/s", Dir: "/l/ring"}
	secondary = Vdev{Port: "r", Driver: NetMPRingPeer, Options: "socket={dir}/s", Dir: "/l/ring"}
	pages     = []chain.HugePages{{Size: 2 << 20, Limit: 64 << 20}}
)

// TestEALOfFewPages: an application that runs with less than a plan allows now can still be
// reached.
func TestEALOfFewPages(t *testing.T) {
	app := Application{CPUs: []int{0}, HugePages: []chain.HugePages{{Size: 2 << 20, Limit: 2 << 20}}}
	if _, err := app.EAL(); err != nil {
		t.Error(err)
	}
}

// TestEALRefuses checks that an impossible setting is an error with its fix.
func TestEALRefuses(t *testing.T) {
	cases := map[string]Application{
		"memory 32Mi is too little": {CPUs: []int{0}, Memory: 32 << 20},
		"its file is unknown":       {CPUs: []int{0}, Vdevs: []Vdev{dray}},
		"both use rings":            {CPUs: []int{0}, Vdevs: []Vdev{primary, secondary}, Driver: "/x", HugePages: pages},
		"no other dpdk port":        {CPUs: []int{0}, Vdevs: []Vdev{dray, secondary}, Driver: "/x", HugePages: pages},
		"huge pages of 2Mi":         {CPUs: []int{0}, Vdevs: []Vdev{primary}, Driver: "/x", HugePages: []chain.HugePages{pages[0], {Size: 1 << 30, Limit: 1 << 30}}},
		"needs huge pages":          {CPUs: []int{0}, Vdevs: []Vdev{primary}, Driver: "/x"},
		"DRAY_STATE":                {CPUs: []int{0}, Vdevs: []Vdev{dray}, Driver: "/x", Ports: "/run/a b/ports"},
	}
	for want, app := range cases {
		if got, err := app.EAL(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want an error with %q", got, err, want)
		}
	}
}

// TestRuntimeDir: two processes that share memory use one directory.
func TestRuntimeDir(t *testing.T) {
	app := Application{CPUs: []int{0}, Vdevs: []Vdev{primary}, Driver: "/x", HugePages: pages}
	for want, alone := range map[string]bool{"/own": true, "/l/ring": false} {
		if alone {
			app.Vdevs = []Vdev{dray}
		} else {
			app.Vdevs = []Vdev{primary}
		}
		eal, err := app.EAL()
		if got := RuntimeDir(eal, "/own"); err != nil || got != want {
			t.Errorf("%v: %s, %v; want %s", eal, got, err, want)
		}
	}
}

// TestOnly checks that a port alone is the first of its driver.
func TestOnly(t *testing.T) {
	second := dray
	second.Port = "e1"
	app, ok := Application{Vdevs: []Vdev{dray, second}}.Only("e1")
	if d := app.Devices(); !ok || len(d) != 1 || d[0] != (Device{"e1", "net_dray0"}) {
		t.Errorf("%v, %v", d, ok)
	}
	if _, ok := app.Only("f1u"); ok {
		t.Error("found a port that does not exist")
	}
}

// TestExpand checks that only an argument on its own is replaced.
func TestExpand(t *testing.T) {
	got := Expand([]string{"testpmd", "$(DRAY_EAL)", "--", "x$(DRAY_EAL)"}, []string{"-l", "0"})
	if want := []string{"testpmd", "-l", "0", "--", "x$(DRAY_EAL)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLongDirectories: a program on the host gets short paths for sockets, but EAL needs that
// of the mount.
func TestLongDirectories(t *testing.T) {
	dir := "/l/" + strings.Repeat("d", 100)
	client := Vdev{Port: "n3", Driver: NetMemif, Options: "socket={dir}/memif.sock,role=client", Dir: dir}
	ring := primary
	ring.Dir = dir
	for _, v := range []Vdev{client, ring} {
		app := Application{CPUs: []int{0}, Vdevs: []Vdev{v}, Driver: "/x", HugePages: pages}
		args, err := app.EAL()
		eal := strings.Join(args, " ")
		if err != nil || !strings.Contains(eal, "socket="+sockpath.Link(dir)+"/") {
			t.Errorf("%s, %v", eal, err)
		}
		if v.Shared() && (!strings.Contains(eal, "--huge-dir "+dir+"/huge") || RuntimeDir(args, "/own") != sockpath.Link(dir)) {
			t.Errorf("%s in %s", eal, RuntimeDir(args, "/own"))
		}
		app.Inside = true
		if args, err = app.EAL(); err != nil || !strings.Contains(strings.Join(args, " "), "socket="+LinksInside+"/"+v.Port+"/") {
			t.Errorf("in a container: %v, %v", args, err)
		}
	}
}
