// SPDX-License-Identifier: Apache-2.0

package chain

import "net"

// MAC is an Ethernet address, written "02:00:00:00:00:01"; empty: none.
type MAC string

// HardwareAddr converts the address for the net package; nil if empty.
func (m MAC) HardwareAddr() net.HardwareAddr {
	hw, err := net.ParseMAC(string(m))
	if err != nil {
		return nil
	}
	return hw
}
