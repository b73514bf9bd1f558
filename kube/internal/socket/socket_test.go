// SPDX-License-Identifier: Apache-2.0

package socket

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/test/testenv"
)

// What is at a socket's path is replaced, but no directory with something in it: that may be
// anything.
func TestWhatIsInTheWay(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	for name, damage := range testenv.Damages("") {
		testenv.Must(t, os.RemoveAll(path))
		damage(t, path)
		l, err := Listen(path)
		if name == "a directory" {
			if _, kept := os.Stat(filepath.Join(path, "below")); err == nil || !strings.Contains(err.Error(), path) || kept != nil {
				t.Errorf("%s: %v, %v", name, err, kept)
			}
			testenv.Must(t, os.Remove(filepath.Join(path, "below")))
			l, err = Listen(path)
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		c, err := net.Dial("unix", path)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = c.Close()
		_ = l.Close()
	}
}
