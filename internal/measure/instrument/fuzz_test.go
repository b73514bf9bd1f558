// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

func regexpInt(t testing.TB, pattern string, text []byte) int64 {
	t.Helper()
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		t.Fatalf("no %q in the test data", pattern)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	testenv.Must(t, err)
	return n
}

func FuzzIperf3(f *testing.F) {
	for _, name := range []string{"iperf3.json", "iperf3-refused.json"} {
		f.Add(testdata(f, name))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		r, err := parseIperf3(out)
		if err == nil && (r.Duration <= 0 || r.Throughput.BitsPerSecond > maxRate || r.Throughput.Retransmits < 0) {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzIperf(f *testing.F) {
	f.Add(testdata(f, "iperf-server.txt"), testdata(f, "iperf-client.txt"))
	f.Add(testdata(f, "iperf-server-tbf.txt"), testdata(f, "iperf-client-tbf.txt"))
	f.Fuzz(func(t *testing.T, server, client []byte) {
		r, err := parseIperf(server, client)
		if err == nil && (r.Duration <= 0 || r.Sending < 0 || r.Jitter < 0 || r.Received > r.Sent || r.Sent == 0) {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzSockperf(f *testing.F) {
	f.Add(testdata(f, "sockperf.txt"), testdata(f, "sockperf.csv"), uint64(500))
	f.Add(testdata(f, "sockperf-stalled.txt"), testdata(f, "sockperf-stalled.csv"), uint64(100))
	f.Add(testdata(f, "sockperf-no-answer.txt"), []byte(nil), uint64(1))
	f.Fuzz(func(t *testing.T, out, log []byte, rate uint64) {
		l, err := parseSockperf(out, log, rate, time.Second)
		if err != nil {
			return
		}
		if err := l.Histogram.Check(); err != nil {
			t.Error(err)
		}
		if uint64(l.Histogram.Total())+l.Lost != l.Sent || l.MinRTT < 0 || l.Stalled < 0 {
			t.Errorf("%+v", l)
		}
	})
}

func FuzzQperf(f *testing.F) {
	f.Add(testdata(f, "qperf.txt"))
	f.Fuzz(func(t *testing.T, out []byte) {
		if r, err := parseQperf(out); err == nil && (r.MeanRTT <= 0 || r.PerSecond <= 0) {
			t.Errorf("%+v", r)
		}
	})
}

func FuzzPing(f *testing.F) {
	f.Add(testdata(f, "ping.txt"))
	f.Fuzz(func(t *testing.T, out []byte) {
		if n, err := parsePing(out); err == nil && (n < 0 || n > pingCount) {
			t.Errorf("%d", n)
		}
	})
}
