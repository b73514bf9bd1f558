// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"crypto/sha256"
	"fmt"
	"net"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
)

// assignMACs gives every port without an address a locally administered unicast address
// (the U/L bit of IEEE Std 802). It depends only on the names of chain, function and
// port, so it survives any other change of the chain.
func (p *planner) assignMACs() {
	used := map[string]bool{}
	for _, f := range p.chain.Functions {
		for _, port := range f.Ports {
			used[strings.ToLower(string(port.MAC))] = true
		}
	}
	for i := range p.plan.Links {
		for j := range p.plan.Links[i].Ends {
			e := &p.plan.Links[i].Ends[j]
			if e.Uplink != "" || e.MAC != "" {
				continue
			}
			e.MAC = deriveMAC(p.chain.Name, e.String(), used)
			used[string(e.MAC)] = true
		}
	}
}

// deriveMAC hashes again, with a counter, while the address is already used.
func deriveMAC(chainName, end string, used map[string]bool) chain.MAC {
	for n := 0; ; n++ {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%d", chainName, end, n))
		mac := net.HardwareAddr{0x02, sum[0], sum[1], sum[2], sum[3], sum[4]}.String()
		if !used[mac] {
			return chain.MAC(mac)
		}
	}
}
