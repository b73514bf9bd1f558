// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// decodeCpus reads a number of CPUs, or text that names them: a quoted "2" is CPU 2.
func decodeCpus(d *parse.Decoder, n *yaml.Node) CPURequest {
	if parse.Deref(n).Tag == "!!int" {
		count, _ := d.Integer(n, "cpus", 1, maxCPU+1)
		return CPURequest{Count: count}
	}
	s, ok := d.Scalar(n, "cpus")
	if !ok {
		return CPURequest{}
	}
	set, err := ParseCPUSet(s)
	if err != nil {
		d.FailWith(n, err)
	}
	return CPURequest{Set: set}
}

// ParseCPUSet reads the kernel's list form, "0-2,5", into ascending numbers.
// Its errors are *Error without a position.
func ParseCPUSet(s string) ([]int, error) {
	const example = `write a count such as 2, or a set such as "0-2,5"`
	var set []int
	seen := map[int]bool{}
	for _, part := range strings.Split(s, ",") {
		low, high, isRange := strings.Cut(part, "-")
		if !isRange {
			high = low
		}
		first, ok1 := cpuNumber(low)
		last, ok2 := cpuNumber(high)
		if !ok1 || !ok2 {
			return nil, &parse.Error{Text: "cpus cannot be " + parse.Quote(s), Fix: example}
		}
		if last > maxCPU {
			return nil, &parse.Error{Text: fmt.Sprintf("there is no CPU %d", last), Fix: fmt.Sprintf("the largest number is %d", maxCPU)}
		}
		if first > last {
			return nil, &parse.Error{Text: fmt.Sprintf("the range %s of cpus runs backwards", parse.Quote(part)), Fix: fmt.Sprintf("write %d-%d", last, first)}
		}
		for cpu := first; cpu <= last; cpu++ {
			if seen[cpu] {
				return nil, &parse.Error{Text: fmt.Sprintf("cpus names CPU %d twice", cpu), Fix: "name each once"}
			}
			seen[cpu] = true
			set = append(set, cpu)
		}
	}
	slices.Sort(set)
	return set, nil
}

func cpuNumber(s string) (int, bool) {
	if len(s) > 5 || !units.IsDigits(s) {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// hugePageFields are the page sizes that a function may limit.
var hugePageFields = []parse.Field[[]HugePages]{
	hugePageField("2Mi", hugePage2M),
	hugePageField("1Gi", hugePage1G),
}

func hugePageField(name string, size units.Bytes) parse.Field[[]HugePages] {
	doc := "The maximum memory in pages of 2 MiB; a multiple of 2Mi."
	if size == hugePage1G {
		doc = "The maximum memory in pages of 1 GiB; a multiple of 1Gi."
	}
	return parse.Field[[]HugePages]{Name: name, Doc: doc, Form: schema.Ref("size"), Decode: func(d *parse.Decoder, n *yaml.Node, to *[]HugePages) {
		limit, ok := parse.Positive(d, n, "a limit of huge pages", units.ParseBytes)
		if ok && limit%size != 0 {
			d.Fail(n, fmt.Sprintf("write a multiple of %s", name), "%s is not a whole number of %s pages", limit, name)
		}
		*to = append(*to, HugePages{Size: size, Limit: limit})
	}}
}

func DecodeHugePages(d *parse.Decoder, n *yaml.Node) []HugePages {
	var pages []HugePages
	parse.Object(d, n, "hugepages", hugePageFields, &pages)
	slices.SortFunc(pages, func(a, b HugePages) int { return cmp.Compare(a.Size, b.Size) })
	return pages
}
