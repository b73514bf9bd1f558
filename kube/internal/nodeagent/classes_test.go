// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/claims"
)

// withClasses gives the link two traffic classes, and the port of du a queue of its own.
func withClasses(limit int) func(*corev1.Pod, *v1alpha1.PortParameters) {
	return func(_ *corev1.Pod, p *v1alpha1.PortParameters) {
		p.Link.Shape = &chain.Qdisc{Kind: "prio", Rate: 1e8, Classes: []chain.Class{{Name: "control", DSCP: []int{46}}, {Name: "rest"}}}
		p.Link.Ends[1].Shape = &chain.Qdisc{Kind: "pfifo", Limit: limit}
	}
}

// The broker orders what the plan says, and its memory has room for what waits.
func TestALinkWithTrafficClasses(t *testing.T) {
	f := newFixture(t)
	du, cu := f.claim("du", withClasses(1000)), f.claim("cu-up", withClasses(1000))
	must(t, errors.Join(f.prepare(du), f.prepare(cu)))
	all, err := f.agent.store.List(t.Context())
	must(t, err)
	wishes, _ := f.agent.links.wanted(all)
	link, err := wishes["ran/f1/f1u"].served()
	must(t, err)
	sends, own := link.Ends[0].Classes, link.Ends[1].Classes
	if sends == nil || len(sends.Names) != 2 || sends.Order.Rate != 1e8 || own == nil || own.Order.Class[0].Limit != 1000 || link.Slots < 1000 {
		t.Errorf("%+v", link)
	}
	if err := f.broker.Add(t.Context(), link); err != nil { // nothing if it is the same
		t.Error(err)
	}
}

// A pod that was planned with another queue does not join the link of the pod that runs.
func TestAChangedQueueDoesNotJoinTheOldOne(t *testing.T) {
	f := newFixture(t)
	must(t, f.prepare(f.claim("du", withClasses(1000))))
	if err := f.prepare(f.claim("cu-up", withClasses(999))); err == nil || !strings.Contains(err.Error(), "delete that pod, too") {
		t.Error(err)
	}
}

// A claim may hold anything: what is no order is a fault of the claim.
func TestClassesThatCannotBe(t *testing.T) {
	f := newFixture(t)
	wrong := func(_ *corev1.Pod, p *v1alpha1.PortParameters) {
		p.Link.Shape = &chain.Qdisc{Kind: "prio", Classes: []chain.Class{{Name: "a", DSCP: []int{-1}}}}
	}
	if err := f.prepare(f.claim("du", wrong)); err == nil || !strings.Contains(err.Error(), "link ran/f1/f1u: traffic class") {
		t.Error(err)
	}
}

// Ports keep their queues while their link crosses nodes: an open port cannot change them.
func TestPortsKeepTheirQueuesBetweenNodes(t *testing.T) {
	f := newFixture(t, true)
	limited := func(c claims.Claim) claims.Claim {
		c.Ports[0].Link.Shape = &chain.Qdisc{Kind: "tbf", Rate: 1e8}
		return c
	}
	here, there := v1alpha1.EndStatus{Function: "cu-up", Port: "f1u", Node: "n1"}, v1alpha1.EndStatus{Function: "du", Port: "f1u", Node: "n2"}
	f.follows(here, there)
	before, err := servedOf(f, limited(crossing("cu-up")))
	must(t, err)
	there.Tunnel = &v1alpha1.Tunnel{Address: "10.0.0.2", VNI: 7}
	f.follows(here, there)
	after, err := servedOf(f, limited(crossing("cu-up")))
	must(t, err)
	if before.Kind != broker.KindShm || after.Kind != broker.KindNetdev {
		t.Fatalf("%+v, then %+v", before, after)
	}
	if c := after.Ends[0].Classes; c == nil || c.Order.Rate != 1e8 || !reflect.DeepEqual(c, before.Ends[0].Classes) || after.Slots != before.Slots {
		t.Errorf("%+v, then %+v", before, after)
	}
}

func servedOf(f *fixture, c claims.Claim) (broker.Link, error) {
	wishes, _ := f.agent.links.wanted([]claims.Claim{c})
	return wishes["ran/f1/f1u"].served()
}
