// SPDX-License-Identifier: Apache-2.0

package vepa_test

import (
	"testing"

	"github.com/drayage/dray/internal/link/transporttest"
	"github.com/drayage/dray/internal/link/vepa"
)

func TestConformance(t *testing.T) { transporttest.Run(t, vepa.New()) }
