// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// management is the switch's OpenFlow socket.
const management = "unix:" + inside + "/" + bridge + ".mgmt"

// flows are all flows of the switch, in its own output format: without flows
// it forwards nothing.
func (w *ovsSwitch) flows() []string {
	if !w.direct {
		return []string{"actions=NORMAL"} // it learns addresses, and floods unknown ones
	}
	return []string{"in_port=1 actions=output:2", "in_port=2 actions=output:1"}
}

// join adds the flows, and reads them back. A newly started switch does not
// listen immediately.
func (w *ovsSwitch) join(ctx context.Context) error {
	for _, flow := range w.flows() {
		err := w.retry(ctx, func() error {
			_, err := w.tool(ctx, "ovs-ofctl", "add-flow", management, strings.Replace(flow, " ", ",", 1))
			return err
		})
		if err != nil {
			return err
		}
	}
	return w.checkFlows(ctx)
}

// checkFlows checks that the switch has exactly those flows.
func (w *ovsSwitch) checkFlows(ctx context.Context) error {
	out, err := w.tool(ctx, "ovs-ofctl", "--no-stats", "--no-names", "dump-flows", management)
	if err != nil {
		return err
	}
	if has, want := parseFlows(out), w.flows(); !slices.Equal(has, want) {
		return fmt.Errorf("ovs-vswitchd has the flows %q, but was given %q%s", has, want, w.vswitchd("", nil).LastWords())
	}
	return nil
}

// parseFlows reads a dump of ovs-ofctl without statistics, in order.
func parseFlows(out string) []string {
	flows := []string{}
	for _, line := range strings.Split(out, "\n") {
		if line = strings.TrimSpace(line); strings.Contains(line, "actions=") {
			flows = append(flows, line)
		}
	}
	slices.Sort(flows)
	return flows
}
