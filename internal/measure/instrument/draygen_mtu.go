// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// genTooLong matches draygen's message if a port rejects such a packet.
var genTooLong = regexp.MustCompile(`frames of \d+ bytes do not fit`)

// pathMTU tries packets of the wanted size on a port that answers no ping. If
// they do not arrive, it finds the largest that do.
func (g Draygen) pathMTU(ctx context.Context, t record.Trial, from, to Endpoint, p Params) (record.Trial, error) {
	o := offer{ip6: ipHeader(to.IP) == ipv6Header, rate: "100pps", packets: pingCount, nextHop: p.NextHop, encap: p.Encap}
	smallest := o.smallest() - genMAC
	if p.MTU < smallest || p.MTU > maxPacket-genMAC {
		return t, fmt.Errorf("draygen: a packet of %d bytes is impossible: at least %d, at most %d", p.MTU, smallest, maxPacket-genMAC)
	}
	probe := func(size int) (bool, error) {
		o.frame = size + genMAC
		result, err := g.send(ctx, &t, from, to, o, time.Second)
		if err != nil && genTooLong.MatchString(err.Error()) {
			return false, ctx.Err()
		}
		return err == nil && result.sink.Received > 0, err
	}
	var err error
	t.PathMTU, err = findMTU(probe, smallest, p.MTU)
	if t.PathMTU != nil && p.Encap != nil { // the user's packet counts, not what carries it
		t.PathMTU.Wanted -= p.Encap.Headers
		t.PathMTU.Largest = max(0, t.PathMTU.Largest-p.Encap.Headers)
	}
	return t, err
}
