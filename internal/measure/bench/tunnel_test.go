// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/test/testenv"
)

// tunnelHost has a transport for dpdk ports, and a VNF that is never started.
func tunnelHost(t *testing.T) *inventory.Inventory {
	t.Helper()
	bin := t.TempDir()
	testenv.Must(t, os.WriteFile(filepath.Join(bin, vnfProgram), nil, 0o755))
	t.Setenv("PATH", bin)
	inv := host2()
	inv.Transports = append(inv.Transports, inventory.Transport{Item: item("vhost-user", inventory.OK),
		Caps: inventory.Caps{Faces: []string{"dpdk"}, Isolation: "link", MinEnds: 2, MaxEnds: 2, Processes: 1}})
	return inv
}

func TestSmallestFramesOfTunnels(t *testing.T) {
	rows := Rows(matrixOf(t, "transports: [vhost-user]\nsizes: [64, 72, 108, imix]\nvnfs: [l2fwd, bng, gtpu]\n"), tunnelHost(t))
	var got []string
	for _, r := range rows {
		text := r.Config.VNF + " " + r.Config.Size
		if r.Skipped != "" {
			if !strings.Contains(r.Skipped, "64 bytes") && !strings.Contains(r.Skipped, r.Config.Size+" bytes") || r.Fix == "" {
				t.Errorf("%s: %q, fix %q", text, r.Skipped, r.Fix)
			}
			text += " " + r.Fix
		}
		got = append(got, text)
	}
	want := []string{
		"l2fwd 64", "l2fwd 72", "l2fwd 108", "l2fwd imix",
		"bng 64 sizes: [72]", "bng 72", "bng 108", "bng imix sizes: [72]",
		"gtpu 64 sizes: [108]", "gtpu 72 sizes: [108]", "gtpu 108", "gtpu imix sizes: [108]",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestPortsTakeWhatTheGatewayAdds: ports are large enough for outgoing frames.
func TestPortsTakeWhatTheGatewayAdds(t *testing.T) {
	inv := tunnelHost(t)
	m := matrixOf(t, "transports: [vhost-user]\nvnfs: [bng]\n")
	for size, want := range map[string]int{"72": 1500, "1518": 1524} {
		_, text, p, err := prepare(m, inv, record.Config{Transport: "vhost-user", Face: "dpdk", Runtime: "process", Size: size, VNF: "bng"})
		if err != nil {
			t.Errorf("%s: %v", size, err)
			continue
		}
		for _, l := range p.Links {
			if l.MTU != want {
				t.Errorf("frames of %s bytes: link %s has an MTU of %d, want %d:\n%s", size, l.Name, l.MTU, want, text)
			}
		}
	}
}
