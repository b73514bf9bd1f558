// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	_ "embed"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/matrix"
)

func TestQuickIsQuick(t *testing.T) {
	m, err := matrix.Parse("bench-quick.yaml", BenchQuick())
	if err != nil {
		t.Fatal(err)
	}
	if m.Transports != nil || time.Duration(m.AtMost) > 3*time.Minute || m.AtMost == 0 {
		t.Errorf("transports %v, at most %v", m.Transports, m.AtMost)
	}
}

//go:embed seeds.txt
var seeds string

// Every published system and experiment has a row in some experiment, measured or with
// a reason.
func TestEverySeedHasItsRows(t *testing.T) {
	rows := map[string]bool{}
	for _, name := range Names() {
		e, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range e.Rows {
			rows[name+"/"+r.Name] = true
		}
	}
	seen := 0
	for _, line := range strings.Split(seeds, "\n") {
		fields := strings.Fields(line)
		if len(fields) == 0 || fields[0] == "#" {
			continue
		}
		seen++
		if len(fields) < 2 {
			t.Errorf("%s: no row shows it", line)
		}
		for _, want := range fields[1:] {
			pattern, least, found := want, 1, 0
			if at := strings.LastIndex(want, ":"); at >= 0 {
				n, err := strconv.Atoi(want[at+1:])
				if err != nil {
					t.Fatal(err)
				}
				pattern, least = want[:at], n
			}
			for row := range rows {
				if ok, err := path.Match(pattern, row); err != nil {
					t.Fatal(err)
				} else if ok {
					found++
				}
			}
			if found < least {
				t.Errorf("%s: %d rows %s, want %d", fields[0], found, pattern, least)
			}
		}
	}
	if seen < 36 {
		t.Errorf("only %d published systems and experiments are listed", seen)
	}
}

func TestBuiltInExperiments(t *testing.T) {
	if names := Names(); len(names) < 15 || slices.Contains(names, "fronthaul") {
		t.Fatalf("published are %v", names)
	}
	for _, name := range BuiltIn() {
		e, err := Find(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if e.Name != name || len(e.Rows) == 0 {
			t.Errorf("%s: called %q, with %d rows", name, e.Name, len(e.Rows))
		}
	}
	if e, err := Find("../secret"); e != nil || err != nil {
		t.Errorf("an unknown name gives %v, %v", e, err)
	}
}
