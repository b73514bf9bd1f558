// SPDX-License-Identifier: Apache-2.0

package sol001

import (
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// policy is one policy of a topology.
type policy struct {
	*object
	kind string
	key  *yaml.Node
}

// policies reads how many instances a descriptor starts with: those of the default
// instantiation level, else those of the initial delta. How it scales from there has no
// counterpart in a chain file.
func (d *draft) policies() {
	var all []policy
	level := ""
	for _, item := range d.topology.list("policies") {
		list := d.open(item, "policies")
		for _, key := range list.keys {
			list.skip(key.Value)
			n := list.values[key.Value]
			in := "policy " + plainKey(key.Value)
			kind := d.kind(typeOf(n))
			switch kind {
			case typeInitial, typeVduLevels, typeVnfToLevels, typeLevels, typeNsLevels:
				o := d.open(n, in)
				o.skip("type", "description", "targets")
				all = append(all, policy{o, kind, key})
			default:
				d.note(key, "", "", "the %s, of the type %s, has no counterpart in a chain file", in, plainKey(typeOf(n)))
			}
		}
	}
	for _, p := range all {
		if p.kind == typeLevels || p.kind == typeNsLevels {
			level = p.defaultLevel()
		}
	}
	for _, p := range all {
		p.apply(d, level)
	}
}

// defaultLevel is the level of a descriptor without another choice.
func (p policy) defaultLevel() string {
	o := p.object.object("properties")
	field := "levels"
	if p.kind == typeNsLevels {
		field = "ns_levels"
	}
	levels := o.object(field)
	name := o.text("default_level")
	if name == "" && len(levels.keys) == 1 {
		name = levels.keys[0].Value
	}
	levels.skip(name)
	return name
}

// apply sets the number of instances of a policy's targets.
func (p policy) apply(d *draft, level string) {
	o := p.object.object("properties")
	var n int64
	ok := false
	switch p.kind {
	case typeInitial:
		n, ok = o.object("initial_delta").integer("number_of_instances")
	case typeVduLevels:
		n, ok = o.object("levels").object(level).integer("number_of_instances")
	case typeVnfToLevels:
		n, ok = o.object("number_of_instances").integer(level)
	}
	if !ok {
		return
	}
	for _, target := range p.list("targets") {
		f := d.functions[parse.Deref(target).Value]
		switch {
		case f == nil:
		case p.kind != typeInitial: // a level decides, before or after this
			f.count, f.levelled = int(min(n, chain.MaxInstances+1)), true
		case !f.levelled:
			f.count = int(min(n, chain.MaxInstances+1))
		}
	}
}
