// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/inventory"
)

// nodeBlocks show nodes, and what their calibrations say.
func nodeBlocks(nodes []ClusterNode) []document.Block {
	t := &document.Table{Label: "Nodes", Columns: []document.Column{
		{Head: "Node", Key: true, Text: true}, {Head: "Pods"}, {Head: "CPUs"}, {Head: "CPU", Text: true}, {Head: "OS", Text: true, On: document.Page},
		{Head: "Kernel", Text: true}, {Head: "Runtime", Text: true}, {Head: "Transports", Text: true, On: document.Page},
	}}
	for _, n := range nodes {
		t.Rows = append(t.Rows, document.Row{
			Cells: document.Text(n.Name, fmt.Sprint(n.Pods), fmt.Sprint(n.CPUs), orNone(n.CPUModel), orNone(n.OS), orNone(n.Kernel), orNone(n.Runtime),
				orNone(strings.Join(n.Transports, ", "))),
			Note: document.Sentence(n.Fault),
		})
	}
	blocks := []document.Block{{Table: t}}
	if own := calibrationTable(nodes); len(own.Rows) > 0 {
		blocks = append(blocks, document.Block{Title: "What the nodes' calibrations say", On: document.Page, Table: own})
	}
	return blocks
}

// calibrationTable has a row for each transport that a node has measured.
func calibrationTable(nodes []ClusterNode) *document.Table {
	t := &document.Table{Label: "Calibration", Columns: []document.Column{
		{Head: "Node", Key: true, Text: true}, {Head: "Transport", Key: true, Text: true}, {Head: "Measured", Text: true}, {Head: "p99 at most"},
		{Head: "UDP at least"}, {Head: "Packets at least"},
	}}
	for _, n := range nodes {
		for _, c := range n.Calibration {
			t.Rows = append(t.Rows, document.Row{
				Cells: document.Text(n.Name, c.Transport, c.Measured.Format(timeFormat), calibratedDelay(c), orUnknown(c.UDPBitrate, verdict.FormatBitrate),
					orUnknown(c.PacketRate, verdict.FormatPacketRate)),
				Marks: c.Marks, Note: document.Sentence(c.Stale),
			})
		}
	}
	return t
}

func calibratedDelay(c inventory.Calibration) string {
	for _, p := range c.Latency {
		if p.Percentile == 99 {
			return verdict.FormatDuration(float64(p.Latency))
		}
	}
	return document.None
}

func orUnknown(rate uint64, format func(float64) string) string {
	if rate == 0 {
		return document.None
	}
	return format(float64(rate))
}
