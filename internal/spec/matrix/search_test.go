// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/units"
)

const searching = "apiVersion: drayage/v1\nkind: Bench\nname: x\nloads: [ndr, pdr, rfc2544]\ntrial: 200ms\n"

func TestWhatASearchMeansThatIsLeftOut(t *testing.T) {
	whole := Search{Width: 0.02, Sum: units.Duration(600 * time.Millisecond), Exceed: 0.5, Loss: 0.005, Verify: 1}
	other := whole
	other.Loss = 0.01
	for text, want := range map[string]Search{searching: whole, searching + "search: {}\n": whole, searching + "search: {loss: 1%}\n": other} {
		b, err := Parse("", []byte(text))
		if err != nil || b.Search != want {
			t.Errorf("%s: %+v, %v; want %+v", text, b, err, want)
		}
		if got := document.Verdict(t, []byte(text)); got != "accepts" {
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
	if err := json.Unmarshal(Schema(), &schema); err != nil {
		t.Fatal(err)
	}
	left, err := Parse("", []byte(searching))
	if err != nil {
		t.Fatal(err)
	}
	fields := schema.Properties.Search.Properties
	for _, f := range searchFields {
		p := fields[f.Name]
		if p.Default == nil { // Sum's depends on the trial length
			continue
		}
		said, err := Parse("", []byte(fmt.Sprintf("%ssearch: {%s: %v}\n", searching, f.Name, p.Default)))
		if err != nil || said.Search != left.Search {
			t.Errorf("%s: the schema's default makes %+v, %v; leaving it out %+v", f.Name, said, err, left.Search)
		}
	}
}

func TestEveryFieldOfASearchIsInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/bench.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range searchFields {
		if !strings.Contains(string(guide), "`"+f.Name+"`") {
			t.Errorf("docs/bench.md does not explain %s", f.Name)
		}
	}
}

func TestLoadsAsText(t *testing.T) {
	for text, want := range map[string]struct {
		load             Load
		stated, searched bool
	}{
		"max": {Load{Search: LoadMax}, false, false}, "rfc2544": {Load{Search: LoadRFC2544}, false, true},
		"pdr": {Load{Search: LoadPDR}, false, true}, "0%pdr": {Load{OfPDR: true}, false, false},
		"99%pdr": {Load{OfPDR: true, Percent: 99}, false, false}, "10kpps": {Load{PacketRate: 10_000}, true, false},
	} {
		got, err := ParseLoad(text)
		if err != nil || got != want.load || got.String() != text || got.Stated() != want.stated || got.Searched() != want.searched {
			t.Errorf("%s: %+v (%s), stated %v, searched %v, %v", text, got, got, got.Stated(), got.Searched(), err)
		}
	}
	for _, text := range []string{"%pdr", "-1%pdr", "+1%pdr", "01%pdr", "100%pdr", "1e1%pdr", " 1%pdr"} {
		if got, err := ParseLoad(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}
