// SPDX-License-Identifier: Apache-2.0

// Package bench runs a matrix of measurements: it brings each configuration up,
// offers it each load, takes it down, and repeats that in the next round.
package bench

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/result/report"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
	"github.com/drayage/dray/internal/spec/matrix"
	"github.com/drayage/dray/internal/spec/parse"
)

// Rows are a matrix's configurations on a host, including those that cannot run:
// an unusable transport or runtime is one row with the reason.
func Rows(m *matrix.Matrix, inv *inventory.Inventory) []report.BenchRow {
	var rows []report.BenchRow
	for _, name := range transportNames(m, inv) {
		t := inv.Transport(name)
		if row, skipped := skippedTransport(m, inv, name, t); skipped {
			rows = append(rows, row)
			continue
		}
		for _, runtime := range m.Runtimes {
			rows = append(rows, transportRows(m, inv, t, runtime)...)
		}
	}
	return rows
}

// transportNames are the transports to compare.
func transportNames(m *matrix.Matrix, inv *inventory.Inventory) []string {
	if len(m.Transports) > 0 {
		return m.Transports
	}
	var names []string
	for _, t := range inv.Transports {
		names = append(names, t.Name)
	}
	return names
}

// none fills a column if a row never gets that far.
const none = "–"

func rowOf(t *inventory.Transport, c record.Config) report.BenchRow {
	return report.BenchRow{
		Config: c, Privileges: t.Caps.Privileges, Isolation: t.Caps.Isolation, Copies: t.Caps.Copies,
	}
}

// skippedTransport is the row of a transport that is skipped entirely.
func skippedTransport(m *matrix.Matrix, inv *inventory.Inventory, name string, t *inventory.Transport) (report.BenchRow, bool) {
	nothing := record.Config{Transport: name, Face: none, Runtime: none, Size: none, VNF: none}
	if t == nil {
		return report.BenchRow{Config: nothing, Skipped: "this build has no such transport"}, true
	}
	row := rowOf(t, nothing)
	switch {
	case !t.Usable():
		row.Skipped, row.Fix = t.Reason, t.Fix
	case t.Caps.Tunnel:
		row.Skipped = "it joins functions on different hosts, and a matrix has one host; measure it in a chain with hosts"
	case t.Caps.MaxEnds == 1:
		row.Skipped = "it joins a function to a host interface, not two functions"
	case len(facesOf(m, inv, t)) == 0:
		row.Skipped = "it serves only ports with face " + strings.Join(t.Caps.Faces, " or ")
	default:
		return row, false
	}
	return row, true
}

// facesOf are the faces to measure a transport with: the requested ones that it
// has. By default that is the interface face if it joins two, and otherwise each
// face that it has.
func facesOf(m *matrix.Matrix, inv *inventory.Inventory, t *inventory.Transport) []chain.Face {
	var faces, others []chain.Face
	for _, f := range t.Caps.Faces {
		face := chain.Face(f)
		if slices.Contains(m.Faces, face) || len(m.Faces) == 0 {
			faces = append(faces, face)
		}
		if face != chain.FaceNetdev {
			others = append(others, face)
		}
	}
	if len(m.Faces) > 0 || !slices.Contains(faces, chain.FaceNetdev) {
		return faces
	}
	pair := record.Config{Transport: t.Name, Face: string(chain.FaceNetdev), Runtime: string(chain.RuntimeProcess), Size: "64", VNF: string(matrix.VNFDirect)}
	if reason, _ := obstacle(m, inv, pair); reason != "" && len(others) > 0 {
		return others
	}
	return []chain.Face{chain.FaceNetdev}
}

func transportRows(m *matrix.Matrix, inv *inventory.Inventory, t *inventory.Transport, runtime chain.RuntimeName) []report.BenchRow {
	if rt := inventory.Find(inv.Runtimes, string(runtime)); rt == nil || !rt.Usable() {
		row := rowOf(t, record.Config{Transport: t.Name, Face: none, Runtime: string(runtime), Size: none, VNF: none})
		row.Skipped = fmt.Sprintf("this build has no runtime %s", runtime)
		if rt != nil {
			row.Skipped, row.Fix = fmt.Sprintf("runtime %s: %s", runtime, rt.Reason), rt.Fix
		}
		return []report.BenchRow{row}
	}
	var rows []report.BenchRow
	for _, vnf := range m.VNFs {
		for _, face := range facesOf(m, inv, t) {
			for _, size := range m.Sizes {
				c := record.Config{Transport: t.Name, Face: string(face), Runtime: string(runtime), Size: size.String(), VNF: string(vnf)}
				row := rowOf(t, c)
				row.Skipped, row.Fix = obstacle(m, inv, c)
				row.Untried = row.Skipped == "" && t.Status == inventory.NeverRun
				rows = append(rows, row)
			}
		}
	}
	return rows
}

// obstacle is why a configuration cannot come up; empty if it can.
func obstacle(m *matrix.Matrix, inv *inventory.Inventory, c record.Config) (reason, fix string) {
	if c.VNF != string(matrix.VNFDirect) && c.Face != string(chain.FaceDPDK) {
		return "dray-vnf is a DPDK application, and cannot use ports with face " + c.Face, ""
	}
	if m.Batch > 0 && c.Face != string(chain.FaceNetdev) {
		return fmt.Sprintf("batch counts packets of a system call, and ports with face %s send without system calls", c.Face), ""
	}
	if matrix.VNF(c.VNF).Workers() > 0 && inMachine(c) {
		return "a matrix runs no load balancer in virtual machines", ""
	}
	if reason, fix := tooSmall(c); reason != "" {
		return reason, fix
	}
	_, _, _, err := prepare(m, inv, c)
	var infeasible *plan.Infeasible
	var fault *parse.Error
	switch {
	case errors.As(err, &infeasible) && len(infeasible.Plan.Violations) > 0:
		v := infeasible.Plan.Violations[0]
		return v.Constraint + ": " + v.Reason, v.Fix
	case errors.As(err, &fault):
		return fault.Text, fault.Fix
	case err != nil:
		return err.Error(), ""
	}
	return "", ""
}

// Runnable counts the rows that run.
func Runnable(rows []report.BenchRow) int {
	n := 0
	for _, r := range rows {
		if r.Skipped == "" {
			n++
		}
	}
	return n
}

// Baseline is the transport that ratios refer to: the requested one, or else
// veth, or the first that runs.
func Baseline(m *matrix.Matrix, rows []report.BenchRow) string {
	if m.Baseline != "" {
		return m.Baseline
	}
	first := ""
	for _, r := range rows {
		if r.Skipped != "" {
			continue
		}
		if r.Config.Transport == "veth" {
			return "veth"
		}
		if first == "" {
			first = r.Config.Transport
		}
	}
	return first
}
