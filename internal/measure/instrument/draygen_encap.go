// SPDX-License-Identifier: Apache-2.0

package instrument

import "strconv"

// Encapsulation surrounds the packets that a generator sends to a function that
// decapsulates. They are IPv4 packets.
type Encapsulation struct {
	// Option is draygen's --encap; empty: plain frames.
	Option string
	// Headers are a frame's header bytes in addition to Ethernet, IPv4 and UDP.
	Headers int
	// Users is the number of flows, each a user with a tunnel.
	Users int
	// Spread gives each user an address of its own, counting up from the port's: as the
	// source of packets ("from") or their destination ("to"); empty: all have the port's.
	Spread string
}

// Smallest is the smallest frame, with FCS, that holds the generator's header.
func (e Encapsulation) Smallest() int {
	return offer{encap: &e}.smallest() + genFCS
}

// around is the sender's option for it.
func (o offer) around() []string {
	if o.encap == nil {
		return nil
	}
	options := []string{"--flows", strconv.Itoa(o.encap.Users)}
	if o.encap.Option != "" {
		options = append([]string{"--encap", o.encap.Option}, options...)
	}
	if o.encap.Spread != "" {
		options = append(options, "--spread", o.encap.Spread)
	}
	return options
}
