// SPDX-License-Identifier: Apache-2.0

package process_test

import (
	"testing"

	"github.com/drayage/dray/internal/function/process"
	"github.com/drayage/dray/internal/function/runtimetest"
	"github.com/drayage/dray/test/testenv"
)

func TestConformance(t *testing.T) {
	testenv.Root(t)
	testenv.Program(t, "perl")
	runtimetest.Run(t, runtimetest.Config{Runtime: process.New()})
}
