// SPDX-License-Identifier: Apache-2.0

package chain

import "net"

// MAC is an Ethernet address; written "02:00:00:00:00:01". Empty: none given.
type MAC string

// HardwareAddr is the address in the form the net package uses; nil if empty.
func (m MAC) HardwareAddr() net.HardwareAddr {
	hw, err := net.ParseMAC(string(m))
	if err != nil {
		return nil
	}
	return hw
}
