// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strings"
	"time"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"github.com/drayage/dray/internal/spec/units"
	"go.yaml.in/yaml/v3"
)

// Bounds of a function's compute. A smaller share would get no more
// weight than a control group without one has. A
// shorter deadline is less than a scheduler can promise, and a longer one says nothing.
const (
	minShare    = 0.02
	minDeadline = units.Duration(100 * time.Microsecond)
	maxDeadline = units.Duration(time.Second)
)

var computeFields = []parse.Field[Compute]{
	parse.ReadField("share", "The share of each CPU that the function must get while other functions on the CPU are busy, from 2% to less than 100%.",
		schema.Ref("ratio"), decodeShare, func(c *Compute) *units.Ratio { return &c.Share }).Must(),
	parse.ReadField("deadline", "The time in which the function must get its share, from 100us to 1s: share × deadline in any time of this length. So a thread that can run waits for at most (1 − share) × deadline.",
		schema.Ref("duration"), decodeDeadline, func(c *Compute) *units.Duration { return &c.Deadline }).Must(),
}

func decodeShare(d *parse.Decoder, n *yaml.Node) units.Ratio {
	s, ok := d.Scalar(n, "share")
	if !ok {
		return 0
	}
	if number, percent := strings.CutSuffix(s, "%"); percent && number == "100" || s == "1" || s == "1.0" {
		d.Fail(n, "leave out compute: a function with cpus and without compute has its CPUs for itself", "a share of %s leaves no time to wait, so nothing could show that it is met", s)
		return 0
	}
	v, ok := parse.Quantity(d, n, "share", units.ParseRatio)
	if ok && v < minShare {
		d.Fail(n, "write at least 2%", "a share of %s of a CPU is too small to be granted", s)
	}
	return v
}

func decodeDeadline(d *parse.Decoder, n *yaml.Node) units.Duration {
	v, ok := parse.Quantity(d, n, "deadline", units.ParseDuration)
	if ok && (v < minDeadline || v > maxDeadline) {
		d.Fail(n, fmt.Sprintf("write %s to %s", minDeadline, maxDeadline), "a deadline of compute cannot be %s", v)
	}
	return v
}

func decodeCompute(d *parse.Decoder, n *yaml.Node, f *Function) {
	f.Compute = &Compute{}
	parse.Object(d, n, "compute", computeFields, f.Compute)
}

// checkCompute refuses compute where nothing can grant it. A function without cpus has a
// share of one CPU, which the planner chooses.
func checkCompute(d *parse.Decoder, f *Function, values map[string]*yaml.Node) {
	n := values["compute"]
	if n == nil {
		return
	}
	if f.Runtime == RuntimeVM {
		d.Fail(n, "remove it, or choose another runtime: a machine with cpus has them for itself",
			"compute cannot be given with runtime: vm, because QEMU's own threads would use up the command's share")
	}
	if f.CPUs.Number() == 0 {
		f.CPUs.Count = 1
	}
}

// Wait is the longest time for which a thread of the function that can run may have no CPU.
func (c Compute) Wait() time.Duration {
	return time.Duration((1 - float64(c.Share)) * float64(c.Deadline))
}

// Percent is the share as text, such as "40%".
func (c Compute) Percent() string { return fmt.Sprintf("%.4g%%", 100*float64(c.Share)) }
