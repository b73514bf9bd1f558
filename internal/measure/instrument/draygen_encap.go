// SPDX-License-Identifier: Apache-2.0

package instrument

import "strconv"

// Encapsulation is what stands around the packets that a generator sends to a
// function that takes tunnels apart. They are IPv4's.
type Encapsulation struct {
	// Option is draygen's --encap; empty: plain frames.
	Option string
	// Headers are the bytes that a frame has before its payload, beside those of
	// Ethernet, IPv4 and UDP.
	Headers int
	// Users are the flows, each of which is a user with a tunnel.
	Users int
	// OwnAddresses gives each user a source address: that of the port, and the next.
	OwnAddresses bool
}

// Smallest is the smallest frame with its FCS that holds the generator's header.
func (e Encapsulation) Smallest() int {
	return offer{encap: &e}.smallest() + genFCS
}

// around is how the sender is told of it.
func (o offer) around() []string {
	if o.encap == nil {
		return nil
	}
	options := []string{"--flows", strconv.Itoa(o.encap.Users)}
	if o.encap.Option != "" {
		options = append([]string{"--encap", o.encap.Option}, options...)
	}
	if o.encap.OwnAddresses {
		options = append(options, "--spread", "from")
	}
	return options
}
