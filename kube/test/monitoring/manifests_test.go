// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// workload is the part of a Deployment and of a DaemonSet that a PodMonitor looks at.
type workload struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Selector       *metav1.LabelSelector  `json:"selector"`
		Replicas       int                    `json:"replicas"`
		UpdateStrategy map[string]any         `json:"updateStrategy"`
		Template       corev1.PodTemplateSpec `json:"template"`
	} `json:"spec"`
}

// TestPodMonitorsFindTheirPods: each selects the pods of one workload of the same name, and
// a port that they have. The pods carry the label that names the job.
func TestPodMonitorsFindTheirPods(t *testing.T) {
	for _, m := range podMonitors(t) {
		for _, w := range objects[workload](t, base, m.Name+".yaml") {
			selector, err := metav1.LabelSelectorAsSelector(&m.Spec.Selector)
			if err != nil {
				t.Fatal(err)
			}
			pod := w.Spec.Template
			if m.Namespace != w.Namespace || !selector.Matches(labels.Set(pod.Labels)) {
				t.Errorf("PodMonitor %s does not select the pods of %s %s", m.Name, w.Kind, w.Name)
			}
			if pod.Labels[m.Spec.JobLabel] != m.Name {
				t.Errorf("PodMonitor %s: the job is %q", m.Name, pod.Labels[m.Spec.JobLabel])
			}
			for _, e := range m.Spec.PodMetricsEndpoints {
				if !slices.ContainsFunc(pod.Spec.Containers[0].Ports, func(p corev1.ContainerPort) bool { return p.Name == *e.Port }) {
					t.Errorf("PodMonitor %s: the pods have no port %s", m.Name, *e.Port)
				}
			}
		}
	}
}

// TestEveryAlertExplainsItself: who is called at night reads only these.
func TestEveryAlertExplainsItself(t *testing.T) {
	for _, g := range allRules(t) {
		for _, r := range g.Rules {
			if r.Alert == "" || r.Labels["severity"] == "" || r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("group %s: alert %q lacks a severity, a summary or a description", g.Name, r.Alert)
			}
		}
	}
}
