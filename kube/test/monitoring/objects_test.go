// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// Where the manifests are.
const (
	folder = "../../deploy/monitoring"
	base   = "../../deploy/base"
	hosts  = "../../../examples/prometheus"
)

// objects reads every document of a manifest into a T of its own. Unknown fields are errors.
func objects[T any](t *testing.T, dir, name string) []T {
	t.Helper()
	var all []T
	for _, document := range bytes.Split(read(t, dir, name), []byte("\n---\n")) {
		var one T
		if err := yaml.UnmarshalStrict(document, &one); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all = append(all, one)
	}
	return all
}

func read(t *testing.T, dir, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func podMonitors(t *testing.T) []monitoringv1.PodMonitor {
	t.Helper()
	return objects[monitoringv1.PodMonitor](t, folder, "pod-monitors.yaml")
}

func ruleGroups(t *testing.T) []monitoringv1.RuleGroup {
	t.Helper()
	all := objects[monitoringv1.PrometheusRule](t, folder, "rules.yaml")
	if len(all) != 1 {
		t.Fatalf("%d objects in rules.yaml", len(all))
	}
	return all[0].Spec.Groups
}

// allRules are those of a cluster, and those of hosts without one.
func allRules(t *testing.T) []monitoringv1.RuleGroup {
	t.Helper()
	own := objects[monitoringv1.PrometheusRuleSpec](t, hosts, "rules.yml")
	return append(ruleGroups(t), own[0].Groups...)
}

// dashboard is what this test looks at of a dashboard of Grafana.
type dashboard struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

func theDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal(read(t, folder, "drayage.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d
}
