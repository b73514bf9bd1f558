// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubetesting "k8s.io/client-go/testing"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/nodenet"
)

func TestTheClaimShowsAddressesAndVerdicts(t *testing.T) {
	f := newFixture(t)
	c := f.claim("du")
	must(t, f.prepare(c))
	ctx := context.Background()
	f.agent.reportAll(ctx)
	got, err := f.client.ResourceV1().ResourceClaims("ran").Get(ctx, c.Name, metav1.GetOptions{})
	must(t, err)
	if len(got.Status.Devices) != 1 {
		t.Fatalf("status %+v", got.Status.Devices)
	}
	d := got.Status.Devices[0]
	if n := d.NetworkData; n == nil || n.InterfaceName != "f1u" || n.HardwareAddress != "02:00:00:00:00:02" || !reflect.DeepEqual(n.IPs, []string{"10.38.0.2/24"}) {
		t.Errorf("network data %+v", n)
	}
	if len(d.Conditions) != 2 || d.Conditions[0].Type != "Ready" || d.Conditions[1].Type != "latency" || d.Conditions[1].Reason != "NotMeasured" {
		t.Errorf("conditions %+v", d.Conditions)
	}
}

// Only reportAlways writes to the API server, so a server that is silent holds up neither
// Prepare nor metrics.
func TestOnlyReportsWaitForTheAPIServer(t *testing.T) {
	f := newFixture(t)
	writes := 0
	ctx, cancel := context.WithCancel(context.Background())
	f.client.PrependReactor("update", "resourceclaims", func(kubetesting.Action) (bool, runtime.Object, error) {
		writes++
		cancel()
		return false, nil, nil
	})
	must(t, f.prepare(f.claim("du")))
	f.agent.judge(ctx)
	f.serves(`dray_node_claims 1`, `dray_node_broker_links 1`)
	if writes != 0 {
		t.Errorf("%d writes of Prepare and metrics", writes)
	}
	f.agent.reportAlways(ctx)
	if writes != 1 {
		t.Errorf("%d reports of one claim", writes)
	}
}

// A round ends at the first claim that the API server keeps waiting.
func TestASilentAPIServerIsAskedOnce(t *testing.T) {
	f := newFixture(t)
	for _, function := range []string{"du", "cu-up"} {
		must(t, f.prepare(f.claim(function)))
	}
	ctx, cancel := context.WithCancel(context.Background())
	writes := 0
	f.client.PrependReactor("update", "resourceclaims", func(kubetesting.Action) (bool, runtime.Object, error) {
		writes++
		cancel()
		return true, nil, context.Canceled
	})
	f.agent.reportAll(ctx)
	if writes != 1 {
		t.Errorf("%d claims were tried", writes)
	}
}

func TestJudgedIsWhatTheJudgeSaid(t *testing.T) {
	value := 1.0
	for _, c := range []struct {
		v              verdict.Verdict
		status, reason string
		says           []string
	}{
		{verdict.Verdict{Verdict: verdict.Met, Measured: verdict.Figure{Value: &value, Text: "1µs"}, Bound: verdict.Figure{Text: "2µs"}, Basis: "probes", Reason: "below"},
			"True", "Met", []string{"measured: 1µs", "bound: 2µs", "basis: probes"}},
		{verdict.Verdict{Verdict: verdict.Missed, Measured: verdict.Figure{Value: &value, Text: "3ms"}, Reason: "the bound is above"},
			"False", "Missed", []string{"measured: 3ms", "the bound is above"}},
		{verdict.Verdict{Verdict: verdict.NotMeasurable, Reason: "too few packets", Needs: "1000 packets"},
			"Unknown", "NotMeasurable", []string{"too few packets", "needs: 1000 packets"}},
	} {
		c.v.Requirement, c.v.Required.Text = "latency", "≤ 1.5ms"
		got := judged(c.v)
		if got.Type != "latency" || got.Status != c.status || got.Reason != c.reason {
			t.Errorf("%+v became %+v", c.v, got)
		}
		for _, s := range append(c.says, "required: ≤ 1.5ms") {
			if !strings.Contains(got.Message, s) {
				t.Errorf("no %q in %q", s, got.Message)
			}
		}
	}
}

func TestStatusIsWrittenOnlyIfItIsWorthIt(t *testing.T) {
	at := time.Unix(1000, 0)
	of := func(after time.Duration, status, message string) report {
		return report{at: at.Add(after), conditions: map[string][]condition{"f1u": {{Type: "latency", Status: status, Reason: "R", Message: message}}}}
	}
	before := of(0, "True", "1µs")
	for name, c := range map[string]struct {
		now  report
		want bool
	}{
		"same":              {of(time.Hour, "True", "1µs"), false},
		"new figure, soon":  {of(time.Second, "True", "2µs"), false},
		"new figure, later": {of(refreshEvery, "True", "2µs"), true},
		"new verdict":       {of(time.Second, "False", "9ms"), true},
	} {
		if got := worthWriting(before, c.now); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestEveryRequirementHasACondition(t *testing.T) {
	p := &claims.Port{PortParameters: v1alpha1.NewPortParameters("f1", "du", "f1u", f1u(), nil)}
	got := conditionsOf(p, []verdict.Verdict{{Requirement: "latency", Verdict: verdict.Met}}, "no traffic")
	if len(got) != 2 || got[1].Type != "latency" || got[1].Reason != "Met" {
		t.Errorf("%+v", got)
	}
}

func TestAConditionKeepsTheTimeOfItsStatus(t *testing.T) {
	first, later := time.Unix(1000, 0), time.Unix(2000, 0)
	of := func(at time.Time, latency, loss string) report {
		r := report{at: at, conditions: map[string][]condition{"f1u": {{Type: "latency", Status: latency}, {Type: "packet_loss_ratio", Status: loss}}}}
		return r
	}
	before := of(first, "Unknown", "Unknown")
	before.date(report{})
	now := of(later, "True", "Unknown")
	now.date(before)
	if c := now.conditions["f1u"]; c[0].since != later || c[1].since != first {
		t.Errorf("%+v", c)
	}
}

// A port that somebody has changed is not ready, and its claim says why.
func TestAChangedPortIsNotReady(t *testing.T) {
	f := newFixture(t, true)
	change := withInterfaces()
	all := []claims.Claim{f.kept(f.claim("cu-up", change)), f.kept(f.claim("du", change))}
	must(t, f.agent.store.Add(t.Context(), all[0]))
	must(t, f.agent.store.Add(t.Context(), all[1]))
	wishes, _ := f.agent.links.wanted(all)
	received := tunnels{wrong: map[string]map[int]string{}}
	said := &strings.Builder{}
	f.agent.links.log = slog.New(slog.NewTextHandler(said, nil))
	reported := func(made nodenet.Made) (cuup, du metav1.Condition) {
		t.Helper()
		f.agent.links.noteChanges([]nodenet.Made{made}, wishes, received)
		f.agent.live.tunnels.Store(&received)
		f.agent.reportAll(t.Context())
		var conditions []metav1.Condition
		for _, name := range []string{"cu-up-ports", "du-ports"} {
			c, err := f.client.ResourceV1().ResourceClaims("ran").Get(t.Context(), name, metav1.GetOptions{})
			must(t, err)
			conditions = append(conditions, c.Status.Devices[0].Conditions[0])
		}
		return conditions[0], conditions[1]
	}
	const link = "ran/f1/f1u"
	cuup, du := reported(nodenet.Made{Name: link, Wrong: map[int]string{1: "is down"}})
	if cuup.Status != metav1.ConditionTrue || du.Type != "Ready" || du.Status != metav1.ConditionFalse || du.Reason != "Changed" ||
		du.Message != "the pod's interface f1u is down: undo that, or replace the pod" {
		t.Errorf("%+v\n%+v", cuup, du)
	}
	f.agent.links.wrong = received.wrong
	received = f.agent.links.makeHalves(t.Context(), all, wishes, faults{}) // dray-net does not run here
	if text := received.wrong[link][1]; text != "is down" {
		t.Errorf("without dray-net the port %q", text)
	}
	cuup, du = reported(nodenet.Made{Name: link, Again: map[int]string{0: host.Absent}})
	if cuup.Status != metav1.ConditionTrue || du.Status != metav1.ConditionTrue {
		t.Errorf("undone: %+v\n%+v", cuup, du)
	}
	if !strings.Contains(said.String(), "link ran/f1/f1u: port cu-up.f1u has no interface any more: it is made again") {
		t.Errorf("it said %s", said)
	}
}
