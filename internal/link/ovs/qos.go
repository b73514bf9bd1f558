// SPDX-License-Identifier: Apache-2.0

package ovs

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
)

// shapePorts sets the switch's QoS table to shape the egress of each port. If
// the kernel lacks the type, ovs-vsctl reports no error and ovs-vswitchd only
// logs it, so read the kernel's state.
func shapePorts(s transport.Spec, e *engine, b *transport.Build) step.Step {
	return step.Step{
		Name: s.StepName(Name, "shape by the QoS table"),
		Do: func(ctx context.Context) error {
			var args []string
			for i := range s.Ports() {
				args = append(args, "--", "set", "Port", s.SwitchPort(i).Name, "qos=@qos")
			}
			if _, err := e.vsctl(ctx, append(args, qosRows(*s.Shape)...)...); err != nil {
				return err
			}
			for i, end := range s.Ports() {
				if err := b.ShapedBySwitch(end, s.SwitchPort(i), *s.Shape); err != nil {
					return fmt.Errorf("the switch did not set the qdisc: %w%s", err, e.lastWords(vswitchd))
				}
			}
			return nil
		},
	}
}

// qosRows create the rows of a qdisc (ovs-vswitchd.conf.db(5), tables QoS and
// Queue): of a shaper with one queue for all packets, rates and burst in bits, or of
// a discipline without classes.
func qosRows(q chain.Qdisc) []string {
	rows := []string{"--", "--id=@qos", "create", "QoS", "type=linux-" + q.Kind}
	if q.Rate == 0 {
		if q.Limit > 0 {
			rows = append(rows, fmt.Sprintf("other_config:limit=%d", q.Limit))
		}
		if q.Target > 0 {
			rows = append(rows, fmt.Sprintf("other_config:target=%d", time.Duration(q.Target).Microseconds()))
		}
		if q.Interval > 0 {
			rows = append(rows, fmt.Sprintf("other_config:interval=%d", time.Duration(q.Interval).Microseconds()))
		}
		return rows
	}
	most := cmp.Or(q.Ceil, q.Rate)
	rows = append(rows, fmt.Sprintf("other_config:max-rate=%d", most), "queues:0=@queue",
		"--", "--id=@queue", "create", "Queue", fmt.Sprintf("other_config:min-rate=%d", q.Rate), fmt.Sprintf("other_config:max-rate=%d", most))
	if q.Burst > 0 {
		rows = append(rows, fmt.Sprintf("other_config:burst=%d", 8*q.Burst))
	}
	return rows
}
