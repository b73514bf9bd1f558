// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"net/netip"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// TestPayloadHasTheLinksFamily: an IPv6 header is 20 bytes longer.
func TestPayloadHasTheLinksFamily(t *testing.T) {
	for ip, headers := range map[string]int{"": 28, "10.0.0.1/24": 28, "fd00::1/64": 48} {
		port := &chain.Port{}
		l := Link{MTU: 1500, Ends: []End{{}}}
		if ip != "" {
			port.IP = netip.MustParsePrefix(ip)
			l.Ends[0].IP = port.IP
		}
		n := &needs{link: &chain.Link{}, mtu: 1500, ports: []portEnd{{port: port}}}
		rate := units.Bitrate(1514_000)
		if got, want := n.goodput(rate), uint64(1000*(1500-headers)); got != want {
			t.Errorf("%q: udp %d, want %d", ip, got, want)
		}
		if got := l.UDPPayload(); got != 1500-headers {
			t.Errorf("%q: a payload of %d", ip, got)
		}
		if got, want := n.smallFrame(), 36+headers; got != want {
			t.Errorf("%q: small frames of %d, want %d", ip, got, want)
		}
		l.Frame = 1018
		if got := l.UDPPayload(); got != 1000-headers {
			t.Errorf("%q: a payload of %d in frames of 1018", ip, got)
		}
		n.link.Traffic = chain.TrafficTCP
		if got, want := n.goodput(rate), uint64(1000*(1500-headers+8-32)); got != want {
			t.Errorf("%q: tcp %d, want %d", ip, got, want)
		}
	}
}
