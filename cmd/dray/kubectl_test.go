// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/drayage/dray/internal/cluster"
	"github.com/drayage/dray/internal/result/verdict"
)

// recorded are answers of a real cluster, with its errors. Some tests change the directory.
var recorded, _ = filepath.Abs("testdata/cluster")

// answer is what the fake kubectl does if its arguments contain a text.
type answer struct {
	contains string
	file     string // of recorded; printed on standard output
	fails    string // if set, a file of recorded; printed on standard error, with exit status 1
	script   string // if set, shell commands to run instead
}

// fakeKubectl puts a kubectl on the PATH that gives recorded answers. The returned
// function lists the calls.
func fakeKubectl(t *testing.T, answers ...answer) func() string {
	t.Helper()
	bin := t.TempDir()
	calls := filepath.Join(bin, "calls")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >>%s\ncase \" $* \" in\n", calls)
	for _, a := range answers {
		action := "cat " + filepath.Join(recorded, a.file)
		switch {
		case a.fails != "":
			action = "cat " + filepath.Join(recorded, a.fails) + " >&2; exit 1"
		case a.script != "":
			action = a.script
		}
		script += fmt.Sprintf("*%q*) %s ;;\n", a.contains, action)
	}
	script += "*) echo \"the fake kubectl has no answer to: $*\" >&2; exit 1 ;;\nesac\n"
	if err := os.WriteFile(filepath.Join(bin, "kubectl"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	return func() string {
		text, _ := os.ReadFile(calls) // missing: there was no call
		return string(text)
	}
}

// kubectlDray runs `kubectl dray`, and returns what it prints and its exit code.
func kubectlDray(line string) (out, errs string, code int) {
	var o, e bytes.Buffer
	err := runKubectl(context.Background(), strings.Fields(line), &o, &e)
	code = exitCode(err, &e)
	return o.String(), e.String(), code
}

// holds fails the test for each text that is missing.
func holds(t *testing.T, what, text string, wants ...string) {
	t.Helper()
	for _, want := range wants {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %q:\n%s", what, want, text)
		}
	}
}

func TestPluginIsKnownByItsName(t *testing.T) {
	for program, want := range map[string]bool{"kubectl-dray": true, "/usr/bin/kubectl-dray": true, "dray": false, "kubectl": false} {
		if isKubectl(program) != want {
			t.Errorf("%s: %v", program, !want)
		}
	}
}

func TestKubectlFlagsReachKubectl(t *testing.T) {
	calls := fakeKubectl(t, answer{contains: "get", file: "chains.json"})
	kubectlDray("status --kubeconfig /x/config --context far -n ran")
	holds(t, "the call", calls(), "--kubeconfig=/x/config --context=far --request-timeout=20s get ", "--namespace=ran", "-- chains.drayage.io")
}

// TestKubectlInAPod: it finds the cluster only without a flag of the connection.
func TestKubectlInAPod(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1")
	for config, want := range map[string]string{"": "get --output=json -- chains.drayage.io\n", "/x/config": "--request-timeout=20s get --output=json -- chains.drayage.io\n"} {
		t.Setenv("KUBECONFIG", config)
		calls := fakeKubectl(t, answer{contains: "get", file: "chains.json"})
		if kubectlDray("status"); calls() != want {
			t.Errorf("with KUBECONFIG=%s: %s", config, calls())
		}
	}
}

func TestNothingIsAFlagOfKubectlByItsName(t *testing.T) {
	calls := fakeKubectl(t)
	kubectlDray("status -- --server=evil")
	holds(t, "the call", calls(), "-- chains.drayage.io --server=evil")
}

// TestKubectlErrorsNameAFix: each error is one of a real kubectl.
func TestKubectlErrorsNameAFix(t *testing.T) {
	for file, want := range map[string]string{
		"not-installed.txt": "this cluster has no Chains, so Drayage is not installed there: error: the server doesn't have a resource type \"chains\"; try: kubectl apply -k kube/deploy/base",
		"no-cluster.txt":    "no cluster answers: The connection to the server localhost:8080 was refused - did you specify the right host or port?; try: kubectl cluster-info",
		"no-context.txt":    "kubectl is not configured for it: Error in configuration: context was not found for specified context: nowhere; try: kubectl config get-contexts",
		"no-config.txt":     "kubectl is not configured for it: error: stat /nonexistent: no such file or directory; try: kubectl config get-contexts",
		"forbidden.txt":     "the cluster refuses it: Error from server (Forbidden): chains.drayage.io is forbidden: User \"someone\" cannot list resource \"chains\" in API group \"drayage.io\" in the namespace \"default\"; try: kubectl auth can-i --list",
	} {
		fakeKubectl(t, answer{contains: "get", fails: file})
		for _, command := range []string{"status", "plan f1"} {
			out, errs, code := kubectlDray(command)
			if code != exitError || out != "" || errs != "dray: "+want+"\n" {
				t.Errorf("%s, %s: exit code %d, printed %q and\n%swant\n%s", file, command, code, out, errs, want)
			}
		}
		out, _, code := kubectlDray("status --json")
		var got failure
		if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitError || got.Fix == "" || !strings.HasSuffix(want, got.Fix) || strings.Contains(got.Error, "; try: ") {
			t.Errorf("%s: %v: %s", file, err, out)
		}
	}
}

func TestNoKubectl(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	if _, errs, code := kubectlDray("status"); code != exitError || !strings.Contains(errs, "there is no kubectl on the PATH") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestNoSuchChain(t *testing.T) {
	fakeKubectl(t, answer{contains: "get", fails: "no-chain.txt"})
	for _, command := range []string{"status f2", "plan f2"} {
		if _, errs, code := kubectlDray(command); code != exitError || errs != "dray: there is no chain \"f2\" in this namespace; try: kubectl dray status --all-namespaces\n" {
			t.Errorf("%s: exit code %d: %s", command, code, errs)
		}
	}
}

func TestKubectlUsage(t *testing.T) {
	calls := fakeKubectl(t)
	for _, line := range []string{"nothing", "status a b", "status a -A", "plan", "plan a -f b", "status --nothing"} {
		if _, errs, code := kubectlDray(line); code != exitUsage || strings.Contains(errs, "`dray --help`") {
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		}
	}
	if calls() != "" {
		t.Errorf("wrong usage calls kubectl: %s", calls())
	}
}

func TestKubectlCompletesChains(t *testing.T) {
	fakeKubectl(t, answer{contains: "get", file: "chains.json"})
	eachCommand(kubectlTree(), func(cmd *cobra.Command) {
		if cmd.ValidArgsFunction == nil && cmd.HasParent() {
			t.Errorf("%s completes nothing", cmd.CommandPath())
		}
	})
	for line, want := range map[string]string{"status ": "f1\n", "plan ": "f1\n", "version ": "", "run ": ""} {
		var o, e bytes.Buffer
		if err := runKubectl(context.Background(), append([]string{"__complete"}, strings.Split(line, " ")...), &o, &e); err != nil || !strings.HasPrefix(o.String(), want+":") {
			t.Errorf("%q: %v: %q", line, err, o.String())
		}
	}
}

// kubectlTree is all commands of the plugin.
func kubectlTree() *cobra.Command {
	return newKubectlRoot(&app{out: &bytes.Buffer{}, err: &bytes.Buffer{}})
}

func TestClusterStatus(t *testing.T) {
	fakeKubectl(t, answer{contains: "--all-namespaces", file: "all-chains.json"}, answer{contains: " f1 ", file: "chain.json"}, answer{contains: "get", file: "chains.json"})
	for _, line := range []string{"status", "status f1"} {
		out, errs, code := kubectlDray(line)
		holds(t, line, out, "chain f1-split/f1  ready  on n1, n2\n  link f1u         shm    cu-up.f1u (pod cu-up on n2), du.f1u (pod du on n2)\n",
			"≤ 5ms at p99", "met", "the functions' own packets, one way")
		if code != exitOK || errs != "" || strings.Contains(out, "not measurable") {
			t.Errorf("%s: exit code %d, %s", line, code, errs)
		}
	}
	out, errs, code := kubectlDray("status -A")
	holds(t, "status -A", out,
		"chain f1-split/f1  ready ", "chain ran/f1       ready ", "missed", "≤ 200ns at p99",
		"ran/f1/f1u, latency: cu-up.f1u: ",
		"chain ran/tight    infeasible  n1, n2: link f1u: latency ≤ 200ns at p99: shm is expected to need 100us",
		"chain ran/waiting  waiting     link f1u: no pod has cu-up.f1u, du.f1u",
		"  link f1u         shm         cu-up.f1u (no pod), du.f1u (no pod)",
		"ran/waiting/f1u, min_bitrate: cu-up.f1u: no figures yet\n")
	if code != exitInfeasible || errs != "" {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func TestClusterStatusAsDocument(t *testing.T) {
	fakeKubectl(t, answer{contains: "get", file: "all-chains.json"})
	out, errs, code := kubectlDray("status -A --json")
	var got struct {
		Schema string
		Chains []clusterChain
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Schema != schemaCluster || len(got.Chains) != 4 || code != exitInfeasible || errs != "" {
		t.Fatalf("%v, exit code %d: %s%s", err, code, out, errs)
	}
	exits := map[string]int{}
	for _, c := range got.Chains {
		exits[c.name()] = c.Exit
	}
	if want := map[string]int{"f1-split/f1": exitOK, "ran/f1": exitMissed, "ran/tight": exitInfeasible, "ran/waiting": exitNotMeasurable}; !reflect.DeepEqual(exits, want) {
		t.Errorf("exit codes %v, want %v", exits, want)
	}
	q := got.Chains[1].Links[0].Requirements[0]
	if q.Requirement != "latency" || q.Verdict != verdict.Missed || q.Required != "≤ 200ns at p99" || q.At != "cu-up.f1u" || q.Measured == "" || q.Bound == "" || q.Basis == "" || q.Because == "" || q.Since.IsZero() {
		t.Errorf("%+v", q)
	}
}

// TestIdleLinks: no pod has the instance at one end of the link.
func TestIdleLinks(t *testing.T) {
	fakeKubectl(t, answer{contains: "get", script: `sed 's/"transport": "shm"/"idle": true, &/' ` + filepath.Join(recorded, "chains.json")})
	out, _, _ := kubectlDray("status")
	holds(t, "idle", out, "  link f1u         idle   cu-up.f1u (")
	if out, _, _ = kubectlDray("status --json"); !strings.Contains(out, `"idle": true`) {
		t.Errorf("the document does not say so: %s", out)
	}
}

// TestUnseenChains: the status is about an earlier chain, or missing.
func TestUnseenChains(t *testing.T) {
	for name, change := range map[string]string{"changed": `s/"generation": 1/"generation": 2/`, "new": `s/"status": {/"other": {/`} {
		fakeKubectl(t, answer{contains: "get", script: "sed '" + change + "' " + filepath.Join(recorded, "chains.json")})
		out, _, code := kubectlDray("status")
		holds(t, name, out, "chain f1-split/f1  not planned  dray-operator has not seen this chain as it is now")
		if code != exitError {
			t.Errorf("%s: exit code %d", name, code)
		}
	}
}

func TestNoChains(t *testing.T) {
	fakeKubectl(t, answer{contains: "get", script: `echo '{"items":[]}'`})
	out, _, code := kubectlDray("status")
	if code != exitOK || out != "no chains; `kubectl dray status --all-namespaces` looks everywhere\n" {
		t.Errorf("exit code %d: %s", code, out)
	}
}

func TestClusterStatusFitsTheTerminal(t *testing.T) {
	fakeKubectl(t, answer{contains: "get", file: "all-chains.json"}, answer{contains: "configmaps", file: "inventories.json"})
	var all struct{ Items []cluster.Chain }
	data, err := os.ReadFile(filepath.Join(recorded, "all-chains.json"))
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	var b bytes.Buffer
	if err := errors.Join(err, printChains(&b, columns, clusterChains(all.Items))); err != nil {
		t.Fatal(err)
	}
	fits(t, "status", b.String())
}

// TestClusterPlan plans a chain of the cluster, and files.
func TestClusterPlan(t *testing.T) {
	calls := fakeKubectl(t, answer{contains: "configmaps", file: "inventories.json"}, answer{contains: "chains", file: "chain.json"})
	for _, line := range []string{"plan f1", "plan -f ../../examples/native/echo.yaml", "plan -f ../../examples/kubernetes/f1-split/chain.yaml"} {
		out, errs, code := kubectlDray(line)
		holds(t, line, out, " on n1, n2: feasible\n", "fastest that isolation \"link\" and the face native allow", "\nThe chain's pods may be on n1, n2\n")
		if code != exitOK || errs != "" || strings.Contains(out, "NOT TAKEN") {
			t.Errorf("%s: exit code %d, %s", line, code, errs)
		}
	}
	holds(t, "a call", calls(), "--namespace=dray-system --selector=drayage.io/inventory=true -- configmaps")
	out, _, _ := kubectlDray("plan f1 -v")
	holds(t, "plan -v", out, "NOT TAKEN", "nodes of a cluster do not make it yet")
	kubectlDray("plan f1 --dray-namespace other")
	holds(t, "a call", calls(), "--namespace=other --selector")
}

// edited is a file of the examples with something replaced.
func edited(t *testing.T, file, old, replacement string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../examples", file))
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "chain.yaml")
	now := strings.ReplaceAll(string(text), old, replacement)
	if now == string(text) {
		t.Fatalf("%s does not hold %q", file, old)
	}
	if err := os.WriteFile(name, []byte(now), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestInfeasibleClusterPlan(t *testing.T) {
	fakeKubectl(t, answer{contains: "configmaps", file: "inventories.json"})
	tight := edited(t, "kubernetes/f1-split/chain.yaml", "latency: 5ms", "latency: 1ns")
	out, errs, code := kubectlDray("plan -f " + tight)
	holds(t, "plan", out, "chain f1 on n1, n2: can be built, but not every requirement is expected to be met", "  link f1u: latency ≤ 1ns at p99\n", "fix: allow 100us at p99")
	if code != exitInfeasible || errs != "dray: infeasible: no node can do what chain f1 requires\n" || strings.Contains(out, "may be on") || strings.Contains(out, " at :") {
		t.Errorf("exit code %d, %s%s", code, out, errs)
	}
	out, _, code = kubectlDray("plan --json -f " + tight)
	var got clusterPlan
	if err := json.Unmarshal([]byte(out), &got); err != nil || code != exitInfeasible || len(got.Chosen) != 0 || len(got.Nodes) != 1 || got.Nodes[0].Plan == nil || !strings.HasPrefix(got.Detail, "n1, n2: link f1u: ") {
		t.Errorf("%v, exit code %d: %s", err, code, out)
	}
}

// TestNodesThatDiffer: one node cannot make the link, and another's inventory is damaged.
func TestNodesThatDiffer(t *testing.T) {
	for change, wants := range map[string][]string{
		`0,/\\"name\\": \\"shm\\", \\"status\\": \\"ok\\"/s//\\"name\\": \\"shm\\", \\"status\\": \\"missing\\", \\"reason\\": \\"gone\\"/`: {
			"chain f1 on n1: cannot be built", "chain f1 on n2: feasible", "The chain's pods may be on n2; not on n1: link f1u: ", "shm", "gone"},
		`0,/"inventory.json": "{/s//"inventory.json": "/`: {
			"chain f1 on dray-inventory-n1: its inventory cannot be read: ", "The chain's pods may be on n2; not on dray-inventory-n1: "},
	} {
		fakeKubectl(t, answer{contains: "configmaps", script: "sed '" + change + "' " + filepath.Join(recorded, "inventories.json")}, answer{contains: "chains", file: "chain.json"})
		out, errs, code := kubectlDray("plan f1")
		if holds(t, "plan", out, wants...); code != exitOK || errs != "" {
			t.Errorf("exit code %d, %s", code, errs)
		}
	}
}

func TestNoInventories(t *testing.T) {
	fakeKubectl(t, answer{contains: "configmaps", script: `echo '{"items":[]}'`}, answer{contains: "chains", file: "chain.json"})
	if out, errs, code := kubectlDray("plan f1"); code != exitError || out != "" || errs != "dray: no node has published an inventory: is the DaemonSet dray-node running?\n" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}
