// SPDX-License-Identifier: Apache-2.0

package compare

import "github.com/drayage/dray/internal/result/record"

// Units of experiment figures.
const (
	number  = "" // of threads, functions, system calls
	holding = "share that holds"
)

// experimentFigure is a figure of an experiment's rows that no other metric covers.
type experimentFigure struct {
	figure string // name in package experiment
	name   string
	unit   string
	factor float64 // from the figure's unit to that unit
	higher bool    // is better
}

// experimentFigures lists them in the order of the tables.
var experimentFigures = []experimentFigure{
	{"sent_rate", "sent", packetRate, 1e3, true},
	{"start_time", "start", nanosecond, 1e9, false},
	{"build_time", "build", nanosecond, 1e9, false},
	{"back_after", "back after", nanosecond, 1e6, false},
	{"outage", "outage", nanosecond, 1e6, false},
	{"round_trip", "round trip, mean", nanosecond, 1e6, false},
	{"latency_max", "latency" + maximum, nanosecond, 1e3, false},
	{"wakeup_max", "wake-up" + maximum, nanosecond, 1e3, false},
	{"stall_max", "stall" + maximum, nanosecond, 1e3, false},
	{"ticks", "ticks", perSecond, 1, false},
	{"clock_difference", "difference of clocks", nanosecond, 1e3, false},
	{"clock_bound", "bound of that difference", nanosecond, 1e3, false},
	{"memory", "memory of a function", octets, 1e6, false},
	{"memory_per_thread", "memory for each thread", octets, 1e9, true},
	{"disk", "disk", octets, 1e6, false},
	{"functions", "functions", number, 1, true},
	{"threads", "threads", number, 1, true},
	{"sessions_lost", "sessions lost", number, 1, false},
	{"sessions_kept", "sessions kept", number, 1, true},
	{"sessions_moved", "sessions moved", number, 1, false},
	{"packets_lost", "packets lost", number, 1, false},
	{"syscalls_dropped", "system calls dropped", number, 1, true},
	{"attach_time", "attach", nanosecond, 1e9, false},
	{"uplink", "from the mobile", bitrate, 1e6, true},
	{"real_time", "real-time factor", number, 1, true},
	{"cpu_epc", "CPUs of the core network", number, 0.01, false},
	{"cpu_enb", "CPUs of the base station", number, 0.01, false},
	{"cpu_ue", "CPUs of the mobile", number, 0.01, false},
	{"subframe_enb", "CPU time of the base station for a subframe", nanosecond, 1e3, false},
	{"subframe_ue", "CPU time of the mobile for a subframe", nanosecond, 1e3, false},
	{"on_time", "messages on time", number, 0.01, true},
	{"early", "messages early", number, 0.01, false},
	{"late", "messages late", number, 0.01, false},
	{"sequence_gaps", "gaps in sequence numbers for a message", number, 1e-6, false},
	{"uplink_late", "uplink messages late", number, 0.01, false},
	{"late_at_du", "messages not sent in time", number, 0.01, false},
	{"message_rate", "messages", packetRate, 1e3, true},
	{"slots_lost", "slots lost", number, 1, false},
	{"power", "power of the processors", watt, 1, false},
	{"energy_per_packet", "energy for each packet", joule, 1e-6, false},
}

// ofExperiments are the metrics of experiment trials.
func ofExperiments() []metric {
	list := []metric{{"received", bitrate, true, received, nil}}
	for _, f := range experimentFigures {
		list = append(list, metric{f.name, f.unit, f.higher, func(t record.Trial) (float64, bool) {
			if t.Experiment == nil {
				return 0, false
			}
			v, ok := t.Experiment.Values[f.figure]
			return v * f.factor, ok
		}, nil})
	}
	return append(list, metric{"checks that hold", holding, true, holds, nil})
}

// received is the received rate of a load other than TCP or frames, bit/s.
func received(t record.Trial) (float64, bool) {
	if t.Experiment == nil || t.Throughput != nil || t.Quantity == record.QFrames {
		return 0, false
	}
	v, ok := t.Experiment.Values["throughput"]
	return v * 1e6, ok
}

// otherFigures are figures of trials with checks that are not checks.
var otherFigures = func() map[string]bool {
	set := map[string]bool{"packet_rate": true, "throughput": true, "jitter": true, "latency_mean": true, "latency_p99": true, "loss": true}
	for _, f := range experimentFigures {
		set[f.figure] = true
	}
	return set
}()

// holds is the share of a trial's checks that hold.
func holds(t record.Trial) (float64, bool) {
	if t.Experiment == nil {
		return 0, false
	}
	var held, n float64
	for figure, v := range t.Experiment.Values {
		if !otherFigures[figure] {
			held += v
			n++
		}
	}
	return held / max(n, 1), n > 0
}
