// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// comparing ignores where a value is in its file.
var comparing = []cmp.Option{
	cmpopts.IgnoreTypes(parse.Position{}, map[string]parse.Position{}), cmpopts.IgnoreFields(chain.Chain{}, "File"),
	cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }),
}

// TestChainSurvives converts random chains into descriptors and back. They say only what
// SOL001 can say, so each must come back as it was.
func TestChainSurvives(t *testing.T) {
	for seed := range uint64(100) {
		text := randomChain(rand.New(rand.NewPCG(seed, 15)))
		first := exported(t, text)
		back := imported(t, first.YAML)
		if diff := cmp.Diff(parsed(t, text), parsed(t, back.YAML), comparing...); diff != "" {
			t.Fatalf("seed %d: before (-) and after (+) differ:\n%s\n%s", seed, diff, text)
		}
		// The descriptor comes back from the chain, too, to the letter.
		if diff := cmp.Diff(first.YAML, exported(t, back.YAML).YAML); diff != "" {
			t.Fatalf("seed %d: the first descriptor (-) and the second (+) differ:\n%s", seed, diff)
		}
	}
}

// TestDescriptorSurvives converts descriptors that others wrote into chains, these into
// descriptors, and those into chains again. What the first chain holds, both can say.
func TestDescriptorSurvives(t *testing.T) {
	for file, flavour := range map[string]string{
		"testdata/nsd.yaml": "", "testdata/containers.yaml": "", "testdata/tacker/practical": "scalable",
		"testdata/tacker/practical/Definitions/df_ha.yaml": "", "testdata/tacker/sample1/ut_sample1_df_simple.yaml": "",
	} {
		t.Run(filepath.Base(file), func(t *testing.T) {
			first := mustImport(t, file, flavour)
			again := imported(t, exported(t, first.YAML).YAML)
			if diff := cmp.Diff(parsed(t, first.YAML), parsed(t, again.YAML), comparing...); diff != "" {
				t.Errorf("the first chain (-) and the second (+) differ:\n%s", diff)
			}
		})
	}
}

// TestExamplesSurvive converts the example chains. What is lost has a note.
func TestExamplesSurvive(t *testing.T) {
	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal("no examples", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		c, err := chain.Parse(file, text)
		if err != nil {
			t.Fatal(err)
		}
		back := parsed(t, imported(t, exported(t, string(text)).YAML).YAML)
		for i, l := range c.Links {
			want, got := l.Requires, back.Links[i].Requires
			want.Percentile, want.PacketRate, want.MTU, want.OnTime = got.Percentile, 0, 0, 0 // each has a note
			if diff := cmp.Diff(want, got, comparing...); diff != "" {
				t.Errorf("%s: link %s before (-) and after (+):\n%s", file, l.Name, diff)
			}
			if diff := cmp.Diff(l.Ends, back.Links[i].Ends, comparing...); diff != "" {
				t.Errorf("%s: link %s before (-) and after (+):\n%s", file, l.Name, diff)
			}
		}
	}
}

func exported(t *testing.T, text string) *Exported {
	t.Helper()
	d, err := Export("x", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return d
}

func imported(t *testing.T, text string) *Imported {
	t.Helper()
	src, err := Text("x", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := Import(src, "")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return got
}

func parsed(t *testing.T, text string) *chain.Chain {
	t.Helper()
	c, err := chain.Parse("x", []byte(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return c
}

// randomChain is a chain file that says only what SOL001 can say.
func randomChain(r *rand.Rand) string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	functions := 1 + r.IntN(5)
	links := r.IntN(6)
	ports := make([][]string, functions)
	joins := make([][]string, links)
	for l := range joins {
		ends := 2 + r.IntN(3)
		uplink := r.IntN(4) == 0
		mtu, subnet := []int{1500, 1500, 68, 1600, 9000}[r.IntN(5)], r.IntN(4)
		if uplink || mtu < 1280 {
			subnet = 0
		}
		for e := range ends {
			if uplink && e == ends-1 {
				joins[l] = append(joins[l], fmt.Sprintf("{uplink: %q}", []string{"eth0", "b.1_x", "no"}[r.IntN(3)]))
				break
			}
			f := r.IntN(functions)
			name := []string{"p%d", "no-%d", "%d"}[r.IntN(3)]
			name = fmt.Sprintf(name, len(ports[f]))
			port := fmt.Sprintf("      - {name: %q", name)
			if mtu != 1500 {
				port += fmt.Sprintf(", mtu: %d", mtu)
			}
			switch {
			case r.IntN(4) == 0:
			case subnet == 1:
				port += fmt.Sprintf(", ip: 10.0.%d.%d/24", l, e+1)
			case subnet == 2:
				port += fmt.Sprintf(", ip: \"fd00:%d::%d/64\"", l, e+1)
			}
			ports[f] = append(ports[f], port+"}")
			joins[l] = append(joins[l], fmt.Sprintf("%q", functionName(f)+"."+name))
		}
	}
	line("apiVersion: drayage/v1\nkind: Chain\nname: %q\nfunctions:", []string{"c", "1e3", "off", "a-name-as-long-as-a-name-can-be2"}[r.IntN(4)])
	for f := range functions {
		line("  - name: %q", functionName(f))
		if r.IntN(2) == 0 {
			line("    cpus: %d", 1+r.IntN(16))
		}
		if r.IntN(2) == 0 {
			line("    memory: %d", 4<<20+r.Int64N(1<<40))
		}
		if r.IntN(3) == 0 {
			line("    hugepages: {2Mi: %dMi, 1Gi: %dGi}", 2+2*r.IntN(100), 1+r.IntN(8))
		}
		if r.IntN(4) == 0 {
			ports[f] = append(ports[f], []string{"      - {name: alone}", "      - {name: alone, mtu: 1400, ip: 10.99.0.1/24}"}[r.IntN(2)])
		}
		if len(ports[f]) > 0 {
			line("    ports:\n%s", strings.Join(ports[f], "\n"))
		}
	}
	if links > 0 {
		line("links:")
	}
	for l, ends := range joins {
		name := fmt.Sprintf("l%d", l)
		if r.IntN(3) == 0 && l < functions {
			name = functionName(l) // links and functions may have the same name
		}
		line("  - name: %q\n    ends: [%s]", name, strings.Join(ends, ", "))
		randomRequirements(r, line)
	}
	return b.String()
}

func functionName(f int) string { return []string{"du", "cu-up", "yes", "2", "vnf"}[f] }

func randomRequirements(r *rand.Rand, line func(string, ...any)) {
	var all []string
	add := func(format string, args ...any) {
		if r.IntN(2) == 0 {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	low := uint64(1 + r.Int64N(1<<uint(4+r.IntN(40))))
	add("latency: %s", units.Duration(1+r.Int64N(1<<uint(1+r.IntN(50)))))
	add("packet_delay_variation: %s", units.Duration(1+r.Int64N(1<<uint(1+r.IntN(50)))))
	add("packet_loss_ratio: %s", units.Ratio(r.Float64()*[]float64{0.99, 1e-3, 1e-9}[r.IntN(3)]+1e-12))
	add("min_bitrate: %s", units.Bitrate(low))
	add("max_bitrate: %s", units.Bitrate(low+8+uint64(r.Int64N(1<<40))))
	if len(all) > 0 {
		line("    requires: {%s}", strings.Join(all, ", "))
	}
}
