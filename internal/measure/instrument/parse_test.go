// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

func testdata(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name))
	testenv.Must(t, err)
	return b
}

func TestParseIperf3(t *testing.T) {
	r, err := parseIperf3(testdata(t, "iperf3-omit.json"))
	testenv.Must(t, err)
	if r.Throughput.BitsPerSecond != 21410500424 || r.Throughput.Retransmits != 24446 || r.Duration != 2000109*time.Microsecond {
		t.Errorf("got %+v", r)
	}
	if len(r.Throughput.Intervals) != 4 || r.Throughput.Intervals[3] != 22341729319 {
		t.Errorf("intervals %v: want the four that were not omitted", r.Throughput.Intervals)
	}
}

func TestParseIperf3Refuses(t *testing.T) {
	const whole = `{"end":{"sum_sent":{"retransmits":R},"sum_received":{"seconds":S,"bits_per_second":B}}}`
	fill := func(r, s, b string) string {
		return strings.NewReplacer("R", r, "S", s, "B", b).Replace(whole)
	}
	if _, err := parseIperf3([]byte(fill("0", "1", "5"))); err != nil {
		t.Fatalf("the template itself: %v", err)
	}
	good := testdata(t, "iperf3.json")
	for name, c := range map[string]struct{ in, want string }{
		"refused":       {string(testdata(t, "iperf3-refused.json")), "Connection refused"},
		"empty":         {"", "not JSON"},
		"truncated":     {string(good[:len(good)/2]), "not JSON"},
		"no totals":     {`{"end":{}}`, "lacks"},
		"negative rate": {fill("0", "1", "-5"), "impossible"},
		"huge rate":     {fill("0", "1", "1e300"), "impossible"},
		"NaN":           {fill("0", "1", "NaN"), "not JSON"},
		"no time":       {fill("0", "0", "5"), "empty"},
		"negative time": {fill("0", "-1", "5"), "impossible"},
		"retransmits":   {fill("-1", "1", "5"), "impossible"},
	} {
		if _, err := parseIperf3([]byte(c.in)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want %q", name, err, c.want)
		}
	}
}

func TestParseIperf(t *testing.T) {
	r, err := parseIperf(testdata(t, "iperf-server.txt"), testdata(t, "iperf-client.txt"))
	testenv.Must(t, err)
	if r.Sent < 8400 || r.Sent > 8500 || r.Received != r.Sent || r.Jitter > time.Millisecond {
		t.Errorf("clean link: %+v", r)
	}
	r, err = parseIperf(testdata(t, "iperf-server-tbf.txt"), testdata(t, "iperf-client-tbf.txt"))
	testenv.Must(t, err)
	want := iperfReport{Duration: 1026600 * time.Microsecond, Sending: 1000200 * time.Microsecond, Jitter: 129 * time.Microsecond, Sent: 8497, Received: 1706}
	if r.Stamped == nil || *r.Stamped <= 0 {
		t.Errorf("capped link: the stamps give %v", r.Stamped)
	}
	if r.Stamped = nil; r != want {
		t.Errorf("capped link: %+v; want %+v", r, want)
	}
}

const iperfLine = "[  1] 0.0000-1.0000 sec  1.0 MBytes  1.0 Mbits/sec   0.001 ms LOST/TOTAL (0%) 0.002/0.001/0.3/0.003 ms 1 pps\n"

func TestParseIperfCounts(t *testing.T) {
	server := func(lost, total string) []byte {
		return []byte(strings.NewReplacer("LOST", lost, "TOTAL", total).Replace(iperfLine))
	}
	tail, err := parseIperf(server("1", "90"), []byte("[  1] Sent 101 datagrams\n"))
	if err != nil || tail.Sent != 100 || tail.Received != 89 {
		t.Errorf("ten lost at the end: %+v, %v; want 100 sent, 89 received", tail, err)
	}
	late, err := parseIperf(append(server("0", "90"), "[  1] 0.0000-1.0000 sec  7 datagrams received out-of-order\n"...), nil)
	if err != nil || late.Reordered != 7 {
		t.Errorf("reordered: %+v, %v", late, err)
	}
	woke, err := parseIperf(server("0", "90"), []byte("[  1] 0.0000-2.0000 sec  1 MBytes  1 Mbits/sec  90/0    45 pps\n"))
	if d := woke.delivery(record.Delivery{}, 18, Endpoint{}, 0); err != nil || d.PacketRate != 45 {
		t.Errorf("a receiver that saw half the time: %d packets/s, %v; want 45", d.PacketRate, err)
	}
	for _, c := range [][2]string{{"-1", "90"}, {"91", "90"}, {"0", "0"}, {"0", "99999999999999999999"}, {"0", "-5"}} {
		if r, err := parseIperf(server(c[0], c[1]), nil); err == nil {
			t.Errorf("%s lost of %s gave %+v", c[0], c[1], r)
		}
	}
	if _, err := parseIperf([]byte("Server listening on UDP port 1\n"), nil); err == nil {
		t.Error("a server without a stream gave a report")
	}
	for text, want := range map[string]time.Duration{"0.002/0.001/0.3/0.003": 2 * time.Microsecond, "-1.250/-2.000/0.300/0.003": -1250 * time.Microsecond} {
		r, err := parseIperf([]byte(strings.Replace(string(server("0", "9")), "0.002/0.001/0.3/0.003", text, 1)), nil)
		if err != nil || r.Stamped == nil || *r.Stamped != want {
			t.Errorf("stamps %s gave %v, %v", text, r.Stamped, err)
		}
	}
	if r, err := parseIperf([]byte(strings.Replace(string(server("0", "9")), "0.002/0.001/0.3/0.003", "-/-/-/-", 1)), nil); err != nil || r.Stamped != nil {
		t.Errorf("no stamps gave %v, %v", r.Stamped, err)
	}
	if r, err := parseIperf([]byte(strings.Replace(string(server("0", "9")), "0.002/", "99999999999/", 1)), nil); err == nil {
		t.Errorf("stamps of years gave %v", r.Stamped)
	}
	for _, jitter := range []string{"-nan", "-0.5", "1e99", "inf"} {
		if r, err := parseIperf([]byte(strings.Replace(string(server("0", "9")), "0.001 ms", jitter+" ms", 1)), nil); err == nil {
			t.Errorf("jitter %s gave %+v", jitter, r)
		}
	}
}

func TestParseSockperf(t *testing.T) {
	l, err := parseSockperf(testdata(t, "sockperf.txt"), testdata(t, "sockperf.csv"), 500, time.Second)
	testenv.Must(t, err)
	m := regexpInt(t, `Total ([0-9]+) observations`, testdata(t, "sockperf.txt"))
	if l.Histogram.Total() != m || l.Sent != uint64(m) || l.Lost != 0 || l.Stalled != 0 || l.Halved {
		t.Errorf("%d samples, want %d: %+v", l.Histogram.Total(), m, l)
	}
	if l.MinRTT < time.Microsecond || l.MinRTT > time.Millisecond {
		t.Errorf("shortest round trip %v", l.MinRTT)
	}
}

func TestParseSockperfFindsStall(t *testing.T) {
	l, err := parseSockperf(testdata(t, "sockperf-stalled.txt"), testdata(t, "sockperf-stalled.csv"), 100, 3*time.Second)
	testenv.Must(t, err)
	if l.Lost != 1 || l.Sent != 109 || l.Histogram.Total() != 108 {
		t.Errorf("lost %d, sent %d, samples %d; want 1, 109, 108", l.Lost, l.Sent, l.Histogram.Total())
	}
	if l.Stalled < 1400*time.Millisecond || l.Stalled > 1600*time.Millisecond {
		t.Errorf("stalled for %v; want about 1.5 s", l.Stalled)
	}
	l, err = parseSockperf(testdata(t, "sockperf-no-answer.txt"), nil, 500, time.Second)
	if err != nil || l.Lost != 1 || l.Sent != 1 || l.Stalled != time.Second || l.Histogram.Total() != 0 {
		t.Errorf("no answer at all: %+v, %v", l, err)
	}
}

// ms is a log line of a request sent and answered at those milliseconds.
func ms(k int, tx, rx float64) string {
	return strings.Join([]string{strconv.Itoa(k), strconv.FormatFloat(tx/1000, 'f', 9, 64),
		strconv.FormatFloat(rx/1000, 'f', 9, 64), "0.0"}, ", ") + "\n"
}

const sockperfTotals = "[Total Run] RunTime=1.000 sec; Warm up time=400 msec; SentMessages=5; ReceivedMessages=5\n"

func quantiles(t *testing.T, lines ...string) (*record.Latency, []time.Duration) {
	t.Helper()
	l, err := parseSockperf([]byte(sockperfTotals), []byte(strings.Join(lines, "")), 100, time.Second)
	testenv.Must(t, err)
	var all []time.Duration
	for _, c := range l.Histogram.Counts {
		for range c.Count {
			all = append(all, time.Duration(c.Value).Round(100*time.Microsecond))
		}
	}
	return l, all
}

func TestSlowAnswerDelaysCountForLaterRequests(t *testing.T) {
	// One request every 10 ms; the second answer takes 35 ms.
	l, got := quantiles(t, ms(0, 0, 1), ms(1, 10, 45), ms(2, 45, 46), ms(3, 46, 47), ms(4, 47, 48), ms(5, 50, 51))
	want := []time.Duration{1, 1, 8, 17, 26, 35} // from when each was due
	for i := range want {
		if got[i] != want[i]*time.Millisecond {
			t.Fatalf("round trips %v; want %v ms", got, want)
		}
	}
	if l.LateSends != 0 || l.MinRTT != time.Millisecond {
		t.Errorf("late sends %d, shortest %v; want 0 and 1 ms", l.LateSends, l.MinRTT)
	}
}

func TestClientsOwnDelayIsNotTheLinks(t *testing.T) {
	// The client sleeps from 11 ms to 45 ms and then catches up.
	l, got := quantiles(t, ms(0, 0, 1), ms(1, 10, 11), ms(2, 45, 46), ms(3, 46, 47), ms(4, 47, 48), ms(5, 50, 51))
	for _, d := range got[:4] {
		if d != time.Millisecond {
			t.Fatalf("round trips %v", got)
		}
	}
	if l.LateSends != 1 || got[5] > 3*time.Millisecond {
		t.Errorf("late sends %d, round trips %v: the sleep was counted as latency", l.LateSends, got)
	}
}

func TestParseSockperfRefuses(t *testing.T) {
	line := ms(0, 0, 1)
	for name, c := range map[string]struct{ out, log string }{
		"no totals":         {"", line},
		"rx before tx":      {sockperfTotals, ms(0, 5, 4)},
		"backwards":         {sockperfTotals, ms(0, 5, 6) + ms(1, 4, 5)},
		"fields":            {sockperfTotals, "0, 1.0\n"},
		"negative":          {sockperfTotals, "0, -1.0, 1.0, 3\n"},
		"NaN":               {sockperfTotals, "0, nan, 1.0, 3\n"},
		"huge":              {sockperfTotals, "0, 1.0, 99999999999999.0, 3\n"},
		"over an hour":      {sockperfTotals, "0, 1.0, 4000.0, 3\n"},
		"no samples":        {sockperfTotals, ""},
		"impossible counts": {sockperfTotals + "# dropped messages = 99999999999; # duplicated messages = 0; # out-of-order messages = 0", line},
		"time":              {strings.Replace(sockperfTotals, "1.000", "9.9.9", 1), line},
	} {
		if l, err := parseSockperf([]byte(c.out), []byte(c.log), 100, time.Second); err == nil {
			t.Errorf("%s gave %+v", name, l)
		}
	}
	if _, err := parseSockperf([]byte(sockperfTotals), []byte(line), 0, time.Second); err == nil {
		t.Error("a rate of 0 was accepted")
	}
}

func TestParseQperf(t *testing.T) {
	r, err := parseQperf(testdata(t, "qperf.txt"))
	testenv.Must(t, err)
	half := regexpInt(t, `latency +=  ([0-9]+) ns`, testdata(t, "qperf.txt"))
	if r.MeanRTT != 2*time.Duration(half) || math.Abs(r.PerSecond*r.MeanRTT.Seconds()-1) > 1e-9 {
		t.Errorf("%+v; want a round trip of twice %d ns", r, half)
	}
	for _, bad := range []string{"", "tcp_lat:\n", "tcp_lat:\n    latency  =  0 ns\n", "tcp_lat:\n    latency  =  1e9 ns\n",
		"tcp_lat:\n    latency  =  -5 ns\n", "tcp_lat:\n    latency  =  99999999999999999999 sec\n", "tcp_lat:\n    latency  =  1.2.3 us\n"} {
		if r, err := parseQperf([]byte(bad)); err == nil {
			t.Errorf("%q gave %+v", bad, r)
		}
	}
}

func TestPingWithoutARouteIsNoAnswer(t *testing.T) {
	if n, err := parsePing([]byte("ping: connect: Network is unreachable\n")); err != nil || n != 0 {
		t.Errorf("%d answers, %v", n, err)
	}
}

func TestParsePing(t *testing.T) {
	if n, err := parsePing(testdata(t, "ping.txt")); err != nil || n != 3 {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := parsePing(testdata(t, "ping-too-long.txt")); err != nil || n != 0 {
		t.Errorf("%d, %v", n, err)
	}
	for _, bad := range []string{"", "3 packets transmitted, 99999999999999999999 received", "3 packets transmitted, 7 received"} {
		if n, err := parsePing([]byte(bad)); err == nil {
			t.Errorf("%q gave %d", bad, n)
		}
	}
}

func TestRawKeepsBothEnds(t *testing.T) {
	text := raw([]byte("\x1b[2;35mfirst\x1b[0m"+strings.Repeat("x", 2*maxRaw)), []byte("last"))
	if len(text) > maxRaw+100 || !strings.HasPrefix(text, "firstx") || !strings.HasSuffix(text, "last") || !strings.Contains(text, "left out") {
		t.Errorf("%d bytes: %.40s … %s", len(text), text, text[len(text)-20:])
	}
}

func TestSocketTables(t *testing.T) {
	const tcp = "  sl  local_address rem_address   st\n   0: 0100007F:1A0A 00000000:0000 0A 0\n   1: 0100007F:1A0B 0100007F:0001 01 0\n"
	for _, c := range []struct {
		s    socket
		want bool
	}{{socket{"tcp", 0x1a0a}, true}, {socket{"tcp", 0x1a0b}, false}, {socket{"tcp", 1}, false}, {socket{"udp", 0x1a0b}, true}} {
		if got := c.s.in(strings.NewReader(tcp)); got != c.want {
			t.Errorf("%+v: %v", c.s, got)
		}
	}
	const snmp = "Ip: a b\nIp: 1 2\nUdp: InDatagrams RcvbufErrors SndbufErrors\nUdp: 5 42 7\n"
	if n := snmpRcvbufErrors(snmp); n != 42 {
		t.Errorf("snmp: %d", n)
	}
	if n := snmp6RcvbufErrors("Udp6InDatagrams 5\nUdp6RcvbufErrors \t43\n"); n != 43 {
		t.Errorf("snmp6: %d", n)
	}
}

func TestCaptureIsBounded(t *testing.T) {
	var c capture
	chunk := bytes.Repeat([]byte("x"), maxOutput/2+1)
	for range 3 {
		if n, err := c.Write(chunk); n != len(chunk) || err != nil {
			t.Fatal(n, err)
		}
	}
	if len(c.bytes()) != maxOutput || !c.truncated() {
		t.Errorf("%d bytes kept, truncated %v", len(c.bytes()), c.truncated())
	}
}
