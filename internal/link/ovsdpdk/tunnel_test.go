// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

// onHosts is a link with an end on each of those hosts.
func onHosts(names ...string) transport.Spec {
	var ends []transport.End
	s := transport.Spec{}
	for i, name := range names {
		ends = append(ends, transport.End{Face: chain.FaceDPDK, Host: name, User: 1000 + i, Dir: "/run/dray/c/fn/f" + name + "/links/p", HugePages: i > 0})
		if !slices.ContainsFunc(s.Hosts, func(h transport.Host) bool { return h.Name == name }) {
			s.Hosts = append(s.Hosts, transport.Host{Name: name, Netns: host.Netns{Path: "/run/" + name}, Device: "eth0",
				Addr: netip.PrefixFrom(netip.AddrFrom4([4]byte{100, 64, byte(32 * i), 1}), 15)})
		}
	}
	whole := spec(ends...)
	whole.Hosts, whole.VNI = s.Hosts, 7
	return whole
}

// TestSwitchOfEachHost: a host's switch has its own user, sees only that
// host's applications, and is joined to each other host.
func TestSwitchOfEachHost(t *testing.T) {
	s := onHosts("h1", "h2", "h2")
	s.CPUs = []int{4, 5}
	var owners []string
	for i, want := range []struct {
		files []int
		ports string
		cpus  []int
	}{
		{[]int{1000}, "p1 vx2", []int{4}},
		{[]int{1001, 1002}, "p1 p2 vx1", []int{5}},
	} {
		w := NewTunnel().(tunnel).switchOn(s, i)
		e := w.vswitchd("", nil)
		if got := strings.Join(w.portNames(), " "); got != want.ports || !slices.Equal(e.Files, want.files) || !slices.Equal(w.spec.CPUs, want.cpus) {
			t.Errorf("host %d has the ports %s, the users %v and the CPUs %v", i+1, got, e.Files, w.spec.CPUs)
		}
		if e.HugePages {
			t.Errorf("the switch of host %d uses huge pages, but not all of the link's applications have them", i+1)
		}
		if e.Netns == nil || *e.Netns != s.HostNetns(i) || !slices.Contains(e.Caps, "CAP_NET_RAW") || w.sleep() != "0" {
			t.Errorf("host %d: %+v", i+1, e)
		}
		if got := w.flows(); !slices.Equal(got, []string{"actions=NORMAL"}) {
			t.Errorf("three ends are joined by %q", got)
		}
		if slices.Contains(owners, e.Owner) {
			t.Errorf("both switches run as the user of %s", e.Owner)
		}
		owners = append(owners, e.Owner)
		args, err := w.tunnelPorts()
		text := strings.Join(args, " ")
		for _, part := range []string{"protected=true", "options:key=7", "mtu_request=1550", "options:local_ip=100.64." + []string{"0", "32"}[i] + ".8"} {
			if !strings.Contains(text, part) {
				t.Errorf("no %s in %s (%v)", part, text, err)
			}
		}
	}
}

// TestTunnelFlows: two ends are joined by a flow in each direction on both
// hosts. The switches share CPUs if there is not one for each.
func TestTunnelFlows(t *testing.T) {
	s := onHosts("h1", "h2")
	s.CPUs = []int{4}
	w := NewTunnel().(tunnel).switchOn(s, 1)
	if got := strings.Join(w.flows(), "|"); got != "in_port=1 actions=output:2|in_port=2 actions=output:1" {
		t.Errorf("two ends are joined by %s", got)
	}
	if w.sleep() != longestSleep || len(w.spec.CPUs) > 0 {
		t.Errorf("one CPU for two switches: %v, and a sleep of %s", w.spec.CPUs, w.sleep())
	}
	s.Forwarding = chain.ForwardingLearning
	if got := NewTunnel().(tunnel).switchOn(s, 0).flows(); !slices.Equal(got, []string{"actions=NORMAL"}) {
		t.Errorf("learning is %q", got)
	}
}
