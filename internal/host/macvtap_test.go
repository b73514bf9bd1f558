// SPDX-License-Identifier: Apache-2.0

package host

import (
	"bytes"
	"context"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// vnetHeader is the length of a virtio-net header without merged buffers, in bytes.
const vnetHeader = 10

// macvtapPair makes two macvtaps of the same name on one interface, each in its own
// namespace.
func macvtapPair(t *testing.T) [2]Iface {
	t.Helper()
	testenv.Root(t)
	testenv.Kernel(t, ProbeItem("macvtap", ProbeMacvtap()))
	parents := testNetns(t)
	low := Iface{Netns: parents, Name: "p0", MAC: mac(t, "02:00:00:00:03:01"), MTU: 1500}
	other := Iface{Netns: parents, Name: "p1", MAC: mac(t, "02:00:00:00:03:02"), MTU: 1500}
	must(t, CreateVeth(low, other))
	must(t, parents.SetUp("p0"))
	must(t, parents.SetUp("p1"))
	var pair [2]Iface
	for i, address := range []string{"02:00:00:00:03:03", "02:00:00:00:03:04"} {
		pair[i] = Iface{Netns: testNetns(t), Name: "n3", MAC: mac(t, address), MTU: 1400}
		must(t, pair[i].Netns.DisableIPv6())
		must(t, CreateMacvtap(pair[i], parents, "p0"))
		must(t, pair[i].Netns.SetUp("n3"))
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		must(t, pair[i].Netns.WaitCarrier(ctx, "n3"))
	}
	return pair
}

// frame has only a header and some text.
func frame(to, from net.HardwareAddr, text string) []byte {
	return slices.Concat(make([]byte, vnetHeader), to, from, []byte{0x88, 0xb5}, []byte(text), make([]byte, 46))
}

// expectFrame reads until the frame comes.
func expectFrame(t *testing.T, f *os.File, want []byte) {
	t.Helper()
	must(t, f.SetReadDeadline(time.Now().Add(30*time.Second)))
	for buf := make([]byte, 2048); ; {
		n, err := f.Read(buf)
		if err != nil {
			t.Fatalf("frame %q did not arrive: %v", want[vnetHeader+14:], err)
		}
		if n >= vnetHeader && bytes.Equal(buf[vnetHeader:n], want[vnetHeader:]) {
			return
		}
	}
}

// TestMacvtapFiles: two interfaces may have the same index, but each file is its
// own. It also receives group addresses, and the interface stays after close.
func TestMacvtapFiles(t *testing.T) {
	pair := macvtapPair(t)
	var files [2]*os.File
	for i, p := range pair {
		s, err := p.Netns.ReadLink(p.Name)
		must(t, err)
		if s.Kind != LinkKindMacvtap || s.MAC.String() != p.MAC.String() || s.MTU != 1400 {
			t.Errorf("%+v", s)
		}
		files[i], err = p.Netns.OpenMacvtap(p.Name)
		must(t, err)
		t.Cleanup(func() { files[i].Close() })
	}
	group := mac(t, "33:33:00:00:12:34")
	for i := range pair {
		for _, to := range []net.HardwareAddr{pair[1-i].MAC, group} {
			sent := frame(to, pair[i].MAC, "of "+pair[i].MAC.String())
			_, err := files[i].Write(sent)
			must(t, err)
			expectFrame(t, files[1-i], sent)
		}
	}
	must(t, files[0].Close())
	again, err := pair[0].Netns.OpenMacvtap("n3")
	must(t, err)
	t.Cleanup(func() { again.Close() })
	sent := frame(pair[0].MAC, pair[1].MAC, "again")
	_, err = files[1].Write(sent)
	must(t, err)
	expectFrame(t, again, sent)
}

func TestMacvtapErrors(t *testing.T) {
	testenv.Root(t)
	ns := testNetns(t)
	a := Iface{Netns: ns, Name: "a0", MAC: mac(t, "02:00:00:00:03:05"), MTU: 1500}
	must(t, CreateVeth(a, Iface{Netns: ns, Name: "b0", MAC: mac(t, "02:00:00:00:03:06"), MTU: 1500}))
	for name, want := range map[string]string{"a0": "not a macvtap", "no-such": "no-such"} {
		if f, err := ns.OpenMacvtap(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", name, f, err)
		}
	}
	if err := CreateMacvtap(a, ns, "no-such"); err == nil || !strings.Contains(err.Error(), "parent no-such") {
		t.Errorf("without the parent: %v", err)
	}
}
