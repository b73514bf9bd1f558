// SPDX-License-Identifier: Apache-2.0

package native

import (
	"net"
	"net/netip"
	"reflect"
	"testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

// TestServed checks that the broker gets every setting that a chain can
// request for a native port.
func TestServed(t *testing.T) {
	mac := net.HardwareAddr{2, 0, 0, 0, 0, 1}
	ip := netip.MustParsePrefix("192.0.2.1/24")
	node := 1
	s := transport.Spec{
		Link: "f1u", MTU: 1600, Node: &node, Messages: &chain.Messages{Size: 4 << 20, Count: 3},
		Ends: []transport.End{
			{Function: "a", Name: "p0", MAC: mac}, // an interface: not for the broker
			{Function: "b", Name: "p1", MAC: mac, IP: ip, Queues: 4, Face: chain.FaceNative, Socket: "/x/p1", User: 1000,
				Hold: &chain.Hold{Packets: 64, Beyond: chain.BeyondCopy}},
		},
	}
	want := broker.Link{
		Name: "f1u", Kind: broker.KindNetdev, Node: &node, MessageBytes: 4 << 20, Messages: 3,
		Ends: []broker.End{{
			Function: "b", Port: "p1", Socket: "/x/p1", Owner: 1000, MAC: mac, IP: ip, MTU: 1600, Queues: 4,
			HoldQuota: 64, HoldPolicy: broker.HoldCopy, Netns: "/x/native2.net", Interface: "p1",
		}},
	}
	if got := Served(s, broker.KindNetdev, map[int]host.Netns{1: {Path: "/x/native2.net"}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if string(chain.BeyondDrop) != broker.HoldDrop || string(chain.BeyondCopy) != broker.HoldCopy {
		t.Error("chain file and broker use different names")
	}
}
