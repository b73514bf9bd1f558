// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSchemaAcceptsWhatParses(t *testing.T) {
	for _, pattern := range []string{"testdata/good/*.yaml", "../../../examples/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: no files, error %v", pattern, err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got := document.Verdict(t, text); got != "accepts" {
				t.Errorf("%s: the schema %s it", file, got)
			}
		}
	}
}

// definition is the part of the schema that the parser also has.
type definition struct {
	Title       string                `json:"title"`
	Description string                `json:"description"`
	Default     any                   `json:"default"`
	Enum        []string              `json:"enum"`
	Pattern     string                `json:"pattern"`
	Required    []string              `json:"required"`
	Properties  map[string]definition `json:"properties"`
	Defs        map[string]definition `json:"$defs"`
}

func schemaRoot(t *testing.T) definition {
	t.Helper()
	var root definition
	if err := json.Unmarshal(Schema(), &root); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestSchemaDescribesEverything(t *testing.T) {
	root := schemaRoot(t)
	check := func(name string, d definition) {
		if d.Title == "" || d.Description == "" {
			t.Errorf("%s has no title or no description", name)
		}
		for field, p := range d.Properties {
			if p.Description == "" {
				t.Errorf("%s.%s has no description", name, field)
			}
		}
	}
	check("chain", root)
	for name, d := range root.Defs {
		check(name, d)
	}
}

// least is a chain that omits everything with a default.
const least = `
apiVersion: drayage/v1
kind: Chain
name: least
functions:
  - name: a
    ports: [{name: p}, {name: q, face: native, hold: {packets: 1}}]
  - name: b
    ports: [{name: p}]
links:
  - name: l
    ends: [a.p, b.p]
    requires: {latency: 1ms}
    messages: {size: 1Ki}
`

const tunnelledPath = `
apiVersion: drayage/v1
kind: Chain
name: tunnels
functions:
  - {name: a, ports: [{name: x}]}
  - {name: b, ports: [{name: x}, {name: y}]}
  - {name: c, ports: [{name: y}]}
links:
  - {name: ab, ends: [a.x, b.x]}
  - {name: bc, ends: [b.y, c.y]}
paths:
  - {name: p, from: a.x, through: [b], to: c.y, gtpu: {at: to, from: 10.9.9.1, to: 10.9.9.2}, requires: {latency: 1ms}}
`

const slots = `
apiVersion: drayage/v1
kind: Chain
name: slots
functions:
  - name: a
    ports: [{name: p, mtu: 9000}]
  - name: b
    ports: [{name: p, mtu: 9000}]
links:
  - name: l
    ends: [a.p, b.p]
    fronthaul: {scs: 30}
`

const fapiSlots = `
apiVersion: drayage/v1
kind: Chain
name: fapi
functions:
  - name: l2
    ports: [{name: p, face: native}]
  - name: l1
    ports: [{name: p, face: native}]
links:
  - name: l
    ends: [l2.p, l1.p]
    messages: {size: 115000}
    fapi: {scs: 30}
`

func TestSchemaAndParserHaveTheSameDefaults(t *testing.T) {
	c, err := Parse("least", []byte(least+"paths: [{name: p, from: a.p, to: b.p, requires: {latency: 1ms}}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	machine, err := Parse("least", []byte(strings.Replace(least, "- name: b", "- name: b\n    runtime: vm\n    vm: {}", 1)))
	if err != nil {
		t.Fatal(err)
	}
	tunnelled, err := Parse("least", []byte(strings.Replace(least, "- name: a", "- name: a\n    tuns: [{name: t, ip: 10.0.0.1/24}]", 1)))
	if err != nil {
		t.Fatal(err)
	}
	hosted, err := Parse("hosted", []byte("apiVersion: drayage/v1\nkind: Chain\nname: c\nhosts: {names: [a, b], underlay: {}}\nfunctions: [{name: f, host: a}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := Parse("slots", []byte(slots))
	if err != nil {
		t.Fatal(err)
	}
	cell, err := Parse("fapi", []byte(fapiSlots))
	if err != nil {
		t.Fatal(err)
	}
	tunnels, err := Parse("tunnels", []byte(tunnelledPath))
	if err != nil {
		t.Fatal(err)
	}
	f, p, l := c.Functions[0], c.Functions[0].Ports[0], c.Links[0]
	parser := map[string]any{
		"policy.on_infeasible":     c.Policy.OnInfeasible,
		"policy.privileged":        c.Policy.Privileged,
		"function.runtime":         f.Runtime,
		"function.restart":         f.Restart,
		"function.pids":            512, // chain.Function documents it for Pids 0; runtimes apply it
		"vm.kernel":                machine.Functions[1].VM.Kernel,
		"vm.hugepages":             machine.Functions[1].VM.HugePages,
		"vm.nohz_full":             machine.Functions[1].VM.NoHzFull,
		"vm.runtime":               machine.Functions[1].VM.Runtime,
		"port.face":                p.Face,
		"port.mtu":                 p.MTU,
		"port.queues":              p.Queues,
		"link.transport":           l.Transport,
		"link.isolation":           l.Isolation,
		"link.traffic":             l.Traffic,
		"requires.percentile":      l.Requires.Percentile,
		"packet-path.directions":   c.Paths[0].Directions,
		"path-requires.percentile": c.Paths[0].Requires.Percentile,
		"gtpu.teid":                tunnels.Paths[0].GTPU.TEID,
		"gtpu.tunnels":             tunnels.Paths[0].GTPU.Tunnels,
		"tun.mtu":                  tunnelled.Functions[0].Tuns[0].MTU,
		"hold.beyond":              f.Ports[1].Hold.Beyond,
		"messages.count":           l.Messages.Count,
		"fronthaul.prb":            loaded.Links[0].Fronthaul.PRB,
		"fronthaul.layers":         loaded.Links[0].Fronthaul.Layers,
		"fronthaul.vlan":           loaded.Links[0].Fronthaul.VLAN,
		"fapi.dl_tti":              cell.Links[0].FAPI.DLTTI,
		"fapi.tx_data":             cell.Links[0].FAPI.TXData,
		"underlay.mtu":             hosted.Hosts.Underlay.MTU,
	}
	for name, d := range schemaRoot(t).Defs {
		for field, property := range d.Properties {
			key := name + "." + field
			got, want := property.Default, parser[key]
			if (got == nil) != (want == nil) || got != nil && fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: schema has the default %v, parser %v", key, got, want)
			}
		}
	}
}
