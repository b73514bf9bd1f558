// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/drayage/dray/internal/result/report"
)

// TestActiveVerificationKeepsItsRecords as a run on one host does, with the cluster in addition.
func TestActiveVerificationKeepsItsRecords(t *testing.T) {
	aStandIn{}.start(t)
	out, errs, code := kubectlDray("verify f1 -n f1-split --active --profile quick --seed 7 --out kept/one")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	dir, err := filepath.Abs("kept/one")
	if err != nil {
		t.Fatal(err)
	}
	holds(t, "the table", out, "\nReport: "+filepath.Join(dir, report.PageFile)+"\n")
	data, err := report.Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	run, where := data.Run, data.Run.Cluster
	if run.Chain != "f1" || run.Seed != 7 || run.Profile != "quick" || run.Finished.IsZero() || run.Dray != version || len(run.Phases) != 2 || run.Resumable() || where == nil {
		t.Fatalf("%+v", run)
	}
	if where.Context != "lab" || where.Namespace != "f1-split" || where.Copy != "f1-dray-verify" || !strings.HasSuffix(where.Image, "/draygen:0.2.0") || len(where.Warnings) != 0 {
		t.Errorf("%+v", where)
	}
	if len(where.Links) != 1 || where.Links[0].Transport != "shm" || where.Links[0].Ends[0] != (report.ClusterEnd{Function: "cu-up", Port: "f1u", Pod: "f1-dray-verify-cu-up", Node: "n2"}) {
		t.Errorf("the links: %+v", where.Links)
	}
	if len(where.Nodes) != 1 || where.Nodes[0].Name != "n2" || where.Nodes[0].Kernel != "6.12.0" || where.Nodes[0].CPUModel != "a processor" || where.Nodes[0].Runtime != "containerd://2.2.0" || where.Nodes[0].OS != "Debian GNU/Linux 13 (trixie)" || where.Nodes[0].Pods != 2 {
		t.Errorf("the nodes: %+v", where.Nodes)
	}
	for _, trial := range data.Trials {
		if trial.Chain != "f1" || trial.Seed != 7 || trial.Env.CPUModel != "a processor" || trial.Env.Dray == "" || trial.Env.LoadBefore != 0 {
			t.Errorf("%+v", trial)
		}
	}
	if len(data.Trials) == 0 || len(data.Verdicts) != 2 || data.Verdicts[0].Verdict != "met" || data.Plan.Functions[0].Host != "n2" {
		t.Errorf("%d trials, %+v", len(data.Trials), data.Verdicts)
	}
	holds(t, "the chain", data.ChainText, "apiVersion: drayage.io/v1alpha1\nkind: Chain\nmetadata:\n  name: f1\nspec:\n", "latency: 5ms\n")
	page, err := os.ReadFile(filepath.Join(dir, report.PageFile))
	if err != nil {
		t.Fatal(err)
	}
	holds(t, "the page", string(page), "Drayage on Kubernetes", "f1-dray-verify-cu-up", "containerd://2.2.0", "a processor", "≤ 5ms at p99", "chain f1-split/f1-dray-verify, a copy", "f1u: both ends are on one node")
}

// TestKeptRunIsReported again by both programs, in both forms, and compared with another.
func TestKeptRunIsReported(t *testing.T) {
	aStandIn{}.start(t)
	for _, dir := range []string{"one", "two"} {
		if _, errs, code := kubectlDray("verify f1 --active --profile quick --seed 7 --out " + dir); code != exitOK {
			t.Fatalf("exit code %d: %s", code, errs)
		}
	}
	tables, err := dray("report", "one")
	if holds(t, "the tables", tables, "f1: all 2 requirements met", "Pods\n", "f1-dray-verify-du", "Nodes\n", "containerd://2.2.0"); err != nil {
		t.Error(err)
	}
	if again, _, code := kubectlDray("report ./one"); strings.ReplaceAll(again, "./one", "one") != tables || code != exitOK {
		t.Errorf("exit code %d:\n%s", code, again)
	}
	text, _, _ := kubectlDray("report --json ./one")
	var document struct {
		Schema   string
		Run      report.Run
		Verdicts []struct{ Verdict string }
	}
	if err := json.Unmarshal([]byte(text), &document); err != nil || document.Schema != schemaRun || document.Run.Cluster == nil || len(document.Verdicts) != 2 {
		t.Errorf("%v: %s", err, text)
	}
	if text, err := dray("compare", "one", "two"); err != nil || !strings.Contains(text, "indistinguishable") {
		t.Errorf("%v: %s", err, text)
	}
	for _, line := range []string{"report ./one -o page.html", "report ./one -A"} {
		if _, errs, code := kubectlDray(line); code != exitUsage {
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		}
	}
}

// TestActiveVerificationWithoutADirectory for its records judges all the same. A directory that the user
// names must be new.
func TestActiveVerificationWithoutADirectory(t *testing.T) {
	_, deleted := aStandIn{}.start(t)
	_, errs, code := kubectlDray("verify f1 --active --profile quick --json")
	if kept, err := filepath.Glob("out/f1-*/" + report.RecordsFile); err != nil || len(kept) != 1 || code != exitOK {
		t.Errorf("by default: %q, %v, exit code %d: %s", kept, err, code, errs)
	}
	workIn(t, "/sys") // where nobody makes directories
	out, errs, code := kubectlDray("verify f1 --active --profile quick --json")
	if code != exitOK || !strings.Contains(out, `"met"`) || strings.Contains(out, "directory") {
		t.Errorf("exit code %d: %s", code, out)
	}
	holds(t, "standard error", errs, "dray: warning: the records are not kept: ", "; --out names a directory for them\n")
	calls, _ := aStandIn{}.start(t)
	for _, dir := range []string{"/sys/none", filepath.Dir(recorded)} {
		if _, errs, code := kubectlDray("verify f1 --active --profile quick --out " + dir); code != exitError || strings.Contains(calls(), " apply ") {
			t.Errorf("%s: exit code %d: %s", dir, code, errs)
		}
	}
	if deleted() != standInObjects {
		t.Errorf("deleted %q", deleted())
	}
}

// TestFailedVerificationKeepsNothing if there are no records, not even its directory.
func TestFailedVerificationKeepsNothing(t *testing.T) {
	aStandIn{pods: noCopies}.start(t)
	if _, _, code := kubectlDray("verify f1 --active --profile quick --out kept"); code != exitError {
		t.Errorf("exit code %d", code)
	}
	if _, err := os.Stat("kept"); !os.IsNotExist(err) {
		t.Error(err)
	}
}

// TestInterruptedVerificationKeepsItsRecords, and its report says that it is incomplete.
func TestInterruptedVerificationKeepsItsRecords(t *testing.T) {
	aStandIn{draygen: "touch $(dirname $0)/now; sleep 60"}.start(t)
	var out, errs bytes.Buffer
	err := runKubectl(signalled(filepath.Join(strings.Split(os.Getenv("PATH"), ":")[0], "now")), strings.Fields("verify f1 --active --profile quick --out kept"), &out, &errs)
	if code := exitCode(err, &errs); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d", code)
	}
	holds(t, "standard error", errs.String(), "dray: interrupted", "; its records are in ")
	data, err := report.Load("kept")
	if err != nil || !data.Run.Interrupted || data.Run.ExitCode != 128+int(syscall.SIGTERM) {
		t.Fatalf("%v: %+v", err, data)
	}
	page, err := os.ReadFile("kept/" + report.PageFile)
	if err != nil || !strings.Contains(string(page), "Interrupted: this report uses the 0 records measured so far.<") {
		t.Errorf("%v: %.3000s", err, page)
	}
}

// TestKeptRunSaysWhatItDoesNotKnow: nodes need a right that the job of a schedule may lack.
func TestKeptRunSaysWhatItDoesNotKnow(t *testing.T) {
	aStandIn{nodes: "echo 'Error from server (Forbidden): nodes is forbidden' >&2; exit 1"}.start(t)
	if _, _, code := kubectlDray("verify f1 --active --profile quick --out kept"); code != exitOK {
		t.Errorf("exit code %d", code)
	}
	data, err := report.Load("kept")
	if err != nil || data.Run.Cluster.Nodes[0].Runtime != "" {
		t.Fatalf("%v", err)
	}
	holds(t, "the warnings", strings.Join(data.Warnings, "\n"), "the nodes' systems and container runtimes are not known: the cluster refuses it")
}
