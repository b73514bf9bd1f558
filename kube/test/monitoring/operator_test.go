// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"context"
	"errors"
	"testing"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/drayage/dray/kube/api/v1alpha1"
	"github.com/drayage/dray/kube/internal/operator"
)

// sampleOperator serves what dray-operator does: the conditions of these chains, and the
// metrics of a controller that has looked at each, and failed at chains that are not ready.
func sampleOperator(t *testing.T, chains ...*v1alpha1.Chain) target {
	t.Helper()
	scheme, err := operator.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for _, c := range chains {
		builder = builder.WithObjects(c)
	}
	elected := make(chan struct{})
	close(elected)
	collector := operator.Metrics{Chains: builder.Build(), Elected: elected}
	metrics.Registry.MustRegister(collector)
	t.Cleanup(func() { metrics.Registry.Unregister(collector) })
	control(t, chains)
	return serve(t, "dray-operator", "n1", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{}))
}

// control runs a controller of chains until the end of the test.
func control(t *testing.T, chains []*v1alpha1.Chain) {
	t.Helper()
	unready := map[string]bool{}
	changed := make(chan event.GenericEvent, len(chains))
	for _, c := range chains {
		unready[c.Name] = !meta.IsStatusConditionTrue(c.Status.Conditions, v1alpha1.ConditionReady)
		changed <- event.GenericEvent{Object: c}
	}
	skip := true
	c, err := controller.NewUnmanaged("chain", controller.Options{SkipNameValidation: &skip,
		Reconciler: reconcile.Func(func(_ context.Context, r reconcile.Request) (reconcile.Result, error) {
			if unready[r.Name] {
				return reconcile.Result{}, errors.New("not ready")
			}
			return reconcile.Result{}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Watch(source.Channel(changed, &handler.EnqueueRequestForObject{})); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// sampleChain is a chain in the namespace ran whose conditions have these statuses; "" leaves one out.
func sampleChain(name string, planned, ready, met metav1.ConditionStatus) *v1alpha1.Chain {
	c := &v1alpha1.Chain{ObjectMeta: metav1.ObjectMeta{Namespace: "ran", Name: name}}
	for kind, status := range map[string]metav1.ConditionStatus{
		v1alpha1.ConditionPlanned: planned, v1alpha1.ConditionReady: ready, v1alpha1.ConditionMet: met,
	} {
		if status != "" {
			meta.SetStatusCondition(&c.Status.Conditions, metav1.Condition{Type: kind, Status: status, Reason: "Sample"})
		}
	}
	return c
}
