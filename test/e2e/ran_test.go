// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/test/testenv"
)

// A mobile attaches to srsRAN's base station in a container without capabilities, and every figure of a RAN is measured.
func TestRAN(t *testing.T) {
	if os.Getenv("DRAY_RAN_SOURCE") == "" {
		t.Skip("the sources of a RAN are not part of Drayage: DRAY_RAN_SOURCE=FOLDER names them")
	}
	testenv.Program(t, "iperf3", "ping")
	b := newBench(t)
	for _, library := range []string{"libdray_iq.so", "libdray_sctp.so"} { // where make build puts them
		testenv.Must(t, os.Symlink(testenv.Built(t, library), filepath.Join(filepath.Dir(program), library)))
	}
	b.want(0, "image", "ran")
	text := "apiVersion: drayage/v1\nkind: Experiment\nname: ran\ntitle: a RAN\nsource: nobody\nrows:\n"
	figures := experiment.FiguresOf(experiment.ToolRAN)
	for _, f := range figures {
		text += "  - {name: " + string(f) + ", title: it, figure: " + string(f) + ", cell: {tool: ran, transport: veth, face: native, runtime: runc}}\n"
	}
	type result struct{ Lines []report.ExperimentLine }
	got := decode[result](t, b.want(0, "bench", b.file(text), "--rounds", "1", "--out", filepath.Join(t.TempDir(), "out"), "--json"))
	if len(got.Lines) != len(figures) {
		t.Fatalf("%d rows, want %d", len(got.Lines), len(figures))
	}
	for _, l := range got.Lines {
		if experiment.Figure(l.Row).PassFail() {
			continue // a verdict is of this machine at this time
		}
		if l.N != 1 || l.Failed != "" || l.NotRun != "" || l.Measured == nil || *l.Measured <= 0 {
			t.Errorf("%s: %+v", l.Row, l)
		}
	}
}
