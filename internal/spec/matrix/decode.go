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
	// MaxBatch is the generator's own limit of packets in one system call.
	MaxBatch = 64
)

// The words for the choices in a matrix.
var (
	runtimes = []chain.RuntimeName{chain.RuntimeProcess, chain.RuntimeRunc, chain.RuntimeDocker}
	VNFs     = []VNF{VNFDirect, "none", "l2fwd", "l3fwd", "bng", "gtpu", "lb-1", "lb-2", "lb-3", "lb-4"}
)

var fields = append(parse.Header(Kind, func(b *Matrix) (_, _ *string) { return &b.APIVersion, &b.Kind }), []parse.Field[Matrix]{
	parse.NameField("name", "a matrix's name", "The name of the matrix in its report and in the directory of its records.",
		func(b *Matrix) *string { return &b.Name }).Must(),
	parse.ReadField("transports", "The transports to compare, or `all` for all transports. A transport that this host cannot run is a row with the reason.",
		schema.OneOf(schema.Const("all"), schema.Set(schema.Ref("transport"), 1, 64)).Default("all"), decodeTransports, func(b *Matrix) *[]string { return &b.Transports }),
	parse.WordsField("faces", "How the functions see their ports. Default: as interfaces if the transport supports them, otherwise with each face that it supports.",
		chain.Faces, func(b *Matrix) *[]chain.Face { return &b.Faces }).Called("face"),
	parse.WordsField("runtimes", "How the functions run; the instruments measure inside them.",
		runtimes, func(b *Matrix) *[]chain.RuntimeName { return &b.Runtimes }).Called("runtime").Default([]string{"runc"}),
	parse.ReadField("image", "The image of docker functions. Of its programs only dray-vnf runs, for the VNFs other than direct: `dray image vnf` has it. Required if `runtimes` lists docker, and refused otherwise.",
		schema.Text(), chain.DecodeImage, func(b *Matrix) *string { return &b.Image }),
	parse.ReadField("hugepages", "The maximum of huge pages of each function with DPDK ports, by page size, as in a chain file. Default: plain pages.",
		schema.Schema{{Name: "type", Value: "object"}, {Name: "additionalProperties", Value: false}, {Name: "minProperties", Value: 1}, {Name: "properties", Value: schema.Schema{{Name: "2Mi", Value: schema.Schema{{Name: "type", Value: "string"}}}, {Name: "1Gi", Value: schema.Schema{{Name: "type", Value: "string"}}}}}}, chain.DecodeHugePages, func(b *Matrix) *[]chain.HugePages { return &b.HugePages }),
	parse.ChoiceField("forwarding", "How the links forward (`forwarding` in chain files). A transport without that choice is a row with the reason.",
		chain.Forwardings, func(b *Matrix) *chain.Forwarding { return &b.Forwarding }),
	parse.ParsedField("sizes", "Lengths of frames, 64 to 9018 bytes with FCS, or `imix`: 64, 594 and 1518 bytes at 7:4:1.",
		schema.OneOf(schema.Const("imix"), schema.Integer(64, 9018)), ParseFrameSize, func(b *Matrix) *[]FrameSize { return &b.Sizes }).Called("size").Default([]any{64}),
	parse.ParsedField("loads", "What a trial offers: `max` sends as fast as the port accepts packets; `ndr` and `pdr` are the highest rates without loss and with at most 0.5 % loss, found by search; `rfc2544` is the highest without loss, by binary search; `10%pdr` is that share of the PDR found in the same round, 0 to 99 per cent, and needs `pdr` in the list (`0%pdr` is an idle link, with probing packets alone); a rate such as `100kpps` or `1Gbps` (bits of frames without FCS) is offered as stated; use one to measure latency.",
		schema.Pattern(LoadPattern), ParseLoad, func(b *Matrix) *[]Load { return &b.Loads }).Called("load").Default([]string{"max"}),
	{
		Name:   "search",
		Doc:    "The goals of searched loads: the goal attributes of RFC 9971. The length of a trial is `trial`. A field that applies to no load of the matrix is an error.",
		Form:   schema.Schema{{Name: "type", Value: "object"}, {Name: "additionalProperties", Value: false}, {Name: "properties", Value: schema.Schema{{Name: "width", Value: schema.Schema{{Name: "description", Value: "How close the bounds of a rate must be, (upper − lower) / upper: at least 0.1 %."}, {Name: "$ref", Value: "#/$defs/ratio"}, {Name: "default", Value: "2%"}}}, {Name: "sum", Value: schema.Schema{{Name: "description", Value: "The total trial time that decides a load, for `ndr` and `pdr`: 1 to 100 trials. Default: three trials."}, {Name: "type", Value: "string"}}}, {Name: "exceed", Value: schema.Schema{{Name: "description", Value: "The share of that time in trials that may lose more, for `ndr` and `pdr`; 0: none."}, {Name: "anyOf", Value: []any{schema.Schema{{Name: "const", Value: 0}}, schema.Schema{{Name: "$ref", Value: "#/$defs/ratio"}}}}, {Name: "default", Value: "50%"}}}, {Name: "loss", Value: schema.Schema{{Name: "description", Value: "The loss ratio that `pdr` allows."}, {Name: "$ref", Value: "#/$defs/ratio"}, {Name: "default", Value: "0.5%"}}}, {Name: "verify", Value: schema.Schema{{Name: "description", Value: "The maximum number of trials of a load for `rfc2544`, until one has no loss: 1 is RFC 2544, more is loss verification (ETSI GS NFV-TST 009)."}, {Name: "type", Value: "integer"}, {Name: "minimum", Value: 1}, {Name: "maximum", Value: 10}, {Name: "default", Value: 1}}}}}},
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {}}, // after loads and trial
	parse.WordsField("vnfs", "What is between the generator's ports: `direct` is one link and nothing else; the others are modes of `dray-vnf` with a link on either side. `lb-N` is the mode `lb` with N workers, and one link to the generator.",
		VNFs, func(b *Matrix) *[]VNF { return &b.VNFs }).Called("VNF").Default([]string{"direct"}),
	parse.IntegerField("repetitions", "The number of rounds. Each measures every configuration once, in its own random order.",
		1, maxRepetitions, func(b *Matrix) *int { return &b.Repetitions }).Default(5),
	parse.IntegerField("batch", "The most packets in one system call, sent or received, at ports with face netdev; other ports are rows with the reason. Default: as many as are due, at most 64.",
		1, MaxBatch, func(b *Matrix) *int { return &b.Batch }),
	parse.ReadField("trial", "How long each trial offers its load, 100ms to 600s.",
		schema.Schema{{Name: "type", Value: "string"}}.Default("500ms"), decodeTrialLength, func(b *Matrix) *units.Duration { return &b.Trial }),
	parse.PositiveField("at_most", "Ends the run early: after the first round, a round starts only if it can end in time. Default: all rounds.",
		schema.Ref("duration"), units.ParseDuration, func(b *Matrix) *units.Duration { return &b.AtMost }),
	{
		Name: "seed",
		Doc:  "The seed of the random order. Default: a new one for each run, which is printed.",
		Form: schema.Integer(1, maxSeed),
		Decode: func(d *parse.Decoder, n *yaml.Node, b *Matrix) {
			seed, _ := d.Integer(n, "seed", 1, maxSeed)
			b.Seed = uint64(seed)
		},
	},
	parse.ChoiceField("baseline", "The transport that the others are compared to, as ratios. Default: veth, or the first that runs.",
		Transports(), func(b *Matrix) *string { return &b.Baseline }).Called("transport").As(schema.Ref("transport")),
	parse.BooleanField("privileged", "Whether to include transports whose functions need privileges.",
		func(b *Matrix) *bool { return &b.Privileged }).Default(false),
}...)

// Parse reads and validates a matrix; file is the name for errors. The error, if any,
// is an Errors with every fault, by position.
func Parse(file string, data []byte) (*Matrix, error) {
	blank := &Matrix{
		File: file, Runtimes: []chain.RuntimeName{chain.RuntimeRunc}, Sizes: []FrameSize{chain.MinFrame}, Loads: []Load{{Search: LoadMax}},
		VNFs: []VNF{VNFDirect}, Repetitions: defaultRepetitions, Trial: defaultTrial,
	}
	return parse.Document(file, data, Kind, "a matrix", fields, blank, check)
}

// check checks the rules between fields.
func check(d *parse.Decoder, b *Matrix, values map[string]*yaml.Node) {
	decodeSearch(d, values["search"], b)
	checkShares(d, b, values["loads"])
	docker := slices.Contains(b.Runtimes, chain.RuntimeDocker)
	switch image := values["image"]; {
	case docker && image == nil:
		d.Fail(values["runtimes"], `add "image: NAME"; any image will do, because only the instruments run in it`, "the runtime docker needs an image")
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
