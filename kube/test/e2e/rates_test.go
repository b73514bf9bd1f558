// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/drayage/dray/internal/result/stats"
)

// place is where the two ends of a link run.
type place struct {
	name  string
	in    func(function string) []string // how to run a program there
	trial map[string][]float64           // by quantity, one value a round
}

// The quantities of a trial.
const (
	rate = "Mpps"
	p50  = "p50 µs"
	p99  = "p99 µs"
)

/*
TestRates prints how fast two restricted pods with user namespaces of their own
pass packets on one node, next to the same two programs as plain processes
without Kubernetes, and to two pods on two nodes:

	rate   64 bytes, as fast as the sender can, what arrives
	delay  64 bytes, 1000 packets/s, there and back

All of one round follow each other, each round beginning with another place, and each end
has a CPU of its own in every place. It judges no figure. DRAY_KUBE_ROUNDS is how many rounds there are.
*/
func TestRates(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: run make kube-rates")
	}
	plain := processes(t)
	places := []*place{plain, pods(t, "pods, one node", "n1", "n1"), pods(t, "pods, two nodes", "n1", "n2")}
	for round := range int(number(t, "DRAY_KUBE_ROUNDS", 10)) {
		for i := range places {
			places[(round+i)%len(places)].measure(t)
		}
	}
	t.Logf("\n%s", compared(t, places))
}

// processes are two programs of a chain on this host.
func processes(t *testing.T) *place {
	t.Helper()
	dray, err := filepath.Abs("../../../bin/dray")
	if err != nil {
		t.Fatal(err)
	}
	const chain = "kube-rates"
	file := filepath.Join(t.TempDir(), "chain.yaml")
	end := "{name: %s, runtime: process, command: [sleep, infinity], ports: [{name: f1u, face: native, ip: %s, mtu: 1600}]}"
	text := fmt.Sprintf("apiVersion: drayage/v1\nkind: Chain\nname: %s\nfunctions:\n- "+end+"\n- "+end+"\nlinks:\n- {name: f1u, ends: [cu-up.f1u, du.f1u]}\n",
		chain, "cu-up", "10.38.0.1/24", "du", "10.38.0.2/24")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(dray, "up", file).CombinedOutput(); err != nil {
		t.Fatalf("dray up: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command(dray, "down", chain).CombinedOutput(); err != nil {
			t.Errorf("dray down: %v: %s", err, out)
		}
	})
	gen := filepath.Join(filepath.Dir(dray), "draygen")
	return &place{
		name: "processes", trial: map[string][]float64{},
		in: func(function string) []string {
			return []string{dray, "exec", chain, function, "--", "taskset", cpus[function], gen}
		},
	}
}

// cpus is the mask of the CPU that each function has for itself.
var cpus = map[string]string{"cu-up": "1", "du": "2"}

// pods are those of chain f1, in a namespace of their own.
func pods(t *testing.T, name, sender, receiver string) *place {
	t.Helper()
	c := newCluster(t)
	c.awaitNetwork()
	c.apply(f1)
	c.apply(pod{name: "cu-up", function: "cu-up", command: sleeps, node: sender}.manifest())
	c.apply(pod{name: "du", function: "du", command: sleeps, node: receiver}.manifest())
	c.ready("cu-up", "du")
	if sender != receiver {
		c.awaitTransport("vxlan")
	}
	return &place{
		name: name, trial: map[string][]float64{},
		in: func(function string) []string {
			return []string{c.program, "kubectl", "-n", c.namespace, "exec", function, "--", "taskset", cpus[function], "draygen"}
		},
	}
}

// measure adds one value of each quantity.
func (p *place) measure(t *testing.T) {
	t.Helper()
	received, _ := p.run(t, []string{"sink"}, []string{"send", "--rate", "max"})
	p.trial[rate] = append(p.trial[rate], received.ReceivePPS/1e6)
	_, there := p.run(t, []string{"sink", "--reflect"}, []string{"ping", "--rate", "1000pps"})
	p.trial[p50] = append(p.trial[p50], there.RoundTrip.P50/1e3)
	p.trial[p99] = append(p.trial[p99], there.RoundTrip.P99/1e3)
}

// measured is what is of interest of draygen's results.
type measured struct {
	Event      string  `json:"event"`
	ReceivePPS float64 `json:"receive_pps"`
	RoundTrip  struct {
		P50 float64 `json:"p50"`
		P99 float64 `json:"p99"`
	} `json:"round_trip"`
}

// run runs draygen at both ends, and returns their results.
func (p *place) run(t *testing.T, receiver, sender []string) (received, sent measured) {
	t.Helper()
	sink := p.command("du", append(receiver, "--port", "dray:f1u", "--once", "--duration", "60s"))
	var out, errs strings.Builder
	sink.Stdout, sink.Stderr = &out, &errs
	if err := sink.Start(); err != nil {
		t.Fatal(err)
	}
	send := p.command("cu-up", append(sender, "--port", "dray:f1u", "--size", "64", "--duration", "2s", "--peer-timeout", "30s"))
	text, err := send.Output()
	if e, ok := err.(*exec.ExitError); ok {
		t.Logf("%s: %s", p.name, e.Stderr)
	}
	if waited := sink.Wait(); err != nil || waited != nil {
		t.Fatalf("%s: sender %v, receiver %v: %s", p.name, err, waited, errs.String())
	}
	return resultOf(t, out.String()), resultOf(t, string(text))
}

func (p *place) command(function string, args []string) *exec.Cmd {
	argv := slices.Concat(p.in(function), args)
	return exec.Command(argv[0], argv[1:]...)
}

// resultOf is the last line that draygen printed.
func resultOf(t *testing.T, text string) measured {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var m measured
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &m); err != nil || m.Event != "result" {
		t.Fatalf("no result of draygen: %v: %s", err, text)
	}
	return m
}

// compared is the median of each quantity, and its ratio to the first place's with
// a 95 % interval, from pairs of one round.
func compared(t *testing.T, places []*place) string {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "ends\t%s\tratio\t%s\tratio\t%s\tratio\t\n", rate, p50, p99)
	for _, p := range places {
		fmt.Fprint(w, p.name)
		for _, quantity := range []string{rate, p50, p99} {
			median, err := stats.Median(p.trial[quantity])
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(w, "\t%.3g\t%s", median.Value, ratio(t, p.trial[quantity], places[0].trial[quantity]))
		}
		fmt.Fprintln(w, "\t")
	}
	w.Flush()
	return text.String()
}

func ratio(t *testing.T, a, b []float64) string {
	t.Helper()
	var pairs []stats.Pair
	for i := range a {
		pairs = append(pairs, stats.Pair{A: a[i], B: b[i]})
	}
	r, err := stats.Ratio(pairs, 1)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", r.Ratio, r.CI.Low, r.CI.High)
}
