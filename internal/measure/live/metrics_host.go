// SPDX-License-Identifier: Apache-2.0

package live

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
)

// HostCollector exposes functions, and ports that are interfaces, to Prometheus.
type HostCollector struct {
	read func() ([]node.Figures, error)
}

// NewHostCollector exposes what read returns. It is called at each scrape, by several
// goroutines.
func NewHostCollector(read func() ([]node.Figures, error)) HostCollector { return HostCollector{read} }

var (
	descChainUp  = prometheus.NewDesc("dray_chain_up", "1 while the chain is up, or is being changed.", []string{"chain"}, nil)
	descPhase    = function("phase", "1 for the phase of the function, and 0 for its other phases.", "phase")
	descRestarts = function("restarts_total", "Restarts of the function's command since its chain came up.")
	descExit     = function("exit_status", "Exit status of the last instance of the function's command that ended.")

	descInterfaceUp = port("up", "1 if the port's interface exists and can carry packets.")
	descSent        = ofCounts("sent", "the function sent")
	descReceived    = ofCounts("received", "the function received")
)

func function(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("dray_function_"+name, help, append([]string{"chain", "function"}, labels...), nil)
}

func port(name, help string) *prometheus.Desc {
	return prometheus.NewDesc("dray_interface_"+name, help, []string{"chain", "link", "port"}, nil)
}

// countDescriptions are the metrics of one direction.
type countDescriptions struct{ packets, bytes, dropped, errors *prometheus.Desc }

func ofCounts(direction, what string) countDescriptions {
	const by = ", counted by the kernel at the port's interface."
	return countDescriptions{
		packets: port(direction+"_packets_total", "Packets that "+what+by),
		bytes:   port(direction+"_bytes_total", "Bytes that "+what+by),
		dropped: port(direction+"_dropped_packets_total", "Packets dropped of those that "+what+by),
		errors:  port(direction+"_errors_total", "Errors with packets that "+what+by),
	}
}

func (d countDescriptions) list() []*prometheus.Desc {
	return []*prometheus.Desc{d.packets, d.bytes, d.dropped, d.errors}
}

func (d countDescriptions) collect(ch chan<- prometheus.Metric, c host.Counts, labels []string) {
	for i, n := range []uint64{c.Packets, c.Bytes, c.Dropped, c.Errors} {
		ch <- prometheus.MustNewConstMetric(d.list()[i], prometheus.CounterValue, float64(n), labels...)
	}
}

// Describe sends the description of every metric.
func (HostCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range append([]*prometheus.Desc{descChainUp, descPhase, descRestarts, descExit, descInterfaceUp},
		append(descSent.list(), descReceived.list()...)...) {
		ch <- d
	}
}

// Collect sends the metrics of now.
func (c HostCollector) Collect(ch chan<- prometheus.Metric) {
	chains, err := c.read()
	if err != nil {
		ch <- prometheus.NewInvalidMetric(descChainUp, err)
		return
	}
	for _, f := range chains {
		if f.Condition == node.Foreign {
			continue
		}
		up := f.Condition == node.Up || f.Condition == node.Busy
		ch <- prometheus.MustNewConstMetric(descChainUp, prometheus.GaugeValue, oneIf(up), f.Chain)
		for _, st := range f.Functions {
			collectFunction(ch, f.Chain, st)
		}
		for _, i := range f.Interfaces {
			collectInterface(ch, f.Chain, i)
		}
	}
}

func collectFunction(ch chan<- prometheus.Metric, chain string, st node.FunctionStatus) {
	for _, phase := range node.Phases {
		word := strings.ReplaceAll(string(phase), " ", "_")
		ch <- prometheus.MustNewConstMetric(descPhase, prometheus.GaugeValue, oneIf(st.Phase == phase), chain, st.Name, word)
	}
	ch <- prometheus.MustNewConstMetric(descRestarts, prometheus.CounterValue, float64(st.Restarts), chain, st.Name)
	if st.Ended() {
		ch <- prometheus.MustNewConstMetric(descExit, prometheus.GaugeValue, float64(st.Exit), chain, st.Name)
	}
}

func collectInterface(ch chan<- prometheus.Metric, chain string, i node.Interface) {
	labels := []string{chain, i.Link, i.Function + "." + i.Port}
	ch <- prometheus.MustNewConstMetric(descInterfaceUp, prometheus.GaugeValue, oneIf(i.Traffic != nil && i.Traffic.Carrier), labels...)
	if i.Traffic == nil {
		return
	}
	descSent.collect(ch, i.Traffic.Sent, labels)
	descReceived.collect(ch, i.Traffic.Received, labels)
}
