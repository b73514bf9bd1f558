// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"testing"
	"time"

	"github.com/drayage/dray/internal/chain"
)

func TestQuickIsQuick(t *testing.T) {
	m, err := chain.ParseBench("bench-quick.yaml", BenchQuick())
	if err != nil {
		t.Fatal(err)
	}
	if m.Transports != nil || time.Duration(m.AtMost) > 3*time.Minute || m.AtMost == 0 {
		t.Errorf("transports %v, at most %v", m.Transports, m.AtMost)
	}
}
