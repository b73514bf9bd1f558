// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"testing"

	"github.com/drayage/dray/internal/runtime/process"
	"github.com/drayage/dray/internal/runtime/runtimetest"
	"github.com/drayage/dray/internal/testenv"
)

func TestConformance(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "perl")
	runtimetest.Run(t, runtimetest.Config{Runtime: process.New()})
}
