// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/cpulist"
	"github.com/drayage/dray/internal/spec/layout"
	"github.com/drayage/dray/internal/spec/units"
)

// Text writes the plan as tables for people. Verbose adds hardware addresses, queues,
// the reasons for placement, and the alternatives to each chosen transport.
// Alternatives for a link without a transport are always written. Lines fit into width;
// 0 means no limit.
func (p *Plan) Text(w io.Writer, width int, verbose bool) error {
	return p.text(w, width, verbose, verbose)
}

// Explained is Text with the alternatives to each host and each transport.
func (p *Plan) Explained(w io.Writer, width int, verbose bool) error {
	return p.text(w, width, verbose, true)
}

func (p *Plan) text(w io.Writer, width int, verbose, alternatives bool) error {
	out := bufio.NewWriter(w)
	t := &text{w: out, width: width, verbose: verbose, alternatives: alternatives}
	t.sentence("", "chain %s on %s: %s", p.Chain, p.Host, p.summary())
	if p.Hosts != nil {
		t.sentence("", "%s", p.hostsText())
	}
	if p.Placement != nil {
		t.sentence("", "%s", p.Placement)
	}
	t.functions(p)
	t.links(p.Links)
	t.classes(p.Links)
	t.ends(p.Links)
	t.elsewhere(p.Functions)
	t.rejected(p.Links)
	t.terms(p.Paths)
	t.evidence(p)
	t.violations("Cannot be built", p.Violations, true)
	t.violations("Not expected to be met", p.Violations, false)
	t.violations("Cannot be simulated on this machine", p.Unsimulated, true)
	t.warnings(p)
	return out.Flush()
}

func (p *Plan) summary() string {
	hard := slices.ContainsFunc(p.Violations, func(v Violation) bool { return v.Hard })
	switch {
	case len(p.Violations) == 0:
		return "feasible"
	case hard:
		return "cannot be built"
	default:
		return "can be built, but not every requirement is expected to be met"
	}
}

// text writes the sections of a plan and omits a section without rows.
type text struct {
	w            io.Writer
	width        int
	verbose      bool
	alternatives bool
}

// sentence writes one paragraph, indented.
func (t *text) sentence(indent, format string, args ...any) {
	for _, line := range layout.Wrap(indent+fmt.Sprintf(format, args...), t.width) {
		fmt.Fprintln(t.w, line)
	}
}

// table writes aligned columns below a blank line.
func (t *text) table(header string, rows []string) {
	if len(rows) == 0 {
		return
	}
	fmt.Fprintln(t.w)
	table := layout.Table{Head: strings.Split(header, "\t")}
	for _, row := range rows {
		table.Add(strings.Split(row, "\t")...)
	}
	_ = table.Write(t.w, t.width) // its errors stay in the bufio.Writer, which reports them
}

func row(cells ...any) string {
	var parts []string
	for _, c := range cells {
		parts = append(parts, fmt.Sprint(c))
	}
	return strings.Join(parts, "\t")
}

func (t *text) functions(p *Plan) {
	where, header := func(_, cpus string) string { return cpus }, "FUNCTION\tRUNTIME\tCPUS"
	if p.Hosts != nil {
		where, header = func(host, cpus string) string { return row(host, cpus) }, "FUNCTION\tRUNTIME\tHOST\tCPUS"
	}
	var rows []string
	for _, f := range p.Functions {
		cpus := "any"
		if f.CPUs != nil {
			cpus = cpulist.Format(f.CPUs)
			if f.Compute != nil {
				cpus += ", " + f.Compute.Percent()
			}
		}
		if t.verbose {
			rows = append(rows, row(f.Name, f.Runtime, where(f.On, cpus), f.Reason))
		} else {
			rows = append(rows, row(f.Name, f.Runtime, where(f.On, cpus)))
		}
	}
	t.table(t.header(header, "\tREASON"), rows)
}

func (t *text) header(short, more string) string {
	if t.verbose {
		return short + more
	}
	return short
}

func (t *text) links(links []Link) {
	var rows []string
	for _, l := range links {
		rows = append(rows, row(l.Name, dash(l.Way()), l.Isolation, l.MTU, loadText(l), shapesText(l), dash(l.Reason)+pollText(l.CPUs)))
	}
	t.table("LINK\tTRANSPORT\tISOLATION\tMTU\tLOAD\tSHAPE\tREASON", rows)
}

func loadText(l Link) string {
	if l.Load == 0 {
		return "none"
	}
	return l.LoadText()
}

func pollText(cpus []int) string {
	if len(cpus) == 0 {
		return ""
	}
	return "; polls on CPU " + cpulist.Format(cpus)
}

// shapesText is the qdisc of a link's ports; of each port, if they differ.
func shapesText(l Link) string {
	own := false
	var parts []string
	for _, e := range l.Ends {
		if e.Uplink == "" {
			own = own || e.Shape != nil
			parts = append(parts, fmt.Sprintf("%s.%s: %s", e.Function, e.Port, shapeText(cmp.Or(e.Shape, l.Shape))))
		}
	}
	if own {
		return strings.Join(parts, ", ")
	}
	return shapeText(l.Shape)
}

func shapeText(q *chain.Qdisc) string {
	if q == nil {
		return "-"
	}
	s := q.Kind
	if rate := shapedRate(q); rate > 0 {
		s += fmt.Sprintf(" %v", rate)
	}
	if q.Child != nil {
		s += " over " + q.Child.Kind
	}
	if n := len(q.Classes); n > 0 {
		s += " over " + counted(n, "class", "classes")
	}
	if q.AtSwitch() {
		s += " at the switch"
	}
	return s
}

func (t *text) ends(links []Link) {
	var rows []string
	for _, l := range links {
		for _, e := range l.Ends {
			switch {
			case e.Uplink != "":
				rows = append(rows, row(e, l.Name, "-"))
			case t.verbose:
				rows = append(rows, row(e, l.Name, e.IP, e.MAC, faceText(e), e.Queues))
			default:
				rows = append(rows, row(e, l.Name, e.IP))
			}
		}
	}
	t.table(t.header("PORT\tLINK\tADDRESS", "\tMAC\tFACE\tQUEUES"), rows)
}

func faceText(e End) string {
	if e.Backend == "" {
		return string(e.Face)
	}
	return fmt.Sprintf("%s over %s", e.Face, e.Backend)
}

func (t *text) elsewhere(functions []Function) {
	var rows []string
	for _, f := range functions {
		for _, a := range f.Alternatives {
			rows = append(rows, row(f.Name, a.Host, a.Reason))
		}
	}
	t.table("FUNCTION\tNOT ON\tBECAUSE", rows)
}

func (t *text) rejected(links []Link) {
	var rows []string
	for _, l := range links {
		if !t.alternatives && l.Transport != "" {
			continue
		}
		for _, r := range l.Rejected {
			rows = append(rows, row(l.Name, r.Transport, r.Reason))
		}
	}
	t.table("LINK\tNOT TAKEN\tBECAUSE", rows)
}

func (t *text) evidence(p *Plan) {
	const columns = "\tREQUIREMENT\tREQUIRED\tEXPECTED\tMEETS\tSOURCE"
	var links, paths []string
	for _, l := range p.Links {
		links = append(links, evidenceRows(l.Name, l.Evidence)...)
	}
	for _, path := range p.Paths {
		paths = append(paths, evidenceRows(path.Name, path.Evidence)...)
	}
	t.table("LINK"+columns, links)
	t.table("PATH"+columns, paths)
}

func evidenceRows(name string, evidence []Evidence) []string {
	var rows []string
	for _, e := range evidence {
		meets := "no"
		if e.Meets {
			meets = "yes"
		}
		rows = append(rows, row(name, e.Requirement, e.Required, e.Expected, meets, e.Source))
	}
	return rows
}

// terms are what each link adds to a path.
func (t *text) terms(paths []Path) {
	var rows []string
	for _, p := range paths {
		for _, m := range p.Terms {
			latency := unknown
			if m.Latency > 0 {
				latency = fmt.Sprintf("%v at p%v", m.Latency, m.Percentile)
			}
			rows = append(rows, row(p.Name, m.Link, latency, zeroIsUnknown(threeDigits(float64(m.LossRatio))), zeroIsUnknown(m.Bitrate), m.Source))
		}
	}
	t.table("PATH\tLINK\tLATENCY\tLOSS\tBITRATE\tSOURCE", rows)
}

func zeroIsUnknown[T units.Ratio | units.Bitrate](v T) string {
	if v == 0 {
		return unknown
	}
	return fmt.Sprint(v)
}

// violations writes sentences, too long for columns.
func (t *text) violations(heading string, violations []Violation, hard bool) {
	heading = "\n" + heading + ":\n"
	for _, v := range violations {
		if v.Hard != hard {
			continue
		}
		fmt.Fprint(t.w, heading)
		heading = ""
		t.sentence("  ", "%s: %s", v.Subject, v.Constraint)
		t.sentence("    ", "because %s", v.Reason)
		if v.Fix != "" {
			t.sentence("    ", "fix: %s", v.Fix)
		}
		if v.Position != "" {
			t.sentence("    ", "at %s", v.Position)
		}
	}
}

// warnings omits warnings that repeat a violation.
func (t *text) warnings(p *Plan) {
	heading := "\nWarnings:\n"
	for _, warning := range p.Warnings {
		if slices.ContainsFunc(p.Violations, func(v Violation) bool { return v.String() == warning }) {
			continue
		}
		fmt.Fprint(t.w, heading)
		heading = ""
		t.sentence("  ", "%s", warning)
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
