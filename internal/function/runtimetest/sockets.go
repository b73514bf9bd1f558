// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"fmt"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// ringBytes is the kernel memory that a function takes with a ring: more than
// ringMemory, its limit.
const (
	ringBytes  = 128 << 20
	ringMemory = 64 << 20
)

// packetIgnoreOutgoing is PACKET_IGNORE_OUTGOING of linux/if_packet.h.
const packetIgnoreOutgoing = 23

// withSocket takes the packet socket that the port hands over, as the broker does, as
// $fd. Then it runs the rest of a script.
func withSocket(path, rest string) string {
	return fmt.Sprintf(perlPrologue+`socket my $s, AF_UNIX, %d, 0 or refused; connect($s, pack_sockaddr_un(%s)) or refused;
		my ($b, $c) = ("\0" x 16, "\0" x 64); my $iov = pack "JJ", unpack("J", pack "p", $b), 16;
		my $m = pack "JJJJJJJ", 0, 0, unpack("J", pack "p", $iov), 1, unpack("J", pack "p", $c), 64, 0;
		syscall(%d, fileno($s), $m, 0) > 0 or refused; my $fd = unpack "x16l", $c; $fd > 2 or refused("nothing came");
		%s`, unix.SOCK_SEQPACKET, path, unix.SYS_RECVMSG, rest)
}

// setOption sets a ring on a packet socket, or another option. high is added to level
// and option: the kernel ignores bits above the lowest 32.
func setOption(path string, option int, high string) string {
	return withSocket(path, fmt.Sprintf(`my $o = grep({ $_ == %d } 8, 23) ? pack("L", 1) : pack "L4", 1 << 20, %d >> 20, 2048, %d >> 11;
		syscall(%d, $fd, 263 + %s, %d + %s, $o, length $o) == 0 ? yes : refused`,
		option, ringBytes, ringBytes, unix.SYS_SETSOCKOPT, high, option, high))
}

// tryAll prints which options of a packet socket, and which other privileged calls on it,
// are not refused.
func tryAll(path string) string {
	return withSocket(path, fmt.Sprintf(`my $o = pack "L4"; my $i = "lo" . "\0" x 38;
		for (1 .. 64) { print "$_ " if syscall(%[1]d, $fd, 263, $_, $o, 4) == 0 || !$!{EPERM} }
		for (%[2]d, %[3]d, %[4]d) { print "force$_ " if syscall(%[1]d, $fd, 1, $_, $o, 4) == 0 || !$!{EPERM} }
		for (0x8914, 0x8922, 0x8923, 0x8924, 0x894c) { printf "%%x ", $_ if syscall(%[5]d, $fd, $_, $i) >= 0 || !$!{EPERM} }
		print "\n"`, unix.SYS_SETSOCKOPT, unix.SO_SNDBUFFORCE, unix.SO_RCVBUFFORCE, unix.SO_MARK, unix.SYS_IOCTL))
}

// handOver gives each client of the function's port a packet socket of its
// namespace.
func handOver(f *Function) (path string) {
	f.T.Helper()
	return listen(f, func(conn *net.UnixConn) {
		fd := -1
		err := f.Sandbox.Netns.Do(func() (err error) {
			fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW|unix.SOCK_CLOEXEC, 0)
			return err
		})
		if err != nil {
			f.T.Error(err)
			return
		}
		defer unix.Close(fd)
		if _, _, err := conn.WriteMsgUnix([]byte("a socket"), unix.UnixRights(fd), nil); err != nil {
			f.T.Error(err)
		}
	})
}

// testRings shows that a function cannot take kernel memory with the packet sockets
// of its native ports, which no cgroup counts; and that libdray's own option works.
func testRings(t *testing.T, c Config) {
	fn := withNativePort(c.function(t))
	fn.Memory = ringMemory
	f := Up(t, c.Runtime, fn)
	path := handOver(f)
	const above = "(1 << 32)"
	for _, high := range []string{"0", above} {
		if got := onHost(t, setOption(`"`+path+`"`, unix.PACKET_RX_RING, high)); got != "yes\n" {
			t.Fatalf("without protection the probe does not succeed, so it proves nothing: %s", got)
		}
	}
	var scripts []string
	var names []string
	for _, option := range []int{unix.PACKET_RX_RING, unix.PACKET_TX_RING, unix.PACKET_FANOUT, unix.PACKET_FANOUT_DATA, unix.PACKET_RESERVE, unix.PACKET_COPY_THRESH, unix.PACKET_VERSION} {
		for _, high := range []string{"0", above} {
			scripts = append(scripts, setOption(ownPort, option, high))
			names = append(names, fmt.Sprintf("option %d + %s", option, high))
		}
	}
	outcomes := f.runAll(scripts)
	t.Logf("measured: a ring of %d MiB for a function limited to %d MiB: %s", ringBytes>>20, ringMemory>>20, strings.TrimSpace(outcomes[0]))
	for i, got := range outcomes[:len(scripts)] {
		if got != "no: Operation not permitted\n" {
			t.Errorf("%s: %q", names[i], got)
		}
	}
	for i, got := range f.runAll([]string{setOption(ownPort, unix.PACKET_AUXDATA, "0"), setOption(ownPort, packetIgnoreOutgoing, "0")})[:2] {
		if got != "yes\n" {
			t.Errorf("libdray cannot set its own option %d: %s", i, got)
		}
	}
	all := f.runAll([]string{tryAll(ownPort)})[0]
	if own := fmt.Sprintf("%d %d \n", unix.PACKET_AUXDATA, packetIgnoreOutgoing); all != own {
		t.Errorf("of all calls these are not refused: %s, instead of %s", all, own)
	}
	if got := onHost(t, tryAll(`"`+path+`"`)); len(got) <= len(all) {
		t.Errorf("without protection only these are not refused, so it proves nothing: %s", got)
	}
}
