// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/spec/chain"
)

// TestPathsThatDockerWouldSplit must not become options of the mount.
func TestPathsThatDockerWouldSplit(t *testing.T) {
	for path, want := range map[string]bool{
		"/run/dray/f1/cu/ports": true, "/tmp/a b=c": true, "/tmp/x,readonly=false": false, "/tmp/\"": false, "/tmp/a\nb": false,
	} {
		flags, err := bindMount(runtime.Bind{Source: path, Target: runtime.PortsInside})
		if (err == nil) != want {
			t.Errorf("%q: %q, %v", path, flags, err)
		}
	}
	s := runtime.Spec{Dir: "/tmp/a,b", Function: chain.Function{Name: "cu", Ports: []chain.Port{{Name: "f1u", Face: chain.FaceNative}}}}
	if !s.HasPortSockets() {
		t.Fatal("the test's function has no native port")
	}
	r := &Runtime{driver: "systemd"}
	if _, err := r.functionFlags(context.Background(), s, "x", []string{"true"}); err == nil || !strings.Contains(err.Error(), "DRAY_STATE") {
		t.Errorf("a function's ports below a path with a comma: %v", err)
	}
}
