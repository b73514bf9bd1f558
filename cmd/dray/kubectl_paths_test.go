// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/result/verdict"
)

// chainsWithPath are the recorded chains, of which the first has a path that is not measured.
func chainsWithPath(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(recorded, "chains.json"))
	if err != nil {
		t.Fatal(err)
	}
	const paths = `"status": {"paths": [{"name": "dl", "links": ["f1u"], "requirements": [{"type": "latency", "status": "Unknown", "reason": "NotMeasured",
		"message": "required: ≤ 9ms at p99; because: nodes see no path", "lastTransitionTime": "2026-01-01T00:00:00Z"}]}],`
	file := filepath.Join(t.TempDir(), "chains.json")
	if err := os.WriteFile(file, []byte(strings.Replace(string(text), `"status": {`, paths, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestPathsInStatus: all links meet what they require, but the chain does not.
func TestPathsInStatus(t *testing.T) {
	fakeKubectl(t, answer{contains: "get", script: "cat " + chainsWithPath(t)})
	out, _, code := kubectlDray("status")
	holds(t, "status", out, "  path dl                 over f1u\n", "LINK OR PATH", "f1-split/f1/dl   latency ", "≤ 9ms at p99", "f1-split/f1/dl, latency: nodes see no path\n")
	if code != exitNotMeasurable {
		t.Errorf("exit code %d", code)
	}
	out, _, _ = kubectlDray("status --json")
	var got struct{ Chains []clusterChain }
	if err := json.Unmarshal([]byte(out), &got); err != nil || len(got.Chains) != 1 || len(got.Chains[0].Paths) != 1 || got.Chains[0].Paths[0].Requirements[0].Required != "≤ 9ms at p99" {
		t.Fatalf("%v: %s", err, out)
	}
	c := got.Chains[0]
	c.Active = &activeRun{}
	if word, text := c.outcome(time.Now()); word != verdict.NotMeasurable || !strings.Contains(text, "1 not measurable (path dl, latency)") {
		t.Errorf("%s: %s", word, text)
	}
	if wait := c.waitsFor(); wait != "" {
		t.Errorf("verify waits for a path, which the nodes never decide: %s", wait)
	}
}

func TestPathsInReport(t *testing.T) {
	fakeKubectl(t, answer{contains: "chains", script: "cat " + chainsWithPath(t)}, answer{contains: "get", script: `echo '{"items":[]}'`}, answer{contains: "config", script: "echo here"})
	file := filepath.Join(t.TempDir(), "page.html")
	out, errs, code := kubectlDray("report --output " + file)
	if holds(t, "report", out, "LINK OR PATH", "latency of f1-split/f1/dl is not measurable: Nodes see no path.", "PATH  OVER\ndl    f1u"); code != exitOK {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

// TestPathsInPlan plans a chain file with a path, as a chain of the cluster.
func TestPathsInPlan(t *testing.T) {
	fakeKubectl(t, answer{contains: "configmaps", file: "inventories.json"})
	for latency, want := range map[string]string{
		"9ms": "PATH  REQUIREMENT  REQUIRED",
		"1ns": "  path dl: latency ≤ 1ns at p99\n    because its links are expected to give 100us",
	} {
		file := edited(t, "kubernetes/f1-split/chain.yaml", "  links:\n", "  paths: [{name: dl, from: cu-up.f1u, to: du.f1u, requires: {latency: "+latency+"}}]\n  links:\n")
		out, errs, code := kubectlDray("plan -f " + file)
		holds(t, latency, out, want)
		if (code == exitOK) != (latency == "9ms") || latency == "1ns" && code != exitInfeasible {
			t.Errorf("%s: exit code %d, %s", latency, code, errs)
		}
	}
}

// pathChain is the recorded chain, or its copy, with a path over its only link, which nothing has judged.
func pathChain(t *testing.T, script string) string {
	t.Helper()
	text, err := exec.Command("sh", "-c", script).Output()
	var c map[string]any
	if err == nil {
		err = json.Unmarshal(text, &c)
	}
	if err != nil {
		t.Fatal(err)
	}
	c["spec"].(map[string]any)["paths"] = []any{map[string]any{"name": "dl", "from": "cu-up.f1u", "to": "du.f1u", "load": "400Mbps", "requires": map[string]any{"latency": "9ms", "packet_loss_ratio": 0.001}}}
	unknown := func(kind string) any {
		return map[string]any{"type": kind, "status": "Unknown", "message": "nobody looks"}
	}
	c["status"].(map[string]any)["paths"] = []any{map[string]any{"name": "dl", "links": []any{"f1u"}, "requirements": []any{unknown("latency"), unknown("packet_loss_ratio")}}}
	if text, err = json.Marshal(c); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "chain.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return "cat " + file
}

// TestPathsAreMeasuredIfPermitted: on a second copy, which is deleted as well.
func TestPathsAreMeasuredIfPermitted(t *testing.T) {
	s := aStandIn{of: pathChain(t, aRun{}.edited(t, asRecorded)), chain: pathChain(t, aStandIn{}.copied(t, ""))}
	for flag, want := range map[string]struct {
		code   int
		copies int
		texts  []string
	}{
		"":         {exitNotMeasurable, 1, []string{"f1-split/f1/dl, latency: ", "that takes copies of its functions' own pods, whose programs may have effects elsewhere; needs --paths"}},
		" --paths": {exitOK, 2, []string{"f1-split/f1/dl   latency            ≤ 9ms at p99        3.47ms one-way latency at p99", "0 (0 of 101904)"}},
	} {
		calls, deleted := s.start(t)
		out, errs, code := kubectlDray("verify f1 -n f1-split --active --profile quick --seed 7 --out run" + flag)
		if n := strings.Count(calls(), " apply "); code != want.code || n != want.copies || deleted() != standInObjects {
			t.Errorf("%q: exit code %d, %d copies, deleted %q: %s", flag, code, n, deleted(), errs)
		}
		holds(t, flag, out, want.texts...)
		page, _, _ := kubectlDray("report ./run")
		holds(t, "the report", page, want.texts[len(want.texts)-1][:15])
	}
}

// TestPathsWhoseCopyDoesNotRun do not cost the verdicts on links.
func TestPathsWhoseCopyDoesNotRun(t *testing.T) {
	s := aStandIn{of: pathChain(t, aRun{}.edited(t, asRecorded)), chain: pathChain(t, aStandIn{}.copied(t, ""))}
	s.apply = "[ ! -e twice ] || { echo 'Error from server (Forbidden): exceeded quota: small' >&2; exit 1; }; touch twice; " + standInCreated
	s.start(t)
	out, errs, code := kubectlDray("verify f1 -n f1-split --active --profile quick --seed 7 --paths")
	if code != exitNotMeasurable {
		t.Errorf("exit code %d: %s", code, errs)
	}
	holds(t, "the table", out, "≤ 5ms at p99        3.47ms one-way latency at p99", "f1-split/f1/dl, latency: ", "the quota of the namespace leaves no room for it")
}
