// SPDX-License-Identifier: Apache-2.0

// Package operator plans Chain objects, makes the claim templates of their functions,
// and gathers in their status what the nodes report.
package operator

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

// Reconciler brings the cluster to what one Chain asks for. It keeps nothing that it
// could not find again in the cluster, except which pods have had an event.
type Reconciler struct {
	client.Client
	// Uncached reads objects that the cache leaves out.
	Uncached client.Reader
	Events   events.EventRecorder
	// Namespace is where nodes publish their inventories.
	Namespace string

	told  told
	found found
}

// Reconcile implements reconcile.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var c v1alpha1.Chain
	if err := r.Get(ctx, req.NamespacedName, &c); err != nil {
		r.told.forget(req.NamespacedName)
		r.found.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if c.DeletionTimestamp != nil { // its templates are collected as garbage
		return ctrl.Result{}, nil
	}
	err := r.reconcile(ctx, &c)
	if apierrors.IsConflict(err) { // the cache is behind
		ctrl.LoggerFrom(ctx).V(1).Info("trying again", "because", err.Error())
		return ctrl.Result{RequeueAfter: retryAfter}, nil
	}
	return ctrl.Result{}, err
}

func (r *Reconciler) reconcile(ctx context.Context, c *v1alpha1.Chain) error {
	claims, err := r.claims(ctx, c)
	if err != nil {
		return fmt.Errorf("claims: %w", err)
	}
	d, err := r.decide(ctx, c, claims)
	if err != nil {
		return err
	}
	err = r.applyTemplates(ctx, c, d)
	var taken *takenError
	if errors.As(err, &taken) {
		d, err = invalid(taken), nil
	}
	if err != nil {
		return fmt.Errorf("templates: %w", err)
	}
	kept, err := r.kept(ctx, c, claims)
	if err != nil {
		return fmt.Errorf("instances: %w", err)
	}
	given := assign(kept, d, claims)
	given.waiting = append(given.waiting, outdated(d, claims)...)
	if err := r.report(ctx, c, statusOf(c, d, observe(d, claims, given), given)); err != nil {
		return fmt.Errorf("status: %w", err)
	}
	return r.tellPods(ctx, c, d)
}

// report writes the status if it changed, and then the events of the change.
func (r *Reconciler) report(ctx context.Context, c *v1alpha1.Chain, status v1alpha1.ChainStatus) error {
	if sameStatus(c.Status, status) {
		return nil
	}
	old := c.Status
	c.Status = status
	if err := r.Status().Update(ctx, c); err != nil {
		return err
	}
	for _, e := range transitions(old, status) {
		r.emit(c, e)
	}
	return nil
}
