// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/verdict"
	"github.com/drayage/dray/kube/api/v1alpha1"
)

// severity orders statuses: a requirement is met only if nothing says otherwise.
var severity = map[metav1.ConditionStatus]int{metav1.ConditionTrue: 0, metav1.ConditionUnknown: 1, metav1.ConditionFalse: 2}

// judged is the verdict on one requirement of a link. Each end reports what it receives,
// and the worst report counts; an end without a report by these limits counts as unknown.
func judged(required plan.Evidence, l plan.Link, limits *v1alpha1.Limits, seen map[portKey]port) metav1.Condition {
	worst := metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMet}
	for i, e := range l.Ends {
		p := seen[portKey{e.Function, e.Port}]
		one := metav1.Condition{Status: metav1.ConditionUnknown, Reason: v1alpha1.ReasonNotMeasured,
			Message: verdict.Message{Required: required.Required, Because: "no figures yet"}.String()}
		if reported := meta.FindStatusCondition(p.conditions, required.Requirement); reported != nil && p.judges(*reported, limits) && !p.lags(l, nodesOf(l, seen)) {
			one = *reported
		}
		one.Message = e.String() + ": " + one.Message
		if i == 0 || severity[one.Status] > severity[worst.Status] {
			worst = one
		}
	}
	return condition(required.Requirement, worst.Status, worst.Reason, worst.Message)
}

// judges reports whether a verdict of the port's node is by these limits: they are of its
// generation, or the claim has them and the node knows no others.
func (p port) judges(c metav1.Condition, limits *v1alpha1.Limits) bool {
	return c.ObservedGeneration == limits.Generation || c.ObservedGeneration == 0 && !p.older
}

// requirement is one of a link or a path.
type requirement struct {
	of string // "link f1u", "path dl"
	metav1.Condition
}

// requirements are those of all links, then of all paths.
func requirements(s v1alpha1.ChainStatus) (all []requirement) {
	for _, l := range s.Links {
		for _, q := range l.Requirements {
			all = append(all, requirement{"link " + l.Name, q})
		}
	}
	for _, p := range s.Paths {
		for _, q := range p.Requirements {
			all = append(all, requirement{"path " + p.Name, q})
		}
	}
	return all
}

// met is the condition Met of a chain: False if one requirement is missed, else Unknown
// if one is, else True.
func met(d decision, all []requirement) metav1.Condition {
	if d.plan == nil {
		return condition(v1alpha1.ConditionMet, metav1.ConditionUnknown, d.planned.Reason, "the chain is not planned")
	}
	worst := metav1.Condition{Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonMet}
	var texts []string
	for _, q := range all {
		switch s := severity[q.Status] - severity[worst.Status]; {
		case s > 0:
			worst, texts = q.Condition, nil
		case s < 0:
			continue
		}
		texts = append(texts, fmt.Sprintf("%s: %s: %s", q.of, q.Type, q.Message))
	}
	if worst.Status == metav1.ConditionTrue {
		return condition(v1alpha1.ConditionMet, metav1.ConditionTrue, v1alpha1.ReasonMet, "every requirement is met")
	}
	return condition(v1alpha1.ConditionMet, worst.Status, worst.Reason, strings.Join(texts, "; "))
}

// verdicts counts the requirements by verdict: "2 met, 1 missed, 1 unknown".
func verdicts(all []requirement) string {
	words := []struct {
		status metav1.ConditionStatus
		word   string
	}{{metav1.ConditionTrue, "met"}, {metav1.ConditionFalse, "missed"}, {metav1.ConditionUnknown, "unknown"}}
	var texts []string
	for _, w := range words {
		n := 0
		for _, q := range all {
			if q.Status == w.status {
				n++
			}
		}
		if n > 0 {
			texts = append(texts, fmt.Sprintf("%d %s", n, w.word))
		}
	}
	return strings.Join(texts, ", ")
}
