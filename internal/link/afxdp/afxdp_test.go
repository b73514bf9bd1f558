// SPDX-License-Identifier: Apache-2.0

package afxdp

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/spec/chain"
)

func TestConformance(t *testing.T) { transporttest.RunDpdk(t, New(), 0, 1) }

// TestUserNamespaces rejects a function whose application could not start.
func TestUserNamespaces(t *testing.T) {
	s := transport.Spec{Link: "n3", Ends: []transport.End{{Function: "a", Runtime: chain.RuntimeDocker}, {Function: "b", Runtime: chain.RuntimeRunc}}}
	if err := checkRuntimes(s); err == nil || !strings.Contains(err.Error(), "function b has the runtime runc") {
		t.Error(err)
	}
}
