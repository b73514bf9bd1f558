// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/internal/spec/chain"
)

var update = flag.Bool("update", false, "write the golden files instead of comparing with them")

// TestGolden plans every chain of testdata/chains on every saved inventory, and
// compares the plan as JSON, as text, and as error.
func TestGolden(t *testing.T) {
	chains, err := filepath.Glob("testdata/chains/*.yaml")
	if err != nil || len(chains) == 0 {
		t.Fatalf("no chains: %v", err)
	}
	inventories, err := filepath.Glob("testdata/inventories/*.json")
	if err != nil || len(inventories) == 0 {
		t.Fatalf("no inventories: %v", err)
	}
	for _, file := range chains {
		c, err := chain.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, saved := range inventories {
			host := stem(saved)
			t.Run(stem(file)+"/"+host, func(t *testing.T) {
				p, err := Make(c, loadInventory(t, host))
				golden := filepath.Join("testdata", "golden", stem(file)+"."+host)
				compare(t, golden+".json", jsonOf(t, p))
				compare(t, golden+".txt", textOf(t, p, err))
			})
		}
	}
}

func stem(path string) string {
	return strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
}

func jsonOf(t *testing.T, p *Plan) []byte {
	t.Helper()
	data, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(data, '\n')
}

func textOf(t *testing.T, p *Plan, err error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Text(&b, 0, false); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\n---- verbose\n\n")
	if err := p.Text(&b, 0, true); err != nil {
		t.Fatal(err)
	}
	if err != nil {
		b.WriteString("\n---- error\n\n" + err.Error() + "\n")
	}
	return b.Bytes()
}

func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; run go test ./internal/plan -update and look at the difference", err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is out of date (-want +got); run with -update if the change is intended:\n%s", file, diff)
	}
}

// Required outcomes for the chains of the golden files and the examples, after any
// update.
func TestOutcomes(t *testing.T) {
	const examples = "../../examples/"
	for _, test := range []struct {
		chain, host string
		constraints []string // of the violations; nil: feasible
	}{
		{"testdata/chains/f1-split", "vm2", nil},
		{"testdata/chains/f1-split", "server8", nil},
		{"testdata/chains/f1-split", "v2", nil},
		{"testdata/chains/f1-split", "calibrated", nil},
		{"testdata/chains/fronthaul-on-bridge", "vm2", []string{"latency ≤ 25us at p99.99"}},
		{"testdata/chains/fronthaul-on-bridge", "calibrated", []string{"latency ≤ 25us at p99.99"}},
		{"testdata/chains/capped", "vm2", []string{"min_bitrate ≥ 200Mbps"}},
		{"testdata/chains/capped", "calibrated", []string{"min_bitrate ≥ 200Mbps"}},
		{"testdata/chains/capped-warn", "vm2", nil},
		{"testdata/chains/site", "server8", nil},
		{examples + "f1-split", "vm2", nil},
		{examples + "f1-split", "calibrated", nil},
		{examples + "f1-split-native", "vm2", nil},
		{examples + "f1-split-native", "calibrated", nil},
		{examples + "fronthaul-on-bridge", "vm2", []string{"latency ≤ 25us at p99.99"}},
		{examples + "fronthaul-on-bridge", "calibrated", []string{"latency ≤ 25us at p99.99"}},
		{examples + "capped", "vm2", []string{"min_bitrate ≥ 200Mbps"}},
	} {
		c, err := chain.Load(test.chain + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var constraints []string
		var infeasible *Infeasible
		if _, err := Make(c, loadInventory(t, test.host)); errors.As(err, &infeasible) {
			for _, v := range infeasible.Plan.Violations {
				constraints = append(constraints, v.Constraint)
			}
		}
		if diff := cmp.Diff(test.constraints, constraints); diff != "" {
			t.Errorf("%s on %s (-want +got):\n%s", test.chain, test.host, diff)
		}
	}
}
