// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/drayage/dray/internal/spec/chain"
)

func TestInDocker(t *testing.T) {
	e, err := Parse("x.yaml", []byte(experimentHead+
		"  - {name: tcp, title: TCP, figure: throughput, cell: {tool: tcp, transport: veth, runtime: runc}}\n"+
		"  - {name: vm, title: VM, figure: throughput, cell: {tool: tcp, transport: veth, runtime: vm}}\n"+
		"  - {name: image, title: Image, figure: runs, cell: {tool: image, image: debian, runtime: runc}}\n"+
		"  - {name: start, title: Start, figure: start_time, cell: {tool: start, runtime: runc}}\n"+
		"  - {name: twin, title: Twin, figure: start_time, cell: {tool: start, runtime: docker}}\n"+
		"  - {name: memory, title: Memory, figure: memory, cell: {tool: start, runtime: runc}}\n"+
		"  - {name: none, title: None, not_run: no NIC}\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := e.InDocker()
	for i, want := range []chain.RuntimeName{"docker", "vm", "runc", "runc", "docker", "docker", ""} {
		r := got.Rows[i]
		if r.Cell.Runtime != want || strings.HasSuffix(r.Title, "(in Docker)") != (r.Cell.Runtime != e.Rows[i].Cell.Runtime) {
			t.Errorf("%s: %q in %q, want %q", r.Name, r.Title, r.Cell.Runtime, want)
		}
	}
	if got.Rows[0].Cell.String() != "tcp/veth/docker" || e.Rows[0].Cell.Runtime != chain.RuntimeRunc || len(got.Notes) != 1 || len(e.Notes) != 0 {
		t.Errorf("%s of %+v, notes %q", got.Rows[0].Cell, e.Rows[0].Cell, got.Notes)
	}
	e.Rows = e.Rows[1:5]
	if same := e.InDocker(); len(same.Notes) != 0 {
		t.Errorf("a note about nothing: %q", same.Notes)
	}
}
