// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"
)

// What a matrix means that leaves a field out, and how far it may go.
const (
	defaultRepetitions = 5
	maxRepetitions     = 1000
	defaultTrial       = Duration(500 * time.Millisecond)
	shortestTrial      = Duration(100 * time.Millisecond)
	longestTrial       = Duration(10 * time.Minute)
	maxSeed            = 1 << 53 // exact in JSON readers that use doubles
	benchTransportsAll = "all"
	maxListed          = 64 // items of one list of a matrix
)

// The words that a matrix may use where it has a choice.
var (
	benchRuntimes = []RuntimeName{RuntimeProcess, RuntimeRunc, RuntimeDocker}
	vnfs          = []VNF{VNFDirect, "none", "l2fwd", "l3fwd", "bng", "gtpu", "lb-1", "lb-2", "lb-3", "lb-4"}
)

var benchFields = []field[Bench]{
	{"apiVersion", true, func(d *decoder, n *yaml.Node, b *Bench) { b.APIVersion = APIVersion }},
	{"kind", true, func(d *decoder, n *yaml.Node, b *Bench) { b.Kind = KindBench }},
	{"name", true, func(d *decoder, n *yaml.Node, b *Bench) { b.Name = d.name(n, "a matrix's name") }},
	{"transports", false, func(d *decoder, n *yaml.Node, b *Bench) { b.Transports = d.benchTransports(n) }},
	{"faces", false, func(d *decoder, n *yaml.Node, b *Bench) { b.Faces = words(d, n, "face", faces) }},
	{"runtimes", false, func(d *decoder, n *yaml.Node, b *Bench) { b.Runtimes = words(d, n, "runtime", benchRuntimes) }},
	{"image", false, func(d *decoder, n *yaml.Node, b *Bench) { b.Image = d.image(n) }},
	{"hugepages", false, func(d *decoder, n *yaml.Node, b *Bench) { b.HugePages = d.hugePages(n) }},
	{"forwarding", false, func(d *decoder, n *yaml.Node, b *Bench) {
		b.Forwarding, _ = choice(d, n, "forwarding", forwardings)
	}},
	{"sizes", false, func(d *decoder, n *yaml.Node, b *Bench) { b.Sizes = parsed(d, n, "size", parseFrameSize) }},
	{"loads", false, func(d *decoder, n *yaml.Node, b *Bench) { b.Loads = parsed(d, n, "load", parseBenchLoad) }},
	{"search", false, func(d *decoder, n *yaml.Node, b *Bench) {}}, // once loads and trial are known
	{"vnfs", false, func(d *decoder, n *yaml.Node, b *Bench) { b.VNFs = words(d, n, "VNF", vnfs) }},
	{"repetitions", false, func(d *decoder, n *yaml.Node, b *Bench) {
		b.Repetitions, _ = d.integer(n, "repetitions", 1, maxRepetitions)
	}},
	{"trial", false, func(d *decoder, n *yaml.Node, b *Bench) { b.Trial = d.trialLength(n) }},
	{"at_most", false, func(d *decoder, n *yaml.Node, b *Bench) { b.AtMost, _ = positive(d, n, "at_most", ParseDuration) }},
	{"seed", false, func(d *decoder, n *yaml.Node, b *Bench) {
		seed, _ := d.integer(n, "seed", 1, maxSeed)
		b.Seed = uint64(seed)
	}},
	{"baseline", false, func(d *decoder, n *yaml.Node, b *Bench) {
		b.Baseline, _ = choice(d, n, "transport", benchTransports())
	}},
	{"privileged", false, func(d *decoder, n *yaml.Node, b *Bench) { b.Privileged, _ = d.boolean(n, "privileged") }},
}

// LoadBench reads and parses a matrix file; see ReadFile and ParseBench.
func LoadBench(path string) (*Bench, []byte, error) {
	data, err := ReadFile(path)
	if err != nil {
		return nil, nil, err
	}
	b, err := ParseBench(path, data)
	return b, data, err
}

// ParseBench reads and validates a matrix; file is the name that errors print.
// The error, if any, is an Errors that holds every fault, by position.
func ParseBench(file string, data []byte) (*Bench, error) {
	d, root, fault := open(file, data, KindBench)
	if fault != nil {
		return nil, Errors{fault}
	}
	b := d.bench(root)
	if errs := d.result(); errs != nil {
		return nil, errs
	}
	return b, nil
}

func (d *decoder) bench(root *yaml.Node) *Bench {
	b := &Bench{
		File: d.file, Runtimes: []RuntimeName{RuntimeRunc}, Sizes: []FrameSize{minFrame}, Loads: []BenchLoad{{Search: LoadMax}},
		VNFs: []VNF{VNFDirect}, Repetitions: defaultRepetitions, Trial: defaultTrial,
	}
	d.checkVersion(root)
	if len(d.errs) > 0 {
		return b
	}
	if values := object(d, root, "a matrix", benchFields, b); values != nil {
		d.search(values["search"], b)
		d.checkShares(b, values["loads"])
		d.checkBench(b, values)
	}
	return b
}

// checkBench judges what fields say about each other.
func (d *decoder) checkBench(b *Bench, values map[string]*yaml.Node) {
	docker := contains(b.Runtimes, RuntimeDocker)
	switch image := values["image"]; {
	case docker && image == nil:
		d.fail(values["runtimes"], `add "image: NAME"; any image will do, since nothing runs in it but the instruments`, "the runtime docker needs an image")
	case !docker && image != nil:
		d.fail(image, "remove it, or add docker to the runtimes", "no runtime of the matrix takes an image")
	}
	if b.Baseline != "" && len(b.Transports) > 0 && !contains(b.Transports, b.Baseline) {
		d.fail(values["baseline"], "add it to the transports, or name one of them", "the baseline %s is not among the transports", quote(b.Baseline))
	}
}

func contains[T comparable](list []T, item T) bool {
	for _, x := range list {
		if x == item {
			return true
		}
	}
	return false
}

// benchTransports are the names that a matrix may list.
func benchTransports() []string { return transports[1:] } // without auto

func (d *decoder) benchTransports(n *yaml.Node) []string {
	if m := deref(n); m.Kind == yaml.ScalarNode && m.Value == benchTransportsAll && m.Tag == "!!str" {
		return nil
	}
	return words(d, n, "transport", benchTransports())
}

func (d *decoder) trialLength(n *yaml.Node) Duration {
	v, ok := quantity(d, n, "trial", ParseDuration)
	if ok && (v < shortestTrial || v > longestTrial) {
		d.fail(n, "write "+shortestTrial.String()+" to "+longestTrial.String(), "a trial cannot last %s", v)
	}
	return v
}

// words is a list of a few words, none twice.
func words[T ~string](d *decoder, n *yaml.Node, what string, known []T) []T {
	return distinct(d, n, what, func(item *yaml.Node) (T, bool) { return choice(d, item, what, known) })
}

// parsed is a list of values that plain text gives, none twice.
func parsed[T comparable](d *decoder, n *yaml.Node, what string, parse func(string) (T, error)) []T {
	return distinct(d, n, what, func(item *yaml.Node) (T, bool) { return quantity(d, item, what, parse) })
}

func distinct[T comparable](d *decoder, n *yaml.Node, what string, decode func(*yaml.Node) (T, bool)) []T {
	var out []T
	d.list(n, what+"s", func(item *yaml.Node) {
		v, ok := decode(item)
		switch {
		case !ok:
		case contains(out, v):
			d.fail(item, "remove one of the two", "the %s %s stands twice", what, quote(deref(item).Value))
		case len(out) == maxListed:
			d.fail(item, "split the matrix into several", "a matrix lists more than "+strconv.Itoa(maxListed)+" %ss", what)
		default:
			out = append(out, v)
		}
	})
	if m := deref(n); m.Kind == yaml.SequenceNode && len(m.Content) == 0 {
		d.fail(n, "list at least one, or leave the field out", "the matrix has no %ss", what)
	}
	return out
}
