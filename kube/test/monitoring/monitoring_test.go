// SPDX-License-Identifier: Apache-2.0

// Package monitoring tests what kube/deploy/monitoring gives to Prometheus and Grafana: a real
// Prometheus scrapes the real collectors, which report a sample of traffic and of faults.
package monitoring

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	yes     = metav1.ConditionTrue
	no      = metav1.ConditionFalse
	unknown = metav1.ConditionUnknown
)

// firing are the alerts that must fire, and no others: their labels, without severity.
type firing []string

func (p *prometheus) mustFire(want firing) {
	p.t.Helper()
	slices.Sort(want)
	p.eventually("alerts", func() error {
		alerts, err := p.alerts()
		if err != nil {
			return err
		}
		got := firing{}
		for _, a := range alerts {
			delete(a.Labels, "severity")
			text, err := json.Marshal(a.Labels)
			if err != nil {
				return err
			}
			got = append(got, string(text))
			if strings.Contains(a.Annotations["summary"]+a.Annotations["description"], "<no value>") {
				p.t.Errorf("%s: a label is missing: %q", text, a.Annotations)
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("firing:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		return nil
	})
}

// settle waits until every rule has been evaluated some times with the samples of now.
func (p *prometheus) settle() {
	p.t.Helper()
	from := time.Now().Add(3 * time.Second)
	p.eventually("evaluation of the rules", func() error {
		body, err := p.get("/api/v1/rules", nil)
		if err != nil {
			return err
		}
		var answer struct {
			Data struct {
				Groups []struct {
					LastEvaluation time.Time
					Rules          []struct{ Name, Health, LastError string }
				}
			}
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			return err
		}
		for _, g := range answer.Data.Groups {
			for _, r := range g.Rules {
				if r.Health == "err" {
					p.t.Fatalf("rule %s: %s", r.Name, r.LastError)
				}
			}
			if g.LastEvaluation.Before(from) {
				return errors.New("not yet")
			}
		}
		return nil
	})
}

// mustHold waits until each expression has a series.
func (p *prometheus) mustHold(expressions ...string) {
	p.t.Helper()
	for _, e := range expressions {
		p.eventually(e, func() error { return p.holds(e) })
	}
}

// holds fails unless the expression has a series with a number.
func (p *prometheus) holds(expression string) error {
	series, err := p.query(expression)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(series, func(s sample) bool { return s.Value[1] != "NaN" }) {
		return fmt.Errorf("no series with a number: %v", series)
	}
	return nil
}

func TestAHealthyClusterHasNoAlerts(t *testing.T) {
	p := start(t, []target{
		sampleNode(t, "n1", "f1", false), sampleNode(t, "n2", "f2", false), sampleDaemonSets(t, 2),
		sampleOperator(t, sampleChain("f1", yes, yes, yes), sampleChain("f2", yes, yes, unknown)),
	})
	p.mustHold(`count(up == 1) == 4`, `count(dray_link_requirement_verdict{requirement="latency", verdict="met"} == 1) == 2`,
		`sum(rate(dray_port_received_packets_total[5s])) > 0`, `count(dray_chain_status_condition{status="True"} == 1) == 5`)
	p.settle()
	p.mustFire(nil)
}

func TestFaultsAreAlertsAndShowOnTheDashboard(t *testing.T) {
	dead := target{"dray-node", "n3", deadAddress(t)}
	p := start(t, []target{
		sampleNode(t, "n1", "f1", false), sampleNode(t, "n2", "f2", true), dead, sampleDaemonSets(t, 1),
		sampleOperator(t, sampleChain("f1", yes, yes, yes), sampleChain("f2", yes, no, no), sampleChain("f3", "", "", "")),
	})
	p.mustFire(firing{
		`{"alertname":"DrayRequirementMissed","chain":"f2","link":"ab","namespace":"ran","requirement":"latency"}`,
		`{"alertname":"DrayChainNotReady","chain":"f2","namespace":"ran"}`,
		`{"alertname":"DrayChainNotReady","chain":"f3","namespace":"ran"}`,
		`{"alertname":"DrayProtocolViolation","chain":"f2","from":"a.p0","link":"ab","namespace":"ran","to":"b.p0"}`,
		`{"alertname":"DrayNodeWithoutDriver","node":"n2"}`,
		`{"alertname":"DrayNodeWithoutDriver","node":"n3"}`,
		`{"alertname":"DrayNodeWithoutBroker","node":"n2"}`,
		`{"alertname":"DrayPrepareFails","node":"n2","reason":"no_broker"}`,
		`{"alertname":"DrayNodeNearlyFull","node":"n2"}`,
		`{"alertname":"DrayDaemonNotOnEveryNode","daemonset":"dray-node","namespace":"dray-system"}`,
	})
	t.Run("dashboard", func(t *testing.T) { p.shows(t, theDashboard(t)) })
}

func TestMissingComponentsAreAlerts(t *testing.T) {
	for name, targets := range map[string][]target{"nothing": nil, "an operator that does not answer": {{"dray-operator", "n1", deadAddress(t)}}} {
		t.Run(name, func(t *testing.T) {
			start(t, targets).mustFire(firing{`{"alertname":"DrayNotScraped","job":"dray-node"}`, `{"alertname":"DrayNotScraped","job":"dray-operator"}`})
		})
	}
}

var labelValues = regexp.MustCompile(`^label_values\((.+), (\w+)\)$`)

// shows checks that each query of a dashboard has an answer, with "All" for each variable.
func (p *prometheus) shows(t *testing.T, d dashboard) {
	fill := strings.NewReplacer("$__rate_interval", "5s", "$namespace", ".*", "$chain", ".*", "$node", ".*")
	queries := 0
	for _, panel := range d.Panels {
		if (panel.Type == "row") != (len(panel.Targets) == 0) {
			t.Errorf("panel %q has %d queries", panel.Title, len(panel.Targets))
		}
		for _, q := range panel.Targets {
			queries++
			p.eventually(panel.Title+": "+q.Expr, func() error { return p.holds(fill.Replace(q.Expr)) })
		}
	}
	for _, v := range d.Templating.List {
		if v.Type != "query" {
			continue
		}
		queries++
		parts := labelValues.FindStringSubmatch(v.Definition)
		if parts == nil {
			t.Errorf("variable %s: %q is no label_values(METRIC, LABEL)", v.Name, v.Definition)
			continue
		}
		body, err := p.get("/api/v1/label/"+parts[2]+"/values", url.Values{"match[]": {fill.Replace(parts[1])}})
		if err != nil || strings.Contains(string(body), `"data":[]`) {
			t.Errorf("variable %s: %s, %v", v.Name, body, err)
		}
	}
	t.Logf("%d queries", queries)
}
