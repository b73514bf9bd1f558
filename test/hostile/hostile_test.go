// SPDX-License-Identifier: Apache-2.0

// Package hostile attacks running chains from inside their functions, and looks at
// what the others notice. `make test` attacks for a few seconds, `make hostile` for
// as long as one likes. README.md describes the classes.
package hostile

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// class is a kind of attack.
type class struct {
	name   string
	unit   string // what its attempts are
	attack func(s *session)
}

var classes = []class{
	{"memory", "writes", attackMemory},
	{"bells", "rings", attackBells},
	{"control", "messages", attackControl},
	{"resources", "calls", attackResources},
	{"kills", "kills", attackKills},
	{"switches", "kills", attackSwitches},
	{"links", "attempts", attackLinks},
	{"files", "files", attackFiles},
	{"packets", "packets", attackPackets},
}

// briefly is what make test runs, for briefTime each: every attacker on one chain, and
// one kill of each party. The short forms of files and packets are fuzzing there.
var briefly = []class{
	{"attackers", "attempts", attackInTurn},
	{"kills", "kills", attackKills},
	{"links", "attempts", attackLinks},
}

const briefTime = time.Second

// session is one class under attack.
type session struct {
	*testing.T
	time   time.Duration
	brief  bool
	rng    *rand.Rand
	result result
}

// result is a row of the table.
type result struct {
	Class    string            `json:"class"`
	Attempts uint64            `json:"attempts"`
	Unit     string            `json:"unit"`
	Seconds  float64           `json:"seconds"`
	Counts   map[string]uint64 `json:"counts"` // what else the class counts
	Findings []string          `json:"findings"`
}

// finding is a defect: the test fails.
func (s *session) finding(format string, args ...any) {
	s.Helper()
	text := fmt.Sprintf(format, args...)
	s.result.Findings = append(s.result.Findings, text)
	s.Error(text)
}

// count adds to one of the class's other counts.
func (s *session) count(name string, n uint64) {
	s.result.Counts[name] += n
}

// TestHostile runs every class. DRAY_TEST_HOSTILE is the time for all together, such
// as 1h; DRAY_TEST_HOSTILE_CLASSES names some of them; DRAY_TEST_HOSTILE_JSON is the
// file for the results, and DRAY_TEST_HOSTILE_SEED repeats a run's random choices.
func TestHostile(t *testing.T) {
	chosen, each, brief := choose(t)
	seed := rand.Uint64()
	if text := os.Getenv("DRAY_TEST_HOSTILE_SEED"); text != "" {
		if _, err := fmt.Sscan(text, &seed); err != nil {
			t.Fatalf("DRAY_TEST_HOSTILE_SEED is %q: want a number", text)
		}
	}
	t.Logf("seed %d, %v for each of %d classes", seed, each, len(chosen))
	var results []result
	for _, c := range chosen {
		t.Run(c.name, func(t *testing.T) {
			s := &session{T: t, time: each, brief: brief, rng: rand.New(rand.NewPCG(seed, 0)),
				result: result{Class: c.name, Unit: c.unit, Counts: map[string]uint64{}, Findings: []string{}}}
			start := time.Now()
			defer func() {
				s.result.Seconds = time.Since(start).Seconds()
				if t.Failed() && len(s.result.Findings) == 0 {
					s.result.Findings = append(s.result.Findings, "the test failed: see its log")
				}
				results = append(results, s.result)
			}()
			c.attack(s)
			if s.result.Attempts == 0 && !t.Failed() {
				t.Error("the class has attacked nothing")
			}
		})
	}
	t.Log("\n" + table(results))
	if file := os.Getenv("DRAY_TEST_HOSTILE_JSON"); file != "" {
		text, err := json.MarshalIndent(map[string]any{"seed": seed, "classes": results}, "", "  ")
		if err == nil {
			err = os.WriteFile(file, append(text, '\n'), 0o644)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// choose reads the environment: the classes, and the time for each.
func choose(t *testing.T) (chosen []class, each time.Duration, brief bool) {
	t.Helper()
	asked := os.Getenv("DRAY_TEST_HOSTILE")
	if asked == "" {
		return briefly, briefTime, true
	}
	names := strings.FieldsFunc(os.Getenv("DRAY_TEST_HOSTILE_CLASSES"), func(r rune) bool { return r == ',' || r == ' ' })
	for _, c := range classes {
		if slices.Contains(names, c.name) || len(names) == 0 {
			chosen = append(chosen, c)
		}
	}
	if len(chosen) < len(names) {
		t.Fatalf("DRAY_TEST_HOSTILE_CLASSES is %q; the classes are %s", names, classNames())
	}
	all, err := time.ParseDuration(asked)
	if err != nil || all < time.Second {
		t.Fatalf("DRAY_TEST_HOSTILE is %q: want a time such as 1h", asked)
	}
	return chosen, all / time.Duration(len(chosen)), false
}

func classNames() string {
	var names []string
	for _, c := range classes {
		names = append(names, c.name)
	}
	return strings.Join(names, ", ")
}

func table(results []result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-10s %16s %-8s %9s %9s  %s\n", "class", "attempts", "", "seconds", "findings", "counts")
	for _, r := range results {
		var counts []string
		for name, n := range r.Counts {
			counts = append(counts, fmt.Sprintf("%s %d", name, n))
		}
		slices.Sort(counts)
		fmt.Fprintf(&b, "%-10s %16d %-8s %9.0f %9d  %s\n", r.Class, r.Attempts, r.Unit, r.Seconds, len(r.Findings), strings.Join(counts, ", "))
	}
	return b.String()
}
