// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"net"
	"time"
)

// Duration is a time span; written "20us", "1.5ms", "2s".
type Duration time.Duration

// Bitrate is in bit/s; written "400Mbps", "4.016Gbps". Prefixes are decimal.
type Bitrate uint64

// Bytes is a size; written "512Mi" (2^20), "1500", "64k" (10^3), "4Ki" (2^10).
type Bytes uint64

// PacketRate is in packets per second; written "100kpps", "1.2Mpps".
type PacketRate uint64

// Ratio is a proportion in (0, 1); written "1e-4" or "0.01%".
type Ratio float64

// Percentile is in (0, 100); written 99.9 or "p99.9".
type Percentile float64

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
