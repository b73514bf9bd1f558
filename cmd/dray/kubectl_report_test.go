// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/report"
)

// wholeCluster answers everything that the report asks.
func wholeCluster(t *testing.T) {
	t.Helper()
	fakeKubectl(t, answer{contains: "current-context", script: "echo lab"}, answer{contains: "--all-namespaces", file: "all-chains.json"},
		answer{contains: "configmaps", file: "inventories.json"}, answer{contains: " pods", file: "pods.json"}, answer{contains: " nodes ", file: "nodes.json"},
		answer{contains: "dray-node-jrpkn", file: "links-n1.json"}, answer{contains: "--raw", file: "links-n2.json"}, answer{contains: "get", file: "chains.json"})
}

func TestClusterReport(t *testing.T) {
	wholeCluster(t)
	file := filepath.Join(t.TempDir(), "page.html")
	out, errs, code := kubectlDray("report -A -o " + file)
	if code != exitOK || errs != "" {
		t.Errorf("exit code %d: %s", code, errs)
	}
	holds(t, "the tables", out, "f1-split/f1/f1u  latency", "≤ 5ms at p99", "Chain ran/tight: infeasible", "Chain f1-split/f1: ready", "cu-up.f1u → du.f1u", "shm",
		"Nodes\n", "n1 ", "n2 ", "Report: "+file)
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	holds(t, "the page", string(page), "<!DOCTYPE html>", "All chains", "lab", `class="topology wide"`, "function cu-up, cu-up, on n2, f1u", "containerd://2.2.0", `href="#chain-1"`, "Show the chain", "Its pods may be on n1, n2.")
	if strings.Contains(string(page), "Every figure above is computed from") {
		t.Error("the page has a section for records")
	}
}

func TestClusterReportAsDocument(t *testing.T) {
	wholeCluster(t)
	out, _, code := kubectlDray("report -A --json -o " + filepath.Join(t.TempDir(), "page.html"))
	var got report.Cluster
	var schema struct{ Schema string }
	if err := json.Unmarshal([]byte(out), &schema); err != nil || schema.Schema != schemaClusterReport || code != exitOK {
		t.Fatalf("schema %q, exit code %d, error %v: %s", schema.Schema, code, err, out)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal([]byte(out), &fields); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(fields["chains"], &got.Chains); err != nil || len(got.Chains) == 0 || got.Chains[0].Links[0].Ends[0].Pod == "" {
		t.Errorf("%v: %s", err, fields["chains"])
	}
}

// Rights that are missing cost only what they would show.
func TestClusterReportWithFewRights(t *testing.T) {
	fakeKubectl(t, answer{contains: "current-context", script: "exit 1"}, answer{contains: "configmaps", fails: "forbidden.txt"},
		answer{contains: " pods", fails: "forbidden.txt"}, answer{contains: " nodes ", fails: "forbidden.txt"}, answer{contains: "get", file: "chains.json"})
	out, _, code := kubectlDray("report --json -o " + filepath.Join(t.TempDir(), "page.html"))
	if code != exitOK {
		t.Errorf("exit code %d", code)
	}
	holds(t, "the document", out, "no traffic is shown: the cluster refuses it", "no nodes are shown: the cluster refuses it", "no operating systems and container runtimes are shown: the cluster refuses it", `"requirement": "latency"`)
}

func TestClusterReportNeedsAFile(t *testing.T) {
	wholeCluster(t)
	if _, errs, code := kubectlDray("report --output="); code != exitUsage {
		t.Errorf("exit code %d: %s", code, errs)
	}
	if _, errs, code := kubectlDray("report -o /nonexistent/page.html"); code != exitError {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
