// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"html/template"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/plan"
	"github.com/drayage/dray/internal/result/report/plot"
	"github.com/drayage/dray/internal/result/verdict"
)

// node is a box of the topology: a function, a link, or a host interface.
type node struct {
	class      string // "function", "link", "uplink"
	title      string
	lines      []string
	ports      []string // text of each port row
	word       string   // of a link: its verdict
	href       string
	layer      int
	x, y, w, h float64
}

// edge joins a function's port, or an uplink, to a link.
type edge struct {
	end, link *node
	port      int // index into end.ports; −1: the whole box
}

// topology is functions and links in layers: functions in even layers, links in odd
// ones, so that each link end is next to its link.
type topology struct {
	layers [][]*node
	edges  []edge
}

// topologyOf is the run's chain, with where each function ran.
func (d *Data) topologyOf(hrefs map[string]string) topology {
	if d.Run.Cluster != nil {
		return topologyOfPods(d.Run.Cluster.Links, d.Verdicts, hrefs)
	}
	var names []string
	where := map[string][]string{}
	for _, f := range d.Plan.Functions {
		names = append(names, f.Name)
		where[f.Name] = []string{string(f.Runtime) + " · " + cpusText(f.CPUs)}
	}
	return arrange(names, d.Plan.Links, builder{where: where, verdicts: d.Verdicts, hrefs: hrefs})
}

// arrange arranges a chain breadth first, from its first function.
func arrange(functions []string, links []plan.Link, b builder) topology {
	b.all, b.nodes, b.links = links, map[string]*node{}, map[string]*node{}
	for _, name := range functions {
		b.visit(b.function(name), 0)
	}
	for i := range links {
		b.visitLink(&links[i], 1) // links between host interfaces only
	}
	// Without functions the first layer is empty.
	b.layers = slices.DeleteFunc(b.layers, func(layer []*node) bool { return len(layer) == 0 })
	return b.topology
}

type builder struct {
	where    map[string][]string // each function runs, in lines
	verdicts []verdict.Verdict
	hrefs    map[string]string // of links
	all      []plan.Link
	nodes    map[string]*node // functions and uplinks, by function or uplink name
	links    map[string]*node
	topology
}

func (b *builder) place(n *node, layer int) {
	for len(b.layers) <= layer {
		b.layers = append(b.layers, nil)
	}
	n.layer = layer
	b.layers[layer] = append(b.layers[layer], n)
}

// visit places a function and, breadth first, everything linked to it.
func (b *builder) visit(first *node, layer int) {
	if b.nodes[first.title] != nil {
		return
	}
	b.nodes[first.title] = first
	b.place(first, layer)
	queue := []*node{first}
	for len(queue) > 0 {
		n := queue[0]
		queue = queue[1:]
		for i := range b.all {
			l := &b.all[i]
			if b.links[l.Name] == nil && touches(l, n.title) {
				queue = append(queue, b.visitLink(l, n.layer+1)...)
			}
		}
	}
}

func touches(l *plan.Link, owner string) bool {
	for _, e := range l.Ends {
		if owner == ownerOf(e) {
			return true
		}
	}
	return false
}

func ownerOf(e plan.End) string {
	if e.Uplink != "" {
		return e.String()
	}
	return e.Function
}

// visitLink places a link, and its ends without a place, which it returns.
func (b *builder) visitLink(l *plan.Link, layer int) (fresh []*node) {
	if b.links[l.Name] != nil {
		return nil
	}
	n := b.linkNode(l)
	b.links[l.Name] = n
	b.place(n, layer)
	for _, e := range l.Ends {
		end := b.nodes[ownerOf(e)]
		if end == nil {
			if end = b.function(ownerOf(e)); e.Uplink != "" {
				end = &node{class: "uplink", title: e.String(), lines: []string{"host interface"}}
			}
			b.nodes[ownerOf(e)] = end
			b.place(end, layer+1)
			fresh = append(fresh, end)
		}
		port := -1
		if e.Uplink == "" {
			end.ports = append(end.ports, portText(e))
			port = len(end.ports) - 1
		}
		b.edges = append(b.edges, edge{end, n, port})
	}
	return fresh
}

func portText(e plan.End) string {
	if e.IP.IsValid() {
		return e.Port + "  " + e.IP.String()
	}
	return e.Port
}

func (b *builder) function(name string) *node {
	return &node{class: "function", title: name, lines: slices.Clone(b.where[name])}
}

func (b *builder) linkNode(l *plan.Link) *node {
	transport := l.Transport
	if len(l.Ends) > 2 {
		transport += fmt.Sprintf(", %d ends", len(l.Ends))
	}
	return &node{
		class: "link", title: l.Name, lines: []string{transport},
		word: wordOf(b.verdicts, l.Name), href: b.hrefs[l.Name],
	}
}

func cpusText(cpus []int) string {
	if len(cpus) == 0 {
		return "any CPU"
	}
	s := make([]string, len(cpus))
	for i, c := range cpus {
		s[i] = fmt.Sprint(c)
	}
	if len(s) == 1 {
		return "CPU " + s[0]
	}
	return "CPUs " + strings.Join(s, ", ")
}

// Sizes of the drawing, in its own units, which are pixels at full width.
const (
	headHeight, lineHeight, portHeight = 32.0, 18.0, 20.0
	boxPad                             = 10.0
	columnGap, rowGap                  = 64.0, 22.0
	functionWidth, linkWidth           = 190.0, 164.0
	narrowWidth, narrowGap             = 344.0, 44.0
	deepest                            = 5 // layers that are drawn side by side
)

func (n *node) height() float64 {
	h := headHeight + lineHeight*float64(len(n.lines)) + boxPad
	if n.word != "" {
		h += lineHeight
	}
	if len(n.ports) > 0 {
		h += portHeight*float64(len(n.ports)) + 4
	}
	return h
}

// wide draws the layers side by side, or below each other if there are too many.
func (t topology) wide() template.HTML {
	if len(t.layers) > deepest {
		return t.draw("topo-w", "topology wide", narrowWidth, t.stack(), false)
	}
	x, tall := 1.0, 0.0
	for _, layer := range t.layers {
		w, y := columnWidth(layer), 0.0
		for _, n := range layer {
			n.x, n.y, n.w, n.h = x, y, w, n.height()
			y += n.h + rowGap
		}
		tall = max(tall, y-rowGap)
		x += w + columnGap
	}
	for _, layer := range t.layers {
		last := layer[len(layer)-1]
		shift := (tall - last.y - last.h) / 2
		for _, n := range layer {
			n.y += shift + 1
		}
	}
	return t.draw("topo-w", "topology wide", x-columnGap+1, tall+2, true)
}

func columnWidth(layer []*node) float64 {
	if layer[0].class == "link" {
		return linkWidth
	}
	return functionWidth
}

// narrow draws the layers below each other, for a phone.
func (t topology) narrow() template.HTML {
	return t.draw("topo-n", "topology narrow", narrowWidth, t.stack(), false)
}

// stack places the layers below each other, two boxes in a row, and returns the height.
func (t topology) stack() float64 {
	y := 1.0
	for _, layer := range t.layers {
		for i := 0; i < len(layer); i += 2 {
			row := layer[i:min(i+2, len(layer))]
			w, x, tall := (narrowWidth-12)/2, 1.0, 0.0
			if len(row) == 1 {
				w = min(240, narrowWidth-2)
				x = (narrowWidth - w) / 2
			}
			for _, n := range row {
				n.x, n.y, n.w, n.h = x, y, w, n.height()
				x += w + 10
				tall = max(tall, n.h)
			}
			y += tall + 10
		}
		y += narrowGap - 10
	}
	return y - narrowGap + 1
}

func (t topology) draw(id, class string, width, height float64, sideways bool) template.HTML {
	c := &plot.Canvas{Width: width, Height: height}
	for _, e := range t.edges {
		e.draw(c, sideways)
	}
	var names []string
	for _, layer := range t.layers {
		for _, n := range layer {
			n.draw(c)
			names = append(names, n.describe())
		}
	}
	return c.Finish(id, class, "Topology", strings.Join(names, "; "))
}

func (e edge) draw(c *plot.Canvas, sideways bool) {
	after := e.end.layer > e.link.layer
	if sideways {
		x1, x2 := e.end.x+e.end.w, e.link.x
		if after {
			x1, x2 = e.end.x, e.link.x+e.link.w
		}
		y1, y2 := e.end.portY(e.port), e.link.y+e.link.h/2
		mid := (x1 + x2) / 2
		c.Path("edge "+string(toneOf(e.link.word)), fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x1, y1, mid, y1, mid, y2, x2, y2))
		return
	}
	x1, x2 := e.end.x+e.end.w/2, e.link.x+e.link.w/2
	y1, y2 := e.end.y+e.end.h, e.link.y
	if after {
		y1, y2 = e.end.y, e.link.y+e.link.h
	}
	mid := (y1 + y2) / 2
	c.Path("edge "+string(toneOf(e.link.word)), fmt.Sprintf("M%.1f %.1fC%.1f %.1f %.1f %.1f %.1f %.1f", x1, y1, x1, mid, x2, mid, x2, y2))
}

func (n *node) portY(port int) float64 {
	if port < 0 {
		return n.y + n.h/2
	}
	return n.y + n.height() - boxPad - portHeight*(float64(len(n.ports)-port)-0.5) + 1
}

func (n *node) draw(c *plot.Canvas) {
	c.Link(n.href, n.describe(), func() {
		radius := 4.0
		if n.class == "link" {
			radius = 14
		}
		c.Rect("box "+n.class+" "+string(toneOf(n.word)), n.x, n.y, n.w, n.h, radius)
		x, y := n.x+14, n.y+23
		c.Text("name", "start", x, y, clip(n.title, n.w, 8.2))
		for _, line := range n.lines {
			y += lineHeight
			c.Text("sub", "start", x, y, clip(line, n.w, 6.6))
		}
		if n.word != "" {
			y += lineHeight
			c.Text("word "+string(toneOf(n.word)), "start", x, y, toneOf(n.word).Glyph()+" "+n.word)
		}
		for i, p := range n.ports {
			mid := n.portY(i)
			c.Rect("port", x, mid-4, 8, 8, 1)
			c.Text("sub", "start", x+14, mid+4, clip(p, n.w-14, 6.6))
		}
	})
}

func (n *node) describe() string {
	s := n.class + " " + n.title
	for _, l := range append(append([]string{}, n.lines...), n.ports...) {
		s += ", " + l
	}
	if n.word != "" {
		s += ", " + n.word
	}
	return s
}

// clip shortens text that would not fit in a box, for a given mean letter width.
func clip(s string, width, letter float64) string {
	r := []rune(s)
	if n := int((width - 26) / letter); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
