// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"

	"github.com/vishvananda/netlink"
)

// Traffic is what the kernel has counted at an interface, from the view of its namespace.
type Traffic struct {
	Carrier        bool // it can carry packets
	Sent, Received Counts
}

// Counts are the counters of one direction.
type Counts struct{ Packets, Bytes, Dropped, Errors uint64 }

// ReadTraffic reads the counters of these interfaces. It asks for each by its name, because
// a function may have any number of others. The result lacks those that do not exist.
func (n Netns) ReadTraffic(names []string) (map[string]Traffic, error) {
	nl, err := n.handle()
	if err != nil {
		return nil, err
	}
	defer nl.Close()
	all := make(map[string]Traffic, len(names))
	for _, name := range names {
		l, err := nl.LinkByName(name)
		if LinkGone(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("interface %s in %s: %w", name, n, err)
		}
		all[name] = trafficOf(l.Attrs())
	}
	return all, nil
}

func trafficOf(a *netlink.LinkAttrs) Traffic {
	t := Traffic{Carrier: carries(a)}
	if s := a.Statistics; s != nil {
		t.Sent = Counts{Packets: s.TxPackets, Bytes: s.TxBytes, Dropped: s.TxDropped, Errors: s.TxErrors}
		t.Received = Counts{Packets: s.RxPackets, Bytes: s.RxBytes, Dropped: s.RxDropped, Errors: s.RxErrors}
	}
	return t
}
