// SPDX-License-Identifier: Apache-2.0

package live

import (
	"fmt"
	"io"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/layout"
)

// ClassesText writes a table of the traffic classes of links' ports, if any has some.
func ClassesText(w io.Writer, links []Link, width int) error {
	t := layout.Table{Head: []string{"TRAFFIC CLASS", "QUEUE", "SENT", "DROPPED", "LATE", "MARKED", "QUEUED", "LONGEST WAIT"}}
	for _, l := range links {
		for _, e := range l.Status.Ends {
			if e.Classes == nil {
				continue
			}
			t.Add(fmt.Sprintf("%s/%s.%s: %s", l.Chain, e.Function, e.Port, classesState(e.Classes)))
			for _, c := range e.Classes.Classes {
				t.Add("  "+c.Name, c.Discipline, fmt.Sprint(c.Sent), fmt.Sprint(c.Dropped), fmt.Sprint(c.Late), fmt.Sprint(c.Marked),
					fmt.Sprint(c.Queued), verdict.FormatDuration(float64(c.LongestNS)))
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	if err := t.Write(w, width); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w, "\nFunctions report these figures, since the port was opened or got other queues.")
	return err
}

// classesState is one clause: how the port queues, or why it does not.
func classesState(s *broker.ClassesStatus) string {
	switch {
	case s.Error != "":
		return s.Error
	case !s.Reported:
		return "the function has not reported how it queues"
	}
	text := s.Scheduler
	if s.Scheduler == "none" {
		text = "one class"
	}
	if s.Rate > 0 {
		text += " at " + verdict.FormatBitrate(float64(s.Rate))
	}
	if !s.AsOrdered {
		text += ", not as ordered: the function changed it"
	}
	return text
}
