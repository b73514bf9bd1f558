// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/result/record"
)

// besides lists the other differences between two machines, or one machine at two
// times.
func besides(a, b record.Environment) []string {
	out := []string{}
	differ := func(what string, x, y any) {
		if s, t := word(x), word(y); s != t {
			out = append(out, fmt.Sprintf("%s: %s → %s", what, s, t))
		}
	}
	differ("kernel", a.Kernel, b.Kernel)
	differ("kernel command line", a.CmdLine, b.CmdLine)
	differ("OS", a.OS, b.OS)
	differ("CPU", a.CPUModel, b.CPUModel)
	differ("CPUs", len(a.CPUs), len(b.CPUs))
	differ("isolated CPUs", a.Isolated, b.Isolated)
	differ("governor", a.Governor, b.Governor)
	differ("virtualisation", a.Virtual, b.Virtual)
	differ("real-time kernel", a.Realtime, b.Realtime)
	differ("dray", a.Dray, b.Dray)
	for _, name := range names(a.HugePages, b.HugePages) {
		differ("huge pages of "+name, a.HugePages[name], b.HugePages[name])
	}
	for _, name := range names(a.Engines, b.Engines) {
		x, inA := a.Engines[name]
		y, inB := b.Engines[name]
		// A program that only one run needed is no difference.
		if inA && inB {
			differ(name, x, y)
		}
	}
	return out
}

// names are the sorted keys of both maps.
func names[V any](a, b map[string]V) []string {
	both := maps.Clone(a)
	if both == nil {
		both = map[string]V{}
	}
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}

func word(v any) string {
	s := strings.Trim(fmt.Sprint(v), "[]")
	if s == "" {
		return "none"
	}
	return s
}
