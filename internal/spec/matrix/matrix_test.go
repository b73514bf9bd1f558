// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/parse/parsetest"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/google/go-cmp/cmp"
)

var document = parsetest.Kind{Name: Kind, Schema: Schema, Parse: func(file string, data []byte) error {
	_, err := Parse(file, data)
	return err
}}

func TestBadFiles(t *testing.T) { document.BadFiles(t, 30) }

const fullBench = `apiVersion: drayage/v1
kind: Bench
name: all-of-it
transports: [veth, shm]
faces: [netdev, native]
runtimes: [process, docker]
image: debian:12
hugepages: {2Mi: 256Mi}
sizes: [64, 1518, imix]
loads: [max, ndr, pdr, rfc2544, 0%pdr, 90%pdr, 10kpps, 1Gbps]
search: {width: 1%, sum: 1s, exceed: 0, loss: 0.1%, verify: 2}
vnfs: [direct, l2fwd]
repetitions: 7
trial: 250ms
at_most: 600s
seed: 42
baseline: veth
privileged: true
`

func TestParseBench(t *testing.T) {
	got, err := Parse("m.yaml", []byte(fullBench))
	if err != nil {
		t.Fatal(err)
	}
	want := &Matrix{
		APIVersion: parse.APIVersion, Kind: Kind, Name: "all-of-it", File: "m.yaml",
		Transports: []string{"veth", "shm"}, Faces: []chain.Face{chain.FaceNetdev, chain.FaceNative},
		Runtimes: []chain.RuntimeName{chain.RuntimeProcess, chain.RuntimeDocker}, Image: "debian:12", HugePages: []chain.HugePages{{Size: 2 << 20, Limit: 256 << 20}}, Sizes: []FrameSize{64, 1518, IMIX},
		Loads:  []Load{{Search: LoadMax}, {Search: LoadNDR}, {Search: LoadPDR}, {Search: LoadRFC2544}, {OfPDR: true}, {OfPDR: true, Percent: 90}, {PacketRate: 10_000}, {Bitrate: 1_000_000_000}},
		Search: Search{Width: 0.01, Sum: units.Duration(time.Second), Loss: 0.001, Verify: 2},
		VNFs:   []VNF{VNFDirect, "l2fwd"}, Repetitions: 7, Trial: units.Duration(250 * time.Millisecond),
		AtMost: units.Duration(10 * time.Minute), Seed: 42, Baseline: "veth", Privileged: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if document.Verdict(t, []byte(fullBench)) != "accepts" {
		t.Error("the schema rejects it")
	}
}

// TestBenchAsJSON checks that bench.json preserves the matrix.
func TestBenchAsJSON(t *testing.T) {
	b, err := Parse("", []byte(fullBench))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var back Matrix
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*b, back); diff != "" {
		t.Errorf("%s\n%s", text, diff)
	}
}

func TestBenchDefaultsAreThoseOfTheSchema(t *testing.T) {
	b, err := Parse("", []byte("apiVersion: drayage/v1\nkind: Bench\nname: x\n"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	var schema struct {
		Properties map[string]struct{ Default any }
	}
	if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal(Schema(), &schema)); err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		p := schema.Properties[f.Name]
		if f.Name == "sizes" { // as text, for imix
			p.Default = []any{"64"}
		}
		if p.Default != nil && p.Default != "all" && p.Default != false && cmp.Diff(p.Default, got[f.Name]) != "" {
			t.Errorf("%s: the schema says %v, the parser %v", f.Name, p.Default, got[f.Name])
		}
	}
}

func TestEveryFieldOfAMatrixIsInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/bench.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range fields {
		if !strings.Contains(string(guide), "`"+f.Name+"`") {
			t.Errorf("docs/bench.md does not explain %s", f.Name)
		}
	}
}

func TestFrameSizes(t *testing.T) {
	if got := IMIX.Bytes(); got < 361.8 || got > 361.9 {
		t.Errorf("mean of IMIX is %v, want 361.8 B", got)
	}
	if FrameSize(64).Bytes() != 64 || IMIX.Largest() != 1518 {
		t.Error("sizes")
	}
}
