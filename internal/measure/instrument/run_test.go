// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// short is one second of everything.
var short = Params{Duration: time.Second, Bitrate: 20_000_000, MessageRate: 500, MTU: 1500}

func programs(t *testing.T) {
	t.Helper()
	testenv.Program(t, "iperf3", "iperf", "sockperf", "qperf", "ping")
	generator(t)
}

// patience bounds the wait on a busy machine for steps that take seconds at most.
var patience = testenv.Patient(40 * time.Second)

// attempt runs one instrument, again if the sender had no CPU.
func attempt(t *testing.T, i Instrument, p pair, params Params) record.Trial {
	t.Helper()
	end := time.Now().Add(patience)
	trial, err := i.Run(context.Background(), p.a, p.b, params)
	for errors.Is(err, errTooBusy) && time.Now().Before(end) {
		trial, err = i.Run(context.Background(), p.a, p.b, params)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s", i.Name(), err, trial.Raw)
	}
	return trial
}

// run is attempt, and checks what every trial must have.
func run(t *testing.T, i Instrument, p pair, params Params) record.Trial {
	t.Helper()
	trial := attempt(t, i, p, params)
	p.empty(t)
	if trial.Instrument.Name != i.Name() || trial.Instrument.Version == "" || len(trial.Instrument.Client) == 0 {
		t.Errorf("instrument %+v", trial.Instrument)
	}
	if trial.From != p.a.Name || trial.To != p.b.Name || trial.Start.IsZero() || trial.Duration <= 0 || trial.Raw == "" {
		t.Errorf("from %q to %q at %v for %v, %d bytes of output", trial.From, trial.To, trial.Start, trial.Duration, len(trial.Raw))
	}
	return trial
}

// runUntil is run, repeated while the machine is too busy for the instrument to
// send what it offers. One of several trials must be good.
func runUntil(t *testing.T, i Instrument, p pair, params Params, good func(record.Trial) bool) record.Trial {
	t.Helper()
	end := time.Now().Add(patience)
	trial := run(t, i, p, params)
	for !good(trial) && time.Now().Before(end) {
		trial = run(t, i, p, params)
	}
	return trial
}

func TestHappyPath(t *testing.T) {
	programs(t)
	v4 := newPair(t)
	for _, family := range []struct {
		name string
		pair pair
	}{{"IPv4", v4}, {"IPv6", v4.v6()}, {"link-local", v4.linkLocal(t)}} {
		t.Run(family.name, func(t *testing.T) {
			if trial := run(t, Iperf3{}, family.pair, short); trial.Throughput.BitsPerSecond == 0 {
				t.Errorf("throughput %+v", trial.Throughput)
			}
			// iperf 2 loses some of its reports over link-local addresses.
			if !family.pair.b.IP.IsLinkLocalUnicast() {
				d := run(t, Iperf{}, family.pair, short).Delivery
				if d.Sent == 0 || d.Received+d.Lost != d.Sent || d.Received == 0 {
					t.Errorf("delivery %+v", d)
				}
			}
			if trial := run(t, Qperf{}, family.pair, short); trial.Requests.PerSecond == 0 || trial.Requests.MeanRTT > patience {
				t.Errorf("requests %+v", trial.Requests)
			}
			if trial := run(t, Ping{}, family.pair, short); !trial.PathMTU.Passed || trial.PathMTU.Largest != 1500 {
				t.Errorf("path MTU %+v", trial.PathMTU)
			}
		})
	}
}

func TestDatagramsFillOnePacket(t *testing.T) {
	programs(t)
	p := newPair(t)
	if d := run(t, Iperf{}, p, short).Delivery; d.DatagramBytes != 1472 || d.FrameBytes != 1518 {
		t.Errorf("IPv4: %d bytes in frames of %d", d.DatagramBytes, d.FrameBytes)
	}
	if d := run(t, Iperf{}, p.v6(), short).Delivery; d.DatagramBytes != 1452 || d.FrameBytes != 1518 {
		t.Errorf("IPv6: %d bytes in frames of %d", d.DatagramBytes, d.FrameBytes)
	}
}

func TestPacketRateUsesSmallFrames(t *testing.T) {
	programs(t)
	p := newPair(t)
	trial := runUntil(t, Iperf{}, p, Params{Duration: time.Second, PacketRate: 2000}, func(trial record.Trial) bool {
		return trial.Delivery.PacketRate >= 1000
	})
	d := trial.Delivery
	if trial.Quantity != record.QPacketRate || d.DatagramBytes != 18 || d.FrameBytes != 64 || d.OfferedRate != 2000 {
		t.Errorf("%s %+v", trial.Quantity, d)
	}
	if d.PacketRate < 1000 || d.PacketRate > 2200 {
		t.Errorf("%d packets/s arrived of 2000 offered", d.PacketRate)
	}
}

func TestSockperfUnderLoad(t *testing.T) {
	programs(t)
	p := newPair(t)
	params := short
	params.Load = 40_000_000
	trial := runUntil(t, Sockperf{}, p, params, func(trial record.Trial) bool {
		return trial.Load != nil && trial.Load.Achieved >= params.Load/2 && trial.Latency.Histogram.Total() >= 100
	})
	l := trial.Latency
	if l.Histogram.Total() < 100 || l.Sent != uint64(l.Histogram.Total())+l.Lost {
		t.Errorf("%d samples of %d sent, %d lost", l.Histogram.Total(), l.Sent, l.Lost)
	}
	if trial.Load == nil || trial.Load.Offered != params.Load || trial.Load.Achieved < params.Load/2 || trial.Load.Instrument.Name != "draygen" {
		t.Errorf("load %+v", trial.Load)
	}
}

func TestSockperfNamesMissingIPv6(t *testing.T) {
	programs(t)
	p := newPair(t).v6()
	if _, err := (Sockperf{}).Run(context.Background(), p.a, p.b, short); err == nil || !strings.Contains(err.Error(), "IPv4") {
		t.Errorf("error %v", err)
	}
}

// TestShapedLinkIsSeen puts a tbf of 10 Mb/s on the sender: throughput falls to
// it, a higher load is lost, and round trips under load grow to its queue.
func TestShapedLinkIsSeen(t *testing.T) {
	programs(t)
	testenv.Program(t, "tc")
	p := newPair(t)
	var out []byte
	err := p.a.Place.Netns.Do(func() (err error) {
		out, err = exec.Command("tc", "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "10mbit", "burst", "16kb", "latency", "20ms").CombinedOutput()
		return err
	})
	if err != nil {
		t.Skipf("this kernel refuses tbf: %s", out)
	}
	if b := run(t, Iperf3{}, p, short).Throughput.BitsPerSecond; b == 0 || b > 13_000_000 {
		t.Errorf("%d bit/s through 10 Mb/s", b)
	}
	d := run(t, Iperf{}, p, Params{Duration: time.Second, Bitrate: 40_000_000}).Delivery
	if d.Lost <= d.ReceiverDrops || d.Received == 0 {
		t.Errorf("40 Mb/s through 10 Mb/s: %+v", d)
	}
	trial := run(t, Sockperf{}, p, Params{Duration: time.Second, MessageRate: 100, Load: 40_000_000})
	if !strings.Contains(strings.Join(trial.Marks, " "), record.MarkLoadMissed) {
		t.Errorf("marks %q: a load of 40 Mb/s through 10 Mb/s is not marked as missed: %+v", trial.Marks, trial.Load)
	}
	histogram, err := trial.Latency.Histogram.HDR()
	testenv.Must(t, err)
	// The first requests may precede the load.
	if longest := time.Duration(histogram.Max()); trial.Latency.Lost == 0 && longest < 5*time.Millisecond {
		t.Errorf("nothing lost, longest round trip %v behind a queue of 20 ms", longest)
	}
}

func TestPathMTUIsFound(t *testing.T) {
	programs(t)
	p := newPair(t)
	if out, err := inNetns(p.a, "ip", "link", "set", "eth0", "mtu", "1400"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, p := range []pair{p, p.v6()} {
		if got := run(t, Ping{}, p, short).PathMTU; *got != (record.PathMTU{Wanted: 1500, Passed: false, Largest: 1400}) {
			t.Errorf("%v: %+v; want 1400", p.b.IP, got)
		}
	}
}

// TestOneLostProbeIsNotTooLarge: a busy machine may lose any first probe of a size.
func TestOneLostProbeIsNotTooLarge(t *testing.T) {
	for name, c := range map[string]struct{ passes, largest int }{"wide": {9000, 1500}, "narrow": {1400, 1400}, "dead": {0, 0}} {
		lost := map[int]bool{}
		got, err := findMTU(func(size int) (bool, error) {
			first := !lost[size]
			lost[size] = true
			return !first && size <= c.passes, nil
		}, 42, 1500)
		if err != nil || *got != (record.PathMTU{Wanted: 1500, Passed: c.passes >= 1500, Largest: c.largest}) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func inNetns(e Endpoint, argv ...string) (out []byte, err error) {
	err = e.Place.Netns.Do(func() (err error) {
		out, err = exec.Command(argv[0], argv[1:]...).CombinedOutput()
		return err
	})
	return out, err
}

func TestUnreachablePeer(t *testing.T) {
	programs(t)
	p := newPair(t)
	// The server's address exists where it binds, and nothing reaches it.
	if out, err := inNetns(p.b, "ip", "addr", "add", "10.99.0.1/32", "dev", "lo"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	p.b.IP = netip.MustParseAddr("10.99.0.1")
	for _, i := range All() {
		began := time.Now()
		trial, err := i.Run(context.Background(), p.a, p.b, short)
		if err == nil {
			t.Errorf("%s reached a peer that has no route: %+v", i.Name(), trial)
		} else if !strings.Contains(err.Error(), i.Name()) || strings.Contains(err.Error(), `""`) {
			t.Errorf("%s: error without its own last output: %v", i.Name(), err)
		}
		if took := time.Since(began); took > 2*patience {
			t.Errorf("%s took %v", i.Name(), took)
		}
		p.empty(t)
	}
}

func TestMissingProgram(t *testing.T) {
	p := pair{} // nothing starts
	for _, tool := range []*tool{&draygen, &draygenDPDK, &iperf, &iperf3, &ping, &qperf, &sockperf} {
		name := tool.name
		tool.name += "-absent"
		t.Cleanup(func() { tool.name = name })
	}
	p.a.MTU, p.b.MTU = 1500, 1500
	p.a.IP, p.b.IP = netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	for _, i := range All() {
		fix := "apt-get install "
		if i.Name() == draygen.name {
			fix = "make build"
		}
		if item := i.Probe(context.Background()); item.Status != inventory.Missing || !strings.HasPrefix(item.Fix, fix) || item.Reason == "" {
			t.Errorf("%s: %+v", i.Name(), item)
		}
		if _, err := i.Run(context.Background(), p.a, p.b, short); err == nil || !strings.Contains(err.Error(), fix) {
			t.Errorf("%s: %v", i.Name(), err)
		}
	}
}

func TestProbe(t *testing.T) {
	programs(t)
	for _, i := range All() {
		if item := i.Probe(context.Background()); item.Status != inventory.OK || item.Version == "" || item.Name != i.Name() {
			t.Errorf("%+v", item)
		}
	}
}

// TestCancelLeavesNothing cancels each instrument in the middle of its trial.
func TestCancelLeavesNothing(t *testing.T) {
	programs(t)
	p := newPair(t)
	params := short
	params.Duration, params.Load, params.MTU = 3*patience, 10_000_000, 1500
	for _, i := range []Instrument{Draygen{record.QStream}, Iperf3{}, Iperf{}, Sockperf{}, Qperf{}} {
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() {
			_, err := i.Run(ctx, p.a, p.b, params)
			done <- err
		}()
		waitFor(t, func() bool { return len(p.inside(t)) >= 2 })
		cancel()
		select {
		case err := <-done:
			if !errors.Is(err, context.Canceled) {
				t.Errorf("%s: %v", i.Name(), err)
			}
		case <-time.After(patience):
			t.Fatalf("%s did not end after its context", i.Name())
		}
		p.empty(t)
	}
}

// TestRunsInTheFunctionsCgroup checks both ends' cgroups in the middle of a
// trial, and kills the trial through them.
func TestRunsInTheFunctionsCgroup(t *testing.T) {
	programs(t)
	p := newPair(t)
	for _, e := range []*Endpoint{&p.a, &p.b} {
		e.Place.Cgroup = newCgroup(t, filepath.Base(filepath.Dir(e.Place.Netns.Path))+"-"+filepath.Base(e.Place.Netns.Path))
	}
	params := short
	params.Duration = 20 * time.Second
	done := make(chan record.Trial, 1)
	go func() {
		trial, _ := Iperf{}.Run(context.Background(), p.a, p.b, params)
		done <- trial
	}()
	for _, e := range []Endpoint{p.a, p.b} {
		waitFor(t, func() bool { pids, err := e.Place.Cgroup.Processes(); return err == nil && len(pids) > 0 })
	}
	killIn(t, p.b)
	killIn(t, p.a)
	if trial := <-done; !strings.HasSuffix(trial.Instrument.Placement, "and cgroup") {
		t.Errorf("placement %q", trial.Instrument.Placement)
	}
}

func newCgroup(t *testing.T, name string) host.Cgroup {
	t.Helper()
	c := host.Cgroup{Path: "/" + name}
	resource := host.CgroupResource(c)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := host.Removers()[resource.Kind](ctx, resource); err != nil {
			t.Error(err)
		}
	})
	testenv.Must(t, c.Create(host.Limits{}))
	return c
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if cond() {
			return
		}
	}
	t.Fatal("timed out")
}

// TestDeadServer kills the server in the middle of a trial.
func TestDeadServer(t *testing.T) {
	programs(t)
	p := newPair(t)
	params := short
	params.Duration = 3 * patience
	for _, i := range []Instrument{Draygen{record.QStream}, Iperf3{}, Iperf{}, Sockperf{}} {
		done := make(chan error, 1)
		began := time.Now()
		go func() {
			_, err := i.Run(context.Background(), p.a, p.b, params)
			done <- err
		}()
		waitFor(t, func() bool { return len(p.inside(t)) == 2 })
		time.Sleep(500 * time.Millisecond)
		killIn(t, p.b)
		select {
		case err := <-done:
			if err == nil || !strings.Contains(err.Error(), i.Name()) {
				t.Errorf("%s: %v", i.Name(), err)
			}
		case <-time.After(2 * patience):
			t.Fatalf("%s continues without its server", i.Name())
		}
		if took := time.Since(began); took > params.Duration {
			t.Errorf("%s took %v to find out", i.Name(), took)
		}
		p.empty(t)
	}
}

// killIn kills every process in the endpoint's namespace. One that has just lost its peer can end by itself.
func killIn(t *testing.T, e Endpoint) {
	t.Helper()
	only := pair{a: e, b: e}
	for _, process := range only.inside(t) {
		pid, _, _ := strings.Cut(process, " ")
		n, err := strconv.Atoi(pid)
		testenv.Must(t, err)
		if err := unix.Kill(n, unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
			testenv.Must(t, err)
		}
	}
}

// TestTimeout gives a session less time than its client takes. The error has what the client
// complained about, and not its result.
func TestTimeout(t *testing.T) {
	p := newPair(t)
	testenv.Program(t, "sh")
	path, err := exec.LookPath("sh")
	testenv.Must(t, err)
	for script, c := range map[string]struct {
		timeout time.Duration // enough to say something
		want    string
	}{
		"echo '{}'; exec sleep 1000":        {500 * time.Millisecond, "did not end within 500ms"},
		"echo no peer >&2; exec sleep 1000": {10 * time.Second, `did not end within 10s: "no peer"`},
	} {
		s := clientServer{from: p.a, to: p.b, client: []string{path, "-c", script}, timeout: c.timeout}
		if _, err := s.run(context.Background()); err == nil || !strings.HasSuffix(err.Error(), c.want) {
			t.Errorf("%s: error %v", script, err)
		}
	}
	p.empty(t)
}

func TestServerThatNeverListens(t *testing.T) {
	p := newPair(t)
	s := clientServer{from: p.a, to: p.b, server: []string{"/bin/sh", "-c", "echo cannot bind >&2; exit 3"}, client: []string{"/bin/true"}, listen: socket{"tcp", 20001}, timeout: time.Second}
	if _, err := s.run(context.Background()); err == nil || !strings.Contains(err.Error(), "cannot bind") {
		t.Errorf("error %v", err)
	}
	p.empty(t)
}

// TestAgreesWithIperf3ByHand runs iperf3 itself and through the instrument, in
// turns. Other programs may slow down any run, so the best ones are compared, and only
// a factor can be asserted; all are logged.
func TestAgreesWithIperf3ByHand(t *testing.T) {
	programs(t)
	p := newPair(t)
	var inside, byHand []float64
	agree := false
	for end := time.Now().Add(patience); !agree && time.Now().Before(end); {
		inside = append(inside, float64(run(t, Iperf3{}, p, short).Throughput.BitsPerSecond))
		byHand = append(byHand, iperf3ByHand(t, p))
		ratio := slices.Max(inside) / slices.Max(byHand)
		agree = ratio >= 1.0/3 && ratio <= 3
	}
	t.Logf("iperf3, Gb/s: through the instrument %.2f, by hand %.2f", scaled(inside), scaled(byHand))
	if !agree {
		t.Error("the best differ by more than a factor of 3")
	}
}

func iperf3ByHand(t *testing.T, p pair) float64 {
	t.Helper()
	server := exec.Command("iperf3", "-s", "-1", "-p", "19999")
	testenv.Must(t, p.b.Place.Start(server))
	defer server.Wait()
	defer server.Process.Kill()
	waitFor(t, func() bool { return socket{"tcp", 19999}.listed(server.Process.Pid) })
	out, err := inNetns(p.a, "iperf3", "-c", "10.9.0.2", "-p", "19999", "-t", "1", "-J")
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var result struct {
		End struct {
			SumReceived struct {
				BitsPerSecond float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
	}
	testenv.Must(t, json.Unmarshal(out, &result))
	return result.End.SumReceived.BitsPerSecond
}

func scaled(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = x / 1e9
	}
	return out
}
