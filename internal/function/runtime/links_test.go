// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/test/testenv"
)

// TestClearLinks: the peer of a memif link has taken the place of the socket, and filled
// the directory. Nothing is left there, and nothing outside is removed.
func TestClearLinks(t *testing.T) {
	s := Spec{Dir: t.TempDir(), Function: chain.Function{Name: "f"}}
	outside := filepath.Join(t.TempDir(), "precious")
	own, others := s.LinkDir("n3"), filepath.Join(t.TempDir(), "n6")
	for _, dir := range []string{own, others, outside} {
		testenv.Must(t, os.MkdirAll(filepath.Join(dir, "memif.sock", "full"), 0o700))
	}
	testenv.Must(t, os.Symlink(outside, filepath.Join(own, "link")))
	testenv.Must(t, os.Symlink(outside, filepath.Join(own, "memif.sock", "link")))
	socket, err := net.Listen("unix", filepath.Join(own, "old.sock"))
	testenv.Must(t, err)
	defer socket.Close()

	s.Vdevs = []dpdk.Vdev{{Port: "n3", Dir: own}, {Port: "n6", Dir: others}, {Port: "n9"}}
	testenv.Must(t, s.ClearLinks())
	for dir, want := range map[string]int{own: 0, others: 1, outside: 1} {
		entries, err := os.ReadDir(dir)
		testenv.Must(t, err)
		if len(entries) != want {
			t.Errorf("%s holds %v", dir, entries)
		}
	}
}

// TestLinkToAPeersSocket: a container connects through a link, again after it has put
// something in the link's place, and sees the peer's directory read-only.
func TestLinkToAPeersSocket(t *testing.T) {
	s := Spec{Dir: t.TempDir(), Function: chain.Function{Name: "f"}}
	own := s.LinkDir("n3")
	testenv.Must(t, os.MkdirAll(filepath.Join(own, "memif.sock", "full"), 0o700))
	s.Vdevs = []dpdk.Vdev{{Port: "n3", Dir: own, Peer: "/peer", Awaits: "memif.sock"}}
	for range 2 {
		testenv.Must(t, s.ClearLinks())
		target, err := os.Readlink(filepath.Join(own, "memif.sock"))
		if err != nil || target != "/run/dray/peers/n3/memif.sock" {
			t.Errorf("the link leads to %q, %v", target, err)
		}
	}
	binds, err := s.Binds()
	testenv.Must(t, err)
	if want := (Bind{Source: "/peer", Target: "/run/dray/peers/n3"}); !slices.Contains(binds, want) {
		t.Errorf("binds %+v", binds)
	}
}
