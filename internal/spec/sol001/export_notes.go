// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"slices"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// The fields of a chain file that a descriptor carries.
var (
	chainCarried    = []string{"apiVersion", "kind", "name", "functions", "links"}
	functionCarried = []string{"name", "instances", "cpus", "memory", "hugepages", "ports"}
	portCarried     = []string{"name", "ip", "mtu"}
	linkCarried     = []string{"name", "ends", "requires"}
	requiresCarried = []string{"latency", "packet_delay_variation", "packet_loss_ratio", "min_bitrate", "max_bitrate"}
)

// leftOut notes what the file says and the descriptor does not.
func (w *writer) leftOut(file string, data []byte) error {
	root, fault := parse.ReadYAML(file, data, chain.Kind)
	if fault != nil {
		return parse.Errors{fault}
	}
	x := &exportNotes{file: file, notes: w.notes, c: w.c}
	root = parse.Deref(root)
	x.others(root, "", chainCarried)
	joined := map[string]string{} // by port: the uplink of its link, "" for none
	if list := fieldOf(root, "links"); list != nil {
		for _, item := range parse.Deref(list).Content {
			x.link(parse.Deref(item), joined)
		}
	}
	for _, item := range parse.Deref(fieldOf(root, "functions")).Content {
		x.function(parse.Deref(item), joined)
	}
	return nil
}

// exportNotes walks a valid chain file.
type exportNotes struct {
	file  string
	notes *notes
	c     *chain.Chain
}

func (x *exportNotes) note(n *yaml.Node, in, fix, format string, args ...any) {
	x.notes.add(parse.Position{File: x.file, Line: n.Line, Column: n.Column}, in, fix, format, args...)
}

// others notes the fields that a descriptor has no word for.
func (x *exportNotes) others(n *yaml.Node, in string, carried []string) {
	n = parse.Deref(n)
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(carried, key.Value) {
			x.note(key, in, "", "SOL001 has no word for %s", plainKey(key.Value))
		}
	}
}

func (x *exportNotes) link(n *yaml.Node, joined map[string]string) {
	in := declaredIn("link", scalarOf(n, "name"))
	x.others(n, in, linkCarried)
	if r := fieldOf(n, "requires"); r != nil {
		x.others(r, in, requiresCarried)
	}
	uplink := ""
	ends := parse.Deref(fieldOf(n, "ends")).Content
	for _, e := range ends {
		if name := scalarOf(e, "uplink"); name != "" {
			uplink = name
		}
	}
	for _, e := range ends {
		if e := parse.Deref(e); e.Kind == yaml.ScalarNode {
			joined[e.Value] = uplink
		}
	}
}

func (x *exportNotes) function(n *yaml.Node, joined map[string]string) {
	name := scalarOf(n, "name")
	in := declaredIn("function", name)
	x.others(n, in, functionCarried)
	if cpus := fieldOf(n, "cpus"); cpus != nil && parse.Deref(cpus).Tag != "!!int" {
		x.note(cpus, in, "", "SOL001 says how many CPUs a VDU has, and has no word for which")
	}
	if instances := fieldOf(n, "instances"); instances != nil {
		x.note(instances, in, "", "each instance is a VDU of its own, because each has links of its own")
	}
	for _, field := range []string{"cpus", "memory"} {
		if fieldOf(n, field) == nil {
			x.note(n, in, "give it "+field, "it has no %s of its own, so its VDU asks for %s that it shares", field,
				map[string]string{"cpus": "one CPU", "memory": writeSize(defaultMemory)}[field])
		}
	}
	ports := fieldOf(n, "ports")
	if ports == nil {
		return
	}
	for _, item := range parse.Deref(ports).Content {
		x.port(parse.Deref(item), name, in, joined)
	}
}

func (x *exportNotes) port(n *yaml.Node, function, in string, joined map[string]string) {
	name := scalarOf(n, "name")
	x.others(n, in, portCarried)
	uplink, linked := joined[function+"."+name]
	if !linked {
		x.note(n, in, "", "the port %s is on no link, so its connection point has a virtual link of its own", name)
	}
	if ip := fieldOf(n, "ip"); ip != nil && uplink != "" {
		x.note(ip, in, "", "SOL001 fixes no address on a link that leads outside, to %s", plainKey(uplink))
	}
}
