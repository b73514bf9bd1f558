// SPDX-License-Identifier: Apache-2.0

package matrix

import (
	"slices"
	"time"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// Defaults and limits of a matrix.
const (
	defaultRepetitions = 5
	maxRepetitions     = 1000
	defaultTrial       = units.Duration(500 * time.Millisecond)
	shortestTrial      = units.Duration(100 * time.Millisecond)
	longestTrial       = units.Duration(10 * time.Minute)
	maxSeed            = 1 << 53 // exact in JSON readers that use doubles
	transportsAll      = "all"
)

// The words for the choices in a matrix.
var (
	runtimes = []chain.RuntimeName{chain.RuntimeProcess, chain.RuntimeRunc, chain.RuntimeDocker}
	VNFs     = []VNF{VNFDirect, "none", "l2fwd", "l3fwd", "bng", "gtpu", "lb-1", "lb-2", "lb-3", "lb-4"}
)

var fields = []parse.Field[Matrix]{
	{
		Name: "apiVersion", Required: true,
		Doc:    "The version of this format.",
		Form:   schema.Const(parse.APIVersion),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) { b.APIVersion = parse.APIVersion },
	},
	{
		Name: "kind", Required: true,
		Doc:    "The kind of document.",
		Form:   schema.Const(Kind),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) { b.Kind = Kind },
	},
	{
		Name: "name", Required: true,
		Doc:    "The name of the matrix in its report and in the directory of its records.",
		Form:   schema.Pattern(parse.NamePattern.String()),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) { b.Name = d.Name(n, "a matrix's name") },
	},
	{
		Name:   "transports",
		Doc:    "The transports to compare, or `all`: all that this build knows. A transport that this host cannot run is a row with the reason.",
		Form:   schema.OneOf(schema.Const("all"), schema.Set(schema.Ref("transport"), 1, 64)).Default("all"),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) { b.Transports = decodeTransports(d, n) },
	},
	{
		Name: "faces",
		Doc:  "How the functions see their ports. Default: as interfaces if a transport has them, and otherwise with each face that it has.",
		Form: schema.Set(schema.Enum(chain.Faces), 1, 64),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			b.Faces = parse.Words(d, n, "face", chain.Faces)
		},
	},
	{
		Name: "runtimes",
		Doc:  "How the functions run in which the instruments measure.",
		Form: schema.Set(schema.Enum(runtimes), 1, 64).Default([]string{"runc"}),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			b.Runtimes = parse.Words(d, n, "runtime", runtimes)
		},
	},
	{
		Name:   "image",
		Doc:    "The image of docker functions. Nothing in it runs. Required if `runtimes` lists docker, and refused otherwise.",
		Form:   schema.Text(),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) { b.Image = chain.DecodeImage(d, n) },
	},
	{
		Name:   "hugepages",
		Doc:    "The maximum of huge pages of each function with DPDK ports, by page size, as in a chain file. Default: plain pages.",
		Form:   schema.Schema{{Name: "type", Value: "object"}, {Name: "additionalProperties", Value: false}, {Name: "minProperties", Value: 1}, {Name: "properties", Value: schema.Schema{{Name: "2Mi", Value: schema.Schema{{Name: "type", Value: "string"}}}, {Name: "1Gi", Value: schema.Schema{{Name: "type", Value: "string"}}}}}},
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) { b.HugePages = chain.DecodeHugePages(d, n) },
	},
	{
		Name: "forwarding",
		Doc:  "How the links forward (`forwarding` in chain files). Transports without that choice are rows with the reason.",
		Form: schema.Enum(chain.Forwardings),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			b.Forwarding, _ = parse.Choice(d, n, "forwarding", chain.Forwardings)
		},
	},
	{
		Name: "sizes",
		Doc:  "Lengths of frames, 64 to 9018 bytes with FCS, or `imix`: 64, 594 and 1518 bytes at 7:4:1.",
		Form: schema.Set(schema.OneOf(schema.Const("imix"), schema.Integer(64, 9018)), 1, 64).Default([]any{64}),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			b.Sizes = parse.Parsed(d, n, "size", ParseFrameSize)
		},
	},
	{
		Name: "loads",
		Doc:  "What a trial offers: `max` is as fast as the port takes packets; `ndr` and `pdr` are the highest rates without loss and with at most 0.5 % loss, found by search; `rfc2544` is the highest without loss, by binary search; `10%pdr` is that share of the PDR found in the same round, 0 to 99 per cent, and needs `pdr` in the list (`0%pdr` is an idle link, with probing packets alone); a rate such as `100kpps` or `1Gbps` (bits of frames without FCS) is offered as stated, and is the best load for measuring latency.",
		Form: schema.Set(schema.Pattern(LoadPattern), 1, 64).Default([]string{"max"}),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			b.Loads = parse.Parsed(d, n, "load", ParseLoad)
		},
	},
	{
		Name:   "search",
		Doc:    "The goals of searched loads: the goal attributes of RFC 9971. The length of a trial is `trial`. A field that applies to no load of the matrix is an error.",
		Form:   schema.Schema{{Name: "type", Value: "object"}, {Name: "additionalProperties", Value: false}, {Name: "properties", Value: schema.Schema{{Name: "width", Value: schema.Schema{{Name: "description", Value: "How close the bounds of a rate must come, (upper − lower) / upper: at least 0.1 %."}, {Name: "$ref", Value: "#/$defs/ratio"}, {Name: "default", Value: "2%"}}}, {Name: "sum", Value: schema.Schema{{Name: "description", Value: "How much time of trials decides a load, of `ndr` and `pdr`: 1 to 100 trials. Left out: three trials."}, {Name: "type", Value: "string"}}}, {Name: "exceed", Value: schema.Schema{{Name: "description", Value: "The share of that time whose trials may lose more, of `ndr` and `pdr`; 0: none."}, {Name: "anyOf", Value: []any{schema.Schema{{Name: "const", Value: 0}}, schema.Schema{{Name: "$ref", Value: "#/$defs/ratio"}}}}, {Name: "default", Value: "50%"}}}, {Name: "loss", Value: schema.Schema{{Name: "description", Value: "The loss ratio that `pdr` allows."}, {Name: "$ref", Value: "#/$defs/ratio"}, {Name: "default", Value: "0.5%"}}}, {Name: "verify", Value: schema.Schema{{Name: "description", Value: "How many trials `rfc2544` gives a load until one is without loss: 1 is RFC 2544, more is loss verification (ETSI GS NFV-TST 009)."}, {Name: "type", Value: "integer"}, {Name: "minimum", Value: 1}, {Name: "maximum", Value: 10}, {Name: "default", Value: 1}}}}}},
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {}}, // after loads and trial
	{
		Name:   "vnfs",
		Doc:    "What is between the generator's ports: `direct` is one link and nothing else; the others are modes of `dray-vnf` with a link on either side. `lb-N` is the mode `lb` with N workers, and one link to the generator.",
		Form:   schema.Set(schema.Enum(VNFs), 1, 64).Default([]string{"direct"}),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) { b.VNFs = parse.Words(d, n, "VNF", VNFs) },
	},
	{
		Name: "repetitions",
		Doc:  "The number of rounds. Each measures every configuration once, in its own random order.",
		Form: schema.Integer(1, maxRepetitions).Default(5),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			b.Repetitions, _ = d.Integer(n, "repetitions", 1, maxRepetitions)
		},
	},
	{
		Name:   "trial",
		Doc:    "How long each trial offers its load, 100ms to 600s.",
		Form:   schema.Schema{{Name: "type", Value: "string"}}.Default("500ms"),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) { b.Trial = decodeTrialLength(d, n) },
	},
	{
		Name: "at_most",
		Doc:  "Ends the run early: after the first round, a round starts only if it can end in time. Default: all rounds.",
		Form: schema.Ref("duration"),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			b.AtMost, _ = parse.Positive(d, n, "at_most", units.ParseDuration)
		},
	},
	{
		Name: "seed",
		Doc:  "The seed of the random order. Default: a new one for each run, which is printed.",
		Form: schema.Integer(1, maxSeed),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			seed, _ := d.Integer(n, "seed", 1, maxSeed)
			b.Seed = uint64(seed)
		},
	},
	{
		Name: "baseline",
		Doc:  "The transport to which the others are compared as ratios. Default: veth, or the first that runs.",
		Form: schema.Ref("transport"),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			b.Baseline, _ = parse.Choice(d, n, "transport", Transports())
		},
	},
	{
		Name:   "privileged",
		Doc:    "Whether to include transports whose functions need privileges.",
		Form:   schema.Bool().Default(false),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) { b.Privileged, _ = d.Boolean(n, "privileged") },
	},
}

// ReadFile reads and parses a matrix file; see Parse.
func ReadFile(path string) (*Matrix, []byte, error) {
	data, err := parse.ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	b, err := Parse(path, data)
	return b, data, err
}

// Parse reads and validates a matrix; file is the name for errors. The error, if any,
// is an Errors with every fault, by position.
func Parse(file string, data []byte) (*Matrix, error) {
	d, root, fault := parse.Open(file, data, Kind)
	if fault != nil {
		return nil, parse.Errors{fault}
	}
	b := decodeMatrix(d, root)
	if errs := d.Result(); errs != nil {
		return nil, errs
	}
	return b, nil
}

func decodeMatrix(d *parse.Decoder, root *yaml.Node) *Matrix {
	b := &Matrix{
		File: d.File(), Runtimes: []chain.RuntimeName{chain.RuntimeRunc}, Sizes: []FrameSize{chain.MinFrame}, Loads: []Load{{Search: LoadMax}},
		VNFs: []VNF{VNFDirect}, Repetitions: defaultRepetitions, Trial: defaultTrial,
	}
	d.CheckVersion(root)
	if d.Failed() {
		return b
	}
	if values := parse.Object(d, root, "a matrix", fields, b); values != nil {
		decodeSearch(d, values["search"], b)
		checkShares(d, b, values["loads"])
		check(d, b, values)
	}
	return b
}

// check checks the rules between fields.
func check(d *parse.Decoder, b *Matrix, values map[string]*yaml.Node) {
	docker := slices.Contains(b.Runtimes, chain.RuntimeDocker)
	switch image := values["image"]; {
	case docker && image == nil:
		d.Fail(values["runtimes"], `add "image: NAME"; any image will do, since nothing runs in it but the instruments`, "the runtime docker needs an image")
	case !docker && image != nil:
		d.Fail(image, "remove it, or add docker to the runtimes", "no runtime of the matrix takes an image")
	}
	if b.Baseline != "" && len(b.Transports) > 0 && !slices.Contains(b.Transports, b.Baseline) {
		d.Fail(values["baseline"], "add it to the transports, or name one of them", "the baseline %s is not among the transports", parse.Quote(b.Baseline))
	}
}

// Transports are the names for a matrix's transports.
func Transports() []string { return chain.Transports[1:] } // without auto

func decodeTransports(d *parse.Decoder, n *yaml.Node) []string {
	if m := parse.Deref(n); m.Kind == yaml.ScalarNode && m.Value == transportsAll && m.Tag == "!!str" {
		return nil
	}
	return parse.Words(d, n, "transport", Transports())
}

func decodeTrialLength(d *parse.Decoder, n *yaml.Node) units.Duration {
	v, ok := parse.Quantity(d, n, "trial", units.ParseDuration)
	if ok && (v < shortestTrial || v > longestTrial) {
		d.Fail(n, "write "+shortestTrial.String()+" to "+longestTrial.String(), "a trial cannot last %s", v)
	}
	return v
}
