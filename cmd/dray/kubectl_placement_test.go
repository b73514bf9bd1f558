// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// twoNodes is kubectl's answer about nodes with that many CPUs.
func twoNodes(first, second string) answer {
	const node = `{"metadata":{"name":"NAME","labels":{"pool":"ran"}},"status":{"allocatable":{"cpu":"CPUS","memory":"8000000Ki"},"conditions":[{"type":"Ready","status":"True"}]}}`
	n1, n2 := strings.NewReplacer("NAME", "n1", "CPUS", first).Replace(node), strings.NewReplacer("NAME", "n2", "CPUS", second).Replace(node)
	return answer{contains: "-- nodes", script: `echo '{"items":[` + n1 + "," + n2 + `]}'`}
}

// placed is the example with a placement, in a file.
func placed(t *testing.T, placement string) string {
	t.Helper()
	text, err := os.ReadFile("../../examples/kubernetes/f1-split/chain.yaml")
	if err != nil {
		t.Fatal(err)
	}
	now := strings.Replace(string(text), "spec:\n", "spec:\n  placement: "+placement+"\n", 1)
	now = strings.Replace(now, "name: cu-up\n", "name: cu-up\n    cpus: 1\n", 1)
	now = strings.Replace(now, "name: du\n", "name: du\n    cpus: 3\n", 1)
	if !strings.Contains(now, "cpus: 1") || !strings.Contains(now, "cpus: 3") {
		t.Fatalf("the example has changed:\n%s", now)
	}
	file := filepath.Join(t.TempDir(), "chain.yaml")
	if err := os.WriteFile(file, []byte(now), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestClusterPlanPlacesFunctions(t *testing.T) {
	inventories := answer{contains: "configmaps", file: "inventories.json"}
	fakeKubectl(t, inventories, twoNodes("3500m", "4"))
	file := placed(t, "{nodeSelector: {pool: ran}}")
	out, errs, code := kubectlDray("plan -f " + file)
	holds(t, "plan", out, "FUNCTION  NODE  BECAUSE", "cu-up     n2    no other host costs less; not on n1: ", "du        n2    ")
	if code != exitOK || errs != "" {
		t.Errorf("exit code %d, %s", code, errs)
	}
	out, _, _ = kubectlDray("plan --json -f " + file)
	var got clusterPlan
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Placement) != 2 || got.Placement[1].Node != "n2" {
		t.Errorf("%v: %s", err, out)
	}
	fakeKubectl(t, inventories, twoNodes("3", "2"))
	_, errs, code = kubectlDray("plan -f " + file)
	if code != exitInfeasible || !strings.HasPrefix(errs, "dray: infeasible: placement: ") || !strings.Contains(errs, "1 more CPU on n1") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func TestClusterStatusShowsThePlacement(t *testing.T) {
	fakeKubectl(t, answer{contains: "get", script: `sed '0,/"status": {/s//"status": {"placement": [{"function": "du", "node": "n2", "reason": "its pod runs there"}],/' ` + filepath.Join(recorded, "chain.json")})
	out, _, _ := kubectlDray("status f1")
	holds(t, "status", out, "  function du", "on n2", "its pod runs there")
	if out, _, _ = kubectlDray("status f1 --json"); !strings.Contains(out, `"reason": "its pod runs there"`) {
		t.Errorf("the document does not say so: %s", out)
	}
}
