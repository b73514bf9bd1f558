// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// indexTemplate indexes pods by the templates that they reference, and chains by the
// templates that they have.
const indexTemplate = "template"

// Scheme has the types that the operator reads and writes.
func Scheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	if err := clientgoscheme.AddToScheme(s); err != nil {
		return nil, err
	}
	return s, v1alpha1.AddToScheme(s)
}

// CacheOptions keep only what the operator looks at.
func CacheOptions(namespace string) (cache.Options, error) {
	ofChain, err := labels.NewRequirement(v1alpha1.LabelChain, selection.Exists, nil)
	if err != nil {
		return cache.Options{}, err
	}
	labelled := cache.ByObject{Label: labels.NewSelector().Add(*ofChain)}
	inventories := labels.SelectorFromSet(labels.Set{v1alpha1.LabelInventory: "true"})
	return cache.Options{
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&corev1.ConfigMap{}:                 {Namespaces: map[string]cache.Config{namespace: {LabelSelector: inventories}}},
			&corev1.Pod{}:                       {Transform: slim},
			&corev1.Node{}:                      {Transform: slimNode},
			&resourcev1.ResourceClaim{}:         labelled,
			&resourcev1.ResourceClaimTemplate{}: labelled,
		},
	}, nil
}

// slim is a pod without what the operator does not look at.
func slim(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	return &corev1.Pod{
		TypeMeta: pod.TypeMeta,
		ObjectMeta: metav1.ObjectMeta{
			Name: pod.Name, Namespace: pod.Namespace, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
			OwnerReferences: pod.OwnerReferences, Labels: map[string]string{appsv1.PodIndexLabel: pod.Labels[appsv1.PodIndexLabel]},
		},
		Spec:   corev1.PodSpec{NodeName: pod.Spec.NodeName, ResourceClaims: pod.Spec.ResourceClaims},
		Status: corev1.PodStatus{ResourceClaimStatuses: pod.Status.ResourceClaimStatuses},
	}, nil
}

// SetUp registers the reconciler and what it watches.
func (r *Reconciler) SetUp(ctx context.Context, m ctrl.Manager) error {
	for object, index := range indices() {
		if err := m.GetFieldIndexer().IndexField(ctx, object, indexTemplate, index); err != nil {
			return fmt.Errorf("index: %w", err)
		}
	}
	return ctrl.NewControllerManagedBy(m).Named("chain").
		For(&v1alpha1.Chain{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&resourcev1.ResourceClaimTemplate{}).
		Watches(&resourcev1.ResourceClaim{}, handler.EnqueueRequestsFromMapFunc(chainOfClaim)).
		Watches(&corev1.Pod{}, handler.EnqueueRequestsFromMapFunc(r.chainsOfPod)).
		Watches(&corev1.ConfigMap{}, handler.EnqueueRequestsFromMapFunc(r.allChains), builder.WithPredicates(newInventory)).
		Watches(&corev1.Node{}, handler.EnqueueRequestsFromMapFunc(r.allChains), builder.WithPredicates(newMachine)).
		Complete(r)
}

func indices() map[client.Object]client.IndexerFunc {
	return map[client.Object]client.IndexerFunc{
		&corev1.Pod{}:     templatesOfPod,
		&v1alpha1.Chain{}: func(o client.Object) []string { return templateNames(o.(*v1alpha1.Chain)) },
	}
}

// templatesOfPod are the templates that a pod references.
func templatesOfPod(o client.Object) []string {
	var names []string
	for _, c := range o.(*corev1.Pod).Spec.ResourceClaims {
		if c.ResourceClaimTemplateName != nil {
			names = append(names, *c.ResourceClaimTemplateName)
		}
	}
	return names
}

// newInventory ignores changes of a ConfigMap's metadata.
var newInventory = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	old, isMap := e.ObjectOld.(*corev1.ConfigMap)
	now, alsoMap := e.ObjectNew.(*corev1.ConfigMap)
	return !isMap || !alsoMap || !maps.Equal(old.Data, now.Data)
}}

// chainOfClaim is the chain in a claim's label.
func chainOfClaim(_ context.Context, o client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: o.GetLabels()[v1alpha1.LabelChain]}}}
}

// chainsOfPod are the chains whose templates a pod references.
func (r *Reconciler) chainsOfPod(ctx context.Context, o client.Object) []reconcile.Request {
	var all []reconcile.Request
	for _, name := range templatesOfPod(o) {
		all = append(all, r.requests(ctx, client.InNamespace(o.GetNamespace()), client.MatchingFields{indexTemplate: name})...)
	}
	return all
}

// allChains are all chains: an inventory may change each plan.
func (r *Reconciler) allChains(ctx context.Context, _ client.Object) []reconcile.Request {
	return r.requests(ctx)
}

func (r *Reconciler) requests(ctx context.Context, which ...client.ListOption) []reconcile.Request {
	var list v1alpha1.ChainList
	if err := r.List(ctx, &list, which...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "cannot list chains")
		return nil
	}
	all := make([]reconcile.Request, len(list.Items))
	for i := range list.Items {
		all[i].NamespacedName = client.ObjectKeyFromObject(&list.Items[i])
	}
	return all
}
