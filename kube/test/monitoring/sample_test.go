// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	prom "github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry/telemetrytest"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/kube/internal/nodemetrics"
)

// target is what Prometheus scrapes: a pod.
type target struct{ app, node, address string }

// serve serves metrics until the end of the test.
func serve(t *testing.T, app, node string, metrics http.Handler) target {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle("/metrics", metrics)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return target{app, node, strings.TrimPrefix(server.URL, "http://")}
}

// pace is how often a sample node reports. Each time, a second of its traffic has passed.
const pace = 100 * time.Millisecond

// sampleNode serves what dray-node does, with one chain on the node: 100,000 packets a second in
// both directions, and sometimes a pod that starts. On a faulty node, packets are late, a
// port is attacked, the broker is silent, and the kubelet does not know the driver.
func sampleNode(t *testing.T, name, chainName string, faulty bool) target {
	t.Helper()
	var latest atomic.Pointer[[]live.Link]
	latest.Store(&[]live.Link{})
	metrics := nodemetrics.New(nodemetrics.Sources{
		Links: func() []live.Link { return *latest.Load() }, Registered: func() bool { return !faulty }, Capacity: 256,
	})
	second := 0
	watcher := &live.Watcher{Keep: 60, Source: func(context.Context) ([]live.Chain, error) {
		second++
		snapshot := telemetrytest.Snapshot(second, reported(uint64(second), faulty))
		snapshot.Chain = "ran/" + chainName
		return []live.Chain{{Snapshot: snapshot, Planned: []plan.Link{planned()}}}, nil
	}}
	metrics.BrokerAnswered(1)
	work := func() {
		if faulty {
			metrics.Holds(125, 250)
			metrics.BrokerSilent()
			metrics.NotPrepared(15*time.Second, nodemetrics.NoBroker)
			return
		}
		metrics.Holds(1, 2)
		metrics.BrokerAnswered(1)
		metrics.Prepared(20 * time.Millisecond)
	}
	repeat(t, func() {
		links, err := watcher.Sample(context.Background())
		if err != nil {
			t.Error(err)
		}
		latest.Store(&links)
		work()
	})
	return serve(t, "dray-node", name, metrics.Handler())
}

// repeat calls f at the sample's pace until the end of the test.
func repeat(t *testing.T, f func()) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			f()
			select {
			case <-end:
				return
			case <-tick.C:
			}
		}
	}()
	t.Cleanup(func() { close(end); <-ended })
}

// reported is the link after so many seconds.
func reported(seconds uint64, faulty bool) broker.LinkStatus {
	latency := 2e3 // ns
	if faulty {
		latency = 5e6
	}
	l := telemetrytest.Reported(seconds, latency, 0)
	forth, back := &l.Ends[0], &l.Ends[1]
	back.Counters.TxPackets, back.Counters.TxBytes = forth.Counters.TxPackets, forth.Counters.TxBytes
	forth.Counters.RxPackets, forth.Counters.RxBytes = back.Counters.RxPackets, back.Counters.RxBytes
	forth.Latency = back.Latency
	if faulty {
		back.Violations = map[string]uint64{"slot": seconds}
	}
	return l
}

// planned is the plan of that link.
func planned() plan.Link {
	ratio := units.Ratio(0.001)
	return plan.Link{Name: "ab",
		Ends:     []plan.End{{Function: "a", Port: "p0", Face: chain.FaceNative}, {Function: "b", Port: "p0", Face: chain.FaceNative}},
		Requires: chain.Requires{Latency: units.Duration(time.Millisecond), Percentile: 99, LossRatio: &ratio},
	}
}

// sampleDaemonSets serves what kube-state-metrics does of Drayage's DaemonSets on two nodes.
// It is no part of Drayage: only names and labels are like its own.
func sampleDaemonSets(t *testing.T, available float64) target {
	t.Helper()
	registry := prom.NewPedanticRegistry()
	for name, value := range map[string]float64{"desired_number_scheduled": 2, "number_available": available} {
		g := prom.NewGaugeVec(prom.GaugeOpts{Name: "kube_daemonset_status_" + name, Help: "As kube-state-metrics."}, []string{"namespace", "daemonset"})
		g.WithLabelValues("dray-system", "dray-node").Set(value)
		g.WithLabelValues("kube-system", "other").Set(value)
		registry.MustRegister(g)
	}
	return serve(t, "kube-state-metrics", "n1", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
}
