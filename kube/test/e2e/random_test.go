// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

/*
Each node has a pair of pods with traffic between them, in a namespace of its own:

	n1: cu-up ── f1u ── du      n2: cu-up ── f1u ── du

Faults strike at random. After each, everything must be Ready again, and traffic
must pass. A fault that ends no pod of a pair loses no packet of it.

DRAY_KUBE_FAULTS is how many faults there are, DRAY_KUBE_SEED decides which, and
DRAY_KUBE_KIND leaves only those with this text in their names.
*/
func TestRandomFaults(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes: run make test-kube")
	}
	s := newStorm(t)
	t.Logf("%d faults; DRAY_KUBE_SEED=%d repeats them", s.count, s.seed)
	before := s.any().settledTraces()
	for _, p := range s.pairs {
		p.apply(f1)
		p.start()
	}
	for i, f := range s.drawn() {
		s.strike(i, f)
	}
	t.Logf("\n%s", s.table())
	for _, p := range s.pairs {
		p.kubectl("delete", "namespace", p.namespace, "--timeout", patience.String())
	}
	s.any().until("as before", func() error { return s.any().sameTraces(before) })
}

// storm is a run of random faults.
type storm struct {
	t       *testing.T
	count   int
	seed    uint64
	random  *rand.Rand
	pairs   []*pair
	results map[string]*outcome
}

// outcome is what the faults of one kind did.
type outcome struct {
	recovery []time.Duration
	lost     int64
}

func newStorm(t *testing.T) *storm {
	t.Helper()
	s := &storm{t: t, count: int(number(t, "DRAY_KUBE_FAULTS", 20)), seed: number(t, "DRAY_KUBE_SEED", uint64(time.Now().UnixNano())), results: map[string]*outcome{}}
	s.random = rand.New(rand.NewPCG(s.seed, 0))
	for i, node := range []string{"n1", "n2"} {
		s.pairs = append(s.pairs, &pair{cluster: newCluster(t), node: node, hostUsers: i == 0})
	}
	return s
}

// number is an environment variable.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// any is the cluster, for what concerns no pair.
func (s *storm) any() *cluster { return s.pairs[0].cluster }

// drawn are the faults in their order: each kind comes up equally often.
func (s *storm) drawn() []fault {
	s.t.Helper()
	chosen := slices.DeleteFunc(slices.Clone(kinds), func(f fault) bool { return !strings.Contains(f.kind, os.Getenv("DRAY_KUBE_KIND")) })
	if len(chosen) == 0 {
		s.t.Fatalf("no kind of fault has %q in its name", os.Getenv("DRAY_KUBE_KIND"))
	}
	var all []fault
	for len(all) < s.count {
		round := slices.Clone(chosen)
		s.random.Shuffle(len(round), func(i, j int) { round[i], round[j] = round[j], round[i] })
		all = append(all, round...)
	}
	return all[:s.count]
}

// strike lets one fault happen, and waits until all is well again.
func (s *storm) strike(i int, f fault) {
	s.t.Helper()
	victim := s.pairs[s.random.IntN(len(s.pairs))]
	before := map[*pair]state{}
	for _, p := range s.pairs {
		before[p] = p.state()
	}
	start := time.Now()
	healed := f.strike(s, victim)
	s.any().until("healed after "+f.kind, healed)
	s.any().until("every pod ready after "+f.kind, s.allReady)
	for _, p := range s.pairs {
		p.flows()
	}
	took := time.Since(start)
	var lost int64
	for _, p := range s.pairs {
		if f.ends && p == victim {
			continue
		}
		after := p.state()
		lost += after.damaged - before[p].damaged
		if after.containers != before[p].containers {
			s.t.Errorf("%s restarted containers of %s: %s, before %s", f.kind, p.node, after.containers, before[p].containers)
		}
	}
	if lost != 0 {
		s.t.Errorf("%s on %s: %d packets lost", f.kind, victim.node, lost)
	}
	s.t.Logf("%3d %s on %s: well after %v, %d lost", i+1, f.kind, victim.node, took.Round(100*time.Millisecond), lost)
	if s.results[f.kind] == nil {
		s.results[f.kind] = &outcome{}
	}
	r := s.results[f.kind]
	r.recovery, r.lost = append(r.recovery, took), r.lost+lost
	if f.ends {
		victim.renew()
	}
}

// allReady checks every pod of the pairs and of Drayage.
func (s *storm) allReady() error {
	namespaces := []string{"dray-system"}
	for _, p := range s.pairs {
		namespaces = append(namespaces, p.namespace)
	}
	for _, n := range namespaces {
		out, err := s.any().try("get", "pods", "-n", n, "-o", `jsonpath={range .items[*]}{.metadata.name} {.metadata.deletionTimestamp}{.status.conditions[?(@.type=="Ready")].status}{"\n"}{end}`)
		if err != nil {
			return err
		}
		for _, line := range strings.Split(strings.TrimSpace(out), "\n") {
			if !strings.HasSuffix(line, " True") {
				return fmt.Errorf("%s: %q", n, line)
			}
		}
	}
	return nil
}

// table is what each kind of fault did. What a fault loses of the pair whose
// pods it ends is not counted.
func (s *storm) table() string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "fault\tcount\twell again: p50\tmax\tpackets lost\t")
	for _, k := range kinds {
		r := s.results[k.kind]
		if r == nil {
			continue
		}
		slices.Sort(r.recovery)
		round := func(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
		fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%d\t\n", k.kind, len(r.recovery), round(r.recovery[len(r.recovery)/2]), round(r.recovery[len(r.recovery)-1]), r.lost)
	}
	w.Flush()
	return text.String()
}
