// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"testing"

	"github.com/drayage/dray/internal/link/transport"
)

// RunVFs runs the parts of the suite for links between VF ports, as many as
// the card has. VF ports have one queue, and one link may receive another's
// packets. state describes the card.
func RunVFs(t *testing.T, d transport.Driver, state func() string) {
	require(t, d)
	openBefore, _ := leaks(t)
	o := Options{Beside: state}
	ipv6 := o
	ipv6.IPv6 = true
	shaped := o
	shaped.Shape = pfifo
	t.Run("Caps", func(t *testing.T) { testCaps(t, d) })
	t.Run("SpecErrors", func(t *testing.T) { testSpecErrors(t, d, o) })
	t.Run("Traffic", func(t *testing.T) {
		both := o
		both.Ports = 2
		testTraffic(t, d, both)
	})
	t.Run("TrafficIPv6", func(t *testing.T) {
		ipv6.Ports = 2
		testTraffic(t, d, ipv6)
	})
	t.Run("ShapeOfOneEnd", func(t *testing.T) { testShapeOfOneEnd(t, d, o) })
	t.Run("ShapeLimits", func(t *testing.T) { testShapeLimits(t, d, o) })
	t.Run("Removal", func(t *testing.T) { testRemoval(t, d, o) })
	t.Run("Faults", func(t *testing.T) {
		RunFaults(t, func(t *testing.T) World { return NewRig(t, d, shaped) })
	})
	t.Run("Cancel", func(t *testing.T) { testCancel(t, d, o) })
	t.Run("Vanish", func(t *testing.T) { testVanish(t, d, o) })
	t.Run("ReadBack", func(t *testing.T) { testReadBack(t, d, o) })
	checkLeaks(t, openBefore)
}
