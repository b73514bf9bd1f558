// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

const searching = "apiVersion: drayage/v1\nkind: Bench\nname: x\nloads: [ndr, pdr, rfc2544]\ntrial: 200ms\n"

func TestWhatASearchMeansThatIsLeftOut(t *testing.T) {
	whole := BenchSearch{Width: 0.02, Sum: Duration(600 * time.Millisecond), Exceed: 0.5, Loss: 0.005, Verify: 1}
	other := whole
	other.Loss = 0.01
	for text, want := range map[string]BenchSearch{searching: whole, searching + "search: {}\n": whole, searching + "search: {loss: 1%}\n": other} {
		b, err := ParseBench("", []byte(text))
		if err != nil || b.Search != want {
			t.Errorf("%s: %+v, %v; want %+v", text, b, err, want)
		}
		if got := benchSchemaVerdict(t, []byte(text)); got != "accepts" {
			t.Errorf("the schema %s %s", got, text)
		}
	}
}

func TestSearchDefaultsAreThoseOfTheSchema(t *testing.T) {
	var schema struct {
		Properties struct {
			Search struct {
				Properties map[string]struct{ Default any }
			}
		}
	}
	if err := json.Unmarshal(BenchSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	left, err := ParseBench("", []byte(searching))
	if err != nil {
		t.Fatal(err)
	}
	fields := schema.Properties.Search.Properties
	for _, f := range searchFields {
		p, ok := fields[f.name]
		if !ok {
			t.Errorf("the schema has no %s", f.name)
		}
		if p.Default == nil { // the sum's is that of a length
			continue
		}
		said, err := ParseBench("", []byte(fmt.Sprintf("%ssearch: {%s: %v}\n", searching, f.name, p.Default)))
		if err != nil || said.Search != left.Search {
			t.Errorf("%s: the schema's default makes %+v, %v; leaving it out %+v", f.name, said, err, left.Search)
		}
	}
	if len(fields) != len(searchFields) {
		t.Errorf("the schema has %d fields, the parser %d", len(fields), len(searchFields))
	}
}

func TestEveryFieldOfASearchIsInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/bench.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range searchFields {
		if !strings.Contains(string(guide), "`"+f.name+"`") {
			t.Errorf("docs/bench.md does not explain %s", f.name)
		}
	}
}

func TestLoadsAsText(t *testing.T) {
	for text, want := range map[string]struct {
		load             BenchLoad
		stated, searched bool
	}{
		"max": {BenchLoad{Search: LoadMax}, false, false}, "rfc2544": {BenchLoad{Search: LoadRFC2544}, false, true},
		"pdr": {BenchLoad{Search: LoadPDR}, false, true}, "0%pdr": {BenchLoad{OfPDR: true}, false, false},
		"99%pdr": {BenchLoad{OfPDR: true, Percent: 99}, false, false}, "10kpps": {BenchLoad{PacketRate: 10_000}, true, false},
	} {
		got, err := parseBenchLoad(text)
		if err != nil || got != want.load || got.String() != text || got.Stated() != want.stated || got.Searched() != want.searched {
			t.Errorf("%s: %+v (%s), stated %v, searched %v, %v", text, got, got, got.Stated(), got.Searched(), err)
		}
	}
	for _, text := range []string{"%pdr", "-1%pdr", "+1%pdr", "01%pdr", "100%pdr", "1e1%pdr", " 1%pdr"} {
		if got, err := parseBenchLoad(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// An experiment states what it offers: its rows do not depend on each other.
func TestExperimentsDoNotSearch(t *testing.T) {
	for _, load := range []string{"ndr", "pdr", "rfc2544", "10%pdr"} {
		text := experimentHead + "  - {name: a, title: A, figure: packet_rate, cell: {tool: frames, transport: veth, face: netdev, runtime: runc, size: 64, load: " + load + "}}\n"
		if _, err := ParseExperiment("x.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "does not search for a rate") {
			t.Errorf("%s: %v", load, err)
		}
	}
}
