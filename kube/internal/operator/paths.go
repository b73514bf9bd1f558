// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// unseenPath is why no requirement of a path is decided here. Nodes count packets on links, and cannot tell
// which of them took a path.
const unseenPath = "nodes judge links, and see no path through a function"

// pathStatus is the status of a path. Links that meet their own requirements say nothing of the functions
// between them.
func pathStatus(c *v1alpha1.Chain, p plan.Path) v1alpha1.PathStatus {
	status := v1alpha1.PathStatus{Name: p.Name}
	for _, s := range p.Steps {
		status.Links = append(status.Links, s.Link)
	}
	old := v1alpha1.PathStatus{}
	if i := slices.IndexFunc(c.Status.Paths, func(old v1alpha1.PathStatus) bool { return old.Name == p.Name }); i >= 0 {
		old = c.Status.Paths[i]
	}
	for _, e := range p.Evidence {
		if was := meta.FindStatusCondition(old.Requirements, e.Requirement); was != nil {
			status.Requirements = append(status.Requirements, *was)
		}
		text := verdict.Message{Required: e.Required, Because: unseenPath, Needs: "`kubectl dray verify " + c.Name + " --active --paths`"}.String()
		one := condition(e.Requirement, metav1.ConditionUnknown, v1alpha1.ReasonNotMeasured, text)
		one.ObservedGeneration = c.Generation
		meta.SetStatusCondition(&status.Requirements, one)
	}
	return status
}
