// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// TestShowMount shows a mount to a process with private mounts, as the daemon of
// containers may be. It goes with the directory.
func TestShowMount(t *testing.T) {
	testenv.Root(t)
	dir := filepath.Join(t.TempDir(), "links", "p0")
	testenv.Must(t, os.MkdirAll(dir, 0o711))
	for name, mounts := range map[string][]string{
		"its own mounts": {"unshare", "--mount", "--propagation", "private"},
		"our mounts":     {"env"},
	} {
		cmd := exec.Command(mounts[0], append(mounts[1:], "sh", "-c", "sleep 1000 & echo $!; wait")...)
		out, err := cmd.StdoutPipe()
		testenv.Must(t, err)
		testenv.Must(t, cmd.Start())
		var child int
		_, err = fmt.Fscan(out, &child)
		testenv.Must(t, err)
		defer func() {
			_ = syscall.Kill(child, syscall.SIGKILL)
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
		testenv.Must(t, MountScratch(dir, 0))
		testenv.Must(t, ShowMount(dir, child))
		testenv.Must(t, os.WriteFile(filepath.Join(dir, "sock"), nil, 0o600))
		own := fmt.Sprintf("/proc/%d", cmd.Process.Pid)
		if _, err := StatIn(own+"/root", filepath.Join(dir, "sock")); err != nil {
			t.Errorf("%s: it does not see the mount: %v", name, err)
		}
		testenv.Must(t, unmountAll(dir))
		testenv.Must(t, removeDir(dir))
		testenv.Must(t, os.Mkdir(dir, 0o711))
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
			left, err := os.ReadFile(own + "/mountinfo")
			testenv.Must(t, err)
			if !strings.Contains(string(left), dir) {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s: the mount outlives the directory", name)
			}
		}
	}
}
