// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"bytes"
	"context"
	"math"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

func TestParseDraygen(t *testing.T) {
	r, err := parseDraygen(testdata(t, "draygen-send.json"), testdata(t, "draygen-sink.json"))
	testenv.Must(t, err)
	o := offer{frame: 1514, perSec: 400e6 / 8 / 1472}
	d := r.delivery(record.QStream, o, Params{Bitrate: 400_000_000})
	if d.Sent != 33968 || d.Received != 33968 || d.Lost != 0 || d.DatagramBytes != 1472 || d.FrameBytes != 1518 || d.OfferedBits != 400_000_000 {
		t.Errorf("delivery %+v", d)
	}
	// 33,968 payloads of 1472 bytes in 0.999830699 s at the receiver.
	if d.ReceivedBits < 400_072_000 || d.ReceivedBits > 400_100_000 || d.Jitter != 10039*time.Nanosecond {
		t.Errorf("%d bit/s received, jitter %v", d.ReceivedBits, d.Jitter)
	}
	w := r.oneWay()
	if w.Min != 4180 || w.Max != 4999781 || w.Latency.Total() != 33968 || w.Intended.Total() != 33968 || w.Lateness.Total() != 33968 || w.IPDV.Total() != 33967 {
		t.Errorf("one way %v to %v: %d samples", w.Min, w.Max, w.Latency.Total())
	}
	if w.Unsent != 0 || w.Held != 0 {
		t.Errorf("unsent %d, held %d", w.Unsent, w.Held)
	}
	for _, h := range []record.Histogram{w.Latency, w.Intended, w.Lateness, w.IPDV} {
		if err := h.Check(); err != nil {
			t.Error(err)
		}
	}
	// draygen reports a lateness p99 of 1.98 ms.
	if share := lateShare(w.Lateness, 1982463); share > 0.01 || share < 0.0095 {
		t.Errorf("%.4f of the packets were sent later than draygen's p99", share)
	}
}

// The summary for a record has everything but the counts.
func TestDraygenSummary(t *testing.T) {
	out := genSummary(testdata(t, "draygen-sink.json"))
	if bytes.Contains(out, []byte("counts")) || !bytes.Contains(out, []byte(`"p99":3473407`)) || len(out) > 3000 {
		t.Errorf("%d bytes: %.300s", len(out), out)
	}
	for _, line := range bytes.Split(bytes.TrimSpace(out), []byte("\n")) {
		if !bytes.HasPrefix(line, []byte("{")) || !bytes.HasSuffix(line, []byte("}")) {
			t.Errorf("torn line %.100s", line)
		}
	}
}

func TestParseDraygenRefuses(t *testing.T) {
	send, sink := string(testdata(t, "draygen-send.json")), string(testdata(t, "draygen-sink.json"))
	edit := func(text, old, new string) string {
		if !strings.Contains(text, old) {
			t.Fatalf("no %q in the test data", old)
		}
		return strings.Replace(text, old, new, 1)
	}
	for name, c := range map[string]struct{ send, sink, want string }{
		"nothing":          {"", "", "no result of the send"},
		"no sink":          {send, send, "no result of the sink"},
		"torn":             {send[:len(send)/2], sink, "malformed"},
		"another format":   {strings.ReplaceAll(send, `"draygen":1`, `"draygen":2`), sink, "format 2"},
		"more than sent":   {send, edit(sink, `"received":33968`, `"received":33969`), "impossible"},
		"a sample less":    {send, edit(sink, `"n":33968`, `"n":33967`), "has 33968 samples but claims 33967"},
		"a packet less":    {send, edit(sink, `"received":33968`, `"received":33967`), "of at most 33967"},
		"too few times":    {send, edit(sink, `"one_way_intended":{"n":33968,`, `"one_way_intended":{"n":0,"counts":[]},"x":{`), "33968 packets received, and 33968 and 0 times"},
		"inside a bucket":  {send, edit(sink, `"counts":[[`, `"counts":[[131073,1],[`), "no bucket begins"},
		"no histogram":     {send, edit(sink, `"one_way":`, `"one":`), "no one_way"},
		"two clocks":       {send, edit(sink, `"clock_errors":0`, `"clock_errors":4`), "the same clock"},
		"negative time":    {edit(send, `"elapsed_ns":9`, `"elapsed_ns":-9`), sink, "impossible times"},
		"negative latency": {send, edit(sink, `"min":4180`, `"min":-4180`), "impossible one-way"},
		"negative jitter":  {send, edit(sink, `"jitter_ns":1`, `"jitter_ns":-1`), "jitter"},
		"nothing sent":     {edit(send, `"sent":33968`, `"sent":0`), sink, "sent nothing"},
		"no CPU":           {edit(edit(send, `"sent":33968`, `"sent":0`), `"unsent":0`, `"unsent":33968`), sink, "had no CPU"},
		"no CPU at max":    {edit(edit(send, `"sent":33968`, `"sent":0`), `"full":0`, `"full":3,"full_ns":1000000,"cpus":{"waited_ns":900000}`), sink, "had no CPU"},
		"a full port":      {edit(edit(send, `"sent":33968`, `"sent":0`), `"full":0`, `"full":3,"full_ns":1000000,"cpus":{"waited_ns":100000}`), sink, "sent nothing"},
		"wrong type":       {send, edit(sink, `"received":33968`, `"received":"all"`), "malformed"},
	} {
		if _, err := parseDraygen([]byte(c.send), []byte(c.sink)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v; want %q", name, err, c.want)
		}
	}
}

func FuzzDraygen(f *testing.F) {
	// Short ones: the fuzzer takes a second for each of real length.
	const send = `{"draygen":1,"event":"result","role":"send","elapsed_ns":9,"sent":3,"unsent":1,"full":0,"lateness":{"n":3,"counts":[[5,2],[130,1]]}}`
	const sink = `{"draygen":1,"event":"ready","role":"sink"}
{"draygen":1,"event":"result","role":"sink","first_ns":1,"last_ns":9,"received":2,"socket_drops":1,"one_way":{"n":2,"min":7,"max":260,"counts":[[7,1],[260,1]]},"one_way_intended":{"n":2,"counts":[[8,1],[264,1]]},"ipdv":{"n":1,"counts":[[9,1]]},"jitter_ns":1.5}`
	if _, err := parseDraygen([]byte(send), []byte(sink)); err != nil {
		f.Fatal(err)
	}
	f.Add([]byte(send), []byte(sink))
	f.Add([]byte(send), []byte(`{"draygen":1,"event":"result","role":"sink","one_way":{"n":0,"counts":[]},"one_way_intended":{"n":0,"counts":[]},"ipdv":{"n":0}}`))
	f.Fuzz(func(t *testing.T, send, sink []byte) {
		r, err := parseDraygen(send, sink)
		if err != nil {
			return
		}
		d, w := r.delivery(record.QProbe, offer{frame: 60, perSec: 1000}, Params{}), r.oneWay()
		if d.Sent == 0 || d.Received+d.Lost != d.Sent || d.ReceiverDrops > d.Lost || d.Jitter < 0 || r.span() < 0 {
			t.Errorf("%+v", d)
		}
		for _, h := range []record.Histogram{w.Latency, w.Intended, w.Lateness, w.IPDV} {
			if err := h.Check(); err != nil {
				t.Error(err)
			}
		}
		if w.Min < 0 || w.Max < w.Min || uint64(w.Latency.Total()) > d.Received {
			t.Errorf("%v to %v, %d samples of %d", w.Min, w.Max, w.Latency.Total(), d.Received)
		}
	})
}

// What each quantity requests from the generator.
func TestDraygenCommand(t *testing.T) {
	ip := func(s string) netip.Addr { return netip.MustParseAddr(s) }
	veth := [2]Endpoint{{Name: "a.x", Port: "x", IP: ip("10.0.0.1"), MTU: 1600}, {Name: "b.x", Port: "x", IP: ip("127.0.0.1"), MTU: 1500, MAC: "02:00:00:00:00:01"}}
	six := func(e [2]Endpoint, from, to string) [2]Endpoint {
		e[0].IP, e[1].IP = ip(from), ip(to)
		return e
	}
	shm := [2]Endpoint{{Name: "a.x", Port: "x", Native: true, Ports: "/run/a", MTU: 1600}, {Name: "b.y", Port: "y", Native: true, Ports: "/run/b", MTU: 1600, MAC: "02:00:00:00:00:02"}}
	dev := [2]Endpoint{
		{Name: "a.z", Port: "z", Device: "net_virtio_user0", EAL: []string{"--no-huge", "--vdev", "net_virtio_user0,queues=1"}, IP: ip("10.0.0.3"), MTU: 1600},
		{Name: "b.z", Port: "z", Device: "net_memif0", EAL: []string{"--no-huge", "--vdev", "net_memif0,id=1"}, IP: ip("10.0.0.4"), MTU: 1600, MAC: "02:00:00:00:00:04"},
	}
	for name, c := range map[string]struct {
		ends           [2]Endpoint
		quantity       record.Quantity
		params         Params
		sink, send     []string
		warmup, offers float64
	}{
		"stream": {veth, record.QStream, Params{Bitrate: 11_776_000, Duration: 2 * time.Second},
			[]string{"udp:127.0.0.1:"}, []string{"udp:10.0.0.1:0", "--to 127.0.0.1:", "--size 1514", "--rate 11776000bps --layer payload", "--duration 2000ms"}, 100, 1000},
		"probe": {veth, record.QProbe, Params{MessageRate: 1000, Duration: time.Second}, nil, []string{"--size 60 --rate 1000pps", "--catch-up 100000us"}, 100, 1000},
		"rate":  {veth, record.QPacketRate, Params{PacketRate: 5000, Duration: time.Second}, nil, []string{"--size 60 --rate 5000pps", "--catch-up 60000us"}, 500, 5000},
		"native": {shm, record.QThroughput, Params{Duration: time.Second, Poll: true},
			[]string{"sink --port dray:y", "--once", "--spin 1ms"}, []string{"send --port dray:x --stream", "--size 1614", "--rate max"}, 1000, 0},
		"to an interface": {[2]Endpoint{shm[0], veth[1]}, record.QProbe, Params{MessageRate: 10, Duration: time.Second},
			[]string{"udp:127.0.0.1:"}, []string{"dray:x --to 127.0.0.1:", "--to-mac 02:00:00:00:00:01"}, 1, 10},
		"from an interface": {[2]Endpoint{veth[0], shm[1]}, record.QProbe, Params{MessageRate: 10, Duration: time.Second},
			[]string{"dray:y"}, []string{"packet:x", "--to-mac 02:00:00:00:00:02"}, 1, 10},
		"IPv6": {six(veth, "fd00::1", "::1"), record.QStream, Params{Bitrate: 11_616_000, Duration: time.Second},
			[]string{"udp:[::1]:"}, []string{"udp:[fd00::1]:0 --to [::1]:", "--size 1514"}, 100, 1000},
		"small IPv6": {six(veth, "fd00::1", "::1"), record.QPacketRate, Params{PacketRate: 5000, Duration: time.Second}, nil, []string{"--size 80 --rate 5000pps"}, 500, 5000},
		"link-local": {six(veth, "fe80::1", "fe80::2"), record.QProbe, Params{MessageRate: 10, Duration: time.Second},
			[]string{"udp:[fe80::2%x]:"}, []string{"udp:[fe80::1%x]:0 --to [fe80::2%x]:"}, 1, 10},
		"native IPv6": {six(shm, "fd00::1", "fd00::2"), record.QProbe, Params{MessageRate: 10, Duration: time.Second},
			[]string{"dray:y"}, []string{"dray:x --to [fd00::2]:5010", "--size 80"}, 1, 10},
		"from an IPv6 interface": {six([2]Endpoint{veth[0], shm[1]}, "fe80::1", "fe80::2"), record.QProbe, Params{MessageRate: 10, Duration: time.Second},
			[]string{"dray:y"}, []string{"packet:x --to [fe80::2]:5010 --to-mac 02:00:00:00:00:02"}, 1, 10},
		"dpdk": {dev, record.QThroughput, Params{Duration: time.Second, Poll: true},
			[]string{"draygen-dpdk sink --port dpdk:net_memif0 --eal --no-huge --vdev net_memif0,id=1 --mtu 1600 --peer-timeout 20s --stream"},
			[]string{"draygen-dpdk send --port dpdk:net_virtio_user0 --eal --no-huge --vdev net_virtio_user0,queues=1 --mtu 1600 --peer-timeout 20s --to 10.0.0.4:5010 --from 10.0.0.3 --to-mac 02:00:00:00:00:04", "--size 1614", "--rate max"}, 1000, 0},
		"dpdk to an interface": {[2]Endpoint{dev[0], veth[1]}, record.QProbe, Params{MessageRate: 10, Duration: time.Second},
			[]string{"draygen sink --port udp:127.0.0.1:"}, []string{"draygen-dpdk send --port dpdk:net_virtio_user0", "--to 127.0.0.1:", "--from 10.0.0.3 --to-mac 02:00:00:00:00:01"}, 1, 10},
		"dpdk from an interface": {[2]Endpoint{veth[0], dev[1]}, record.QProbe, Params{MessageRate: 10, Duration: time.Second},
			[]string{"draygen-dpdk sink --port dpdk:net_memif0"}, []string{"draygen send --port packet:x --to 255.255.255.255:5010 --to-mac 02:00:00:00:00:04"}, 1, 10},
		"dpdk from a native port": {[2]Endpoint{shm[0], dev[1]}, record.QProbe, Params{MessageRate: 10, Duration: time.Second},
			[]string{"draygen-dpdk sink --port dpdk:net_memif0"}, []string{"draygen send --port dray:x --to-mac 02:00:00:00:00:04"}, 1, 10},
	} {
		o, err := Draygen{c.quantity}.wanted(c.ends[0], c.ends[1], c.params)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		s, err := genCommands([]string{genTool(c.ends[0]).name}, []string{genTool(c.ends[1]).name}, c.ends[0], c.ends[1], o, c.params.Duration)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		sink, send := strings.Join(s.server, " "), strings.Join(s.client, " ")
		for text, wants := range map[string][]string{sink: c.sink, send: c.send} {
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s: no %q in %q", name, want, text)
				}
			}
		}
		if float64(o.warmup) != c.warmup || math.Abs(o.perSec-c.offers) > 1e-6 {
			t.Errorf("%s: %d packets of warm-up, %v/s", name, o.warmup, o.perSec)
		}
	}
	if _, err := (Draygen{record.QLatency}).wanted(veth[0], veth[1], Params{}); err == nil {
		t.Error("draygen accepted a ping-pong")
	}
	if _, err := (Draygen{record.QStream}).wanted(veth[0], veth[1], Params{}); err == nil {
		t.Error("a stream without a rate")
	}
}

// generator puts bin/draygen into the PATH.
func generator(t *testing.T) {
	t.Helper()
	t.Setenv("PATH", filepath.Dir(testenv.Built(t, "draygen"))+":"+"/usr/sbin:/usr/bin:/sbin:/bin")
}

func TestDraygenMeasures(t *testing.T) {
	generator(t)
	v4 := newPair(t)
	for _, family := range []struct {
		name  string
		pair  pair
		small int // bytes of the smallest frame, with FCS
	}{{"IPv4", v4, 64}, {"IPv6", v4.v6(), 84}, {"link-local", v4.linkLocal(t), 84}} {
		t.Run(family.name, func(t *testing.T) { measures(t, family.pair, family.small) })
	}
}

func measures(t *testing.T, p pair, smallest int) {
	for _, q := range []record.Quantity{record.QStream, record.QProbe, record.QPacketRate} {
		params := Params{Duration: 300 * time.Millisecond, Bitrate: 20_000_000, MessageRate: 500, PacketRate: 2000}
		trial := run(t, Draygen{q}, p, params)
		d, w := trial.Delivery, trial.OneWay
		if trial.Quantity != q || d == nil || w == nil {
			t.Fatalf("%s: %+v", q, trial)
		}
		if d.Sent+w.Unsent < 50 || d.Received == 0 || d.Received+d.Lost != d.Sent || uint64(w.Latency.Total()) != d.Received {
			t.Errorf("%s: delivery %+v, %d unsent, %d samples", q, d, w.Unsent, w.Latency.Total())
		}
		if w.Min <= 0 || w.Min > w.Max || w.Min > patience || uint64(w.Lateness.Total()) != d.Sent {
			t.Errorf("%s: one way %v to %v, lateness of %d", q, w.Min, w.Max, w.Lateness.Total())
		}
		if small := q != record.QStream; small != (d.FrameBytes == smallest) || !small && d.FrameBytes != 1518 {
			t.Errorf("%s: frames of %d bytes", q, d.FrameBytes)
		}
	}
}

// A peer that receives nothing is a result: everything is lost.
func TestDraygenOnADeadLink(t *testing.T) {
	generator(t)
	testenv.Program(t, "ip")
	p := newPair(t)
	// The address moves to where no packet finds it; its neighbour entry stays.
	for _, argv := range [][]string{
		{"ip", "neigh", "replace", p.b.IP.String(), "lladdr", "02:00:00:00:09:77", "dev", "eth0"},
	} {
		if out, err := inNetns(p.a, argv...); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	trial := run(t, Draygen{record.QStream}, p, Params{Duration: 200 * time.Millisecond, Bitrate: 5_000_000})
	if d := trial.Delivery; d.Sent == 0 || d.Lost != d.Sent || trial.OneWay.Latency.Total() != 0 {
		t.Errorf("delivery %+v, %d samples", trial.Delivery, trial.OneWay.Latency.Total())
	}
}

// A native port without a broker, as if the link was never set up.
func TestDraygenNamesAMissingPort(t *testing.T) {
	generator(t)
	p := newPair(t)
	p.b.Native, p.b.Port, p.b.Ports = true, "p0", t.TempDir()
	_, err := Draygen{record.QProbe}.Run(context.Background(), p.a, p.b, Params{Duration: time.Second, MessageRate: 100})
	if err == nil || !strings.Contains(err.Error(), "p0") {
		t.Errorf("error %v", err)
	}
	p.empty(t)
}

type testError string

func (e testError) Error() string { return string(e) }
