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
// blocks that start and stop the cluster of these tests. The guide itself says
// what else is not run.
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
	stop := slices.IndexFunc(blocks, func(b docs.Block) bool { return b.Script == "make kube-down\n" })
	if len(blocks) < 6 || stop < 0 || !strings.HasPrefix(blocks[0].Script, "make kube\n") {
		t.Fatalf("the guide has %d blocks; does it still begin with make kube, and has it make kube-down?", len(blocks))
	}
	blocks = slices.Delete(blocks, stop, stop+1)
	t.Cleanup(func() { c.kubectl("delete", "namespace", "f1-split", "load-balancer", "--ignore-not-found") }) // of a command that failed
	for _, b := range blocks[1:] {
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
