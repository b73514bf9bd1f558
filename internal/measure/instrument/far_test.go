// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/test/testenv"
)

// farPair is two ends of this host's loopback as if they were on these machines. Their commands run by a
// shell, as by another program that passes output on.
func farPair(t *testing.T, from, to string, script string) pair {
	t.Helper()
	at := func(machine string) Endpoint {
		return Endpoint{Name: "a.eth0", IP: netip.MustParseAddr("127.0.0.1"), MTU: 1500, Port: "eth0", Far: &Far{
			Machine: machine, Programs: map[string]FarProgram{
				"draygen": {Argv: []string{testenv.Built(t, "draygen")}, Version: "9.8.7"},
				"iperf3":  {Argv: []string{"iperf3"}, Version: "9.8.7"},
			},
			Command: func(argv []string) *exec.Cmd {
				return exec.Command("/bin/sh", append([]string{"-c", script, "sh"}, argv...)...)
			},
		}}
	}
	p := pair{at(from), at(to)}
	p.b.Name = "b.eth0"
	return p
}

func TestFarPortsAreMeasured(t *testing.T) {
	for _, to := range []string{"n1", "n2"} {
		p := farPair(t, "n1", to, `"$@"`)
		trial := attempt(t, Draygen{record.QProbe}, p, Params{Duration: time.Second, MessageRate: 500})
		d := trial.Delivery
		if !slices.Contains(trial.Instrument.Client, "--hold") {
			t.Errorf("to %s: the time that it takes to start counts for the sink: %s", to, trial.Instrument.Client)
		}
		if d.Received != d.Sent || trial.Instrument.Version != "9.8.7" || trial.Instrument.Client[0] != p.a.Far.Programs["draygen"].Argv[0] {
			t.Errorf("to %s: %+v, %+v", to, d, trial.Instrument)
		}
		// Different machines have different clocks.
		if (trial.OneWay != nil) != (to == "n1") {
			t.Errorf("to %s: one-way delays: %v", to, trial.OneWay != nil)
		}
		if w := trial.OneWay; w != nil && d.Sent+w.Unsent != 500 {
			t.Errorf("to %s: %d sent, %d unsent, of 500", to, d.Sent, w.Unsent)
		}
	}
}

// TestAFarSinkEndsByItself: a signal ends only what represents it, as with kubectl, so it would keep its port.
func TestAFarSinkEndsByItself(t *testing.T) {
	p := farPair(t, "n1", "n1", `"$@"`)
	sink := func() string {
		s, err := genCommands([]string{"draygen"}, []string{"draygen"}, p.a, p.b, offer{frame: 60, rate: "100pps", perSec: 100}, 2*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(s.server, " ")
	}
	if text := sink(); !strings.Contains(text, "--duration 12000ms") {
		t.Errorf("far: %s", text)
	}
	p.a.Native, p.b.Native, p.b.Far = true, true, nil
	if text := sink(); strings.Contains(text, "--duration") {
		t.Errorf("on this machine: %s", text)
	}
}

// TestAFarTrialIsCancelled: nothing of this machine is left.
func TestAFarTrialIsCancelled(t *testing.T) {
	began := filepath.Join(t.TempDir(), "began")
	p := farPair(t, "n1", "n1", `touch `+began+`; "$@"`)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		for {
			if _, err := os.Stat(began); err == nil {
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		cancel()
	}()
	start := time.Now()
	_, err := Draygen{record.QProbe}.Run(ctx, p.a, p.b, Params{Duration: time.Minute, MessageRate: 500})
	if !errors.Is(err, context.Canceled) || time.Since(start) > 30*time.Second {
		t.Errorf("after %v: %v", time.Since(start), err)
	}
	testenv.Program(t, "pgrep")
	waitFor(t, func() bool { // what it has killed is ending
		var exit *exec.ExitError
		return errors.As(exec.Command("pgrep", "-f", "touch "+began).Run(), &exit) && exit.ExitCode() == 1
	})
}

// TestAFarProgramThatFails has its own words in the error.
func TestAFarProgramThatFails(t *testing.T) {
	p := farPair(t, "n1", "n2", "echo 'error: unable to upgrade connection' >&2; exit 1")
	_, err := Draygen{record.QProbe}.Run(context.Background(), p.a, p.b, Params{Duration: time.Second, MessageRate: 500})
	if err == nil || !strings.Contains(err.Error(), "unable to upgrade connection") {
		t.Errorf("%v", err)
	}
}

// TestFarTCP: iperf3 there, which ends by itself even if nobody comes.
func TestFarTCP(t *testing.T) {
	p := farPair(t, "n1", "n2", `"$@"`)
	trial, err := Iperf3{}.Run(context.Background(), p.a, p.b, Params{Duration: time.Second})
	if err != nil {
		t.Fatalf("%v: %s", err, trial.Raw)
	}
	for _, command := range [][]string{trial.Instrument.Client, trial.Instrument.Server} {
		if len(command) == 0 || command[0] != "timeout" {
			t.Errorf("unbounded: %s", command)
		}
	}
	if trial.Throughput.BitsPerSecond == 0 || trial.Throughput.Traffic != "tcp" || trial.Instrument.Version != "9.8.7" {
		t.Errorf("%+v by %+v", trial.Throughput, trial.Instrument)
	}
	p.b.Far.Programs["iperf3"] = FarProgram{Missing: errors.New("this image has no iperf3")}
	if _, err := (Iperf3{}).Run(context.Background(), p.a, p.b, Params{Duration: time.Second}); err == nil || err.Error() != "this image has no iperf3" {
		t.Errorf("without the program: %v", err)
	}
}

// TestFarMixedLink: without privileges, a program at an interface sends by its kernel.
func TestFarMixedLink(t *testing.T) {
	p := farPair(t, "n1", "n1", `"$@"`)
	p.a.IP, p.a.MAC = netip.MustParseAddr("10.0.0.1"), "02:00:00:00:00:01"
	p.b.IP, p.b.MAC, p.b.Native, p.b.Port = netip.MustParseAddr("10.0.0.2"), "02:00:00:00:00:02", true, "p"
	commands := func(from, to Endpoint) (string, error) {
		s, err := genCommands([]string{"draygen"}, []string{"draygen"}, from, to, offer{frame: 60, rate: "100pps", perSec: 100}, time.Second)
		return strings.Join(append(s.client, s.server...), " "), err
	}
	text, err := commands(p.a, p.b)
	if err != nil || !strings.Contains(text, "send --port udp:10.0.0.1:0 --to 10.0.0.2:5010 ") || strings.Contains(text, "--to-mac") || !strings.Contains(text, "sink --port dray:p ") {
		t.Errorf("from the interface: %v: %s", err, text)
	}
	text, err = commands(p.b, p.a)
	if err != nil || !strings.Contains(text, "send --port dray:p --to 10.0.0.1:") || !strings.Contains(text, "--to-mac 02:00:00:00:00:01") || !strings.Contains(text, "sink --port udp:10.0.0.1:") {
		t.Errorf("to the interface: %v: %s", err, text)
	}
	p.b.IP = netip.Addr{}
	if _, err := commands(p.a, p.b); err == nil || !strings.Contains(err.Error(), "b.eth0 has no IP address") {
		t.Errorf("without an address: %v", err)
	}
}

// TestFarDevices: EAL's arguments are known there. The end that must be open first is the first to start.
func TestFarDevices(t *testing.T) {
	p := farPair(t, "n1", "n1", `"$@"`)
	p.a.Device, p.b.Device, p.a.Far.StartsFirst = "0", "0", true
	for _, c := range []struct {
		from, to Endpoint
		held     bool
	}{{p.a, p.b, true}, {p.b, p.a, false}} {
		s, err := genCommands([]string{"draygen-dpdk"}, []string{"draygen-dpdk"}, c.from, c.to, offer{frame: 60, rate: "100pps", perSec: 100}, time.Second)
		text := strings.Join(append(s.client, s.server...), " ")
		if err != nil || strings.Contains(text, "--eal") || strings.Count(text, "--port dpdk:0 --mtu 1500") != 2 || strings.Count(text, "timeout --signal=KILL 61 draygen-dpdk s") != 2 || (s.opened != nil) != c.held || strings.Contains(text, "--hold") != c.held {
			t.Errorf("%v, held %v: %s", err, s.opened != nil, text)
		}
	}
}
