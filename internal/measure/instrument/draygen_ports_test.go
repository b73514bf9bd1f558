// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

func TestAnOpenPortIsExplained(t *testing.T) {
	native := Endpoint{Native: true}
	for _, other := range []error{context.DeadlineExceeded, testError("draygen: dray:f1u: the broker hung up")} {
		if err := genError(other, native, native); strings.Contains(err.Error(), "dray status") {
			t.Errorf("every error counts as a port in use: %v", err)
		}
	}
	const words = "draygen: dray:f1u: the port is open elsewhere, or too many generations have buffers out"
	if err := genError(testError(words), native, Endpoint{}); !strings.Contains(err.Error(), "dray status") || !strings.Contains(err.Error(), words) {
		t.Errorf("a port in use is not explained: %v", err)
	}
	if err := genError(testError(words), Endpoint{}, Endpoint{}); strings.Contains(err.Error(), "dray status") {
		t.Errorf("an interface in use counts as a native port: %v", err)
	}
}

func TestOwnProgramsEnvironment(t *testing.T) {
	if env := (Endpoint{Ports: "/x"}).env(); len(env) != 0 {
		t.Errorf("an interface gets %q", env)
	}
	if env := (Endpoint{Native: true, Ports: "/run/dray/c/f/ports"}).env(); !slices.Equal(env, []string{"DRAY_PORTS=/run/dray/c/f/ports"}) {
		t.Errorf("environment %q", env)
	}
}

// With functions in between, frames go to the first of them, and packets to the receiver's
// address.
func TestAddressesBeyondAFunction(t *testing.T) {
	at := func(e Endpoint, ip string) Endpoint {
		e.IP, e.MAC, e.MTU = netip.MustParseAddr(ip), "02:00:00:00:00:09", 1500
		return e
	}
	inner := at(Endpoint{Native: true, Port: "n3", Ports: "/x"}, "198.18.2.2")
	device := at(Endpoint{Port: "n3", Device: "net_memif0"}, "198.18.2.3")
	iface := at(Endpoint{Port: "fh"}, "198.18.0.1")
	const hop = "02:00:00:00:00:01"
	for _, c := range []struct {
		from, to     Endpoint
		port, target string
	}{
		{inner, device, "--port dray:n3", "--to 198.18.2.3:5010 --to-mac " + hop},
		{device, inner, "--port dpdk:net_memif0", "--to 198.18.2.2:5010 --from 198.18.2.3 --to-mac " + hop},
		{iface, inner, "--port packet:fh", "--to 198.18.2.2:5010 --to-mac " + hop},
	} {
		_, source, target, err := genPorts(c.from, c.to, hop)
		if got := strings.Join(source, " "); err != nil || !strings.HasPrefix(got, c.port) {
			t.Errorf("%s to %s: %q, %v", c.from.Port, c.to.Port, got, err)
		}
		if got := strings.Join(target, " "); got != c.target {
			t.Errorf("%s to %s: %q, want %q", c.from.Port, c.to.Port, got, c.target)
		}
	}
}

// eal are the arguments for one device on plain pages.
func eal(device string) []string {
	return []string{"--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "48", "--single-file-segments", "--vdev", device}
}

// devices makes both ends of the pair devices that share memory.
func (p pair) devices(t *testing.T) pair {
	t.Helper()
	testenv.Built(t, draygenDPDK.name)
	dir := t.TempDir()
	const memif = "net_memif0,socket=%s/memif,socket-abstract=no,role=%s"
	for e, role := range map[*Endpoint]string{&p.a: "server", &p.b: "client,zero-copy=yes"} {
		e.Device, e.EAL, e.RuntimeDir, e.MTU = "net_memif0", eal(fmt.Sprintf(memif, dir, role)), dir, 1800
	}
	return p
}

// TestDevicesAreMeasured sends from the server to the client of a memif link, and
// back: then the sink exists before the socket. A device loses what is in its ring when the
// sender ends, so a sink without a CPU at that time misses some.
func TestDevicesAreMeasured(t *testing.T) {
	generator(t)
	p := newPair(t).devices(t)
	for _, q := range []record.Quantity{record.QStream, record.QPacketRate, record.QThroughput} {
		trial := run(t, Draygen{q}, p, Params{Duration: 200 * time.Millisecond, Bitrate: 20_000_000, PacketRate: 2000})
		if q == record.QThroughput {
			if trial.Throughput.BitsPerSecond == 0 {
				t.Errorf("throughput %+v", trial.Throughput)
			}
			continue
		}
		d, w := trial.Delivery, trial.OneWay
		if d.Sent+w.Unsent < 50 || d.Received == 0 || d.Received+d.Lost != d.Sent || uint64(w.Latency.Total()) != d.Received || w.Min <= 0 {
			t.Errorf("%s: delivery %+v, %d unsent, %d samples", q, d, w.Unsent, w.Latency.Total())
		}
	}
	if got := run(t, Draygen{record.QPathMTU}, p, Params{MTU: 1800}).PathMTU; *got != (record.PathMTU{Wanted: 1800, Passed: true, Largest: 1800}) {
		t.Errorf("path MTU %+v", got)
	}
	back := p
	back.a, back.b = p.b, p.a
	trial := run(t, Draygen{record.QProbe}, back, Params{Duration: 200 * time.Millisecond, MessageRate: 500})
	if d := trial.Delivery; d.Received == 0 || d.Received+d.Lost != d.Sent {
		t.Errorf("back: %+v\n%s", d, trial.Raw)
	}
	loads(t, p)
	p.empty(t)
}

// loads offers a load, for longer each time, until some of it was sent: at first a busy
// machine may not get round to it.
func loads(t *testing.T, p pair) {
	t.Helper()
	var got record.Load
	var err error
	end := time.Now().Add(patience)
	for n := 1; got.Sent == 0 && time.Now().Before(end); n++ {
		load, startErr := StartLoad(context.Background(), p.a, p.b, 5_000_000, time.Minute)
		testenv.Must(t, startErr)
		time.Sleep(time.Duration(n) * 300 * time.Millisecond)
		got, err = load.Stop()
	}
	if err != nil || got.Sent == 0 {
		t.Errorf("load %+v, error %v", got, err)
	}
}

// A device next to an interface: each on the same veth pair, by packet sockets.
func TestADeviceBesideAnInterface(t *testing.T) {
	generator(t)
	testenv.Built(t, draygenDPDK.name)
	p := newPair(t)
	p.a.Device, p.a.EAL, p.a.RuntimeDir = "net_af_packet0", eal("net_af_packet0,iface=eth0"), t.TempDir()
	p.a.MAC, p.b.MAC = "02:00:00:00:09:01", "02:00:00:00:09:02"
	back := p
	back.a, back.b = p.b, p.a
	for _, p := range []pair{p, back} {
		trial := runUntil(t, Draygen{record.QProbe}, p, Params{Duration: time.Second, MessageRate: 500}, func(trial record.Trial) bool {
			return trial.Delivery.Received > 0
		})
		if trial.Delivery.Received == 0 {
			t.Errorf("from %s to %s: %+v\n%s", p.a.Name, p.b.Name, trial.Delivery, trial.Raw)
		}
	}
}

func TestADeviceThatIsMissingIsExplained(t *testing.T) {
	generator(t)
	p := newPair(t).devices(t)
	p.b.EAL = slices.Clone(p.b.EAL)
	p.b.EAL[len(p.b.EAL)-1] = "net_memif0,role=nobody"
	_, err := Draygen{record.QProbe}.Run(context.Background(), p.a, p.b, Params{Duration: time.Second, MessageRate: 100})
	if err == nil || !strings.Contains(err.Error(), "Unknown role") || !strings.Contains(err.Error(), "function's own command") {
		t.Errorf("error %v", err)
	}
	p.empty(t)
	p.b.EAL[len(p.b.EAL)-1] = "net_memif0,socket=/a b"
	if _, err := (Draygen{record.QProbe}).Run(context.Background(), p.a, p.b, Params{Duration: time.Second, MessageRate: 100}); err == nil || !strings.Contains(err.Error(), "DRAY_STATE") {
		t.Errorf("a path with a blank: error %v", err)
	}
}

// A sink whose device needs another process's memory starts after the sender has
// opened its own, and before it sends.
func TestASecondaryStartsSecond(t *testing.T) {
	p := newPair(t)
	mark := filepath.Join(t.TempDir(), "mark")
	s := clientServer{from: p.a, to: p.b, opened: genOpened, ready: genReady, timeout: time.Minute,
		client: []string{"/bin/sh", "-c", `test -e $0 && echo early; echo '"event":"open"'; cat; test -e $0 && echo later`, mark},
		server: []string{"/bin/sh", "-c", `touch $0; echo '"event":"ready"'; exec sleep 60`, mark}}
	out, err := s.run(context.Background())
	if err != nil || !strings.Contains(string(out.client), "later") || strings.Contains(string(out.client), "early") || out.start.IsZero() {
		t.Errorf("%q, error %v", out.client, err)
	}
	p.empty(t)
	s.client = []string{"/bin/sh", "-c", "exit 3"}
	if _, err := s.run(context.Background()); err == nil || !strings.Contains(err.Error(), "ended before it was ready") {
		t.Errorf("a client that fails: error %v", err)
	}
	s.client, s.server = []string{"/bin/sh", "-c", `echo '"event":"open"'; exec cat`}, []string{"/bin/sh", "-c", "exit 3"}
	if _, err := s.run(context.Background()); err == nil {
		t.Error("a server that fails is no error")
	}
	p.empty(t)

	dev := func(name, kind string) Endpoint {
		return Endpoint{Name: name, Device: "net_ring0", EAL: []string{"--proc-type=" + kind}, MTU: 1500}
	}
	for _, c := range []struct {
		from, to string
		held     bool
	}{{"primary", "secondary", true}, {"secondary", "primary", false}, {"secondary", "secondary", false}} {
		s, err := genCommands([]string{"g"}, []string{"g"}, dev("a.p", c.from), dev("b.p", c.to), offer{rate: "max"}, time.Second)
		if held := slices.Contains(s.client, "--hold"); err != nil || held != c.held || (s.opened != nil) != c.held {
			t.Errorf("from %s to %s: held %v, error %v", c.from, c.to, held, err)
		}
	}
}

// A program without its own CPU is distinguished from one that has it.
func TestAStarvedEndIsMarked(t *testing.T) {
	var r genResult
	if r.sink.CPUs.Oversubscribed = true; r.starved() {
		t.Error("a sink that sleeps is not starved")
	}
	if r.sink.CPUs.Polling = 1; !r.starved() {
		t.Error("a sink that polls is starved")
	}
}

// A program that makes a socket has an open umask; its directory is closed.
func TestADeviceOpensItsSocket(t *testing.T) {
	p := newPair(t).devices(t)
	server, err := launch(p.a, []string{"/bin/sh", "-c", "umask"})
	testenv.Must(t, err)
	defer server.kill()
	if server.within(patience); strings.TrimSpace(string(server.out.bytes())) != "0000" {
		t.Errorf("umask %q", server.out.bytes())
	}
}
