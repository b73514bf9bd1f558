// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/nodemetrics"
)

// served is what Prometheus would read now.
func (f *fixture) served() string {
	f.t.Helper()
	w := httptest.NewRecorder()
	f.agent.Metrics.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if w.Code != 200 {
		f.t.Fatalf("status %d: %s", w.Code, w.Body)
	}
	return "\n" + w.Body.String()
}

// serves fails unless each line is served.
func (f *fixture) serves(lines ...string) {
	f.t.Helper()
	text := f.served()
	for _, l := range lines {
		if !strings.Contains(text, "\n"+l+"\n") {
			f.t.Errorf("lacks %s\n%s", l, text)
		}
	}
}

func TestMetricsOfTheNodesWork(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	f.serves(`dray_node_broker_up 0`, `dray_node_ports 0`, `dray_node_prepare_failures_total{reason="port_held"} 0`,
		`dray_node_prepare_duration_seconds_count{result="success"} 0`, `dray_node_ports_capacity 256`, `dray_node_driver_registered 0`)
	du, cu := f.claim("du"), f.claim("cu-up")
	must(t, f.prepare(du))
	must(t, f.prepare(cu))
	if err := f.prepare(f.claim("ru", func(p *corev1.Pod, _ *v1alpha1.PortParameters) { p.Spec.SecurityContext = nil })); err == nil {
		t.Error("a pod without a user has a port")
	}
	f.agent.judge(ctx)
	registered := func() bool { return true }
	f.agent.registered.Store(&registered)
	f.serves(`dray_node_broker_up 1`, `dray_node_broker_links 1`, `dray_node_claims 2`, `dray_node_ports 2`, `dray_node_driver_registered 1`,
		`dray_node_prepare_duration_seconds_count{result="success"} 2`, `dray_node_prepare_duration_seconds_count{result="failure"} 1`,
		`dray_node_prepare_failures_total{reason="other"} 1`,
		`dray_link_up{chain="f1",link="f1u",namespace="ran"} 0`) // nobody has opened the ports
	must(t, f.agent.unprepare(ctx, du.UID))
	f.agent.judge(ctx)
	f.serves(`dray_node_claims 1`, `dray_node_ports 1`, `dray_node_broker_links 1`)
	f.stop()
	f.agent.judge(ctx)
	f.serves(`dray_node_broker_up 0`, `dray_node_claims 1`)
}

func TestReasonsOfFailures(t *testing.T) {
	f := newFixture(t)
	ctx := context.Background()
	first, err := f.agent.prepare(ctx, f.claim("du"))
	must(t, err)
	second := *first
	second.UID = "second"
	err = f.agent.store.Add(ctx, second)
	if got := reasonOf(err); got != nodemetrics.PortHeld {
		t.Errorf("%v: %s", err, got)
	}
	f.stop()
	ended, cancel := context.WithCancel(ctx)
	cancel()
	_, err = f.agent.links.broker(ended)
	if got := reasonOf(err); got != nodemetrics.NoBroker {
		t.Errorf("%v: %s", err, got)
	}
}
