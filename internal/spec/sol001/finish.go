// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"slices"
	"strings"
	"unicode"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
)

// finish names the parts of the chain, and joins the ends of its links.
func (d *draft) finish() {
	d.dropEmpty()
	for _, f := range d.order {
		d.nameFunction(f)
		d.namePorts(f)
	}
	var links []*link
	for _, l := range d.linkOrder {
		d.joinEnds(l)
		if len(l.ends) < 2 {
			d.note(l.key, l.in, "", "%s, so it is left out", fewEnds(l))
			d.fixedAddresses(l)
			continue
		}
		l.name = d.linkNames.take(strings.TrimPrefix(l.node, "VL_"), "link")
		d.renamed(l.key, l.in, strings.TrimPrefix(l.node, "VL_"), l.name)
		d.bitrates(l)
		d.fixedAddresses(l)
		links = append(links, l)
	}
	d.linkOrder = links
}

// fewEnds says why a link is none.
func fewEnds(l *link) string {
	switch {
	case len(l.ends) == 0:
		return "no port is on it"
	case l.uplink != "":
		return "no port but an external connection point is on it"
	}
	return "only one port is on it"
}

// dropEmpty leaves out functions of which the descriptor starts no instance, and limits
// the others.
func (d *draft) dropEmpty() {
	var left []*function
	for _, f := range d.order {
		switch {
		case f.count == 0:
			d.note(f.key, f.in, "", "it starts with no instance, so it is left out")
			continue
		case f.count > chain.MaxInstances:
			d.note(f.key, f.in, "", "it starts with more than %d instances; the chain has %[1]d", chain.MaxInstances)
			f.count = chain.MaxInstances
		}
		left = append(left, f)
	}
	d.order = left
}

// nameFunction names the function of each instance.
func (d *draft) nameFunction(f *function) {
	if f.count > 1 {
		f.names = d.functionNames.numbered(f.node, f.count)
		d.note(f.key, f.in, "", "its %d instances are the functions %s to %s", f.count, f.names[0], f.names[f.count-1])
		return
	}
	f.names = []string{d.functionNames.take(f.node, "vdu")}
	d.renamed(f.key, f.in, f.node, f.names[0])
}

// namePorts names ports after their connection points.
func (d *draft) namePorts(f *function) {
	taken := newNames(longPort, "lo", "all", "default")
	for _, p := range f.ports {
		own, exact := strings.CutPrefix(p.node, f.node+"_")
		if exact {
			p.name = taken.take(own, "port")
		} else {
			p.name = taken.take(shortName(own, f.node), "port")
		}
		d.renamed(p.key, p.in, own, p.name)
	}
}

// shortName is a connection point's name without words that say nothing new: "cp", and
// those of its VDU's name.
func shortName(name, vdu string) string {
	known := append(strings.Split(plainName(vdu, len(vdu)), "-"), "cp")
	var rest []string
	for _, word := range strings.Split(plainName(name, len(name)), "-") {
		if !slices.Contains(known, word) {
			rest = append(rest, word)
		}
	}
	if len(rest) == 0 {
		return name
	}
	return strings.Join(rest, "-")
}

// joinEnds lists the ends of a link: a port of each instance, and at most one uplink.
func (d *draft) joinEnds(l *link) {
	for _, p := range l.members {
		switch {
		case p.of != nil:
			for _, name := range p.of.names {
				l.ends = append(l.ends, name+"."+p.name)
			}
		case l.uplink != "":
			d.note(p.key, p.in, "", "a link of a chain has one uplink, so this one is left out")
		default:
			l.uplink = interfaceName(strings.TrimPrefix(p.node, l.node+"_"))
			l.ends = append(l.ends, "")
			d.note(p.key, p.in, "write the host interface that leads there", "it is the uplink %s of the chain", parse.Quote(l.uplink))
		}
	}
}

// interfaceName is the nearest name of a host interface: 15 characters without spaces,
// slashes and colons.
func interfaceName(text string) string {
	name := []rune(strings.Map(func(r rune) rune {
		if r == '/' || r == ':' || unicode.IsSpace(r) || !unicode.IsPrint(r) {
			return '-'
		}
		return r
	}, text))
	name = name[:min(len(name), longPort)]
	if strings.Trim(string(name), ".") == "" {
		return "uplink"
	}
	return string(name)
}

// instances counts the functions of the chain.
func (d *draft) instances() (n int) {
	for _, f := range d.order {
		n += f.count
	}
	return n
}
