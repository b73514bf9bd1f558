// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/internal/spec/manifest"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// notice is one event of an object.
type notice struct{ kind, reason, action, note string }

// maxNote is the longest note of an event, in bytes.
const maxNote = 1024

func (r *Reconciler) emit(about runtime.Object, e notice) {
	r.Events.Eventf(about, nil, e.kind, e.reason, e.action, "%s", clip(e.note, maxNote))
}

// transitions are the events of a change of status.
func transitions(old, now v1alpha1.ChainStatus) []notice {
	var all []notice
	was, is := meta.FindStatusCondition(old.Conditions, v1alpha1.ConditionPlanned), meta.FindStatusCondition(now.Conditions, v1alpha1.ConditionPlanned)
	if replanned(was, is) {
		all = append(all, notice{kindOf(is.Status), is.Reason, "Plan", is.Message})
	}
	if text := spotsText(now.Placement); text != "" && text != spotsText(old.Placement) {
		all = append(all, notice{corev1.EventTypeNormal, v1alpha1.ReasonPlaced, "Place", text})
	}
	was, is = meta.FindStatusCondition(old.Conditions, v1alpha1.ConditionMet), meta.FindStatusCondition(now.Conditions, v1alpha1.ConditionMet)
	if was == nil || was.Status == is.Status {
		return all
	}
	switch is.Status {
	case metav1.ConditionTrue:
		all = append(all, notice{corev1.EventTypeNormal, v1alpha1.ReasonMet, "Judge", is.Message})
	case metav1.ConditionFalse:
		all = append(all, notice{corev1.EventTypeWarning, v1alpha1.ReasonMissed, "Judge", is.Message})
	}
	return all
}

// replanned reports whether there is a new plan, or a new reason for none. Nodes that
// join and leave are no news.
func replanned(was, is *metav1.Condition) bool {
	switch {
	case was == nil, was.Reason != is.Reason, was.ObservedGeneration != is.ObservedGeneration:
		return true
	}
	return is.Status == metav1.ConditionFalse && was.Message != is.Message
}

func kindOf(status metav1.ConditionStatus) string {
	if status == metav1.ConditionTrue {
		return corev1.EventTypeNormal
	}
	return corev1.EventTypeWarning
}

// told remembers which pods have had an event, and its text, by chain.
type told struct {
	sync.Mutex
	notes map[types.NamespacedName]map[types.UID]string
}

func (t *told) forget(c types.NamespacedName) { t.replace(c, nil) }

// replace stores what the pods of a chain have been told, and returns what they had been.
func (t *told) replace(c types.NamespacedName, notes map[types.UID]string) map[types.UID]string {
	t.Lock()
	defer t.Unlock()
	old := t.notes[c]
	if t.notes == nil {
		t.notes = map[types.NamespacedName]map[types.UID]string{}
	}
	if t.notes[c] = notes; len(notes) == 0 {
		delete(t.notes, c)
	}
	return old
}

// tellPods tells the pods that wait for templates of a chain why there are none.
func (r *Reconciler) tellPods(ctx context.Context, c *v1alpha1.Chain, d decision) error {
	key := client.ObjectKeyFromObject(c)
	e := d.waiting(c.Name)
	if e.note == "" {
		r.told.forget(key)
		return nil
	}
	pods, err := r.waitingPods(ctx, c)
	if err != nil {
		return err
	}
	notes := map[types.UID]string{}
	for _, pod := range pods {
		notes[pod.UID] = e.note
	}
	old := r.told.replace(key, notes)
	for _, pod := range pods {
		if old[pod.UID] != e.note {
			r.emit(&pod, e)
		}
	}
	return nil
}

// waiting is what to tell the pods that wait for templates of a chain; no note: it has some.
func (d decision) waiting(chain string) notice {
	e := notice{kind: corev1.EventTypeWarning, reason: d.planned.Reason, action: "Wait"}
	switch {
	case d.plan == nil:
		e.note = "the chain " + chain + " is not planned, so this pod has no ports: " + d.planned.Message
	case d.withheld != "":
		e.reason, e.note = v1alpha1.ReasonInfeasible, "the chain "+chain+" has no place for this pod: "+d.withheld
	}
	return e
}

// waitingPods are the pods without a claim that reference a template of the chain.
func (r *Reconciler) waitingPods(ctx context.Context, c *v1alpha1.Chain) ([]corev1.Pod, error) {
	var all []corev1.Pod
	for _, name := range templateNames(c) {
		var pods corev1.PodList
		if err := r.List(ctx, &pods, client.InNamespace(c.Namespace), client.MatchingFields{indexTemplate: name}); err != nil {
			return nil, err
		}
		for _, pod := range pods.Items {
			if waits(&pod, name) {
				all = append(all, pod)
			}
		}
	}
	return all, nil
}

// waits reports whether a pod has no claim from the template yet.
func waits(pod *corev1.Pod, template string) bool {
	has := map[string]bool{}
	for _, s := range pod.Status.ResourceClaimStatuses {
		has[s.Name] = s.ResourceClaimName != nil
	}
	for _, c := range pod.Spec.ResourceClaims {
		if c.ResourceClaimTemplateName != nil && *c.ResourceClaimTemplateName == template && !has[c.Name] {
			return true
		}
	}
	return false
}

// templateNames are the names of a chain's templates, also of a chain that is invalid.
func templateNames(c *v1alpha1.Chain) []string {
	var spec struct {
		Functions []struct {
			Name string `json:"name"`
		} `json:"functions"`
	}
	if json.Unmarshal(c.Spec.Raw, &spec) != nil {
		return nil
	}
	var names []string
	for _, f := range spec.Functions {
		names = append(names, manifest.Template(c.Name, f.Name))
	}
	return names
}
