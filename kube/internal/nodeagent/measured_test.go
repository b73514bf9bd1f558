// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/telemetry"
	"github.com/drayage/dray/internal/measure/live"
	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
	"github.com/drayage/dray/kube/internal/nodenet"
	"github.com/drayage/dray/kube/internal/probe"
)

// measured is dray-net with one half, whose link is judged every two seconds.
type measured struct {
	t         *testing.T
	claims    []claims.Claim
	crossings crossings
	received  tunnels
	now       time.Time
	epoch     uint64
	intervals []probe.Interval
	err       error
}

const crossingLink = "ran/f1/f1u"

func newMeasured(t *testing.T) *measured {
	c := crossing("du")
	ratio := units.Ratio(1e-3)
	p := &c.Ports[0]
	p.Across.Requires.Latency, p.Across.Requires.Percentile, p.Across.Requires.LossRatio = units.Duration(time.Millisecond), 90, &ratio
	p.Link.Evidence = []plan.Evidence{{Requirement: "latency", Required: "≤ 1ms at p90"}, {Requirement: "packet_loss_ratio", Required: "≤ 0.001"}}
	return &measured{
		t: t, claims: []claims.Claim{c}, crossings: crossings{}, now: time.Unix(1e9, 0), epoch: 7,
		received: tunnels{at: map[string]v1alpha1.Tunnel{crossingLink: {}}, unknown: map[string]bool{}},
	}
}

func (m *measured) ask(_ context.Context, half string, mac chain.MAC, epoch, after uint64) (*nodenet.Measured, error) {
	if m.err != nil {
		return nil, m.err
	}
	if half != crossingLink || mac != "02:00:00:00:00:02" {
		m.t.Errorf("asked for %s, %s", half, mac)
	}
	if epoch != m.epoch {
		after = 0
	}
	i := slices.IndexFunc(m.intervals, func(i probe.Interval) bool { return i.Number > after })
	if i < 0 {
		return &nodenet.Measured{Epoch: m.epoch}, nil
	}
	return &nodenet.Measured{Epoch: m.epoch, Intervals: m.intervals[i:]}, nil
}

// pass lets so many intervals pass, of which dray-net has measured what change makes of good ones, and
// judges after each.
func (m *measured) pass(n int, change func(*probe.Interval)) (link live.Link, j judgement) {
	m.t.Helper()
	for range n {
		m.now = m.now.Add(sampleEvery)
		if change != nil {
			good := probe.Direction{Probes: 80, Sent: 2000}
			for range 80 {
				good.Delays = append(good.Delays, probe.Delay{1000, 61_000, 3000})
			}
			i := probe.Interval{Number: uint64(len(m.intervals)) + 1, Duration: sampleEvery, Out: good, In: good}
			change(&i)
			m.intervals = append(m.intervals, i)
		}
		own := telemetry.Flow{Link: "f1u", From: "du.f1u", To: "cu-up.f1u", Interval: sampleEvery, Sent: 2000, Lost: 1}
		back := telemetry.Flow{Link: "f1u", From: "cu-up.f1u", To: "du.f1u", Interval: sampleEvery, Received: 2000}
		links := []live.Link{
			{Chain: "ran/f1", Status: broker.LinkStatus{Name: "f1u"}, Now: []telemetry.Flow{own, back}, Total: []telemetry.Flow{own, back},
				Verdicts: []verdict.Verdict{{Requirement: "latency", Verdict: verdict.Met}}},
			{Chain: "ran/f1", Status: broker.LinkStatus{Name: "other"}, Verdicts: []verdict.Verdict{{Requirement: "latency", Verdict: verdict.Missed}}},
		}
		judged := m.crossings.judge(context.Background(), m.claims, links, m.received, m.ask, m.now)
		if other := judged["ran/f1/other"]; other.tunnel || len(other.verdicts) != 1 {
			m.t.Fatalf("a link on this node: %+v", other)
		}
		link, j = links[0], judged[crossingLink]
	}
	return link, j
}

// conditions are those of the claim's port.
func (m *measured) conditions(j judgement) map[string]condition {
	verdicts, why := j.of(true, &m.claims[0].Ports[0])
	all := map[string]condition{}
	for _, c := range conditionsOf(&m.claims[0].Ports[0], verdicts, why) {
		all[c.Type] = c
	}
	return all
}

func good(*probe.Interval) {}

func TestALinkBetweenNodesHasVerdicts(t *testing.T) {
	m := newMeasured(t)
	link, j := m.pass(10, good)
	for kind, want := range map[string]string{"latency": "31us ± 30us one-way latency at p90", "packet_loss_ratio": "0 (0 of 20000)"} {
		if c := m.conditions(j)[kind]; c.Status != string(metav1.ConditionTrue) || !strings.Contains(c.Message, want) {
			t.Errorf("%+v, without %q", c, want)
		}
	}
	if len(link.Verdicts) != 2 || link.Verdicts[0].Verdict != verdict.Met {
		t.Errorf("for metrics: %+v", link.Verdicts)
	}
	for _, flows := range [][]telemetry.Flow{link.Now, link.Total} {
		if out, in := flows[0], flows[1]; out.Received == 0 || in.Sent == 0 || in.Latency.Count == 0 || out.Latency.Count == 0 {
			t.Errorf("flows %+v", flows)
		}
	}
	_, j = m.pass(10, func(i *probe.Interval) { i.In.Missing = 100 })
	if c := m.conditions(j)["packet_loss_ratio"]; c.Status != string(metav1.ConditionFalse) {
		t.Errorf("with losses: %+v", c)
	}
	if len(m.crossings[crossingLink].intervals) != 20 {
		t.Errorf("%d intervals", len(m.crossings[crossingLink].intervals))
	}
	_, j = m.pass(keepSamples, good)
	if c := m.conditions(j)["packet_loss_ratio"]; c.Status != string(metav1.ConditionTrue) || len(m.crossings[crossingLink].intervals) != keepSamples {
		t.Errorf("two minutes later: %+v", c)
	}
}

// A half that nobody measures any more has no verdict, and says why.
func TestAStaleHalfHasNoVerdict(t *testing.T) {
	silent := func(i *probe.Interval) { i.Out, i.In = probe.Direction{}, probe.Direction{} }
	for name, c := range map[string]struct {
		change func(*probe.Interval)
		err    error
		want   string
	}{
		"the other node is silent": {silent, nil, errSilent.Error()},
		"dray-net stands still":    {nil, nil, errSilent.Error()},
		"dray-net is away":         {nil, errors.New("dray-net does not run on this node"), "dray-net does not run"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMeasured(t)
			if _, j := m.pass(1, silent); !strings.Contains(m.conditions(j)["latency"].Message, errNotYet.Error()) {
				t.Errorf("at first: %+v", m.conditions(j))
			}
			m.pass(10, good)
			m.err = c.err
			link, j := m.pass(8, c.change)
			for _, kind := range []string{"latency", "packet_loss_ratio"} {
				if got := m.conditions(j)[kind]; got.Status != string(metav1.ConditionUnknown) || !strings.Contains(got.Message, c.want) {
					t.Errorf("%+v", got)
				}
			}
			if link.Verdicts != nil {
				t.Errorf("metrics have %+v", link.Verdicts)
			}
			m.received = tunnels{unknown: map[string]bool{crossingLink: true}}
			if _, j := m.pass(1, nil); !j.tunnel {
				t.Error("one node's figures are taken for those of both")
			}
		})
	}
}

// A dray-net that starts again numbers intervals again: none is counted twice or left out.
func TestAnEpochBeginsAgain(t *testing.T) {
	m := newMeasured(t)
	m.pass(10, good)
	m.epoch, m.intervals = 8, nil
	_, j := m.pass(5, good)
	if c := m.crossings[crossingLink]; len(c.intervals) != 15 || c.after != 5 || len(j.verdicts) != 2 {
		t.Errorf("%d intervals, the last is %d", len(c.intervals), c.after)
	}
}

// A link that is on one node again has that node's verdicts, and nothing is kept of the tunnel.
func TestALinkThatIsOnOneNodeAgain(t *testing.T) {
	m := newMeasured(t)
	_, j := m.pass(5, good)
	if verdicts, why := j.of(false, &m.claims[0].Ports[0]); verdicts != nil || why == "" {
		t.Errorf("before the next sample, the tunnel's verdicts are %+v", verdicts)
	}
	m.received = tunnels{}
	link, j := m.pass(1, nil)
	if verdicts, _ := j.of(false, &m.claims[0].Ports[0]); len(verdicts) != 1 || len(link.Verdicts) != 1 || len(m.crossings) != 0 {
		t.Errorf("%+v, %d kept", j, len(m.crossings))
	}
}

// A link of interfaces has verdicts from probes, on one node, where one clock stamps them, and
// between two. The broker does not know it.
func TestALinkOfInterfacesHasVerdicts(t *testing.T) {
	m := newMeasured(t)
	m.claims[0].Ports[0].Link.Transport = "bridge"
	m.claims[0].Ports[0].Link.Requires = m.claims[0].Ports[0].Across.Requires
	_, j := m.pass(10, good)
	if c := m.conditions(j)["latency"]; c.Status != string(metav1.ConditionTrue) || !strings.Contains(c.Message, "31us ± 30us") {
		t.Errorf("between nodes: %+v", c)
	}
	m.received = tunnels{}
	known := func(i *probe.Interval) {
		i.Clock = &[2]int64{}
		for _, d := range []*probe.Direction{&i.Out, &i.In} {
			for n := range d.Delays {
				d.Delays[n] = probe.Delay{40_000, 40_000, 0}
			}
		}
	}
	m.epoch, m.intervals = m.epoch+1, nil
	_, j = m.pass(10, known)
	if verdicts, _ := j.of(true, &m.claims[0].Ports[0]); verdicts != nil {
		t.Errorf("what was measured on one node is said of two: %+v", verdicts)
	}
	links := addInterfaceLinks(m.claims, nil)
	j = m.crossings.judge(t.Context(), m.claims, links, m.received, m.ask, m.now)[crossingLink]
	verdicts, _ := j.of(false, &m.claims[0].Ports[0])
	if len(verdicts) != 2 || verdicts[0].Verdict != verdict.Met || strings.Contains(verdicts[0].Measured.Text, "±") || strings.Contains(verdicts[0].Basis, "two nodes") || !strings.Contains(verdicts[0].Measured.Text, "40") {
		t.Errorf("on one node: %+v", verdicts)
	}
	l := links[0]
	if len(links) != 1 || l.Status.State != broker.StateActive || len(l.Now) != 2 || l.Now[0].Received != 2000 || l.Total[1].Sent < 10000 {
		t.Errorf("for metrics: %+v", links)
	}
	m.pass(int(silentFor/sampleEvery)+1, nil)
	links = addInterfaceLinks(m.claims, nil)
	if j := m.crossings.judge(t.Context(), m.claims, links, m.received, m.ask, m.now)[crossingLink]; j.why != errSilent.Error() || links[0].Status.State != broker.StateHalf {
		t.Errorf("after silence: %+v, %+v", j, links)
	}
}

// If one port of a link is an interface, libdray's reports of the other one make no flows. Those of
// dray-net are shown at both.
func TestAMixedLinkShowsItsTraffic(t *testing.T) {
	m := newMeasured(t)
	m.claims[0].Ports[0].Link.Transport = "bridge"
	m.pass(2, good)
	native := broker.LinkStatus{Name: "f1u", Kind: broker.KindNetdev, State: broker.StateEmpty, Ends: []broker.EndStatus{{Function: "du", Port: "f1u"}}}
	links := []live.Link{{Chain: "ran/f1", Status: native}}
	m.crossings.judge(t.Context(), m.claims, links, m.received, m.ask, m.now)
	if l := links[0]; l.Status.State != broker.StateEmpty || len(l.Now) != 2 || l.Now[0].Received != 2000 || l.Window[1].Sent != 4000 || l.Total[1].Sent != 4000 {
		t.Errorf("%+v", l)
	}
}

// While dray-net is away, a claim keeps its tunnel, on which the other node relies, and has no verdict.
func TestAClaimKeepsItsTunnelWithoutDrayNet(t *testing.T) {
	f := newFixture(t)
	c := f.claim("du")
	must(t, f.prepare(c))
	ctx := context.Background()
	all, err := f.agent.store.List(ctx)
	must(t, err)
	far := v1alpha1.Tunnel{Address: "10.0.0.2", VNI: 7}
	shown := func() (string, metav1.Condition) {
		got, err := f.client.ResourceV1().ResourceClaims("ran").Get(ctx, c.Name, metav1.GetOptions{})
		must(t, err)
		d := got.Status.Devices[0]
		if d.Data == nil {
			t.Fatalf("no tunnel in %+v", d)
		}
		return string(d.Data.Raw), d.Conditions[1]
	}
	met := judgement{tunnel: true, verdicts: []verdict.Verdict{{Requirement: "latency", Verdict: verdict.Met}}}
	f.agent.live.tunnels.Store(&tunnels{at: map[string]v1alpha1.Tunnel{crossingLink: far}})
	f.agent.report(ctx, &all[0])
	f.agent.live.tunnels.Store(&tunnels{at: map[string]v1alpha1.Tunnel{crossingLink: far}, to: map[string]v1alpha1.Tunnel{crossingLink: {Address: "10.0.0.1", VNI: 8}}})
	f.agent.live.judged.Store(&map[string]judgement{crossingLink: met})
	f.agent.report(ctx, &all[0])
	tunnel, latency := shown()
	if want := `{"address":"10.0.0.2","vni":7,"peer":{"address":"10.0.0.1","vni":8}}`; tunnel != want || latency.Status != metav1.ConditionTrue {
		t.Errorf("%s, %+v", tunnel, latency)
	}
	f.agent.live.tunnels.Store(&tunnels{unknown: map[string]bool{crossingLink: true}})
	f.agent.live.judged.Store(&map[string]judgement{crossingLink: {tunnel: true, why: "dray-net is away"}})
	f.agent.report(ctx, &all[0])
	if after, latency := shown(); after != tunnel || latency.Status != metav1.ConditionUnknown || !strings.Contains(latency.Message, "dray-net is away") {
		t.Errorf("%s, %+v", after, latency)
	}
	f.agent.told.claims = map[types.UID]report{} // another dray-node
	f.agent.live.judged.Store(&map[string]judgement{crossingLink: met})
	f.agent.report(ctx, &all[0])
	if after, latency := shown(); after != tunnel || latency.Status != metav1.ConditionTrue {
		t.Errorf("of a later dray-node: %s, %+v", after, latency)
	}
}
