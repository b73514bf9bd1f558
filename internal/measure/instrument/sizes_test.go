// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
)

// TestSizes: messages and socket buffers reach each tool, and only if they are asked for.
func TestSizes(t *testing.T) {
	p := Params{Duration: time.Second, Message: 256, Buffer: 32768}
	for what, c := range map[string]struct{ got, want string }{
		"iperf3":           {strings.Join(iperf3Sizes(p), " "), "-l 256 -w 32768"},
		"iperf3, its own":  {strings.Join(iperf3Sizes(Params{}), " "), ""},
		"qperf":            {strings.Join(qperfOptions(p), " "), "-t 1 -to 20 -uu -sb 32768"},
		"qperf, the usual": {strings.Join(qperfOptions(Params{Duration: time.Second}), " "), "-t 1 -to 20 -uu"},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s", what, c.got)
		}
	}
}

// TestDatagramSize: iperf counts the offered rate in datagrams of the wanted size.
func TestDatagramSize(t *testing.T) {
	e := Endpoint{Name: "a.p0", IP: netip.MustParseAddr("10.0.0.1"), MTU: 1500}
	for message, want := range map[int]int{0: 1472, 1470: 1470} {
		u, quantity, offered := wanted(e, e, Params{Duration: time.Second, Bitrate: 95_000_000, Message: message})
		if u.payload != want || quantity != record.QDelivery || offered.OfferedRate != uint64(95_000_000/8/want) {
			t.Errorf("message %d: %+v offers %+v", message, u, offered)
		}
		if argv := strings.Join(u.programs("iperf", 5001).client, " "); !strings.Contains(argv, " -l "+map[int]string{1472: "1472", 1470: "1470"}[want]+" ") {
			t.Errorf("message %d: %s", message, argv)
		}
	}
}
