// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
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
	b.figures(experiment.ToolRAN, map[experiment.Figure]string{}, "transport: veth, face: native, runtime: runc")
}

// OCUDU's two ends of a fronthaul exchange messages over net_dray in containers without capabilities, every figure is measured, and
// an end that is killed is back.
func TestFronthaul(t *testing.T) {
	if os.Getenv("DRAY_OCUDU_SOURCE") == "" {
		t.Skip("the sources of a fronthaul are not part of Drayage: DRAY_OCUDU_SOURCE=FOLDER names them")
	}
	b := newBench(t)
	b.env = append(b.env, "DRAY_LIB="+filepath.Dir(testenv.Built(t, "librte_net_dray.so")))
	b.want(0, "image", "fronthaul")
	b.figures(experiment.ToolFronthaul, map[experiment.Figure]string{"slots_lost": ", event: kill-ru"}, "transport: shm, face: dpdk, runtime: runc")
}

// figures measures all of a tool's figures once in a cell; some need more fields.
func (b *bench) figures(tool experiment.Tool, more map[experiment.Figure]string, cell string) {
	b.t.Helper()
	text := "apiVersion: drayage/v1\nkind: Experiment\nname: figures\ntitle: all figures\nsource: nobody\nrows:\n"
	figures := experiment.FiguresOf(tool)
	for _, f := range figures {
		text += fmt.Sprintf("  - {name: %s, title: it, figure: %s, cell: {tool: %s, %s%s}}\n", strings.ReplaceAll(string(f), "_", "-"), f, tool, cell, more[f])
	}
	type result struct{ Lines []report.ExperimentLine }
	got := decode[result](b.t, b.want(0, "bench", b.file(text), "--rounds", "1", "--out", filepath.Join(b.t.TempDir(), "out"), "--json"))
	if len(got.Lines) != len(figures) {
		b.t.Fatalf("%d rows, want %d", len(got.Lines), len(figures))
	}
	for i, l := range got.Lines {
		if figures[i].PassFail() {
			continue // a verdict is of this machine at this time
		}
		if l.N != 1 || l.Failed != "" || l.NotRun != "" || l.Measured == nil || *l.Measured < 0 {
			b.t.Errorf("%s: %+v", l.Row, l)
		}
	}
}
