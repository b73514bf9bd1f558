// SPDX-License-Identifier: Apache-2.0

package ovsdpdk_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/ovsdpdk"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

func TestTwoEnds(t *testing.T) { transporttest.RunDpdk(t, ovsdpdk.New(), 0, 1) }

func TestDray(t *testing.T) { transporttest.RunDpdk(t, ovsdpdk.NewDray(), 0, 1) }

// TestDaemonDies kills a daemon during set-up: it must fail soon, give the
// reason, and leave nothing.
func TestDaemonDies(t *testing.T) {
	testenv.Root(t)
	testenv.Kernel(t, ovsdpdk.New().Probe(context.Background()))
	for program, want := range map[string]string{
		"ovs-vswitchd-dpdk": "ovs-vswitchd has ended",
		"ovsdb-server":      "ovs-vsctl",
	} {
		r := transporttest.NewRig(t, ovsdpdk.New(), transporttest.Options{Dpdk: []int{0, 1}})
		began := time.Now()
		err := r.Try(r.Steps(), r.KillDuring("create bridge", program))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s died: error %v, want one with %q", program, err, want)
		}
		if took := time.Since(began); took > 50*time.Second {
			t.Errorf("%s died: it took %s to notice", program, took)
		}
		r.Clean("after " + program + " died")
	}
}

// TestInterface: one of the ends is a network interface.
func TestInterface(t *testing.T) { transporttest.RunDpdkBeside(t, ovsdpdk.New()) }

// TestLearning: a learning switch joins two ends, also after it restarts.
func TestLearning(t *testing.T) {
	transporttest.RunDpdkForwarding(t, ovsdpdk.New(), chain.ForwardingLearning)
}

func TestThreeEnds(t *testing.T) { transporttest.RunDpdkMany(t, ovsdpdk.New(), 0, 1, 2) }

func TestTunnel(t *testing.T) { transporttest.RunDpdkTunnel(t, ovsdpdk.NewTunnel()) }
