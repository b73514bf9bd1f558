// SPDX-License-Identifier: Apache-2.0

package monitoring

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// cause is a state of which there is an alert if it lasts for so many minutes: series, and their
// values in each minute.
type cause struct {
	minutes int
	series  map[string]string
}

// Values in 60 minutes.
const (
	never   = "0x60"
	always  = "1x60"
	growing = "0+1x60"
)

var causes = map[string]cause{
	"DrayProtocolViolation": {0, map[string]string{`dray_port_violations_total{namespace="ran",chain="f1",link="f1u",from="cu.f1u",to="du.f1u"}`: growing}},
	"DrayRequirementMissed": {1, map[string]string{`dray_link_requirement_verdict{namespace="ran",chain="f1",link="f1u",requirement="latency",verdict="missed"}`: always,
		`dray_link_requirement_verdict{namespace="ran",chain="f1-dray-verify",link="f1u",requirement="latency",verdict="missed"}`: always}}, // a copy does not count
	"DrayChainNotReady":     {10, map[string]string{`dray_chain_status_condition{namespace="ran",chain="f1",condition="Ready",status="True"}`: never}},
	"DrayNodeWithoutDriver": {5, map[string]string{`up{job="dray-node",node="n1",pod="old"}`: never, `up{job="dray-node",node="n1",pod="new"}`: never}},
	"DrayNodeWithoutBroker": {2, map[string]string{`dray_node_broker_up{node="n1"}`: never}},
	"DrayPrepareFails":      {5, map[string]string{`dray_node_prepare_failures_total{node="n1",reason="other"}`: growing}},
	"DrayNodeNearlyFull":    {15, map[string]string{`dray_node_ports{node="n1"}`: "250x60", `dray_node_ports_capacity{node="n1"}`: "256x60"}},
	"DrayFunctionFailed":    {1, map[string]string{`dray_function_phase{chain="f1",function="du",phase="failed"}`: always, `dray_function_phase{chain="f1",function="cu",phase="running"}`: always}},
	"DrayFunctionRestarts":  {3, map[string]string{`dray_function_restarts_total{chain="f1",function="du"}`: growing}},
	"DrayChainNotUp":        {1, map[string]string{`dray_chain_up{chain="f1"}`: never, `dray_chain_up{chain="f2"}`: always}},
	"DrayNotScraped":        {5, map[string]string{`up{job="dray-operator"}`: never, `up{job="dray-node",node="n1"}`: always}},
	"DrayDaemonNotOnEveryNode": {15, map[string]string{`kube_daemonset_status_desired_number_scheduled{namespace="s",daemonset="dray-node"}`: "3x60",
		`kube_daemonset_status_number_available{namespace="s",daemonset="dray-node"}`: "2x60"}},
}

// TestAlertsWait: a state that ends sooner is no alert, and one that lasts is. promtool has a clock of its own.
func TestAlertsWait(t *testing.T) {
	testenv.Program(t, "promtool")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "rules.yml"), map[string]any{"groups": allRules(t)})
	var tests []any
	for _, g := range allRules(t) {
		for _, r := range g.Rules {
			c, known := causes[r.Alert]
			if !known {
				t.Errorf("no cause of %s: add one to this test", r.Alert)
				continue
			}
			tests = append(tests, c.test(r.Alert, r.Labels["severity"]))
		}
	}
	write(t, filepath.Join(dir, "tests.yml"), map[string]any{"rule_files": []string{"rules.yml"}, "evaluation_interval": "15s", "tests": tests})
	if out, err := exec.Command("promtool", "test", "rules", filepath.Join(dir, "tests.yml")).CombinedOutput(); err != nil {
		t.Errorf("promtool: %v\n%s", err, out)
	}
}

// test is a test for promtool.
func (c cause) test(alert, severity string) map[string]any {
	var input []any
	for series, values := range c.series {
		input = append(input, map[string]any{"series": series, "values": values})
	}
	firing := `count by (alertname, alertstate, severity) (ALERTS{alertname="` + alert + `", alertstate="firing"})`
	at := func(minutes int, samples ...any) map[string]any {
		return map[string]any{"expr": firing, "eval_time": fmt.Sprintf("%dm", minutes), "exp_samples": samples}
	}
	fires := map[string]any{"labels": `{alertname="` + alert + `", alertstate="firing", severity="` + severity + `"}`, "value": 1}
	return map[string]any{"name": alert, "interval": "1m", "input_series": input, "promql_expr_test": []any{at(max(0, c.minutes-1)), at(c.minutes+2, fires)}}
}
