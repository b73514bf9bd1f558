// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/kube/api/v1alpha1"
)

func TestChainsByCondition(t *testing.T) {
	one, two := newChain(chainSpec(easy)), newChain(chainSpec(easy))
	meta.SetStatusCondition(&one.Status.Conditions, condition(v1alpha1.ConditionPlanned, metav1.ConditionTrue, "R", ""))
	meta.SetStatusCondition(&one.Status.Conditions, condition(v1alpha1.ConditionReady, metav1.ConditionFalse, "R", ""))
	meta.SetStatusCondition(&one.Status.Conditions, condition(v1alpha1.ConditionVerified, metav1.ConditionFalse, "R", ""))
	two.Name = "f2" // not looked at yet
	b := newBench(t, one, two)
	elected := make(chan struct{})
	registry := prometheus.NewPedanticRegistry()
	registry.MustRegister(Metrics{Chains: b.r, Elected: elected})
	const name = "dray_chain_status_condition"
	if n, err := testutil.GatherAndCount(registry, name); err != nil || n != 0 {
		t.Errorf("a replica that does not lead serves %d chains: %v", n, err)
	}
	close(elected)
	want := "# HELP " + name + " 1 for the status of a chain's condition, and 0 for its other statuses.\n# TYPE " + name + " gauge\n"
	// f1 was verified by a user.
	for chain, statuses := range map[string][]string{"f1": {"Unknown", "True", "False", "False"}, "f2": {"Unknown", "Unknown", "Unknown"}} {
		for i, kind := range []string{"Met", "Planned", "Ready", "Verified"}[:len(statuses)] {
			for _, status := range []string{"False", "True", "Unknown"} {
				want += fmt.Sprintf("%s{chain=%q,condition=%q,namespace=\"ran\",status=%q} %v\n", name, chain, kind, status, map[bool]int{true: 1}[status == statuses[i]])
			}
		}
	}
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want), name); err != nil {
		t.Error(err)
	}
}

// The operator keeps what another one recorded.
func TestAVerificationStays(t *testing.T) {
	c := newChain(chainSpec(easy))
	meta.SetStatusCondition(&c.Status.Conditions, condition(v1alpha1.ConditionVerified, metav1.ConditionTrue, "Met", "3 met"))
	b := newBench(t, c)
	now := b.reconcile()
	kept := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionVerified)
	if meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady) == nil || kept == nil || kept.Message != "3 met" {
		t.Errorf("%+v", now.Status.Conditions)
	}
}
