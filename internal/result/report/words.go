// SPDX-License-Identifier: Apache-2.0

package report

import (
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
)

// noneRequired replaces a verdict if a link requires nothing.
const noneRequired = "nothing required"

// wordOf is the worst verdict of a link.
func wordOf(vs []verdict.Verdict, link string) string {
	worst := noneRequired
	rank := map[string]int{noneRequired: 0, string(verdict.Met): 1, string(verdict.NotMeasurable): 2, string(verdict.Missed): 3}
	for _, v := range vs {
		if v.Link == link && rank[string(v.Verdict)] > rank[worst] {
			worst = string(v.Verdict)
		}
	}
	return worst
}

// toneOf is the tone of a verdict.
func toneOf(word string) document.Tone {
	switch word {
	case string(verdict.Met):
		return document.Good
	case string(verdict.Missed):
		return document.Bad
	case string(verdict.NotMeasurable):
		return document.Open
	}
	return document.Neutral
}

// markMeanings explains the marks that figures carry, for legends.
var markMeanings = map[string]string{
	record.MarkOversubscribed: "more threads need a CPU at once than there are CPUs: rates are lower and tails longer than on free cores",
	record.MarkFewCPUs:        "one thread was both sender and receiver: with the functions between them they need three CPUs, and there are fewer",
	record.MarkGovernor:       "the CPU frequency governor is not “performance”: speed varies",
	record.MarkShared:         "the functions' own commands were running, and may have used the link",
	record.MarkBusy:           "other work used over 20 % of the machine just before the trial",
	record.MarkStolen:         "the hypervisor took over 2 % of the CPU time",
	record.MarkNotRealtime:    "the kernel is not PREEMPT_RT: the figures do not represent a real-time system",
	record.MarkEmulated:       "a virtual machine without hardware virtualisation: never compare with native figures",
	record.MarkLab:            "measured in a virtual machine on this host, on Debian's kernel",
	record.MarkSimulatedHosts: "the link's hosts were network namespaces on one machine, sharing its CPUs and clock",
	record.MarkLoadMissed:     "the load, or the sender's rate, was over 5 % off the requested rate",
	record.MarkLate:           "one packet in a hundred was sent over 1 ms late: the generator had no CPU, or the port made it wait",
	record.MarkGeneratorBound: "over 80 % of the generator's own limit without a port: the link may reach more",
	markNotNarrowed:           "the search ended before its bounds were as close as its goal requires: the rate may be higher",
	record.MarkParallel:       "another dray, with another state directory, was measuring at the same time",
	record.MarkStalled:        "a lost message ended the ping-pong early: later samples are missing",
}

// Meaning explains a mark in words; "": unknown mark.
func Meaning(mark string) string { return markMeanings[mark] }
