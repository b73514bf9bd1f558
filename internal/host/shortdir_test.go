// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/sockpath"
	"github.com/drayage/dray/test/testenv"
)

// TestShortDirs: a socket in a directory with a long path has a short one, once it is asked
// for, until its directory's parent is dropped.
func TestShortDirs(t *testing.T) {
	testenv.Root(t)
	above := t.TempDir()
	dir := filepath.Join(above, strings.Repeat("d", 100))
	other := filepath.Join(above+"-other", strings.Repeat("d", 100))
	t.Cleanup(func() { testenv.Must(t, DropShortDirs(above+"-other")) })
	testenv.Must(t, os.Mkdir(dir, 0o755))
	for _, d := range []string{dir, dir, above, other} {
		testenv.Must(t, ShortenDir(d, "vhost.sock"))
	}
	if _, err := os.Lstat(sockpath.Link(above)); err == nil {
		t.Error("a directory with a short path has a link")
	}
	l, err := net.Listen("unix", filepath.Join(sockpath.Dir(dir, "vhost.sock"), "vhost.sock"))
	testenv.Must(t, err)
	defer l.Close()
	conn, err := DialUnix(context.Background(), "unix", filepath.Join(dir, "vhost.sock"))
	testenv.Must(t, err)
	conn.Close()
	if _, err := DialUnix(context.Background(), "unix", filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) || strings.Contains(err.Error(), "/proc/self") {
		t.Errorf("a socket that does not exist: %v", err)
	}

	testenv.Must(t, DropShortDirs(above))
	if _, err := os.Lstat(sockpath.Link(dir)); !os.IsNotExist(err) {
		t.Errorf("the link is left: %v", err)
	}
	testenv.Must(t, DropShortDirs(above)) // again
	if target, err := os.Readlink(sockpath.Link(other)); err != nil || target != other {
		t.Errorf("the link of another directory: %q, %v", target, err)
	}

	// Something else has the name: never a path to another directory.
	testenv.Must(t, os.Symlink(other, sockpath.Link(dir)))
	defer os.Remove(sockpath.Link(dir))
	if err := ShortenDir(dir, "vhost.sock"); err == nil || !strings.Contains(err.Error(), "leads to "+other) {
		t.Errorf("a link to another directory: %v", err)
	}
}
