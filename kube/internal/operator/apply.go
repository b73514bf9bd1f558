// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// retryAfter is how long the cache gets to catch up.
const retryAfter = 200 * time.Millisecond

// takenError reports a template with the name of ours that is not the chain's.
type takenError struct{ name string }

func (e *takenError) Error() string {
	return fmt.Sprintf("the ResourceClaimTemplate %s belongs to something else: delete it, or rename the chain or the function", e.name)
}

// applyTemplates creates, replaces and deletes the chain's templates. They are
// immutable, so one that changes is deleted and created.
func (r *Reconciler) applyTemplates(ctx context.Context, c *v1alpha1.Chain, d decision) error {
	wanted, err := templates(c, d)
	if err != nil {
		return err
	}
	existing, err := r.ownTemplates(ctx, c)
	if err != nil {
		return err
	}
	for _, t := range wanted {
		old := existing[t.Name]
		delete(existing, t.Name)
		if old != nil && sameTemplate(old, t) {
			continue
		}
		if old != nil {
			if err := r.deleteTemplate(ctx, old); err != nil {
				return err
			}
		}
		if err := r.createTemplate(ctx, c, t); err != nil {
			return err
		}
	}
	for _, old := range existing {
		if err := r.deleteTemplate(ctx, old); err != nil {
			return err
		}
	}
	return nil
}

// ownTemplates are the chain's templates by name.
func (r *Reconciler) ownTemplates(ctx context.Context, c *v1alpha1.Chain) (map[string]*resourcev1.ResourceClaimTemplate, error) {
	var list resourcev1.ResourceClaimTemplateList
	if err := r.List(ctx, &list, client.InNamespace(c.Namespace), client.MatchingLabels{v1alpha1.LabelChain: c.Name}); err != nil {
		return nil, err
	}
	own := map[string]*resourcev1.ResourceClaimTemplate{}
	for i := range list.Items {
		if metav1.IsControlledBy(&list.Items[i], c) {
			own[list.Items[i].Name] = &list.Items[i]
		}
	}
	return own, nil
}

func (r *Reconciler) createTemplate(ctx context.Context, c *v1alpha1.Chain, t *resourcev1.ResourceClaimTemplate) error {
	err := r.Create(ctx, t)
	if err == nil {
		ctrl.LoggerFrom(ctx).Info("created a template", "template", t.Name)
	}
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	// Either it is the chain's and the cache is behind, or it is not the chain's.
	var old resourcev1.ResourceClaimTemplate
	if err := r.Uncached.Get(ctx, client.ObjectKeyFromObject(t), &old); err != nil {
		return client.IgnoreNotFound(err)
	}
	if !metav1.IsControlledBy(&old, c) {
		return &takenError{t.Name}
	}
	if !sameTemplate(&old, t) { // its labels may hide it from the cache
		if err := r.deleteTemplate(ctx, &old); err != nil {
			return err
		}
	}
	return apierrors.NewConflict(resourcev1.Resource("resourceclaimtemplates"), t.Name, err)
}

func (r *Reconciler) deleteTemplate(ctx context.Context, t *resourcev1.ResourceClaimTemplate) error {
	err := r.Delete(ctx, t, client.Preconditions{UID: &t.UID})
	if err == nil {
		ctrl.LoggerFrom(ctx).Info("deleted a template", "template", t.Name)
	}
	return client.IgnoreNotFound(err)
}

// sameTemplate reports whether a template is as wanted.
func sameTemplate(old, wanted *resourcev1.ResourceClaimTemplate) bool {
	if old.DeletionTimestamp != nil || !maps.Equal(old.Labels, wanted.Labels) {
		return false
	}
	a, b := old.DeepCopy(), wanted.DeepCopy()
	aConfig, bConfig := a.Spec.Spec.Devices.Config, b.Spec.Spec.Devices.Config
	if len(aConfig) != len(bConfig) {
		return false
	}
	for i := range aConfig {
		if aConfig[i].Opaque == nil || !sameJSON(aConfig[i].Opaque.Parameters.Raw, bConfig[i].Opaque.Parameters.Raw) {
			return false
		}
		aConfig[i].Opaque.Parameters = bConfig[i].Opaque.Parameters
	}
	return equality.Semantic.DeepEqual(a.Spec, b.Spec)
}

// sameJSON ignores the order of fields, which the API server need not keep.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
