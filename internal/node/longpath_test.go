// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/sockpath"
	"github.com/drayage/dray/test/testenv"
)

// TestALongStateDirectory: native ports are opened by a short path, and removal leaves no
// such path.
func TestALongStateDirectory(t *testing.T) {
	n, c, p := nativePair(t)
	above := filepath.Join(n.StateDir, "ab")
	n.StateDir = filepath.Join(above, strings.Repeat("d", 255))
	testenv.Must(t, os.MkdirAll(n.StateDir, 0o711))
	t.Cleanup(func() { testenv.Must(t, os.RemoveAll(above)) })
	ctx := context.Background()
	l, err := n.Create(ctx, "up", c, []byte(pairYAML), p)
	testenv.Must(t, err)
	for _, f := range c.Functions {
		dir := l.PortDirs()[f.Name]
		if dir != sockpath.Link(l.State.Sandboxes[f.Name].Ports) {
			t.Errorf("the ports of %s are in %s", f.Name, dir)
		}
		for _, port := range f.Ports {
			conn, err := net.Dial("unixpacket", filepath.Join(dir, port.Name))
			if err != nil {
				t.Errorf("port %s of %s: %v", port.Name, f.Name, err)
				continue
			}
			conn.Close()
		}
	}
	testenv.Must(t, l.Remove(ctx))
	if path := sockpath.Link(l.State.Sandboxes["a"].Ports); exists(path) {
		t.Errorf("%s is left", path)
	}
}

// TestAStateDirectoryBeyondThePathsOfTheKernel is refused by each command.
func TestAStateDirectoryBeyondThePathsOfTheKernel(t *testing.T) {
	for length, ok := range map[int]bool{longestStateDir: true, longestStateDir + 1: false} {
		t.Setenv("DRAY_STATE", strings.Repeat("/d", length/2)+strings.Repeat("d", length%2))
		if _, err := StateDir(); (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "choose a shorter one") {
			t.Errorf("%d bytes: %v", length, err)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
