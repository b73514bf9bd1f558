// SPDX-License-Identifier: Apache-2.0

package afpacket_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"github.com/drayage/dray/internal/link/afpacket"
	"github.com/drayage/dray/internal/link/transporttest"
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

func TestUplink(t *testing.T) { transporttest.RunUplink(t, afpacket.New()) }
