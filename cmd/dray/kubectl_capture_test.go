// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// summary is the last line that dray-node prints on standard error.
const summary = `{"packets":3,"dropped":1,"malformed":0,"start":"2026-11-23T10:00:00Z","end":"2026-11-23T10:00:02Z","ended_because":"the function has closed the port"}`

// captures is a cluster in which `kubectl exec` runs a script.
func captures(t *testing.T, script string) func() string {
	t.Helper()
	return fakeKubectl(t, answer{contains: " exec ", script: script}, answer{contains: " pods", file: "pods.json"}, answer{contains: " f1 ", file: "chain.json"})
}

func TestCaptureWritesWhatDrayNodeDoes(t *testing.T) {
	calls := captures(t, "echo packets; echo '"+summary+"' >&2")
	file := filepath.Join(t.TempDir(), "x.pcapng")
	out, errs, code := kubectlDray("capture f1 du.f1u -w " + file + " --count 3 --snaplen 64 --json")
	if code != exitOK {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	if data, err := os.ReadFile(file); err != nil || string(data) != "packets\n" {
		t.Errorf("%q, %v", data, err)
	}
	holds(t, "the document", out, `"dray.capture/1"`, `"packets": 3`, `"dropped": 1`, `"ended_because": "the function has closed the port"`)
	holds(t, "the call", calls(), "exec --stdin --namespace=dray-system dray-node-", "--container=driver -- /dray-node capture --snaplen=64 --count=3 --duration=0s -- f1-split/f1/f1u du f1u")
	out, errs, _ = kubectlDray("capture f1 du.f1u")
	if out != "packets\n" {
		t.Errorf("to a pipe: %q", out)
	}
	holds(t, "standard error", errs, "Capturing at du.f1u in pod du on node n", "3 packets captured, 1 dropped")
}

// Ctrl-C ends the program's input, and what it still writes is kept.
func TestCaptureEndsAtCtrlC(t *testing.T) {
	captures(t, "echo first; cat; echo last; echo '"+summary+"' >&2")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var errs bytes.Buffer
	out := countdown{text: "first\n", times: 1, over: cancel}
	if err := runKubectl(ctx, strings.Fields("capture f1 du.f1u"), &out, &errs); err != nil || out.String() != "first\nlast\n" {
		t.Errorf("%q, %v: %s", out.String(), err, errs.String())
	}
}

func TestCaptureThatFails(t *testing.T) {
	for script, c := range map[string]struct{ line, want string }{
		"echo 'dray-node: no native port f1u of function du' >&2; exit 1":                    {"capture f1 du.f1u", "capture du.f1u: no native port f1u of function du"},
		"echo 'Error from server (Forbidden): pods \"x\" is forbidden: User ..' >&2; exit 1": {"capture f1 du.f1u", "the cluster refuses it"},
		"echo half; echo 'error: connection lost' >&2":                                       {"capture f1 du.f1u", "the capture broke off: error: connection lost"},
		"echo not called >&2; exit 3":                                                        {"capture f1 du.x", `has no port "du.x"; it has cu-up.f1u, du.f1u`},
		"echo not called either >&2; exit 3":                                                 {"capture f1 du.f1u --snaplen -1", "--snaplen -1"},
	} {
		captures(t, script)
		if _, errs, code := kubectlDray(c.line); code == exitOK || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %q, want %q", script, code, errs, c.want)
		}
	}
}
