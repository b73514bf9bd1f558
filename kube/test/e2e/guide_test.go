// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/test/docs"
)

// Every command of the guide works, as a reader would type it, but for the
// first and the last block: they start and stop the cluster of these tests. The
// guide itself says what else is not run.
func TestEveryCommandOfTheGuideWorks(t *testing.T) {
	if testing.Short() {
		t.Skip("its example requires a latency that a busy machine does not have: run make test-kube")
	}
	c := newCluster(t)
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile(filepath.Join(root, "docs/kubernetes.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docs.Blocks(string(guide))
	if err != nil {
		t.Fatal(err)
	}
	blocks = slices.DeleteFunc(blocks, func(b docs.Block) bool { return b.NotRun != "" })
	last := len(blocks) - 1
	if last < 4 || !strings.HasPrefix(blocks[0].Script, "make kube\n") || blocks[last].Script != "make kube-down\n" {
		t.Fatalf("the guide has %d blocks; does it still begin with make kube and end with make kube-down?", len(blocks))
	}
	t.Cleanup(func() { c.kubectl("delete", "namespace", "f1-split", "load-balancer", "--ignore-not-found") }) // of a command that failed
	for _, b := range blocks[1:last] {
		cmd := exec.Command("bash", "-euo", "pipefail", "-c", b.Script)
		cmd.Dir = root
		cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(c.program)+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("docs/kubernetes.md:%d: %v\n%s\n%s", b.Line, err, b.Script, out)
		}
		t.Logf("docs/kubernetes.md:%d: ok\n%s", b.Line, out)
	}
}
