// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"math"
	"slices"
	"strconv"

	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"go.yaml.in/yaml/v3"
)

// figureNames are all figures, in the order that errors list them.
var figureNames = append([]Figure{
	"packet_rate", "sent_rate", "latency_mean", "latency_p99", "latency_max", "throughput", "round_trip", "jitter", "loss", "start_time", "memory", "wakeup_max", "stall_max", "ticks", "syscalls_dropped",
	"disk", "threads", "memory_per_thread", "functions", "back_after", "outage", "clock_difference", "clock_bound", "runs", "build_time", "power", "energy_per_packet",
	"sessions_lost", "sessions_kept", "sessions_moved", "packets_lost",
	"attach_time", "uplink", "real_time", "cpu_epc", "cpu_enb", "cpu_ue", "subframe_enb", "subframe_ue", "s1_met",
	"on_time", "early", "late", "sequence_gaps", "uplink_late", "late_at_du", "message_rate", "link_met", "agrees", "slots_lost",
}, checkFigures...)

var rowFields = []parse.Field[Row]{
	parse.NameField("name", "a row's name", "The name of the row in claims.",
		func(r *Row) *string { return &r.Name }).Must(),
	parse.TextField("title", "What is measured.", func(r *Row) *string { return &r.Title }).Must(),
	parse.TextField("published", "The published figure, in the source's words.",
		func(r *Row) *string { return &r.Published }),
	parse.QuantityField("value", "The published figure as a number, in the unit of `figure`.",
		schema.Schema{{Name: "type", Value: "number"}, {Name: "exclusiveMinimum", Value: 0}}, parseFigure, func(r *Row) *float64 { return &r.Value }),
	parse.TextField("differs", "How the measurement differs from the source's, in one line. Rows without it measure the same, or something that the source did not.",
		func(r *Row) *string { return &r.Differs }),
	parse.ChoiceField("figure", "The part of the cell's result that the row shows: packet_rate and sent_rate in kpps, latency, wakeup and stall in µs, ticks in 1/s, throughput in Mb/s, loss in % of packets, round_trip, jitter, back_after and outage in ms, start_time and build_time in s, memory and disk in MB, memory_per_thread in GB, clock_… in µs, sessions_… and packets_lost as numbers; runs, limits_…, hides_… and all after them are pass or fail.",
		figureNames, func(r *Row) *Figure { return &r.Figure }),
	{
		Name:   "cell",
		Doc:    "How it is measured here.",
		Form:   schema.Ref("cell"),
		Decode: func(d *parse.Decoder, n *yaml.Node, r *Row) { decodeCell(d, n, &r.Cell) },
	},
	parse.TextField("not_run", "Why it is not measured yet.", func(r *Row) *string { return &r.NotRun }),
}

func parseFigure(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v > 0) || math.IsInf(v, 1) {
		return 0, &parse.Error{Text: "a published value cannot be " + parse.Quote(text), Fix: "write a number above 0 in the figure's unit, or leave it out"}
	}
	return v, nil
}

func decodeRows(d *parse.Decoder, n *yaml.Node, e *Experiment) {
	names := parse.NewUnique("rows")
	d.List(n, "rows", func(item *yaml.Node) {
		var r Row
		values := parse.Object(d, item, "a row", rowFields, &r)
		if values == nil {
			return
		}
		names.Add(d, r.Name, values["name"])
		checkRow(d, item, &r, values)
		e.Rows = append(e.Rows, r)
	})
}

// checkRow checks the rules between fields of a row.
func checkRow(d *parse.Decoder, item *yaml.Node, r *Row, values map[string]*yaml.Node) {
	switch measured := values["cell"] != nil; {
	case measured && values["not_run"] != nil:
		d.Fail(values["not_run"], "remove it, or the cell", "a row is either measured or not run")
	case !measured && values["not_run"] == nil:
		d.Fail(item, "add cell, or not_run with the reason", "the row states neither how it is measured nor why it is not")
	case !measured && values["differs"] != nil:
		d.Fail(values["differs"], "remove it", "a row that is not run measures nothing that could differ")
	case !measured && (values["figure"] != nil || values["value"] != nil):
		d.Fail(item, "remove figure and value", "a row that is not run has no figure to compare")
	case measured && values["figure"] == nil:
		d.Fail(item, "add it", "a row that is measured needs the field %q", "figure")
	case measured && r.Cell.Tool != "" && r.Figure != "" && !slices.Contains(toolFigures[r.Cell.Tool], r.Figure):
		d.Fail(values["figure"], "choose another tool or figure", "the tool %s does not measure the figure %q", r.Cell.Tool, r.Figure)
	case measured && (r.Cell.Tool == ToolPool || r.Cell.Tool == ToolFronthaul) && r.Figure.ofEvent() == (r.Cell.Event == ""):
		d.Fail(values["figure"], "choose another figure, or add or remove event", "a pool's rates are measured without an event, and all other figures with one")
	case values["value"] != nil && r.Figure.PassFail():
		d.Fail(values["value"], "remove it", "a pass-or-fail figure has no ratio to a published value")
	}
}
