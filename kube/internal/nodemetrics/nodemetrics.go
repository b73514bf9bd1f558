// SPDX-License-Identifier: Apache-2.0

// Package nodemetrics is what dray-node serves to Prometheus: its links, and its own work.
package nodemetrics

import (
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/spec/release"
)

// Reason is why a claim could not be prepared.
type Reason string

// The reasons of failures, by what an operator looks at next.
const (
	PortHeld Reason = "port_held" // another pod of this node still has the port
	NoBroker Reason = "no_broker" // the pod dray-broker of this node does not answer
	// NoInstance: each instance of the pod's function has another pod, or dray-operator is away.
	NoInstance Reason = "no_instance"
	Other      Reason = "other" // the claim itself; the pod's events say why
)

// Metrics are the metrics of one node. Its methods may be called by several goroutines.
type Metrics struct {
	registry *prometheus.Registry

	prepare                *prometheus.HistogramVec
	failures               *prometheus.CounterVec
	unprepareFailures      prometheus.Counter
	claims, ports          prometheus.Gauge
	brokerUp, brokerLinks  prometheus.Gauge
	capacity, registration prometheus.Collector
}

// Sources are what metrics are read from when Prometheus asks.
type Sources struct {
	Links      func() []live.Link // of the latest sample; chains are named "namespace/chain"
	Registered func() bool        // whether the kubelet knows the driver
	Capacity   int                // how many ports the node can serve
}

// New registers all metrics of a node.
func New(s Sources) *Metrics {
	m := &Metrics{
		registry: prometheus.NewPedanticRegistry(),
		prepare: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "dray_node_prepare_duration_seconds", Help: "How long it took to prepare a claim, by whether that succeeded.",
			Buckets: prometheus.ExponentialBuckets(0.002, 2, 15), // 2 ms to 33 s: Prepare waits up to 30 s for a port
		}, []string{"result"}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "dray_node_prepare_failures_total", Help: "Claims that could not be prepared, by reason.",
		}, []string{"reason"}),
		unprepareFailures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "dray_node_unprepare_failures_total", Help: "Claims whose ports could not be removed.",
		}),
		claims:      gauge("claims", "Claims that are prepared on the node."),
		ports:       gauge("ports", "Ports that are prepared on the node."),
		brokerUp:    gauge("broker_up", "1 if the broker answered when dray-node last asked."),
		brokerLinks: gauge("broker_links", "Links at the broker when it last answered."),
		capacity:    reading("ports_capacity", "Ports that the node can serve.", func() float64 { return float64(s.Capacity) }),
		registration: reading("driver_registered", "1 if the kubelet has registered the driver.", func() float64 {
			return oneIf(s.Registered())
		}),
	}
	for _, result := range []string{success, failure} { // a rate needs a first value
		m.prepare.WithLabelValues(result)
	}
	for _, reason := range []Reason{PortHeld, NoBroker, NoInstance, Other} {
		m.failures.WithLabelValues(string(reason))
	}
	m.registry.MustRegister(
		live.NewNamespacedCollector(s.Links), m.prepare, m.failures, m.unprepareFailures, m.claims, m.ports, m.brokerUp, m.brokerLinks,
		m.capacity, m.registration, buildInfo(), collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
	)
	return m
}

// Values of the label "result".
const (
	success = "success"
	failure = "failure"
)

func gauge(name, help string) prometheus.Gauge {
	return prometheus.NewGauge(prometheus.GaugeOpts{Name: "dray_node_" + name, Help: help})
}

func reading(name, help string, read func() float64) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "dray_node_" + name, Help: help}, read)
}

func buildInfo() prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "dray_node_build_info", Help: "1, with the version of dray-node.", ConstLabels: prometheus.Labels{"version": release.Version()},
	}, func() float64 { return 1 })
}

func oneIf(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}

// Handler serves /metrics.
func (m *Metrics) Handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}

// Prepared counts a claim that was prepared.
func (m *Metrics) Prepared(took time.Duration) {
	m.prepare.WithLabelValues(success).Observe(took.Seconds())
}

// NotPrepared counts a claim that could not be prepared.
func (m *Metrics) NotPrepared(took time.Duration, why Reason) {
	m.prepare.WithLabelValues(failure).Observe(took.Seconds())
	m.failures.WithLabelValues(string(why)).Inc()
}

// NotUnprepared counts a claim whose ports could not be removed.
func (m *Metrics) NotUnprepared() { m.unprepareFailures.Inc() }

// Holds says what is prepared on the node.
func (m *Metrics) Holds(claims, ports int) {
	m.claims.Set(float64(claims))
	m.ports.Set(float64(ports))
}

// BrokerAnswered says how many links the broker has.
func (m *Metrics) BrokerAnswered(links int) {
	m.brokerUp.Set(1)
	m.brokerLinks.Set(float64(links))
}

// BrokerSilent says that the broker did not answer.
func (m *Metrics) BrokerSilent() { m.brokerUp.Set(0) }
