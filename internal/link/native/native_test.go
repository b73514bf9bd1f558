// SPDX-License-Identifier: Apache-2.0

package native_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/drayage/dray/internal/link/afpacket"
	"github.com/drayage/dray/internal/link/bridge"
	"github.com/drayage/dray/internal/link/macvlan"
	"github.com/drayage/dray/internal/link/native"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/link/veth"
)

// TestMain lets the test program act as the relay, like dray.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "relay" {
		if err := afpacket.RelayMain(context.Background(), os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestBothNative(t *testing.T) { transporttest.RunNative(t, native.Wrap(veth.New()), 0, 1) }

func TestOneNative(t *testing.T) { transporttest.RunNative(t, native.Wrap(bridge.New()), 1) }

func TestDpdkBesideInterface(t *testing.T) { transporttest.RunDpdk(t, native.Wrap(veth.New()), 1) }

func TestMacvlanUplink(t *testing.T) {
	transporttest.RunNativeUplink(t, native.Wrap(macvlan.New()))
}

func TestPacketUplink(t *testing.T) {
	transporttest.RunNativeUplink(t, native.Wrap(afpacket.New()))
}
