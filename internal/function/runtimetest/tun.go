// SPDX-License-Identifier: Apache-2.0

package runtimetest

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

// tunProgram attaches to tun0 and sends a datagram to an address of its subnet, which it
// answers itself: it swaps addresses and ports, which leaves the checksums valid.
const tunProgram = `
use Socket;
sub request { pack("a16 S x22", $_[0], $_[1]) }
sub attach { open(my $f, "+<", "/dev/net/tun") or die "open: $!\n"; my $r = request(@_); ioctl($f, 0x400454ca, $r) or die "attach: $!\n"; $f }
$tun = attach("tun0", 0x1001);
socket($s, PF_INET, SOCK_DGRAM, 0) or die "socket: $!\n";
$SIG{ALRM} = sub { die "no answer\n" }; alarm 20;
for (;;) {
	send($s, "hello", 0, pack_sockaddr_in(7, inet_aton("172.16.0.2"))) or die "send: $!\n";
	vec($readable = "", fileno($tun), 1) = 1;
	select($readable, undef, undef, 0.05) or next; # the kernel drops packets until it has noticed the carrier
	sysread($tun, $p, 2000);
	next unless unpack("C", $p) == 0x45 and unpack("x9 C", $p) == 17;
	substr($p, 12, 8) = substr($p, 16, 4) . substr($p, 12, 4);
	substr($p, 20, 4) = substr($p, 22, 2) . substr($p, 20, 2);
	syswrite($tun, $p) or die "write: $!\n";
	last;
}
recv($s, $answer, 100, 0); print "answer $answer\n";
`

// tunAttack tries what the owner of a TUN interface must not do, then what only harms itself:
// it gives its interface away, and lets it end.
const tunAttack = tunProgram + `
sub try { my ($what, $did) = @_; print "$what: ", ($did ? "yes" : $!+0), "\n" }
sub another { open(my $f, "+<", "/dev/net/tun"); my $r = request(@_); ioctl($f, 0x400454ca, $r) }
sub change { my $r = pack("a16 i x20", "tun0", $_[1]); ioctl($s, $_[0], $r) }
try("another tun", another("tun9", 0x1001));
try("a tap", another("tap9", 0x1002));
try("a second queue", another("tun0", 0x1001));
try("several queues", another("tun0", 0x1101));
try("the address", do { my $r = pack("a16 S n a4 x16", "tun0", 2, 0, inet_aton("10.0.0.1")); ioctl($s, 0x8916, $r) });
try("the mtu", change(0x8922, 9000));
try("the queue length", change(0x8943, 100000));
try("its namespace", ioctl($tun, 0x54e3, 0));
ioctl($tun, 0x400454cc, 1) or die "owner: $!\n";
ioctl($tun, 0x400454cb, 0) or die "persist: $!\n";
`

// testTun: a function reads and writes the packets of its TUN interface without a
// capability. A restart gives it the interface back, whatever it did to it.
func testTun(t *testing.T, c Config) {
	fn := c.function(t)
	fn.Tuns = []chain.Tun{{Name: "tun0", IP: netip.MustParsePrefix("172.16.0.1/24"), MTU: 1400}}
	f := Up(t, c.Runtime, fn)
	if out, code := f.Output("perl", "-e", tunProgram); out != "answer hello\n" || code != 0 {
		t.Fatalf("status %d: %s", code, out)
	}
	out, code := f.Output("perl", "-e", tunAttack)
	const refused = "another tun: 1\na tap: 1\na second queue: 16\nseveral queues: 22\nthe address: 1\nthe mtu: 1\nthe queue length: 1\nits namespace: 1\n"
	if want := "answer hello\n" + refused; c.Runtime.Name() != chain.RuntimeProcess && out != want || code != 0 {
		t.Errorf("status %d: the owner of a TUN interface can:\n%s", code, out)
	}
	if c.Runtime.Name() == chain.RuntimeProcess && !strings.Contains(out, "another tun: yes") {
		t.Errorf("with all privileges the attacks do not succeed, so they prove nothing:\n%s", out)
	}
	if out, code := f.Output("perl", "-e", tunProgram); out != "answer hello\n" || code != 0 {
		t.Errorf("after a restart, status %d: %s", code, out)
	}
	if out, _ := f.Output("cat", "/proc/net/dev"); !strings.Contains(out, "tun0:") || strings.Contains(out, "tun9:") {
		t.Errorf("interfaces: %s", out)
	}
}

// testNoTun: without TUN interfaces there is no device, where functions have their own /dev.
func testNoTun(t *testing.T, c Config) {
	if c.Runtime.Name() == chain.RuntimeProcess {
		t.Skip("a process sees the host's devices")
	}
	f := Up(t, c.Runtime, c.function(t))
	if out, code := f.Output("perl", "-e", `open(my $f, "+<", "/dev/net/tun") or die "$!\n"`); code == 0 {
		t.Errorf("it opens the device: %s", out)
	}
}
