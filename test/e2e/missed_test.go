// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// verdicts is the output of `dray verify --json` for each requirement.
type verdicts struct {
	Verdicts []struct {
		Link        string `json:"link"`
		Requirement string `json:"requirement"`
		Verdict     string `json:"verdict"`
		Reason      string `json:"reason"`
		Basis       string `json:"basis"`
		Directions  []struct {
			Direction string `json:"direction"`
			Verdict   string `json:"verdict"`
		} `json:"directions"`
		Measured struct {
			Text string `json:"text"`
		} `json:"measured"`
	} `json:"verdicts"`
}

// verify measures a chain that is up, and wants that exit status.
func (b *bench) verify(code int, chain string) verdicts {
	b.t.Helper()
	r, _ := b.measure(code, "verify", chain, "--json")
	return decode[verdicts](b.t, r)
}

// of is the verdict of one requirement.
func (v verdicts) of(requirement string) string {
	for _, one := range v.Verdicts {
		if one.Requirement == requirement {
			return one.Verdict
		}
	}
	return "absent"
}

// TestEachRequirementIsMissedThroughARealFault brings up a chain whose link meets
// its requirement, breaks the link for real, and sees the same chain miss it.
func TestEachRequirementIsMissedThroughARealFault(t *testing.T) {
	// The loads are small, so that a busy machine can send them. The bottleneck passes 2 Mbit/s,
	// and queues for up to 200 ms.
	bottleneck := func(b *bench, t *testing.T) {
		b.inPort(t, "tc", "qdisc", "replace", "dev", "p0", "root", "tbf", "rate", "2mbit", "burst", "4kb", "latency", "200ms")
	}
	tests := []struct {
		requirement, requires, load string
		fault                       func(*bench, *testing.T)
	}{
		{"latency", "{latency: 100ms, percentile: 50}", "3Mbps", bottleneck},
		{"packet_delay_variation", "{packet_delay_variation: 50ms, percentile: 50}", "3Mbps", bottleneck},
		{"packet_loss_ratio", "{packet_loss_ratio: 0.1}", "4Mbps", bottleneck},
		{"min_bitrate", "{min_bitrate: 10Mbps}", "1Mbps", bottleneck},
		{"packet_rate", "{packet_rate: 1kpps}", "", func(b *bench, t *testing.T) {
			b.inPort(t, "tc", "qdisc", "replace", "dev", "p0", "root", "tbf", "rate", "200kbit", "burst", "4kb", "latency", "20ms")
		}},
		{"max_bitrate", "{max_bitrate: 20Mbps}", "", func(b *bench, t *testing.T) {
			b.inPort(t, "tc", "qdisc", "del", "dev", "p0", "root")
		}},
		{"mtu", "{mtu: 1500}", "", func(b *bench, t *testing.T) {
			b.inPort(t, "ip", "link", "set", "p0", "mtu", "1400")
		}},
	}
	for _, tt := range tests {
		t.Run(tt.requirement, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			p := pair{Name: "miss", Requires: tt.requires, Load: tt.load}
			b.want(0, "up", b.file(p.yaml()))
			defer b.want(0, "down", "miss")

			if sound := b.verify(0, "miss"); sound.of(tt.requirement) != "met" {
				t.Fatalf("before the fault: %+v", sound)
			}
			tt.fault(b, t)
			if broken := b.verify(4, "miss"); broken.of(tt.requirement) != "missed" {
				t.Errorf("after the fault: %+v", broken)
			}
		})
	}
}

// TestAStoppedPeerMissesEverything takes one end down, seen from both ends.
func TestAStoppedPeerMissesEverything(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	p := pair{Name: "stopped", Requires: "{latency: 10ms, percentile: 90, packet_loss_ratio: 0.1, min_bitrate: 10Mbps}"}
	b.want(0, "up", b.file(p.yaml()))
	defer b.want(0, "down", "stopped")
	b.inPort(t, "ip", "link", "set", "p0", "down")
	v := b.verify(4, "stopped")
	for _, requirement := range []string{"latency", "packet_loss_ratio", "min_bitrate"} {
		if v.of(requirement) != "missed" {
			t.Errorf("%s: %+v", requirement, v)
		}
	}
}

// realtimeHog keeps its CPU for 50 ms of every 60. The scheduler's reserve for
// ordinary threads cannot interrupt it, and none starves.
const realtimeHog = `use Time::HiRes qw(time sleep); while (1) { my $end = time + 0.05; 1 while time < $end; sleep 0.01 }`

// TestAPinnedHogIsNoticed repeatedly takes a pinned function's CPU away. That delays the packets
// to it, and the link misses its budget; if something else delays the sender, the verdict must
// say that the link cannot be blamed.
func TestAPinnedHogIsNoticed(t *testing.T) {
	testenv.Program(t, "chrt", "taskset", "perl")
	if out, err := exec.Command("chrt", "--fifo", "10", "true").CombinedOutput(); err != nil {
		t.Skipf("no real-time scheduling in this control group (cpu.rt_runtime_us): %s", out)
	}
	b := newBench(t)
	text := pair{Name: "hog", Load: "10Mbps", Requires: "{latency: 25ms, percentile: 90}"}.yaml()
	// The hog's CPU, and one where nothing delays the sender.
	text = strings.NewReplacer("name: a\n", "name: a\n    cpus: \"0\"\n", "name: b\n", "name: b\n    cpus: \"1\"\n").Replace(text)
	b.want(0, "up", b.file(text))
	defer b.want(0, "down", "hog")
	if sound := b.verify(0, "hog"); sound.of("latency") != "met" {
		t.Fatalf("before the fault: %+v", sound)
	}

	hog := exec.Command("taskset", "-c", "0", "chrt", "--fifo", "10", "perl", "-e", realtimeHog)
	if err := hog.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = hog.Process.Kill(); _ = hog.Wait() }()
	r := b.dray("verify", "hog", "--json", "--rounds", "4", "--duration", "1s", "--out", filepath.Join(t.TempDir(), "out"))
	broken := decode[verdicts](t, r).Verdicts[0]
	noticed := r.Code == missed && broken.Verdict == "missed"
	blamedOnTheSender := r.Code == undecided && strings.Contains(broken.Reason, "the sender itself was")
	if !noticed && !blamedOnTheSender {
		t.Errorf("after the fault: %+v", broken)
	}
}

// inPort runs a host program in function a's network namespace, in the test's
// only chain.
func (b *bench) inPort(t *testing.T, argv ...string) {
	t.Helper()
	type status struct{ Chain string }
	chains := decodeChains[status](t, b.want(0, "status", "--json"))
	if len(chains) != 1 {
		t.Fatalf("%d chains", len(chains))
	}
	args := append([]string{"exec", chains[0].Chain, "a", "--"}, argv...)
	b.want(0, args...)
}
