// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// TestPacketOptionsOfACgroup takes a packet socket that a process in a limited cgroup
// has made, and tries each option from outside. The same attack on a socket of another
// cgroup succeeds.
func TestPacketOptionsOfACgroup(t *testing.T) {
	testenv.Program(t, "perl")
	free, limited := testCgroup(t), testCgroup(t)
	create(t, free, Limits{})
	create(t, limited, Limits{})
	before := packetSocketIn(t, limited)
	err := limited.LimitPacketOptions()
	if errors.Is(err, ErrUnsupported) {
		t.Skip(err)
	}
	testenv.Must(t, err)
	testenv.Must(t, limited.LimitPacketOptions()) // again, as for the next broker
	unlimited := packetSocketIn(t, free)
	testenv.Must(t, unix.SetsockoptTpacketReq(unlimited, unix.SOL_PACKET, unix.PACKET_RX_RING, &ring))
	testenv.Must(t, unix.SetsockoptPacketMreq(unlimited, unix.SOL_PACKET, unix.PACKET_ADD_MEMBERSHIP, &member))
	for name, fd := range map[string]int{"earlier": before, "later": packetSocketIn(t, limited)} {
		if permitted := optionsOf(fd); permitted != " 8 18 23 " {
			t.Errorf("%s socket: the kernel permits the options%s", name, permitted)
		}
		testenv.Must(t, unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUF, 1<<16))
	}
}

// TestPacketOptionsOnThisHost: the probe agrees, and leaves nothing.
func TestPacketOptionsOnThisHost(t *testing.T) {
	testenv.Root(t)
	c := testCgroup(t)
	create(t, c, Limits{})
	if works, probed := c.LimitPacketOptions(), ProbePacketOptions(); (works == nil) != (probed == nil) {
		t.Errorf("the probe: %v; a group: %v", probed, works)
	}
	if exists, err := probeGroup(os.Getpid()).Exists(); exists || err != nil {
		t.Errorf("the probe's group is left: %v, %v", exists, err)
	}
}

// TestProbesAreCollected: the group of a probe that was killed is removed, and not that of one
// that runs.
func TestProbesAreCollected(t *testing.T) {
	testenv.Root(t)
	ended := exec.Command("true")
	testenv.Must(t, ended.Run())
	stale, own := probeGroup(ended.Process.Pid), probeGroup(os.Getppid())
	for _, c := range []Cgroup{stale, own} {
		create(t, c, Limits{})
		t.Cleanup(func() { testenv.Must(t, removeCgroup(context.Background(), c.Path)) })
	}
	testenv.Must(t, CollectProbes(context.Background()))
	if exists, err := stale.Exists(); exists || err != nil {
		t.Errorf("the group of an ended process is left: %v, %v", exists, err)
	}
	if exists, err := own.Exists(); !exists || err != nil {
		t.Errorf("the group of a running process is removed: %v, %v", exists, err)
	}
}

// packetSocketIn is a packet socket, on the loopback interface of a namespace of its own,
// that a process of the cgroup made.
func packetSocketIn(t *testing.T, c Cgroup) int {
	t.Helper()
	const program = `socket(my $s, 17, 3, 0) or die "$!\n"; bind($s, pack("SnlSCCx8", 17, 0, 1, 0, 0, 0)) or die "$!\n";
		$| = 1; print fileno($s), "\n"; sleep 1000`
	cmd := exec.Command("unshare", "--net", "perl", "-e", program)
	out, err := cmd.StdoutPipe()
	testenv.Must(t, err)
	testenv.Must(t, Place{Netns: HostNetns, Cgroup: c}.Start(cmd))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var theirs int
	if _, err := fmt.Fscan(out, &theirs); err != nil {
		t.Fatalf("no packet socket: %v", err)
	}
	process, err := unix.PidfdOpen(cmd.Process.Pid, 0)
	testenv.Must(t, err)
	defer unix.Close(process)
	fd, err := unix.PidfdGetfd(process, theirs, 0)
	testenv.Must(t, err)
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

var (
	ring   = unix.TpacketReq{Block_size: 4096, Block_nr: 1, Frame_size: 2048, Frame_nr: 2}
	member = unix.PacketMreq{Ifindex: 1, Type: unix.PACKET_MR_PROMISC}
)

// optionsOf lists the options of SOL_PACKET that are not refused for lack of a permission.
func optionsOf(fd int) string {
	permitted := " "
	for option := range 40 {
		for _, err := range []error{
			unix.SetsockoptInt(fd, unix.SOL_PACKET, option, 1),
			unix.SetsockoptPacketMreq(fd, unix.SOL_PACKET, option, &member),
			unix.SetsockoptTpacketReq(fd, unix.SOL_PACKET, option, &ring),
		} {
			if !errors.Is(err, unix.EPERM) {
				permitted += fmt.Sprintf("%d ", option)
				break
			}
		}
	}
	return permitted
}
