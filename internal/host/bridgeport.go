// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// brStateForwarding is BR_STATE_FORWARDING of linux/if_bridge.h.
const brStateForwarding = 3

// WaitForwarding waits until the bridge forwards on a port, or ctx ends. Forwarding
// starts when the kernel has processed the carrier change, up to a second later.
// Until then the port silently drops every packet.
func (n Netns) WaitForwarding(ctx context.Context, port string) error {
	for {
		state, err := n.bridgePortState(port)
		if err != nil {
			return err
		}
		if state == brStateForwarding {
			return nil
		}
		if err := Sleep(ctx, 2*time.Millisecond); err != nil {
			return fmt.Errorf("bridge port %s in %s does not forward (state %d): %w", port, n, state, err)
		}
	}
}

// bridgePortState reads IFLA_BRPORT_STATE, which the netlink library leaves out.
func (n Netns) bridgePortState(port string) (state byte, err error) {
	link, err := n.ReadLink(port)
	if err != nil {
		return 0, err
	}
	err = n.Do(func() error {
		req := nl.NewNetlinkRequest(unix.RTM_GETLINK, 0)
		msg := nl.NewIfInfomsg(unix.AF_UNSPEC)
		msg.Index = int32(link.Index)
		req.AddData(msg)
		replies, err := req.Execute(unix.NETLINK_ROUTE, unix.RTM_NEWLINK)
		if err != nil {
			return fmt.Errorf("bridge port %s in %s: %w", port, n, err)
		}
		for _, reply := range replies {
			value, ok := attribute(reply[nl.DeserializeIfInfomsg(reply).Len():],
				unix.IFLA_LINKINFO, nl.IFLA_INFO_SLAVE_DATA, nl.IFLA_BRPORT_STATE)
			if ok && len(value) == 1 {
				state = value[0]
				return nil
			}
		}
		return fmt.Errorf("%s in %s is not a port of a bridge", port, n)
	})
	return state, err
}

// attribute finds a nested netlink attribute by its path of types.
func attribute(b []byte, path ...uint16) ([]byte, bool) {
	for _, kind := range path {
		attrs, err := nl.ParseRouteAttr(b)
		if err != nil {
			return nil, false
		}
		found := false
		for _, a := range attrs {
			if a.Attr.Type&nl.NLA_TYPE_MASK == kind {
				b, found = a.Value, true
			}
		}
		if !found {
			return nil, false
		}
	}
	return b, true
}
