// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// instances say which claim has which instance of a function.
type instances struct {
	all []v1alpha1.InstanceStatus
	// waiting are pods that have none, and why.
	waiting []string
}

// kept are the instances that claims already have. A claim that the cache does not have
// may be too new for it, so the API server says whether it is gone.
func (r *Reconciler) kept(ctx context.Context, c *v1alpha1.Chain, claims []claim) (all []v1alpha1.InstanceStatus, err error) {
	for _, i := range c.Status.Instances {
		if !slices.ContainsFunc(claims, func(c claim) bool { return c.UID == i.UID }) {
			var now resourcev1.ResourceClaim
			err := r.Uncached.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: i.Claim}, &now)
			if apierrors.IsNotFound(err) || err == nil && now.UID != i.UID {
				continue
			}
			if err != nil {
				return nil, err
			}
		}
		all = append(all, i)
	}
	return all, nil
}

// assign gives each claim of a function with instances one of them. A claim keeps its
// instance until it is deleted. The record is the chain's status, which is written as a
// whole, and only if it has not changed since it was read: so two operators, or one whose
// cache is behind, cannot give one instance twice.
func assign(kept []v1alpha1.InstanceStatus, d decision, claims []claim) instances {
	claims = slices.Clone(claims)
	slices.SortFunc(claims, func(a, b claim) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	given := instances{all: kept}
	for _, c := range claims { // before any claim gets a new one
		given.give(&c, prepared(&c))
	}
	for _, c := range claims {
		if d.plan != nil && c.pod != "" && c.DeletionTimestamp == nil {
			given.choose(d.chain, &c)
		}
	}
	slices.SortFunc(given.all, func(a, b v1alpha1.InstanceStatus) int { return cmp.Compare(a.Function, b.Function) })
	return given
}

// function is the instance that a claim has, or "".
func (n *instances) function(uid types.UID) string {
	for _, i := range n.all {
		if i.UID == uid {
			return i.Function
		}
	}
	return ""
}

// free reports whether no claim has an instance.
func (n *instances) free(function string) bool {
	return !slices.ContainsFunc(n.all, func(i v1alpha1.InstanceStatus) bool { return i.Function == function })
}

// give gives an instance to a claim that has none, if it is free.
func (n *instances) give(c *claim, function string) {
	if function != "" && n.function(c.UID) == "" && n.free(function) {
		n.all = append(n.all, v1alpha1.InstanceStatus{Function: function, Claim: c.Name, UID: c.UID})
	}
}

// prepared is the instance that a node has prepared for a claim, by the address that it
// reports; "" if none. It counts if the chain was deleted and created again while its pods
// ran.
func prepared(c *claim) string {
	for _, p := range parameters(c.ResourceClaim) {
		for _, d := range c.Status.Devices {
			if p.Of != "" && d.Driver == v1alpha1.Driver && d.NetworkData != nil && d.NetworkData.HardwareAddress == string(p.Link.Ends[p.End()].MAC) {
				return p.Function
			}
		}
	}
	return ""
}

// choose gives an instance to a claim that has none: to a pod of a StatefulSet that of its
// ordinal, to another one the first that is free.
func (n *instances) choose(planned *chain.Chain, c *claim) {
	possible := parameters(c.ResourceClaim)
	if len(possible) == 0 || possible[0].Of == "" || n.function(c.UID) != "" {
		return
	}
	of := possible[0].Of
	for _, p := range possible {
		if planned.Function(p.Function) == nil {
			continue // the chain has fewer instances than it had
		}
		if c.ordinal < 0 || p.Function == chain.Numbered(of, c.ordinal) {
			n.give(c, p.Function)
		}
	}
	if n.function(c.UID) != "" {
		return
	}
	n.waiting = append(n.waiting, fmt.Sprintf("the pod %s waits for an instance of %s: %s", c.pod, of, why(planned, of, c.ordinal)))
}

// why is why no instance of a function is free for a pod.
func why(planned *chain.Chain, of string, ordinal int) string {
	own := chain.Numbered(of, ordinal)
	switch {
	case ordinal < 0:
		return "each of them has a pod"
	case planned.Function(own) == nil:
		return fmt.Sprintf("its ordinal is %d, and the chain has no %s", ordinal, own)
	}
	return "another pod still has " + own
}

// idle are the instances that no claim has. One instance of each function is never idle:
// without any pod of the function, a chain is not ready.
func (n *instances) idle(planned *chain.Chain) map[string]bool {
	all := map[string]bool{}
	for _, instances := range manifest.Declared(planned) {
		if instances[0].Of == "" {
			continue
		}
		unused := 0
		for _, f := range instances {
			if n.free(f.Name) {
				all[f.Name], unused = true, unused+1
			}
		}
		if unused == len(instances) {
			delete(all, instances[0].Name)
		}
	}
	return all
}
