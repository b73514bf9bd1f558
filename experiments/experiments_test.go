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

func TestPublishedExperiments(t *testing.T) {
	names := Names()
	if len(names) < 15 {
		t.Fatalf("only %v", names)
	}
	for _, name := range names {
		e, err := Published(name)
		if err != nil {
			t.Error(err)
			continue
		}
		if e.Name != name || len(e.Rows) == 0 {
			t.Errorf("%s: called %q, with %d rows", name, e.Name, len(e.Rows))
		}
	}
	if e, err := Published("../secret"); e != nil || err != nil {
		t.Errorf("a name that is none gives %v, %v", e, err)
	}
}
