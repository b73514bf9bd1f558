// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// portKey names a port of a chain.
type portKey struct{ function, port string }

// port is what is known of the pod that has a port.
type port struct {
	pod, node string
	// conditions are what the node reports: Ready, and one for each requirement of the
	// port's link. None: the node has not prepared the port.
	conditions []metav1.Condition
	// stale: the pod got its claim before the chain was planned as it is now, so the
	// conditions are about another link.
	stale bool
}

// ready reports whether the node serves the port.
func (p port) ready() bool {
	return p.node != "" && meta.IsStatusConditionTrue(p.conditions, v1alpha1.ConditionReady)
}

// observe finds the ports that pods have.
func (r *Reconciler) observe(ctx context.Context, c *v1alpha1.Chain, d decision) (map[portKey]port, error) {
	if d.plan == nil {
		return nil, nil
	}
	var list resourcev1.ResourceClaimList
	if err := r.List(ctx, &list, client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.LabelChain: c.Name}); err != nil {
		return nil, err
	}
	seen := map[portKey]port{}
	for function, claim := range newest(list.Items) {
		pod, node, err := r.podOf(ctx, claim)
		if err != nil {
			return nil, err
		}
		if pod == "" {
			continue
		}
		for request, conditions := range reports(claim) {
			p := port{pod: pod, node: node, conditions: conditions}
			if l := linkOf(d.plan, function, request); l == nil || !isOf(claim, request, *l) {
				p.stale, p.conditions = true, nil
			}
			seen[portKey{function, request}] = p
		}
	}
	return seen, nil
}

// newest is the claim of each function that counts: of several, as during a rollout, one
// that a pod has, is not being deleted, and is the newest.
func newest(claims []resourcev1.ResourceClaim) map[string]*resourcev1.ResourceClaim {
	best := map[string]*resourcev1.ResourceClaim{}
	for i := range claims {
		claim := &claims[i]
		if function := claim.Labels[v1alpha1.LabelFunction]; best[function] == nil || prefer(claim, best[function]) > 0 {
			best[function] = claim
		}
	}
	return best
}

// prefer is positive if a counts rather than b.
func prefer(a, b *resourcev1.ResourceClaim) int {
	one := func(yes bool) int {
		if yes {
			return 1
		}
		return 0
	}
	return cmp.Or(
		one(a.DeletionTimestamp == nil)-one(b.DeletionTimestamp == nil),
		one(len(a.Status.ReservedFor) > 0)-one(len(b.Status.ReservedFor) > 0),
		a.CreationTimestamp.Compare(b.CreationTimestamp.Time),
		cmp.Compare(a.Name, b.Name),
	)
}

// podOf is the pod that has a claim, and its node.
func (r *Reconciler) podOf(ctx context.Context, claim *resourcev1.ResourceClaim) (name, node string, err error) {
	i := slices.IndexFunc(claim.Status.ReservedFor, func(u resourcev1.ResourceClaimConsumerReference) bool {
		return u.APIGroup == "" && u.Resource == "pods"
	})
	if i < 0 {
		return "", "", nil
	}
	user := claim.Status.ReservedFor[i]
	var pod corev1.Pod
	err = r.Get(ctx, types.NamespacedName{Namespace: claim.Namespace, Name: user.Name}, &pod)
	if err != nil || pod.UID != user.UID {
		return "", "", client.IgnoreNotFound(err)
	}
	return pod.Name, pod.Spec.NodeName, nil
}

// reports are the conditions of each port of a claim, by the name of its request.
func reports(claim *resourcev1.ResourceClaim) map[string][]metav1.Condition {
	all := map[string][]metav1.Condition{}
	if claim.Status.Allocation == nil {
		return all
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != v1alpha1.Driver {
			continue
		}
		all[result.Request] = nil
		for _, device := range claim.Status.Devices {
			if isDevice(device, result) {
				all[result.Request] = device.Conditions
			}
		}
	}
	return all
}

// isOf reports whether a request of a claim is for that link, as it is planned now.
func isOf(claim *resourcev1.ResourceClaim, request string, l plan.Link) bool {
	for _, c := range claim.Spec.Devices.Config {
		if c.Opaque == nil || c.Opaque.Driver != v1alpha1.Driver || !slices.Contains(c.Requests, request) {
			continue
		}
		p, err := v1alpha1.ParsePortParameters(c.Opaque.Parameters.Raw)
		return err == nil && signature(bare(p.Link)) == signature(bare(l))
	}
	return false
}

// isDevice reports whether a status is about what was allocated. The share tells the
// ports of a node apart, for they are shares of one device.
func isDevice(d resourcev1.AllocatedDeviceStatus, a resourcev1.DeviceRequestAllocationResult) bool {
	share := ""
	if a.ShareID != nil {
		share = string(*a.ShareID)
	}
	reported := ""
	if d.ShareID != nil {
		reported = *d.ShareID
	}
	return d.Driver == a.Driver && d.Pool == a.Pool && d.Device == a.Device && reported == share
}

// requirements are the names of what a link requires.
func requirements(l plan.Link) []string {
	names := make([]string, len(l.Evidence))
	for i, e := range l.Evidence {
		names[i] = e.Requirement
	}
	return names
}
