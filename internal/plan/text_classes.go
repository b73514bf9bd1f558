// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
)

// classes lists the traffic classes of ports.
func (t *text) classes(links []Link) {
	var rows []string
	for _, l := range links {
		if l.Transport == "" {
			continue // nothing decides the defaults
		}
		which := "each"
		if slices.ContainsFunc(l.Ends, func(e End) bool { return e.Shape != nil }) {
			which = "each other"
		}
		rows = append(rows, classRows(l.Name, which, l.Shape)...)
		for _, e := range l.Ends {
			rows = append(rows, classRows(l.Name, e.String(), e.Shape)...)
		}
	}
	t.table("LINK\tPORT\tCLASS\tTAKES\tRATE\tQUEUE", rows)
}

func classRows(link, port string, q *chain.Qdisc) []string {
	if q == nil {
		return nil
	}
	if q.AtSwitch() {
		port = "at the switch"
	}
	var rows []string
	rest := slices.ContainsFunc(q.Classes, func(c chain.Class) bool { return c.CatchesAll() })
	for i := range q.Classes {
		c := &q.Classes[i]
		takes := takesText(c)
		if last := i == len(q.Classes)-1; last && !rest {
			takes += ", the rest"
		}
		rows = append(rows, row(link, port, c.Name, takes, classRateText(c), queueText(c.Child)))
	}
	return rows
}

// takesText is which packets are of a class.
func takesText(c *chain.Class) string {
	var parts []string
	if len(c.DSCP) > 0 {
		parts = append(parts, "dscp "+numbersText(c.DSCP))
	}
	if len(c.PCP) > 0 {
		parts = append(parts, "pcp "+numbersText(c.PCP))
	}
	if c.Meta != nil {
		parts = append(parts, fmt.Sprintf("meta %d", *c.Meta))
	}
	if len(parts) == 0 {
		return "the rest"
	}
	return strings.Join(parts, ", ")
}

func numbersText(all []int) string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint(all), " ", ","), "[]")
}

func classRateText(c *chain.Class) string {
	if c.Rate == 0 {
		return "-"
	}
	s := fmt.Sprint(c.Rate)
	if c.Peak > 0 {
		s += fmt.Sprintf(", %v for %v", c.Peak, c.PeakTime)
	}
	if c.Ceil > c.Rate {
		s += fmt.Sprintf(" to %v", c.Ceil)
	}
	if c.Priority > 0 {
		s += fmt.Sprintf(", priority %d", c.Priority)
	}
	return s
}

// queueText is the queue of a class.
func queueText(q *chain.Qdisc) string {
	switch {
	case q == nil:
		return "-"
	case q.Kind == "bfifo":
		return fmt.Sprintf("%s of %s", q.Kind, counted(q.Limit, "byte", "bytes"))
	case q.Slot > 0:
		return fmt.Sprintf("%s of %v, %s", q.Kind, q.Slot, counted(q.Limit, "packet", "packets"))
	}
	return fmt.Sprintf("%s of %s", q.Kind, counted(q.Limit, "packet", "packets"))
}

// counted is "1 class", "2 classes".
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
