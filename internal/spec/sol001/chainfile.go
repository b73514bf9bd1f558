// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"fmt"

	"github.com/drayage/dray/internal/spec/chain"
	"go.yaml.in/yaml/v3"
)

// write is the text of the chain file.
func (d *draft) write(got *Imported) (string, error) {
	functions, links := sequence(), sequence()
	for _, f := range d.order {
		for _, name := range f.names {
			functions.Content = append(functions.Content, d.functionNode(f, name))
		}
	}
	for _, l := range d.linkOrder {
		links.Content = append(links.Content, d.linkNode(l))
	}
	root := pairs("apiVersion", text(chain.APIVersion), "kind", text(chain.Kind), "name", text(got.Chain), "functions", functions, "links", filled(links))
	return encode([]string{fmt.Sprintf("Made by `dray import %s`.", d.src.given)}, root)
}

// filled is a list or mapping, or nil if it is empty.
func filled(n *yaml.Node) *yaml.Node {
	if len(n.Content) == 0 {
		return nil
	}
	return n
}

func (d *draft) functionNode(f *function, name string) *yaml.Node {
	ports, huge := sequence(), inline(pairs())
	for _, p := range f.ports {
		ports.Content = append(ports.Content, portNode(p))
	}
	for _, h := range f.huge {
		huge.Content = append(huge.Content, text(h.Size.String()), text(sizeText(h.Limit)))
	}
	n := pairs("name", text(name))
	if f.cpus > 0 {
		n.Content = append(n.Content, text("cpus"), integer(f.cpus))
	}
	if f.memory > 0 {
		n.Content = append(n.Content, text("memory"), text(sizeText(f.memory)))
	}
	n.Content = append(n.Content, pairs("hugepages", filled(huge), "ports", filled(ports)).Content...)
	n.HeadComment = comment(f.comment)
	return n
}

func portNode(p *port) *yaml.Node {
	n := pairs("name", text(p.name))
	if p.ip.IsValid() {
		n.Content = append(n.Content, text("ip"), text(p.ip.String()))
	}
	if p.link != nil && p.link.mtu != 0 {
		n.Content = append(n.Content, text("mtu"), integer(int64(p.link.mtu)))
	}
	return n
}

func (d *draft) linkNode(l *link) *yaml.Node {
	ends := inline(sequence())
	for _, e := range l.ends {
		if e == "" {
			ends.Content = append(ends.Content, inline(pairs("uplink", text(l.uplink))))
		} else {
			ends.Content = append(ends.Content, text(e))
		}
	}
	r, requires := l.requires, pairs()
	add := func(stated bool, name string, value fmt.Stringer) {
		if stated {
			requires.Content = append(requires.Content, text(name), text(value.String()))
		}
	}
	add(r.Latency > 0, "latency", r.Latency)
	add(r.PDV > 0, "packet_delay_variation", r.PDV)
	if r.LossRatio != nil {
		ratio := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!float", Value: r.LossRatio.String()}
		requires.Content = append(requires.Content, text("packet_loss_ratio"), ratio)
	}
	add(r.MinBitrate > 0, "min_bitrate", r.MinBitrate)
	add(r.MaxBitrate > 0, "max_bitrate", r.MaxBitrate)
	n := pairs("name", text(l.name), "ends", ends, "requires", filled(requires))
	n.HeadComment = comment(l.comment)
	return n
}
