// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// Objects as kubectl prints them.
const (
	anyNamespace = `{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "f1-split"}}`
	anyChain     = `{"apiVersion": "drayage.io/v1alpha1", "kind": "Chain", "metadata": {"name": "f1", "namespace": "f1-split"}, "spec": {"links": []}}`
	anyPod       = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "du", "namespace": "f1-split"}}`
	otherPod     = `{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "du", "namespace": "other"}}`
)

// aRun is what the fake kubectl does during a run; "" is the usual.
type aRun struct {
	read, existing, apply, remove, chain string // shell commands
}

// start puts the fake kubectl on the PATH. The returned functions list the calls, and the
// names of the objects that were deleted.
func (r aRun) start(t *testing.T) (calls, deleted func() string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "deleted")
	script := func(own, usual string) string {
		if own == "" {
			return usual
		}
		return own
	}
	calls = fakeKubectl(t,
		answer{contains: " create ", script: script(r.read, "echo '"+anyNamespace+anyChain+anyPod+"'")},
		answer{contains: " get --ignore-not-found ", script: script(r.existing, "true")},
		answer{contains: " apply ", script: script(r.apply, "printf 'namespace/f1-split created\\nchain.drayage.io/f1 created\\npod/du created\\n'")},
		answer{contains: " delete ", script: "cat >" + file + "; " + script(r.remove, "true")},
		answer{contains: " chains.drayage.io f1 ", script: script(r.chain, "cat "+filepath.Join(recorded, "chain.json"))})
	return calls, func() string { return namesOf(t, file) }
}

// namesOf are the names of the objects in a file; "": there is no file.
func namesOf(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	var list struct {
		Items []struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
		}
	}
	if err := json.Unmarshal(text, &list); err != nil {
		t.Errorf("%v: %s", err, text)
	}
	var names []string
	for _, o := range list.Items {
		names = append(names, strings.TrimPrefix(o.Metadata.Namespace+"/", "/")+o.Kind+"/"+o.Metadata.Name)
	}
	return strings.Join(names, " ")
}

// edited is the recorded chain after a command of sed.
func (aRun) edited(t *testing.T, change string) string {
	t.Helper()
	return "sed '" + change + "' " + filepath.Join(recorded, "chain.json")
}

const everything = "f1-split/Pod/du f1-split/Chain/f1 Namespace/f1-split"

func TestRunDeletesWhatItCreated(t *testing.T) {
	calls, deleted := aRun{}.start(t)
	out, errs, code := kubectlDray("run --context far -n f1-split -f chain.yaml -f pods")
	if deleted() != everything || code != exitOK {
		t.Errorf("exit code %d, deleted %q", code, deleted())
	}
	holds(t, "the table", out, "chain f1-split/f1  ready", "≤ 5ms at p99", "met")
	holds(t, "standard error", errs, "Applying 3 objects\nDeleting the 3 objects that this run created\n")
	holds(t, "the calls", calls(), "--context=far --request-timeout=20s create --dry-run=client --validate=false --output=json --namespace=f1-split --filename=chain.yaml --filename=pods\n",
		"--context=far --request-timeout=20s apply --filename=-\n", "--namespace=f1-split -- chains.drayage.io f1\n",
		" delete --ignore-not-found --cascade=foreground --timeout=5m --filename=-\n")
}

func TestRunAsDocument(t *testing.T) {
	calls, _ := aRun{}.start(t)
	out, _, code := kubectlDray("run -k dir --json")
	holds(t, "the calls", calls(), " create --dry-run=client --validate=false --output=json --kustomize=dir\n")
	var got struct {
		Schema string
		Chains []clusterChain
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil || got.Schema != schemaCluster || len(got.Chains) != 1 || code != exitOK {
		t.Errorf("%v, exit code %d: %s", err, code, out)
	}
}

// TestRunLeavesWhatExisted: the answers of get and apply decide, and one of them is not enough.
func TestRunLeavesWhatExisted(t *testing.T) {
	for name, c := range map[string]struct {
		run  aRun
		want string
	}{
		"some":                          {aRun{existing: `echo '{"kind": "List", "items": [` + anyNamespace + "," + anyChain + `]}'`, apply: "echo namespace/f1-split unchanged; echo chain.drayage.io/f1 configured; echo pod/du created"}, "f1-split/Pod/du"},
		"one":                           {aRun{existing: "echo '" + anyNamespace + "'"}, "f1-split/Pod/du f1-split/Chain/f1"},
		"created by another user since": {aRun{apply: "echo namespace/f1-split unchanged; echo chain.drayage.io/f1 configured; echo pod/du created"}, "f1-split/Pod/du"},
		"a namesake":                    {aRun{read: "echo '" + anyChain + anyPod + otherPod + "'", existing: `echo '{"kind": "List", "items": [` + otherPod + `]}'`, apply: "echo chain.drayage.io/f1 unchanged; echo pod/du created; echo pod/du unchanged"}, "f1-split/Pod/du"},
		"all":                           {aRun{existing: "echo '" + anyNamespace + anyChain + anyPod + "'"}, ""},
	} {
		calls, deleted := c.run.start(t)
		if _, errs, code := kubectlDray("run -k dir"); deleted() != c.want || code != exitOK || c.want == "" && strings.Contains(calls()+errs, "elet") {
			t.Errorf("%s: exit code %d, deleted %q, want %q: %s", name, code, deleted(), c.want, errs)
		}
	}
}

func TestRunKeeps(t *testing.T) {
	calls, _ := aRun{}.start(t)
	_, errs, code := kubectlDray("run -k dir --keep")
	if code != exitOK || strings.Contains(calls(), "delete") {
		t.Errorf("exit code %d: %s", code, calls())
	}
	holds(t, "standard error", errs, "Created, and kept: namespace/f1-split, chain.drayage.io/f1, pod/du\n")
}

// TestRunHasTheExitCodeOfTheVerdicts, also if the deletion fails, and then says so.
func TestRunHasTheExitCodeOfTheVerdicts(t *testing.T) {
	for change, want := range map[string]int{
		"": exitOK, "102s/True/False/": exitMissed, "102s/True/Unknown/": exitNotMeasurable, `s/"reason": "Planned"/"reason": "Infeasible"/`: exitInfeasible,
	} {
		r := aRun{}
		r.chain = r.edited(t, change)
		_, deleted := r.start(t)
		if _, errs, code := kubectlDray("run -k dir --timeout 0"); code != want || deleted() != everything || strings.Contains(errs, "dray: ") {
			t.Errorf("%s: exit code %d, want %d, deleted %q: %s", change, code, want, deleted(), errs)
		}
		r.remove = "echo error: timed out >&2; exit 1"
		r.start(t)
		out, errs, code := kubectlDray("run -k dir --timeout 0 --json")
		if code != max(want, exitError) || !strings.HasSuffix(errs, "dray: not everything that this run created is deleted: kubectl: error: timed out\n") || strings.Count(out, `"schema"`) != 1 {
			t.Errorf("%s: exit code %d, want %d: %s%s", change, code, max(want, exitError), out, errs)
		}
	}
}

func TestRunThatFailsLeavesNothing(t *testing.T) {
	for name, c := range map[string]struct {
		run           aRun
		deleted, want string
	}{
		"apply": {aRun{apply: "echo namespace/f1-split created; echo chain.drayage.io/f1 created; echo error: no quota >&2; exit 1"}, "f1-split/Chain/f1 Namespace/f1-split", "dray: kubectl: error: no quota\n"},
		"wait":  {aRun{chain: "cat " + filepath.Join(recorded, "no-chain.txt") + " >&2; exit 1"}, everything, `dray: chain f1-split/f1: there is no chain "f1"`},
	} {
		_, deleted := c.run.start(t)
		out, errs, code := kubectlDray("run -k dir")
		if code != exitError || out != "" || deleted() != c.deleted {
			t.Errorf("%s: exit code %d, deleted %q: %s%s", name, code, deleted(), out, errs)
		}
		holds(t, name, errs, c.want)
		c.run.remove = "echo error: timed out >&2; exit 1"
		c.run.start(t)
		_, errs, _ = kubectlDray("run -k dir")
		holds(t, name, errs, c.want, "not everything that this run created is deleted: kubectl: error: timed out\n")
	}
}

// TestRunThatChangesNothing: errors before anything is applied.
func TestRunThatChangesNothing(t *testing.T) {
	for want, r := range map[string]aRun{
		"the manifests hold no Chain, so there is nothing to judge; try: dray export --kubernetes FILE\n":  {read: "echo '" + anyPod + "'"},
		"this cluster has no Chains, so Drayage is not installed there: error: resource mapping not found": {read: "cat " + filepath.Join(recorded, "no-kind.txt") + " >&2; exit 1"},
		"kubectl cannot read the manifests: error: must build at directory: not a valid directory":         {read: "echo error: must build at directory: not a valid directory, no such file >&2; exit 1"},
		"pod/du is still being deleted; try: kubectl wait --for=delete --namespace=f1-split pod/du\n":      {existing: "echo '" + strings.Replace(anyPod, `"name"`, `"deletionTimestamp": "2026-11-23T10:00:00Z", "name"`, 1) + "'"},
		"the cluster refuses it: Error from server (Forbidden)":                                            {existing: "cat " + filepath.Join(recorded, "forbidden.txt") + " >&2; exit 1"},
		"kubectl printed no object: ": {read: "echo text"},
	} {
		calls, _ := r.start(t)
		if _, errs, code := kubectlDray("run -k dir"); code != exitError || !strings.Contains(errs, "dray: "+want) || strings.Contains(calls(), "apply") {
			t.Errorf("exit code %d: %swant %s\n%s", code, errs, want, calls())
		}
	}
}

// TestRunDeletesAfterASignal: before kubectl applies, while it does, and during the wait for
// verdicts.
func TestRunDeletesAfterASignal(t *testing.T) {
	for name, c := range map[string]struct {
		run  aRun
		want string
	}{
		"get":   {aRun{existing: "touch $(dirname $0)/now; sleep 1"}, ""},
		"apply": {aRun{apply: "touch $(dirname $0)/now; sleep 1; echo namespace/f1-split created; echo chain.drayage.io/f1 created; echo pod/du created"}, everything},
		"wait":  {aRun{chain: "touch $(dirname $0)/now; " + aRun{}.edited(t, "102s/True/Unknown/")}, everything},
	} {
		calls, deleted := c.run.start(t)
		var out, errs bytes.Buffer
		err := runKubectl(signalled(filepath.Join(strings.Split(os.Getenv("PATH"), ":")[0], "now")), []string{"run", "-k", "dir"}, &out, &errs)
		if code := exitCode(err, &errs); code != 128+int(syscall.SIGTERM) || out.Len() > 0 || deleted() != c.want || strings.Contains(calls(), "apply") != (c.want != "") {
			t.Errorf("%s: exit code %d, deleted %q: %s%s%s", name, code, deleted(), out.String(), errs.String(), calls())
		}
		holds(t, name, errs.String(), "dray: interrupted: ")
	}
}

// signalled ends as at SIGTERM, once the file exists.
func signalled(file string) context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		for begin := time.Now(); time.Since(begin) < 30*time.Second; time.Sleep(10 * time.Millisecond) {
			if _, err := os.Stat(file); err == nil {
				break
			}
		}
		cancel(signalError{syscall.SIGTERM})
	}()
	return ctx
}

// TestRunWritesItsPage before it deletes the pods that the page shows.
func TestRunWritesItsPage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.html")
	_, deleted := aRun{chain: aRun{}.edited(t, "102s/True/False/"), remove: "cp " + file + " " + file + ".then"}.start(t)
	_, errs, code := kubectlDray("run -k dir -o " + file)
	page, err := os.ReadFile(file + ".then")
	if err != nil || code != exitMissed || deleted() != everything {
		t.Fatalf("%v, exit code %d: %s", err, code, errs)
	}
	holds(t, "the page", string(page), "<!DOCTYPE html>", "<title>", "f1-split/f1", "function du, du, on n2")
	aRun{chain: aRun{}.edited(t, "102s/True/False/")}.start(t)
	out, errs, code := kubectlDray("run -k dir -o /nonexistent/page.html")
	if code != exitMissed || !strings.Contains(errs, "dray: open /nonexistent/") || !strings.Contains(out, "missed") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// TestRunOfSeveralChains waits for all of them.
func TestRunOfSeveralChains(t *testing.T) {
	r := aRun{read: "echo '" + anyChain + strings.ReplaceAll(anyChain, "f1-split", "other") + "'"}
	r.chain = "case $* in *=other*) " + r.edited(t, "s/f1-split/other/; 102s/True/Unknown/") + ";; *) " + r.edited(t, "") + ";; esac"
	r.start(t)
	out, errs, code := kubectlDray("run -k dir --timeout 0")
	if code != exitNotMeasurable {
		t.Errorf("exit code %d: %s", code, errs)
	}
	holds(t, "the table", out, "chain f1-split/f1  ready", "chain other/f1     ready")
	holds(t, "standard error", errs, "Undecided after 0s: chain other/f1: 1 of 2 requirements decided; link f1u, ")
}

func TestRunReadsStandardInput(t *testing.T) {
	aRun{read: "cat"}.start(t)
	file := filepath.Join(t.TempDir(), "stdin")
	if err := os.WriteFile(file, []byte(anyChain), 0o600); err != nil {
		t.Fatal(err)
	}
	stdin, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	defer func(old *os.File) { os.Stdin = old }(os.Stdin)
	os.Stdin = stdin
	if out, errs, code := kubectlDray("run -f -"); code != exitOK || !strings.Contains(out, "f1-split/f1") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}

func TestRunUsage(t *testing.T) {
	calls := fakeKubectl(t)
	for _, line := range []string{"run", "run f1", "run -f a -k b", "run -f a b", "run -f a --timeout -1s"} {
		if _, errs, code := kubectlDray(line); code != exitUsage {
			t.Errorf("%s: exit code %d: %s", line, code, errs)
		}
	}
	if calls() != "" {
		t.Errorf("wrong usage calls kubectl: %s", calls())
	}
}

func TestRunCompletesADirectory(t *testing.T) {
	var out, errs bytes.Buffer
	want := fmt.Sprintf(":%d\n", cobra.ShellCompDirectiveFilterDirs)
	if err := runKubectl(context.Background(), []string{"__complete", "run", "-k", ""}, &out, &errs); err != nil || out.String() != want {
		t.Errorf("%v: %q, want %q", err, out.String(), want)
	}
}
