// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

func framesOffer(t *testing.T, p Params, mtu int) (offer, error) {
	t.Helper()
	e := Endpoint{Name: "a.p0", IP: netip.MustParseAddr("10.0.0.1"), MTU: mtu}
	return Draygen{record.QFrames}.wanted(e, e, p)
}

func TestFramesOffer(t *testing.T) {
	for name, c := range map[string]struct {
		p    Params
		mtu  int
		want []string // size, rate; none: refused
	}{
		"smallest":        {Params{Frame: 60}, 1500, []string{"60", "max"}},
		"stated rate":     {Params{Frame: 1514, PacketRate: 10_000}, 1500, []string{"1514", "10000pps"}},
		"mixed":           {Params{}, 1500, []string{"imix", "max"}},
		"jumbo":           {Params{Frame: 9014}, 9000, []string{"9014", "max"}},
		"larger than MTU": {Params{Frame: 1515}, 1500, nil},
		"mixed, less MTU": {Params{}, 1400, nil},
		"no header":       {Params{Frame: 59}, 1500, nil},
	} {
		o, err := framesOffer(t, c.p, c.mtu)
		if c.want == nil {
			if err == nil {
				t.Errorf("%s: accepted", name)
			}
			continue
		}
		if err != nil || !slices.Equal([]string{o.size(), o.rate}, c.want) {
			t.Errorf("%s: %s at %s, error %v", name, o.size(), o.rate, err)
		}
	}
}

func TestFramesSession(t *testing.T) {
	testenv.Built(t, "draygen")
	e := Endpoint{Name: "a.p0", Native: true, Port: "p0", MTU: 1500}
	o, err := Draygen{record.QFrames}.wanted(e, e, Params{Busy: true, Poll: true})
	testenv.Must(t, err)
	s, err := genCommands([]string{"draygen"}, []string{"draygen"}, e, e, o, time.Second)
	testenv.Must(t, err)
	client, server := strings.Join(s.client, " "), strings.Join(s.server, " ")
	if !strings.Contains(client, "--size imix --rate max") || !strings.Contains(client, "--busy") ||
		!strings.Contains(server, "--busy") || strings.Contains(server, "--spin") {
		t.Errorf("%s\n%s", client, server)
	}
}

// TestBatch: both ends limit their system calls, and only if a limit is asked for.
func TestBatch(t *testing.T) {
	testenv.Built(t, "draygen")
	e := Endpoint{Name: "a.p0", Port: "lo", IP: netip.MustParseAddr("127.0.0.1"), MTU: 1500}
	for batch, want := range map[int]string{0: "", 1: " --batch 1 ", 32: " --batch 32 "} {
		o, err := Draygen{record.QFrames}.wanted(e, e, Params{Frame: 106, Batch: batch})
		testenv.Must(t, err)
		s, err := genCommands([]string{"draygen"}, []string{"draygen"}, e, e, o, time.Second)
		testenv.Must(t, err)
		for _, argv := range [][]string{s.client, s.server} {
			if text := strings.Join(argv, " ") + " "; !strings.Contains(text, want) || strings.Contains(text, "--batch") != (batch > 0) {
				t.Errorf("batch %d: %s", batch, text)
			}
		}
	}
}

func TestLoop(t *testing.T) {
	end := func(port, device string) Endpoint {
		return Endpoint{Name: "a." + port, Port: port, Device: device, EAL: []string{"--no-huge"}, IP: netip.MustParseAddr("10.0.0.1"), MAC: "02:00:00:00:00:01", MTU: 1500}
	}
	from, to := end("p0", "net_memif0"), end("p1", "net_memif1")
	o, err := Draygen{record.QFrames}.frames(from, to, Params{Frame: 60, PacketRate: 1000})
	testenv.Must(t, err)
	s, err := loopPrograms("draygen-dpdk", from, to, o, time.Second)
	testenv.Must(t, err)
	want := "draygen-dpdk loop --port dpdk:net_memif0 --eal --no-huge --mtu 1500 --peer-timeout 20s --to-port dpdk:net_memif1 --to 10.0.0.1:5010 --from 10.0.0.1 --to-mac 02:00:00:00:00:01 --stream"
	if got := strings.Join(s.client, " "); !strings.HasPrefix(got, want) || !strings.Contains(got, "--size 60 --rate 1000pps --duration 1000ms") || len(s.server) != 0 {
		t.Errorf("%s", got)
	}
	netdev := Endpoint{Name: "a.p1", Port: "p1"}
	if _, err := loopPrograms("draygen", from, netdev, o, time.Second); err == nil {
		t.Error("a loop over a device and an interface")
	}
}

func TestParseLoop(t *testing.T) {
	r, err := parseLoop(testdata(t, "draygen-loop.json"))
	testenv.Must(t, err)
	s, err := r.stream()
	if err != nil || r.sender.Sent != 879 || r.sink.Received != 879 || r.latency.Total() != 879 || s.Sender <= 0 {
		t.Errorf("%d sent, %d received, %d times, span %+v, error %v", r.sender.Sent, r.sink.Received, r.latency.Total(), s, err)
	}
	for _, bad := range []string{"", `{"draygen":1,"event":"result","role":"loop"}`} {
		if _, err := parseLoop([]byte(bad)); err == nil {
			t.Errorf("%q is a loop", bad)
		}
	}
}

func TestStreamSpan(t *testing.T) {
	r, err := parseDraygen(testdata(t, "draygen-send.json"), testdata(t, "draygen-sink.json"))
	testenv.Must(t, err)
	s, err := r.stream()
	if err != nil || s.End-s.Start != time.Duration(r.sender.ElapsedNs) || s.Sender <= 0 || s.Sender > 1 || s.Sink <= 0 || s.Sink > 1 {
		t.Errorf("%+v, error %v", s, err)
	}
	r.sender.EndedNs = r.sender.StartedNs - 1
	if _, err := r.stream(); err == nil {
		t.Error("a stream that ends before it begins")
	}
}

func TestParseLimit(t *testing.T) {
	l, err := parseLimit([]byte(`{"dray_limit": 1, "ring_pps": 100000000, "line_ns": 110.5, "tsc_hz": 2600000000}`))
	if err != nil || *l != (record.Limit{Ring: 1e8, Line: 110.5, TSC: 2.6e9}) {
		t.Errorf("%+v, error %v", l, err)
	}
	for _, bad := range []string{``, `{}`, `{"dray_limit": 2, "ring_pps": 1, "line_ns": 1, "tsc_hz": 1}`, `{"dray_limit": 1, "ring_pps": 0, "line_ns": 1, "tsc_hz": 1}`} {
		if l, err := parseLimit([]byte(bad)); err == nil {
			t.Errorf("%q gives %+v", bad, l)
		}
	}
}

// The generator's own rates are above nothing, and within reason.
func TestCeiling(t *testing.T) {
	for name, onDPDK := range map[string]bool{"draygen": false, "draygen-dpdk": true} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("PATH", filepath.Dir(testenv.Built(t, name))+":"+os.Getenv("PATH"))
			trial, err := Draygen{}.Ceiling(context.Background(), onDPDK, 60, 50*time.Millisecond)
			testenv.Must(t, err)
			for _, rate := range []float64{trial.Bench.Ceiling.Send, trial.Bench.Ceiling.Receive} {
				if rate < 1e3 || rate > 1e10 || math.IsNaN(rate) {
					t.Errorf("%v packets/s", rate)
				}
			}
		})
	}
}

func TestEncapsulatedFrames(t *testing.T) {
	e := Encapsulation{Option: "qinq:s=1,c=1", Headers: 8, Users: 256, Spread: "from"}
	if got := e.Smallest(); got != 72 {
		t.Errorf("the smallest frame has %d bytes", got)
	}
	if _, err := framesOffer(t, Params{Frame: 67, Encap: &e}, 1500); err == nil {
		t.Error("67 bytes hold no header")
	}
	o, err := framesOffer(t, Params{Frame: 68, Encap: &e}, 1500)
	if err != nil || o.payloadBits() != 8*18 {
		t.Fatalf("%+v, error %v", o, err)
	}
	port := Endpoint{Name: "a.p0", Native: true, Port: "p0", MTU: 1500}
	one, err := loopPrograms("draygen", port, port, o, time.Second)
	testenv.Must(t, err)
	two, err := genCommands([]string{"draygen"}, []string{"draygen"}, port, port, o, time.Second)
	testenv.Must(t, err)
	for _, argv := range [][]string{one.client, two.client} {
		if !strings.Contains(strings.Join(argv, " "), "--encap qinq:s=1,c=1 --flows 256 --spread from") {
			t.Errorf("%q", argv)
		}
	}
	six := Endpoint{Name: "a.p0", IP: netip.MustParseAddr("fd00::1"), MTU: 1500}
	if _, err := (Draygen{record.QFrames}).wanted(six, six, Params{Frame: 100, Encap: &e}); err == nil {
		t.Error("packets of IPv6 are not encapsulated")
	}
}
