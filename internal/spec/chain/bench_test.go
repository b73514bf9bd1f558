// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// benchFaults are the errors of a matrix, as bad files list them.
func benchFaults(text []byte) []string {
	_, err := ParseBench("", text)
	var faults Errors
	if !errors.As(err, &faults) {
		return nil
	}
	var lines []string
	for _, f := range faults {
		lines = append(lines, strings.TrimPrefix(f.Error(), ":"))
	}
	return lines
}

// withWants puts what the matrix gives into the comments at its end.
func withWants(text []byte) []byte {
	var b bytes.Buffer
	for _, line := range strings.SplitAfter(string(text), "\n") {
		if !strings.HasPrefix(line, wantMark) {
			b.WriteString(line)
		}
	}
	for _, fault := range benchFaults(b.Bytes()) {
		b.WriteString(wantMark + fault + "\n")
	}
	return b.Bytes()
}

func badBenches(t *testing.T) []string {
	files, err := filepath.Glob("testdata/bench-bad/*.yaml")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d bad matrices, error %v", len(files), err)
	}
	return files
}

func TestBadBenches(t *testing.T) {
	for _, file := range badBenches(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				text = withWants(text)
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, got := marked(text, wantMark), benchFaults(text)
			if len(want) == 0 || !slices.Equal(got, want) {
				t.Errorf("got:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
			if got, want := benchSchemaVerdict(t, text), marked(text, schemaMark); !slices.Equal(want, []string{got}) {
				t.Errorf("the schema %s it, want %q", got, want)
			}
		})
	}
}

func benchSchemaVerdict(t *testing.T, text []byte) string {
	t.Helper()
	root, fault := readYAML("", text, KindBench)
	if fault != nil {
		return "cannot read"
	}
	var value any
	if err := root.Decode(&value); err != nil {
		return "cannot read"
	}
	asJSON, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(BenchSchema()))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("bench.schema.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("bench.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if s.Validate(instance) != nil {
		return "rejects"
	}
	return "accepts"
}

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
	got, err := ParseBench("m.yaml", []byte(fullBench))
	if err != nil {
		t.Fatal(err)
	}
	want := &Bench{
		APIVersion: APIVersion, Kind: KindBench, Name: "all-of-it", File: "m.yaml",
		Transports: []string{"veth", "shm"}, Faces: []Face{FaceNetdev, FaceNative},
		Runtimes: []RuntimeName{RuntimeProcess, RuntimeDocker}, Image: "debian:12", HugePages: []HugePages{{Size: 2 << 20, Limit: 256 << 20}}, Sizes: []FrameSize{64, 1518, IMIX},
		Loads:  []BenchLoad{{Search: LoadMax}, {Search: LoadNDR}, {Search: LoadPDR}, {Search: LoadRFC2544}, {OfPDR: true}, {OfPDR: true, Percent: 90}, {PacketRate: 10_000}, {Bitrate: 1_000_000_000}},
		Search: BenchSearch{Width: 0.01, Sum: Duration(time.Second), Loss: 0.001, Verify: 2},
		VNFs:   []VNF{VNFDirect, "l2fwd"}, Repetitions: 7, Trial: Duration(250 * time.Millisecond),
		AtMost: Duration(10 * time.Minute), Seed: 42, Baseline: "veth", Privileged: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if benchSchemaVerdict(t, []byte(fullBench)) != "accepts" {
		t.Error("the schema rejects it")
	}
}

// TestBenchAsJSON holds bench.json to what a matrix says.
func TestBenchAsJSON(t *testing.T) {
	b, err := ParseBench("", []byte(fullBench))
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var back Bench
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*b, back); diff != "" {
		t.Errorf("%s\n%s", text, diff)
	}
}

func TestBenchDefaultsAreThoseOfTheSchema(t *testing.T) {
	b, err := ParseBench("", []byte("apiVersion: drayage/v1\nkind: Bench\nname: x\n"))
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
	if err := errors.Join(json.Unmarshal(text, &got), json.Unmarshal(BenchSchema(), &schema)); err != nil {
		t.Fatal(err)
	}
	for _, f := range benchFields {
		p, ok := schema.Properties[f.name]
		if !ok {
			t.Errorf("the schema has no %s", f.name)
		}
		if f.name == "sizes" { // in text, for imix
			p.Default = []any{"64"}
		}
		if p.Default != nil && p.Default != "all" && p.Default != false && cmp.Diff(p.Default, got[f.name]) != "" {
			t.Errorf("%s: the schema says %v, the parser %v", f.name, p.Default, got[f.name])
		}
		delete(schema.Properties, f.name)
	}
	if len(schema.Properties) > 0 {
		t.Errorf("the parser does not know %v", schema.Properties)
	}
}

func TestBenchTransportsAreThoseOfTheSchema(t *testing.T) {
	var schema struct {
		Defs map[string]struct{ Enum []string } `json:"$defs"`
	}
	if err := json.Unmarshal(BenchSchema(), &schema); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(benchTransports(), schema.Defs["transport"].Enum); diff != "" {
		t.Errorf("bench.schema.json, $defs/transport: %s", diff)
	}
}

func TestEveryFieldOfAMatrixIsInTheGuide(t *testing.T) {
	guide, err := os.ReadFile("../../../docs/bench.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range benchFields {
		if !strings.Contains(string(guide), "`"+f.name+"`") {
			t.Errorf("docs/bench.md does not explain %s", f.name)
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
