// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/drayage/dray/internal/plan/fleet"
	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/internal/spec/units"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// runs is the reason for the node of a function that has a pod.
const runs = "its pod runs there"

// place puts the functions of a planned chain on nodes. Functions with pods stay where they
// are, unless no more pods can start there: then the next pod goes elsewhere.
func (r *Reconciler) place(ctx context.Context, c *v1alpha1.Chain, d decision, choice fleet.Choice, wanted *manifest.Placement, nodes []fleet.Node, claims []claim) (decision, error) {
	machines, err := r.machines(ctx)
	if err != nil {
		return d, fmt.Errorf("nodes: %w", err)
	}
	site := fleet.Site{Chain: d.chain, Wanted: wanted, Choice: choice, Nodes: nodes, Machines: machines}
	running := runningOn(claims)
	fixed := site.Open(running)
	now := r.found.place(c, &site, fixed, lastSpots(c))
	placed := now.placed
	if placed.Refusal == "" {
		return d.placedOn(c, placed, fixed), nil
	}
	why := placed.Refusal
	if now.freed {
		why += fmt.Sprintf(". Or replace the pods of %s: without them there is a placement", strings.Join(slices.Sorted(maps.Keys(fixed)), ", "))
	}
	if placed.Note != "" {
		why += "; " + placed.Note
	}
	return d.unplaced(running, why), nil
}

// placedOn is the decision with the nodes of all functions.
func (d decision) placedOn(c *v1alpha1.Chain, placed fleet.Placed, fixed map[string]string) decision {
	for _, s := range placed.Spots {
		spot := v1alpha1.FunctionPlacement{Function: s.Function, Node: s.Node, Reason: s.Reason}
		switch last := lastSpot(c, s.Function); {
		case last != nil && last.Node == s.Node:
			spot.Reason = last.Reason
		case fixed[s.Function] != "":
			spot.Reason = runs
		}
		spot.Reason = clip(spot.Reason, maxNote)
		d.spots = append(d.spots, spot)
	}
	text := d.planned.Message + "; placed: " + spotsText(d.spots)
	if placed.Note != "" {
		text += "; " + placed.Note
	}
	d.planned = condition(v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, text)
	return d
}

// unplaced is the decision without a placement. If all pods run, they go on, and the status
// is about them; but none that replaces one gets a claim.
func (d decision) unplaced(running map[string]string, why string) decision {
	for _, f := range d.chain.Functions {
		if running[f.Name] == "" {
			return refused(d.chain, v1alpha1.ReasonInfeasible, why)
		}
		d.spots = append(d.spots, v1alpha1.FunctionPlacement{Function: f.Name, Node: running[f.Name], Reason: runs})
	}
	d.withheld = why
	d.planned = condition(v1alpha1.ConditionPlanned, metav1.ConditionTrue, v1alpha1.ReasonPlanned, d.planned.Message+"; its pods go on, but new ones have no place: "+why)
	return d
}

// nodesOf are the nodes on which pods of a function may be.
func (d decision) nodesOf(function string) []string {
	for _, s := range d.spots {
		if s.Function == function {
			return []string{s.Node}
		}
	}
	return d.nodes
}

// lastSpots are the nodes of functions as decided before for the same spec. They stay as long
// as that is possible, because pods that wait have claims for them.
func lastSpots(c *v1alpha1.Chain) map[string]string {
	all := map[string]string{}
	if c.Status.ObservedGeneration == c.Generation {
		for _, s := range c.Status.Placement {
			all[s.Function] = s.Node
		}
	}
	return all
}

// lastSpot is what was decided before for a function and the same spec, or nil.
func lastSpot(c *v1alpha1.Chain, function string) *v1alpha1.FunctionPlacement {
	i := slices.IndexFunc(c.Status.Placement, func(s v1alpha1.FunctionPlacement) bool { return s.Function == function })
	if i < 0 || c.Status.ObservedGeneration != c.Generation {
		return nil
	}
	return &c.Status.Placement[i]
}

// runningOn are the nodes of the functions that have a pod on one.
func runningOn(claims []claim) map[string]string {
	all := map[string]string{}
	for function, claim := range newest(claims) {
		if claim.node != "" && claim.DeletionTimestamp == nil {
			all[function] = claim.node
		}
	}
	return all
}

// outdated are the pods that wait with a claim for another node than that of their function.
func outdated(d decision, claims []claim) (texts []string) {
	for _, c := range claims {
		function := c.Labels[v1alpha1.LabelFunction]
		if len(d.spots) == 0 || c.Status.Allocation != nil || c.DeletionTimestamp != nil || selects(c.ResourceClaim, d.nodesOf(function)) {
			continue
		}
		texts = append(texts, fmt.Sprintf("the pod %s has a claim by an earlier placement, and %s is placed on %s now: replace the pod",
			podOf(c.ResourceClaim), function, strings.Join(d.nodesOf(function), ", ")))
	}
	slices.Sort(texts)
	return texts
}

// selects reports whether all requests of a claim are for these nodes.
func selects(c *resourcev1.ResourceClaim, nodes []string) bool {
	return !slices.ContainsFunc(c.Spec.Devices.Requests, func(r resourcev1.DeviceRequest) bool {
		return r.Exactly == nil || len(r.Exactly.Selectors) != 1 || r.Exactly.Selectors[0].CEL == nil || r.Exactly.Selectors[0].CEL.Expression != selector(nodes)
	})
}

// podOf is the pod for which a claim was made.
func podOf(c *resourcev1.ResourceClaim) string {
	for _, o := range c.OwnerReferences {
		if o.Kind == "Pod" {
			return o.Name
		}
	}
	return "of the claim " + c.Name
}

// machines are all nodes of the cluster.
func (r *Reconciler) machines(ctx context.Context) ([]fleet.Machine, error) {
	var list corev1.NodeList
	if err := r.List(ctx, &list); err != nil {
		return nil, err
	}
	all := make([]fleet.Machine, len(list.Items))
	for i := range list.Items {
		all[i] = machineOf(&list.Items[i])
	}
	return all, nil
}

// machineOf is a node with what it gives to pods, whatever its pods take of that.
func machineOf(n *corev1.Node) fleet.Machine {
	free := n.Status.Allocatable
	return fleet.Machine{
		Name: n.Name, Labels: n.Labels, Closed: closed(n),
		CPUs: int(free.Cpu().MilliValue() / 1000), Memory: units.Bytes(free.Memory().Value()),
	}
}

// closed is why no more pods can start on a node, or "".
func closed(n *corev1.Node) string {
	if n.Spec.Unschedulable {
		return fleet.Cordoned
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady && c.Status != corev1.ConditionTrue {
			return fleet.NotReady
		}
	}
	return ""
}

// newMachine ignores changes of a node that no placement looks at, such as its heartbeat.
var newMachine = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	old, isNode := e.ObjectOld.(*corev1.Node)
	now, alsoNode := e.ObjectNew.(*corev1.Node)
	return !isNode || !alsoNode || !equality.Semantic.DeepEqual(machineOf(old), machineOf(now))
}}

// slimNode is a node without what the operator does not look at.
func slimNode(object any) (any, error) {
	n, ok := object.(*corev1.Node)
	if !ok {
		return object, nil
	}
	slim := &corev1.Node{
		TypeMeta:   n.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{Name: n.Name, UID: n.UID, ResourceVersion: n.ResourceVersion, Labels: n.Labels},
		Spec:       corev1.NodeSpec{Unschedulable: n.Spec.Unschedulable},
		Status:     corev1.NodeStatus{Allocatable: n.Status.Allocatable},
	}
	for _, c := range n.Status.Conditions {
		if c.Type == corev1.NodeReady {
			slim.Status.Conditions = append(slim.Status.Conditions, c)
		}
	}
	return slim, nil
}

// spotsText is where functions are placed, in one line.
func spotsText(spots []v1alpha1.FunctionPlacement) string {
	texts := make([]string, len(spots))
	for i, s := range spots {
		texts[i] = s.Function + " on " + s.Node
	}
	return strings.Join(texts, ", ")
}
