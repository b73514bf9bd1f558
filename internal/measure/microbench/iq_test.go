// SPDX-License-Identifier: Apache-2.0

package microbench

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fakeProbe is a probe that answers each line so.
func fakeProbe(t *testing.T, answer string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "probe")
	script := "#!/bin/sh\nwhile read -r round over rest; do " + answer + "; done\n"
	if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestIQ(t *testing.T) {
	var out strings.Builder
	s, err := IQ{
		Probe:  fakeProbe(t, `v='2000, 50, 20, 90'; [ $over = dray ] || v='500, 100, 40, 80'; echo "{\"case\": \"$over\", \"values\": [$v]}"`),
		Rounds: 3, Out: &out,
	}.Run(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	const group = "100 PRB, 184320 B per subframe: "
	for _, want := range []struct {
		what, over string
		value      float64
	}{
		{"CPU per subframe, both ends", "libdray messages, shm", 50}, {"one way, p50", "ZeroMQ, ipc", 40},
		{"one way, p99", "ZeroMQ, TCP over veth", 80}, {"real-time factor", "libdray messages, shm", 2}, {"real-time factor", "ZeroMQ, ipc", 0.5},
	} {
		if got := s.Figure(group+want.what, want.over, "").Value(); got != want.value {
			t.Errorf("%s, %s: %v, want %v", want.what, want.over, got, want.value)
		}
	}
	if !strings.Contains(out.String(), "2 of: libdray messages, shm") {
		t.Errorf("no ratio of the CPU time to libdray's in\n%s", &out)
	}
}

func TestIQWithTooFewValues(t *testing.T) {
	_, err := IQ{Probe: fakeProbe(t, `echo '{"case": "dray 15360", "values": [1]}'`), Rounds: 1, Out: &strings.Builder{}}.Run(context.Background())
	if err == nil || !strings.Contains(err.Error(), "dray 15360: 1 values, want 4") {
		t.Errorf("error %v", err)
	}
}
