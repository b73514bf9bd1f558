// SPDX-License-Identifier: Apache-2.0

package nodeagent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// member is the claim of a pod that is one of two instances of a function.
func (f *fixture) member() *resourcev1.ResourceClaim {
	f.t.Helper()
	c := f.claim("du", func(_ *corev1.Pod, p *v1alpha1.PortParameters) { p.Of = "set" })
	config := &c.Status.Allocation.Devices.Config
	first := *(*config)[0].DeepCopy()
	var p v1alpha1.PortParameters
	must(f.t, json.Unmarshal(first.Opaque.Parameters.Raw, &p))
	p.Function = "cu-up"
	raw, err := json.Marshal(p)
	must(f.t, err)
	first.Opaque.Parameters.Raw = raw
	*config = slices.Insert(*config, 0, first)
	return c
}

// has makes the agent know which instance a claim has.
func (f *fixture) has(c *resourcev1.ResourceClaim, function string) {
	f.knows(v1alpha1.ChainStatus{Instances: []v1alpha1.InstanceStatus{
		{Function: "cu-up", Claim: "another", UID: "another"}, {Function: function, Claim: c.Name, UID: c.UID}}})
}

// The kubelet may ask for a claim before the operator has chosen its instance.
func TestPrepareWaitsForTheInstance(t *testing.T) {
	f := newFixture(t)
	c := f.member()
	done := make(chan error)
	go func() { done <- f.prepare(c) }()
	select {
	case err := <-done:
		t.Fatalf("prepared without an instance: %v", err)
	case <-time.After(3 * portPause):
	}
	f.has(c, "du")
	must(t, <-done)
	all, err := f.agent.store.List(context.Background())
	if err != nil || len(all) != 1 || len(all[0].Ports) != 1 || all[0].Ports[0].Function != "du" {
		t.Errorf("prepared as %+v: %v", all, err)
	}
}

func TestNoInstanceIsFree(t *testing.T) {
	f := newFixture(t)
	c := f.member()
	f.has(f.claim("cu-up"), "du") // another claim of the chain
	ctx, cancel := context.WithTimeout(context.Background(), 3*portPause)
	defer cancel()
	_, err := f.agent.awaitInstance(ctx, c)
	if !errors.Is(err, errNoInstance) || !strings.Contains(err.Error(), "chain f1 has no instance of set for this pod") || reasonOf(err) != "no_instance" {
		t.Errorf("%v, reason %s", err, reasonOf(err))
	}
}

// The chain has got more instances since the pod's claim was made.
func TestAnInstanceThatTheClaimDoesNotKnow(t *testing.T) {
	f := newFixture(t)
	c := f.member()
	f.has(c, "ru")
	if err := f.prepare(c); err == nil || !strings.Contains(err.Error(), "its template had no instance ru yet: replace the pod") {
		t.Error(err)
	}
}
