// SPDX-License-Identifier: Apache-2.0

package units

import "github.com/drayage/dray/internal/spec/schema"

// Definitions are the named schemas of the quantities.
func Definitions() schema.Schema {
	between := func(high int) schema.Schema {
		return schema.Schema{}.With("type", "number").With("exclusiveMinimum", 0).With("exclusiveMaximum", high)
	}
	return schema.Schema{}.
		With("duration", schema.Described("duration", `A number with ns, us (or µs), ms or s: "20us", "1.5ms". Greater than 0.`,
			schema.Quantity(DurationPattern))).
		With("bitrate", schema.Described("bitrate", `A number with bps, kbps, Mbps, Gbps or Tbps (decimal prefixes): "400Mbps", "4.016Gbps". Greater than 0, except for load; a rate that queues or the underlay enforce is at least 8bps.`,
			schema.Quantity(BitratePattern))).
		With("packetrate", schema.Described("packet rate", `A number with pps, kpps, Mpps or Gpps: "100kpps", "1.2Mpps". Greater than 0.`,
			schema.Quantity(PacketRatePattern))).
		With("length", schema.Described("length", `A number with m or km, a whole number of metres: "40km", "250m". Greater than 0.`,
			schema.Quantity(LengthPattern))).
		With("size", schema.Described("size", `A number of bytes, alone or with the decimal k, M, G, T or the binary Ki, Mi, Gi, Ti: "512Mi", "64k", 1500.`,
			schema.OneOf(schema.Schema{}.With("type", "integer").With("minimum", 1), schema.Quantity(BytesPattern)))).
		With("ratio", schema.Described("ratio", `A proportion greater than 0 and less than 1: 1e-4, 0.0001 or "0.01%".`,
			schema.OneOf(between(1), schema.Quantity(RatioPattern)))).
		With("percentile", schema.Described("percentile", `A number greater than 0 and less than 100: 99, 99.9 or p99.9.`,
			schema.OneOf(between(100), schema.Quantity(PercentilePattern))))
}
