// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// Inventories of nodes that can make bridges and memif as well.
const withBridges = `sed 's/\\"name\\": \\"veth\\", \\"status\\": \\"missing\\"/\\"name\\": \\"bridge\\", \\"status\\": \\"ok\\"/; s/\(memif\\", \\"status\\": \\"\)missing/\1ok/' `

// fakeRelink is a cluster that plans a transport for the link once the chain is patched, and has
// another behind its ports. change is a program of sed for the chain as it is at first.
func fakeRelink(t *testing.T, change, transport, behind string) (calls func() string) {
	t.Helper()
	chain, patched := filepath.Join(recorded, "chain.json"), filepath.Join(t.TempDir(), "patched")
	moved := `s/"generation": 1/"generation": 2/; s/"observedGeneration": 1/"observedGeneration": 2/; s/"transport": "shm"/"transport": "` + transport +
		`"/; s/"port": "f1u"/"transport": "` + behind + `", &/`
	return fakeKubectl(t,
		answer{contains: " patch ", script: "touch " + patched},
		answer{contains: "configmaps", script: withBridges + filepath.Join(recorded, "inventories.json")},
		answer{contains: " f1 ", script: fmt.Sprintf("if [ -e %s ]; then sed '%s' %s; else sed '%s' %[3]s; fi", patched, moved, chain, change)})
}

func TestClusterRelink(t *testing.T) {
	calls := fakeRelink(t, "", "bridge", "bridge")
	out, errs, code := kubectlDray("relink f1 f1u bridge")
	if !strings.HasPrefix(out, "link f1u of f1-split/f1 now uses bridge (") || code != exitOK || errs != "" {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	holds(t, "a call", calls(), `patch --namespace=f1-split --type=json --patch=[{"op":"test","path":"/metadata/generation","value":1},`+
		`{"op":"add","path":"/spec/links/0/transport","value":"bridge"}] -- chains.drayage.io f1`)
	fakeRelink(t, "", "bridge", "bridge")
	out, _, _ = kubectlDray("relink f1 f1u bridge --json")
	var got map[string]any
	if err := json.Unmarshal([]byte(out), &got); err != nil || got["schema"] != schemaLink || got["chain"] != "f1-split/f1" || got["link"] != "f1u" || got["transport"] != "bridge" || got["seconds"].(float64) <= 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestRelinkToWhatThereIs: the name of the transport changes, and nothing moves.
func TestRelinkToWhatThereIs(t *testing.T) {
	calls := fakeRelink(t, "", "shm", "shm")
	out, errs, code := kubectlDray("relink f1 f1u auto")
	if holds(t, "a call", calls(), `"value":"auto"`); !strings.HasPrefix(out, "link f1u of f1-split/f1 now uses shm (") || code != exitOK {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
}

// TestRelinkIsRefused: before anything changes.
func TestRelinkIsRefused(t *testing.T) {
	for _, c := range []struct {
		name, change, line, why string
		code                    int
	}{
		{"no such link", "", "f1 f2u bridge", `the spec of chain f1-split/f1 has no link "f2u", only f1u`, exitError},
		{"no such transport", "", "f1 f1u wire", "wire", exitError},
		{"no node makes it", "s/1600/1500/", "f1 f1u memif", "memif serves only ports with face dpdk", exitInfeasible},
		{"a device of the application's own", `s/"native"/"dpdk"/; s/1600/1500/`, "f1 f1u memif", "link f1u cannot move from shm to memif: nodes cannot move a link from shm to memif; change the spec, and replace its pods", exitInfeasible},
		{"an interface", `s/"face": "native"/"face": "netdev"/; s/"name": "f1u",/&"transport": "bridge",/`, "f1 f1u shm", "link f1u", exitInfeasible},
		{"between nodes", `0,/"node": "n2"/s//"node": "n1"/`, "f1 f1u bridge", "link f1u cannot move from shm to bridge: its ends are on different nodes (n1, n2), and it could not cross: dray-net does not run on n1", exitInfeasible},
		{"another node", `s/"node": "n2"/"node": "n7"/`, "f1 f1u bridge", "its pod cu-up is on n7, and the chain may then be on n1, n2", exitInfeasible},
	} {
		calls := fakeRelink(t, c.change, "bridge", "bridge")
		out, errs, code := kubectlDray("relink " + c.line)
		if code != c.code || !strings.Contains(errs, c.why) || out != "" || strings.Contains(calls(), "patch") {
			t.Errorf("%s: exit code %d, want %d with %q: %s%s", c.name, code, c.code, c.why, out, errs)
		}
	}
}

// TestRelinkStopsWaiting: the nodes do not follow, and it says how to go back.
func TestRelinkStopsWaiting(t *testing.T) {
	fakeRelink(t, "", "bridge", "shm")
	_, errs, code := kubectlDray("relink f1 f1u bridge --timeout 0")
	if code != exitError || !strings.Contains(errs, "not moved after 0s: the node n2 has cu-up.f1u on shm; ") || !strings.HasSuffix(errs, "; try: kubectl dray relink -n f1-split f1 f1u auto\n") {
		t.Errorf("exit code %d: %s", code, errs)
	}
}
