// SPDX-License-Identifier: Apache-2.0

package runc_test

import (
	"context"
	"testing"

	"github.com/drayage/dray/internal/runtime/runc"
	"github.com/drayage/dray/internal/runtime/runtimetest"
	"github.com/drayage/dray/internal/testenv"
)

func needRunc(t *testing.T) {
	t.Helper()
	testenv.Root(t)
	testenv.Program(t, "runc", "perl")
	testenv.Kernel(t, runc.New().Probe(context.Background()))
}

func TestConformance(t *testing.T) {
	needRunc(t)
	runtimetest.Run(t, runtimetest.Config{Runtime: runc.New()})
}
