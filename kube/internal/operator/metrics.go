// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/drayage/dray/internal/spec/release"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// Metrics exposes the conditions of all chains to Prometheus.
type Metrics struct {
	Chains client.Reader
	// Elected is closed once this replica leads. The others are silent, so that no chain
	// is counted twice.
	Elected <-chan struct{}
}

var (
	descCondition = prometheus.NewDesc("dray_chain_status_condition",
		"1 for the status of a chain's condition, and 0 for its other statuses.", []string{"namespace", "chain", "condition", "status"}, nil)
	descBuild = prometheus.NewDesc("dray_operator_build_info",
		"1, with the version of dray-operator.", nil, prometheus.Labels{"version": release.Version()})
)

// scrapePatience is how long a list of the chains may take; it comes from memory.
const scrapePatience = 2 * time.Second

// Describe implements prometheus.Collector.
func (m Metrics) Describe(ch chan<- *prometheus.Desc) {
	ch <- descCondition
	ch <- descBuild
}

// Collect implements prometheus.Collector.
func (m Metrics) Collect(ch chan<- prometheus.Metric) {
	ch <- prometheus.MustNewConstMetric(descBuild, prometheus.GaugeValue, 1)
	select {
	case <-m.Elected:
	default:
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), scrapePatience)
	defer cancel()
	var list v1alpha1.ChainList
	if err := m.Chains.List(ctx, &list); err != nil {
		ctrl.Log.Error(err, "metrics: cannot list chains")
		return
	}
	for i := range list.Items {
		collectConditions(ch, &list.Items[i])
	}
}

// collectConditions sends every status of each condition. A chain that was not looked at
// yet has unknown ones. Only a user verifies chains, so most have nothing to say of that.
func collectConditions(ch chan<- prometheus.Metric, c *v1alpha1.Chain) {
	kinds := []string{v1alpha1.ConditionPlanned, v1alpha1.ConditionReady, v1alpha1.ConditionMet}
	if meta.FindStatusCondition(c.Status.Conditions, v1alpha1.ConditionVerified) != nil {
		kinds = append(kinds, v1alpha1.ConditionVerified)
	}
	for _, kind := range kinds {
		now := metav1.ConditionUnknown
		if one := meta.FindStatusCondition(c.Status.Conditions, kind); one != nil {
			now = one.Status
		}
		for status := range severity {
			value := 0.0
			if status == now {
				value = 1
			}
			ch <- prometheus.MustNewConstMetric(descCondition, prometheus.GaugeValue, value, c.Namespace, c.Name, kind, string(status))
		}
	}
}
