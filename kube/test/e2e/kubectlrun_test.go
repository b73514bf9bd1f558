// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// f1Split is a copy of the example in another namespace, with a limit that a busy machine
// meets, and without a loss, which takes 3000 packets to prove.
func f1Split(t *testing.T, namespace string) string {
	t.Helper()
	dir := t.TempDir()
	files, err := filepath.Glob("../../../examples/kubernetes/f1-split/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = []byte(strings.NewReplacer("f1-split", namespace, "latency: 5ms", "latency: 100ms", "percentile: 99", "percentile: 90", "packet_loss_ratio: 1e-3", "").Replace(string(text)))
		if err := os.WriteFile(filepath.Join(dir, filepath.Base(file)), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// kubectl dray run leaves nothing of what it created, and everything that existed before.
func TestKubectlDrayRun(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	dray := c.plugin()
	other := c.namespace + "-run"
	t.Cleanup(func() { c.kubectl("delete", "namespace", other, "--ignore-not-found") }) // of a run that failed
	out, code := dray("-n", other, "run", "-k", f1Split(t, other), "--timeout", patience.String())
	if code != 0 || !strings.Contains(out, "≤ 100ms at p90") || strings.Contains(out, "not measurable") {
		t.Errorf("the verdicts: exit code %d", code)
	}
	if left := c.kubectl("get", "namespace", other, "--ignore-not-found", "-o", "name"); left != "" {
		t.Errorf("left: %s", left)
	}
	dir := f1Split(t, c.namespace)
	chain, pods := filepath.Join(dir, "chain.yaml"), filepath.Join(dir, "pods.yaml")
	text, err := os.ReadFile(chain)
	if err != nil {
		t.Fatal(err)
	}
	c.apply(string(text))
	if _, code := dray("run", "-f", chain, "-f", pods, "--timeout", patience.String()); code != 0 {
		t.Errorf("a chain that exists: exit code %d", code)
	}
	if left := c.in("get", "pods,resourceclaims,chains", "-o", "name"); left != "chain.drayage.io/f1\n" {
		t.Errorf("left: %s", left)
	}
}
