// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
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
			Machine: machine, Draygen: testenv.Built(t, "draygen"), Version: "9.8.7",
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
		trial, err := Draygen{record.QProbe}.Run(context.Background(), p.a, p.b, Params{Duration: 300 * time.Millisecond, MessageRate: 500})
		if err != nil {
			t.Fatalf("to %s: %v: %s", to, err, trial.Raw)
		}
		d := trial.Delivery
		if d.Sent < 50 || d.Received != d.Sent || trial.Instrument.Version != "9.8.7" || trial.Instrument.Client[0] != p.a.Far.Draygen {
			t.Errorf("to %s: %+v, %+v", to, d, trial.Instrument)
		}
		// Different machines have different clocks.
		if (trial.OneWay != nil) != (to == "n1") {
			t.Errorf("to %s: one-way delays: %v", to, trial.OneWay != nil)
		}
	}
}

// TestAFarSinkEndsByItself: a signal ends only what represents it, as with kubectl, so it would keep its port.
func TestAFarSinkEndsByItself(t *testing.T) {
	p := farPair(t, "n1", "n1", `"$@"`)
	sink := func() string {
		s, err := genCommands("draygen", "draygen", p.a, p.b, offer{frame: 60, rate: "100pps", perSec: 100}, 2*time.Second)
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
	out, _ := exec.Command("pgrep", "-f", "touch "+began).Output()
	if len(out) > 0 {
		t.Errorf("left: %s", out)
	}
}

// TestAFarProgramThatFails has its own words in the error.
func TestAFarProgramThatFails(t *testing.T) {
	p := farPair(t, "n1", "n2", "echo 'error: unable to upgrade connection' >&2; exit 1")
	_, err := Draygen{record.QProbe}.Run(context.Background(), p.a, p.b, Params{Duration: time.Second, MessageRate: 500})
	if err == nil || !strings.Contains(err.Error(), "unable to upgrade connection") {
		t.Errorf("%v", err)
	}
}
