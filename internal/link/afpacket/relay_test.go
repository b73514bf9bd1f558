// SPDX-License-Identifier: Apache-2.0

package afpacket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/test/testenv"
)

func upRig(t *testing.T) *transporttest.Rig {
	t.Helper()
	testenv.Root(t)
	r := transporttest.NewRig(t, New(), transporttest.Options{Uplink: true})
	r.Up()
	return r
}

// TestPrivilegesAreDropped: the relay has no privileges, only its open sockets.
func TestPrivilegesAreDropped(t *testing.T) {
	r := upRig(t)
	pids, err := r.Spec.Cgroup.Processes()
	if err != nil || len(pids) != 1 {
		t.Fatalf("the cgroup holds %v (%v), not one relay", pids, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pids[0]))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Uid:\t65534\t65534\t65534\t65534\n", "Gid:\t65534\t65534\t65534\t65534\n", "Groups:\t \n",
		"CapPrm:\t0000000000000000\n", "CapEff:\t0000000000000000\n",
	} {
		if !bytes.Contains(status, []byte(want)) {
			t.Errorf("the relay's status lacks %q:\n%s", want, status)
		}
	}
}

// TestRelayEndsWithItsInterface: a relay exits if its uplink is deleted.
func TestRelayEndsWithItsInterface(t *testing.T) {
	r := upRig(t)
	uplink := r.Spec.Uplinks()[0]
	state, err := uplink.Netns.ReadLink(uplink.Name)
	if err != nil {
		t.Fatal(err)
	}
	runner := step.Runner{Removers: host.Removers()}
	gone := []step.Resource{host.LinkResource(uplink.Netns, uplink.Name, state.MAC)}
	if err := runner.Remove(context.Background(), gone); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		pids, err := r.Spec.Cgroup.Processes()
		if err != nil {
			t.Fatal(err)
		}
		if len(pids) == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the relay still runs after its uplink was deleted")
		}
	}
	log, err := os.ReadFile(r.Spec.Dir + "/relay/relay.log")
	if err != nil || !strings.Contains(string(log), "eth0 is gone") {
		t.Errorf("the relay's log does not say why it ended: %q, %v", log, err)
	}
}

// TestOnlyThePortsFrames: the port does not receive the host's own traffic,
// and a VLAN frame keeps its tag.
func TestOnlyThePortsFrames(t *testing.T) {
	r := upRig(t)
	port := r.Spec.Ports()[0]
	outside := host.Netns{Path: strings.TrimSuffix(r.Spec.Dir, "link") + "outside.net"}
	ear := testSocket(t, port.Netns, port.Name)
	mouth := testSocket(t, outside, "ext0")

	addresses := []net.HardwareAddr{
		{2, 0xda, 0, 0, 0, 0x65}, // the host interface's own
		port.MAC,
		{0xff, 0xff, 0xff, 0xff, 0xff, 0xff},
		{2, 0xda, 0, 0, 0, 0xee}, // unassigned
	}
	var want []string
	for i, to := range addresses {
		for _, kind := range []string{experimental, "\x81\x00\x60\x07" + experimental} {
			frame := string(to) + "\x02\xda\x00\x00\x00\x66" + kind + fmt.Sprintf("to %d ", i) + strings.Repeat(".", 50)
			if _, err := unix.Write(mouth.fd, append(make([]byte, virtioHeader), frame...)); err != nil {
				t.Fatal(err)
			}
			if i == 1 || i == 2 {
				want = append(want, frame)
			}
		}
	}
	for i, frame := range hear(t, ear, len(want)) {
		if frame != want[i] {
			t.Errorf("frame %d:\ngot  %q\nwant %q", i, frame, want[i])
		}
	}
}

// experimental is an unused EtherType (IEEE 802 local experimental 1).
const experimental = "\x88\xb5"

func testSocket(t *testing.T, ns host.Netns, name string) *socket {
	t.Helper()
	s, err := openSocket(ns, name, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.close() })
	return s
}

// hear returns the next n frames of the experimental type.
func hear(t *testing.T, ear *socket, n int) []string {
	t.Helper()
	var got []string
	f := newFrame()
	deadline := time.Now().Add(30 * time.Second)
	for len(got) < n {
		size, err := ear.receive(f)
		if errors.Is(err, unix.EAGAIN) && time.Now().Before(deadline) {
			time.Sleep(time.Millisecond)
			continue
		}
		if err != nil {
			t.Fatalf("%d of %d frames arrived: %v", len(got), n, err)
		}
		if frame := string(f.bytes(size)[virtioHeader:]); strings.Contains(frame[:20], experimental) {
			got = append(got, frame)
		}
	}
	return got
}

func TestRelayArguments(t *testing.T) {
	for _, args := range [][]string{{"--nonsense"}, {"--mac", "nonsense"}, {"--mac", "02:00:00:00:00:01", "--uplink", "nonsense0"}} {
		if err := RelayMain(context.Background(), args); err == nil {
			t.Errorf("%v was accepted", args)
		}
	}
}

// TestStop: the relay exits cleanly on request.
func TestStop(t *testing.T) {
	testenv.Root(t)
	err := host.InThrowawayNetns(func(ns host.Netns) error {
		a := host.Iface{Netns: ns, Name: "p0", MTU: 1500}
		if err := host.CreateVeth(a, host.Iface{Netns: ns, Name: "p1", MTU: 1500}); err != nil {
			return err
		}
		ctx, cancel := context.WithCancel(context.Background())
		p0, p1 := testSocket(t, ns, "p0"), testSocket(t, ns, "p1")
		ended := make(chan error, 1)
		go func() { ended <- pumpBoth(ctx, p0, p1) }()
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(30 * time.Second):
			return errors.New("the relay does not end")
		}
	})
	if err != nil {
		t.Error(err)
	}
}
