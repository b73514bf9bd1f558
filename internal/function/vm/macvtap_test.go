// SPDX-License-Identifier: Apache-2.0

package vm_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/internal/function/vm"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// persist pings until an answer comes.
const persist = "for i in 1 2 3 4 5 6 7 8 9 10; do ping -q -c 2 -W 5 -s 1500 -M do $0 && exit 0; sleep 1; done; exit 1"

// TestMacvtap: a machine has its sandbox's macvtap as its own device, with no
// interface next to it. A machine that replaces a killed one has it too.
//
//	namespace "peer"            vm
//	+---------------+ macvtap +-----+
//	| peer = parent |=========| f1u |
//	+---------------+         +-----+
func TestMacvtap(t *testing.T) {
	if os.Getenv("DRAY_TEST_MACHINES") != "all" {
		t.Skip("boots two machines; DRAY_TEST_MACHINES=all runs it")
	}
	testenv.Root(t)
	testenv.Program(t, guest.Emulator, "depmod", "ping")
	testenv.Kernel(t, host.ProbeItem("macvtap", host.ProbeMacvtap()))
	t.Setenv("DRAY_GUEST", testenv.Built(t, guest.AgentProgram))
	runtimetest.Patience = 3 * time.Minute
	f := runtimetest.Up(t, vm.New(), chain.Function{})
	plumbMacvtap(t, f)
	for range 2 {
		for _, to := range []string{"10.9.8.2", "fd00:98::2"} {
			if out, code := f.Output("sh", "-c", persist, to); code != 0 {
				t.Fatalf("ping %s: status %d, %s", to, code, out)
			}
		}
		if names, err := f.Sandbox.Netns.Interfaces(); err != nil || len(names) != 1 {
			t.Errorf("there are interfaces other than the port: %v, %v", names, err)
		}
		info, err := guest.ReadInfo(f.Sandbox.Guest)
		if err != nil {
			t.Fatal(err)
		}
		info.Process.Kill()
		ctx, cancel := context.WithTimeout(context.Background(), runtimetest.Patience)
		err = info.Process.AwaitEnd(ctx)
		cancel()
		if err != nil {
			t.Fatal(err)
		}
	}
}

// plumbMacvtap puts a macvtap into the function's sandbox, and one without a machine
// into another namespace.
func plumbMacvtap(t *testing.T, f *runtimetest.Function) {
	t.Helper()
	peer := host.Netns{Path: filepath.Join(filepath.Dir(f.Spec.Dir), "peer")}
	pin := host.NamespaceResource(peer.Path)
	t.Cleanup(func() {
		if err := host.Removers()[pin.Kind](context.Background(), pin); err != nil {
			t.Error(err)
		}
	})
	iface := func(ns host.Netns, name string, last byte) host.Iface {
		return host.Iface{Netns: ns, Name: name, MAC: net.HardwareAddr{2, 0, 0, 0, 0, last}, MTU: 1600}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(host.CreateNetns(peer.Path))
	must(host.CreateVeth(iface(peer, "p0", 1), iface(peer, "p1", 2)))
	must(host.CreateMacvtap(iface(f.Sandbox.Netns, "f1u", 3), peer, "p0"))
	must(host.CreateMacvtap(iface(peer, "peer", 4), peer, "p0"))
	for _, name := range []string{"p0", "p1", "peer"} {
		must(peer.SetUp(name))
	}
	must(f.Sandbox.Netns.SetUp("f1u"))
	for _, ip := range []string{"10.9.8.1/24", "fd00:98::1/64"} {
		must(f.Sandbox.Netns.AddAddr("f1u", netip.MustParsePrefix(ip)))
	}
	for _, ip := range []string{"10.9.8.2/24", "fd00:98::2/64"} {
		must(peer.AddAddr("peer", netip.MustParsePrefix(ip)))
	}
}
