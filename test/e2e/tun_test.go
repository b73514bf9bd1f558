// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// A container without capabilities attaches to the TUN interface of its chain file:
//
//	program ── /dev/net/tun ── tun0 172.16.0.1/24 :ue: f1 ── veth ── f1 :core
const tunChain = `apiVersion: drayage/v1
kind: Chain
name: tun
functions:
  - {name: ue, runtime: runc, command: [sleep, "1000"], ports: [{name: f1}], tuns: [{name: tun0, ip: 172.16.0.1/24, mtu: 1400}]}
  - {name: core, runtime: process, ports: [{name: f1}]}
links:
  - {name: f1, ends: [ue.f1, core.f1]}
`

func TestTunInterface(t *testing.T) {
	t.Parallel()
	testenv.Program(t, "runc", "perl", "ip")
	b := newBench(t)
	b.want(0, "up", b.file(tunChain))
	defer b.want(0, "down", "tun")
	const attach = `open(my $f, "+<", "/dev/net/tun") or die "open: $!\n"; my $r = pack("a16 S x22", "tun0", 0x1001);
		ioctl($f, 0x400454ca, $r) or die "attach: $!\n"; system "ip", "-o", "addr", "show", "tun0"; system "ip", "-o", "link", "show", "tun0"`
	for range 2 { // it outlasts a program
		if r := b.want(0, "exec", "tun", "ue", "--", "perl", "-e", attach); !strings.Contains(r.Stdout, "172.16.0.1/24") || !strings.Contains(r.Stdout, "mtu 1400") || !strings.Contains(r.Stdout, "LOWER_UP") {
			t.Errorf("the interface while a program is attached: %s", r)
		}
	}
	const another = `open(my $f, "+<", "/dev/net/tun") or die "open: $!\n"; my $r = pack("a16 S x22", "tun1", 0x1001); ioctl($f, 0x400454ca, $r) or die "attach: $!\n"`
	if r := b.dray("exec", "tun", "ue", "--", "perl", "-e", another); r.Code == 0 || !strings.Contains(r.String(), "Operation not permitted") {
		t.Errorf("it makes an interface of its own: %s", r)
	}
}
