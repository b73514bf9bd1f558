// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report/document"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/experiment"
)

// maxRaw and maxJSON limit how much of a record the page shows, in bytes; the rest is
// in records.jsonl.
const (
	maxRaw  = 4000
	maxJSON = 8 << 10
)

func recordsOf(trials []record.Trial) []document.Record {
	out := make([]document.Record, 0, len(trials))
	for i, t := range trials {
		out = append(out, recordOf(i+1, t))
	}
	return out
}

func recordOf(number int, t record.Trial) document.Record {
	what := quantityText(t.Quantity)
	if t.Passive {
		what = ownTraffic
	}
	title := fmt.Sprintf("%s by %s, %s → %s", what, t.Instrument.Name, t.From, t.To)
	if t.Function != "" {
		title = fmt.Sprintf("%s by %s, in %s", what, t.Instrument.Name, t.Function)
	}
	if t.Bench != nil || t.Experiment != nil {
		title = t.ID // which names the configuration
	}
	return document.Record{
		Number: number, Title: title, Result: resultText(t), Warmup: t.Warmup, Error: t.Error, Marks: t.Marks,
		Command: strings.Join(t.Instrument.Client, " "), JSON: cut(recordJSON(t), maxJSON), Raw: cut(t.Raw, maxRaw),
	}
}

// recordJSON is a record without its raw output and without histogram buckets, which
// would hide the rest.
func recordJSON(t record.Trial) string {
	t.Raw = ""
	if t.Latency != nil {
		l := *t.Latency
		l.Histogram.Counts, t.Latency = nil, &l
	}
	if t.OneWay != nil {
		w := *t.OneWay
		w.Latency.Counts, w.Intended.Counts, w.Lateness.Counts, w.IPDV.Counts, t.OneWay = nil, nil, nil, nil, &w
	}
	b, err := json.MarshalIndent(t, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(b)
}

func resultText(t record.Trial) string {
	switch {
	case t.Compute != nil:
		return cpuTexts(t.Compute)
	case t.Throughput != nil:
		return verdict.FormatBitrate(float64(t.Throughput.BitsPerSecond))
	case t.Latency != nil:
		return fmt.Sprintf("%d round trips, %d lost, least %s", t.Latency.Sent-min(t.Latency.Sent, t.Latency.Lost), t.Latency.Lost, verdict.FormatDuration(float64(t.Latency.MinRTT)))
	case t.OneWay != nil && t.Delivery != nil:
		return fmt.Sprintf("%d received, %d lost, one way %s to %s", t.Delivery.Received, t.Delivery.Lost,
			verdict.FormatDuration(float64(t.OneWay.Min)), verdict.FormatDuration(float64(t.OneWay.Max)))
	case t.Delivery != nil:
		return fmt.Sprintf("%s, %d of %d lost", verdict.FormatPacketRate(float64(t.Delivery.PacketRate)), t.Delivery.Lost, t.Delivery.Sent)
	case t.Requests != nil:
		return fmt.Sprintf("%.0f requests/s", t.Requests.PerSecond)
	case t.PathMTU != nil && t.PathMTU.Passed:
		return fmt.Sprintf("%d B passed", t.PathMTU.Wanted)
	case t.PathMTU != nil:
		return fmt.Sprintf("%d B did not pass, %d B did", t.PathMTU.Wanted, t.PathMTU.Largest)
	case t.Bench != nil && t.Bench.Ceiling != nil:
		return fmt.Sprintf("%s sent, %s received", ppsText(t.Bench.Ceiling.Send), ppsText(t.Bench.Ceiling.Receive))
	case t.Experiment != nil && len(t.Experiment.Values) > 0:
		return valuesText(t.Experiment.Values)
	}
	return "no result"
}

func valuesText(values map[string]float64) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		parts = append(parts, strings.TrimSpace(strings.ReplaceAll(name, "_", " ")+" "+three(values[name])+" "+experiment.Figure(name).Unit()))
	}
	return strings.Join(parts, ", ")
}

// cut shortens text at a rune boundary, and says so.
func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	end := limit
	for end > 0 && !utf8.RuneStart(s[end]) {
		end--
	}
	return fmt.Sprintf("%s\n… %d more bytes are in %s", s[:end], len(s)-end, RecordsFile)
}
