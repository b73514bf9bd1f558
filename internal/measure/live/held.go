// SPDX-License-Identifier: Apache-2.0

package live

import (
	"slices"

	"github.com/drayage/dray/internal/link/broker"
)

// Held are the chain's links of two native ports of which an application has opened one
// at least, so that no instrument can.
func (c Chain) Held() []string {
	var names []string
	for _, l := range c.Links {
		if len(l.Ends) == 2 && slices.ContainsFunc(l.Ends, func(e broker.EndStatus) bool { return e.Connected }) {
			names = append(names, l.Name)
		}
	}
	return names
}
