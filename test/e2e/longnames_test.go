// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/vpp"
	"github.com/drayage/dray/test/testenv"
)

// The longest legal names.
const (
	longChain = "chain-with-thirty-two-characters"
	longLink  = "link-ab-of-thirty-two-characters"
	longPort  = "port-of-15-char"
	longA     = "function-a-of-thirty-two-letters"
	longB     = "function-b-of-thirty-two-letters"
)

// longState gives the bench a state directory with a path that is too long for any socket.
func (b *bench) longState() {
	b.t.Helper()
	top := filepath.Join(b.state, "long")
	// The last part names the control groups, by which NoLeaks finds them.
	state := filepath.Join(top, strings.Repeat("long/", 40), filepath.Base(b.state))
	testenv.Must(b.t, os.MkdirAll(state, 0o711))
	for dir := state; dir != b.state; dir = filepath.Dir(dir) {
		testenv.Must(b.t, os.Chmod(dir, 0o711)) // whatever the umask
	}
	b.t.Cleanup(func() {
		b.dray("down", longChain)
		testenv.Must(b.t, os.RemoveAll(top))
	})
	b.env = append(b.env, "DRAY_STATE="+state)
}

// longNames calls test for a chain with a state directory of the usual length, and for one with
// a long path.
func longNames(t *testing.T, test func(b *bench)) {
	for _, state := range []string{"names", "names and state directory"} {
		t.Run(state, func(t *testing.T) {
			b := newBench(t)
			if state != "names" {
				b.longState()
			}
			test(b)
		})
	}
}

// TestLongNames passes packets between native ports with the longest names.
func TestLongNames(t *testing.T) {
	t.Parallel()
	draygen := generator(t)
	for runtime, transport := range map[string]string{"process": "shm", "runc": "veth"} {
		t.Run(runtime, func(t *testing.T) {
			longNames(t, func(b *bench) {
				b.want(0, "up", b.file(longYAML(runtime, "native", transport)))
				got := b.between(longChain, draygen, longA+"."+longPort, longB+"."+longPort, "2000", "20kpps", nil)
				if got.Received != 2000 || got.Lost+got.Corrupt+got.Duplicates > 0 {
					b.t.Errorf("%+v", got)
				}
				b.want(0, "down", longChain)
			})
		})
	}
}

// TestLongNamesOfASwitch brings up an Open vSwitch whose sockets are on the host.
func TestLongNamesOfASwitch(t *testing.T) {
	t.Parallel()
	testenv.Program(t, "ovs-vswitchd")
	longNames(t, func(b *bench) {
		b.want(0, "up", b.file(longYAML("process", "netdev", "ovs")))
		b.want(0, "down", longChain)
	})
}

func longYAML(runtime, face, transport string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "apiVersion: drayage/v1\nkind: Chain\nname: %s\nfunctions:\n", longChain)
	for _, name := range []string{longA, longB} {
		fmt.Fprintf(&b, "  - {name: %s, runtime: %s, command: [sleep, \"1000\"], ports: [{name: %s, face: %s}]}\n", name, runtime, longPort, face)
	}
	fmt.Fprintf(&b, "links:\n  - {name: %s, ends: [%s.%s, %s.%s], transport: %s}\n", longLink, longA, longPort, longB, longPort, transport)
	return b.String()
}

// TestLongNamesOfDPDK passes packets between DPDK applications with the longest names. On the
// host they reach their sockets by other paths than in containers.
func TestLongNamesOfDPDK(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ transport, runtime string }{
		{"shm", "process"}, {"memif", "process"}, {"vhost-user", "process"}, {vpp.NameMemif, "process"}, {"memif", "runc"},
	} {
		t.Run(test.transport+"/"+test.runtime, func(t *testing.T) {
			if test.transport == vpp.NameMemif {
				testenv.Kernel(t, vpp.NewMemif().Probe(context.Background()))
			}
			b := newDPDKBench(t)
			b.longState()
			names := strings.NewReplacer("{name: n3, ends", "{name: "+longLink+", ends", "gen", longA, "sink", longB, "n3", longPort, "runc", test.runtime)
			b.want(0, "up", b.file(names.Replace(testpmds(longChain, test.transport, "runtime: runc"))))
			b.receivesFrom(longChain, longA, longB)
			b.want(0, "down", longChain)
		})
	}
}
