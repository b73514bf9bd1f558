// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/drayage/dray/kube/internal/operator"
)

// serve reconciles until ctx ends.
func serve(ctx context.Context, o options) error {
	scheme, err := operator.Scheme()
	if err != nil {
		return err
	}
	caches, err := operator.CacheOptions(o.namespace)
	if err != nil {
		return err
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return fmt.Errorf("no cluster: %w", err)
	}
	m, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Cache: caches, HealthProbeBindAddress: o.probes, Metrics: server.Options{BindAddress: o.metrics},
		LeaderElection: o.elect, LeaderElectionID: "dray-operator", LeaderElectionNamespace: o.namespace, LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	r := &operator.Reconciler{Client: m.GetClient(), Uncached: m.GetAPIReader(), Events: m.GetEventRecorder("dray-operator"), Namespace: o.namespace}
	if err := r.SetUp(ctx, m); err != nil {
		return err
	}
	if err := metrics.Registry.Register(operator.Metrics{Chains: m.GetClient(), Elected: m.Elected()}); err != nil {
		return err
	}
	if err := errors.Join(m.AddHealthzCheck("ping", healthz.Ping), m.AddReadyzCheck("caches", synced(m))); err != nil {
		return err
	}
	return m.Start(ctx)
}

// synced reports ready once the caches hold the cluster's objects.
func synced(m ctrl.Manager) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !m.GetCache().WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		return nil
	}
}
