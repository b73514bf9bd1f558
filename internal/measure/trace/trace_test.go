// SPDX-License-Identifier: Apache-2.0

package trace

import (
	"context"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/plan"
)

// An interface is observed before the generator starts: its tap has opened, or failed, when openTaps returns.
func TestTapsOfInterfacesOpenFirst(t *testing.T) {
	tracer := &Tracer{Live: &node.Live{}, points: []point{{end: plan.End{Function: "a", Port: "x"}}}}
	all := tracer.openTaps(context.Background())
	if all.errs[0] == nil {
		t.Error("openTaps returned before it opened the interface")
	}
	if _, err := all.end(context.Background()); err == nil || !strings.Contains(err.Error(), "function a has no sandbox") {
		t.Errorf("%v", err)
	}
}
