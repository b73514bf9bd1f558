// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"cmp"
	"context"
	"encoding/json"
	"net/netip"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/chain"
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
	// data is what the node says of the port: the transport behind it, and where the node
	// receives its link if the other end is elsewhere.
	data v1alpha1.PortData
	// claimed is the transport of the claim, which the node has until it says otherwise.
	claimed string
	// stale: the pod got its claim before the chain was planned as it is now, so the
	// conditions are about another link, and the link cannot become that of the plan.
	stale bool
	// tied: the pod got its claim when the link could not cross nodes, or not as it can now.
	tied bool
	// older: the pod got its claim when something else was required of the link.
	older bool
}

// ready reports whether the node serves the port.
func (p port) ready() bool {
	return p.node != "" && meta.IsStatusConditionTrue(p.conditions, v1alpha1.ConditionReady)
}

// lags reports whether the node has not moved the port's link yet. If its ends are on several
// nodes, its tunnel says more.
func (p port) lags(l plan.Link, nodes []string) bool {
	return len(nodes) == 1 && p.transport() != "" && p.transport() != l.Transport
}

// transport is what the node has behind the port; "" if that is not known.
func (p port) transport() string { return cmp.Or(p.data.Transport, p.claimed) }

// claim is a claim with the pod that has it.
type claim struct {
	*resourcev1.ResourceClaim
	pod, node string // empty: none, or not known yet
	ordinal   int    // of the pod in its StatefulSet; negative: it is in none
}

// claims are the claims of a chain.
func (r *Reconciler) claims(ctx context.Context, c *v1alpha1.Chain) ([]claim, error) {
	var list resourcev1.ResourceClaimList
	if err := r.List(ctx, &list, client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.LabelChain: c.Name}); err != nil {
		return nil, err
	}
	all := make([]claim, len(list.Items))
	for i := range list.Items {
		var err error
		if all[i], err = r.withPod(ctx, &list.Items[i]); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// observe finds the ports that pods have.
func observe(d decision, claims []claim, given instances) map[portKey]port {
	if d.plan == nil {
		return nil
	}
	seen := map[portKey]port{}
	for function, claim := range holders(d, claims, given) {
		if claim.pod == "" {
			continue
		}
		for request, p := range reports(claim.ResourceClaim) {
			p.pod, p.node = claim.pod, claim.node
			l, planned := linkOf(d.plan, function, request), parametersOf(claim.ResourceClaim, function, request)
			if l == nil || planned == nil || fleet.CanBecome(planned.Link, *l) != nil {
				p.stale, p.conditions, p.data = true, nil, v1alpha1.PortData{}
			} else {
				p.claimed = planned.Link.Transport
				p.tied, p.older = !sameAcross(planned.Across, d.across.Link(l.Name)), !fleet.SameLimits(planned.Link, *l)
			}
			seen[portKey{function, request}] = p
		}
	}
	return seen
}

// holders are the claims that count, by function: for an instance the one that has it, for
// another function the newest.
func holders(d decision, claims []claim, given instances) map[string]*claim {
	all := map[string]*claim{}
	for i := range claims {
		if function := given.function(claims[i].UID); function != "" {
			all[function] = &claims[i]
		}
	}
	for function, claim := range newest(claims) {
		if f := d.chain.Function(function); f != nil && f.Of == "" {
			all[function] = claim
		}
	}
	return all
}

// newest is the claim of each function that counts: of several, as during a rollout, one
// that a pod has, is not being deleted, and is the newest.
func newest(claims []claim) map[string]*claim {
	best := map[string]*claim{}
	for i := range claims {
		claim := &claims[i]
		if function := claim.Labels[v1alpha1.LabelFunction]; best[function] == nil || prefer(claim, best[function]) > 0 {
			best[function] = claim
		}
	}
	return best
}

// prefer is positive if a counts rather than b.
func prefer(a, b *claim) int {
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

// withPod finds the pod that has a claim, and its node.
func (r *Reconciler) withPod(ctx context.Context, c *resourcev1.ResourceClaim) (claim, error) {
	all := claim{ResourceClaim: c, ordinal: -1}
	i := slices.IndexFunc(c.Status.ReservedFor, func(u resourcev1.ResourceClaimConsumerReference) bool {
		return u.APIGroup == "" && u.Resource == "pods"
	})
	if i < 0 {
		return all, nil
	}
	user := c.Status.ReservedFor[i]
	var pod corev1.Pod
	err := r.Get(ctx, types.NamespacedName{Namespace: c.Namespace, Name: user.Name}, &pod)
	if err != nil || pod.UID != user.UID {
		return all, client.IgnoreNotFound(err)
	}
	all.pod, all.node, all.ordinal = pod.Name, pod.Spec.NodeName, ordinalOf(&pod)
	return all, nil
}

// ordinalOf is the ordinal of a pod of a StatefulSet; negative if it is none.
func ordinalOf(pod *corev1.Pod) int {
	if owner := metav1.GetControllerOfNoCopy(pod); owner == nil || owner.Kind != "StatefulSet" {
		return -1
	}
	ordinal, err := strconv.Atoi(pod.Labels[appsv1.PodIndexLabel])
	if err != nil {
		return -1
	}
	return ordinal
}

// reports are what the node says of each port of a claim, by the name of its request.
func reports(claim *resourcev1.ResourceClaim) map[string]port {
	all := map[string]port{}
	if claim.Status.Allocation == nil {
		return all
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.Driver != v1alpha1.Driver {
			continue
		}
		all[result.Request] = port{}
		for _, device := range claim.Status.Devices {
			if isDevice(device, result) {
				all[result.Request] = port{conditions: device.Conditions, data: dataOf(device)}
			}
		}
	}
	return all
}

// dataOf is what a node says of a port, without what makes no sense.
func dataOf(d resourcev1.AllocatedDeviceStatus) (data v1alpha1.PortData) {
	if d.Data == nil || json.Unmarshal(d.Data.Raw, &data) != nil {
		return v1alpha1.PortData{}
	}
	if !slices.Contains(chain.Transports, data.Transport) {
		data.Transport = ""
	}
	if t := data.Tunnel; t != nil {
		if a, err := netip.ParseAddr(t.Address); err != nil || !a.Is4() || t.VNI <= 0 {
			data.Tunnel = nil
		}
	}
	return data
}

// parametersOf says which port of a function a request of a claim stands for, as it was
// planned then; nil if nothing does.
func parametersOf(claim *resourcev1.ResourceClaim, function, request string) *v1alpha1.PortParameters {
	for _, p := range parameters(claim) {
		if p.Function == function && p.Port == request {
			return p
		}
	}
	return nil
}

// parameters are all of a claim. Only the operator's own templates have any.
func parameters(claim *resourcev1.ResourceClaim) (all []*v1alpha1.PortParameters) {
	for _, c := range claim.Spec.Devices.Config {
		if c.Opaque == nil || c.Opaque.Driver != v1alpha1.Driver {
			continue
		}
		if p, err := v1alpha1.ParsePortParameters(c.Opaque.Parameters.Raw); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// sameAcross compares a link between nodes as it was planned and as it is.
func sameAcross(was, is *plan.Link) bool {
	if was == nil || is == nil {
		return was == is
	}
	return fleet.Same(*was, *is)
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
