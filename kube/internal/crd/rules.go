// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/manifest"
)

// fields are the fields that an object has of those in a chain file; all of them, if
// the path is absent.
var fields = map[string][]string{
	"spec":           manifest.ChainFields,
	"spec.policy":    manifest.PolicyFields,
	"spec.functions": manifest.FunctionFields,
}

// texts replace descriptions that speak of functions which Drayage starts.
var texts = map[string]string{
	"spec":                      "A chain: functions that handle packets, the ports that their pods see, the links between those ports, and what each link must do. The fields are those of a chain file (docs/chain-reference.md), without what a pod decides.",
	"spec.functions":            "The functions of the chain. The pods of a function get its ports through the ResourceClaimTemplate CHAIN-FUNCTION, which the operator makes.",
	"spec.functions.ports":      "The ports of the function.",
	"spec.functions.name":       "The name of the function in the ends of links and in the name of its ResourceClaimTemplate.",
	"spec.functions.ports.name": "The name of the port, and of its socket below /run/dray/ports or of its interface. The names lo, all and default are reserved.",
	"spec.functions.ports.face": "How the pod sees the port: `native`, a socket at /run/dray/ports/NAME that libdray opens; `dpdk`, a device of its own DPDK application, which is started by /run/dray/bin/dray-eal; `netdev`, a network interface. Default: netdev.",
	"spec.functions.ports.qos":  "A queueing discipline for what the port sends, in place of the link's. Its fields are those of a link's qos.",
	"spec.policy.on_infeasible": "What to do with a requirement that the planner expects to be missed: `refuse` makes no claims, so pods stay pending; `warn` makes them and leaves the verdict to the measurement. A chain that cannot be built is always refused. Default: refuse.",
	"spec.functions.host":       "The node of the function, or with topologyKey the place. Only with placement. Default: the operator chooses.",
	"spec.functions.cpus":       "How many CPUs the function needs of its node. Only with placement, which compares them with what the node gives to all its pods. Default: none.",
	"spec.functions.memory":     "How much memory the function needs of its node, at least 4Mi. Only with placement. Default: none.",
	"spec.links":                "The links between ports. Each port is on exactly one link.",
	"spec.links.ends":           "The ports that the link joins, each written \"function.port\".",
	"spec.links.transport":      "How the link is realised. With `auto` the planner takes the fastest transport of the nodes that the isolation, the faces and the ends allow. Default: auto.",
}

// lengths are the longest texts, in characters. A rule that compares texts has a cost
// by these.
var lengths = map[string]int64{
	"spec.functions.name":          32,
	"spec.placement.topologyKey":   253 + 1 + 63,
	"spec.placement.lines.between": 253,
	"spec.functions.ports.name":    15,
	"spec.functions.ports.ip":      49,
	"spec.functions.ports.mac":     17,
	"spec.functions.host":          253,
	"spec.links.name":              32,
	"spec.links.ends":              32 + 1 + 15,
}

// adjust adds what an object needs in addition to a chain file.
func adjust(path string, s *apiextensionsv1.JSONSchemaProps) {
	if text := texts[path]; text != "" && !isItem(path, s) {
		s.Description = text
	}
	if n, ok := lengths[path]; ok && s.Type == "string" {
		s.MaxLength = &n
	}
	switch path {
	case "spec":
		s.Required = []string{"functions", "links"}
		s.XValidations = append(s.XValidations, endsArePorts, portsAreEnds, needsArePlaced, placedAreAlone)
	case "spec.functions":
		named(s, manifest.MaxFunctions)
		require(s, "ports")
	case "spec.functions.ports":
		named(s, manifest.MaxPorts)
	case "spec.functions.cpus": // a list would name CPUs of one host
		s.Type, s.XIntOrString, s.Pattern = "integer", false, ""
	case "spec.functions.host": // a node may have a longer name than a host of a chain file
		s.Pattern = ""
	case "spec.functions.split": // a number from 1 to 8, or text; the operator refuses the number 7
		s.Maximum, s.Pattern = ptr(8.0), "^([1-68]|7[abc])$"
	case "spec.placement.nodeSelector":
		s.AdditionalProperties = &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: &apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: ptr(int64(63))}}
	case "spec.links":
		named(s, manifest.MaxLinks)
		if s.Type == "object" {
			s.XValidations = append(s.XValidations, directJoinsTwo)
		}
	case "spec.links.ends":
		if s.Type == "array" {
			set, most := "set", int64(manifest.MaxEnds)
			s.XListType, s.MaxItems = &set, &most
		}
	case "spec.links.requires":
		s.XValidations = append(s.XValidations, percentileOfDelay)
	case "spec.paths":
		named(s, manifest.MaxPaths)
	case "spec.paths.requires":
		s.XValidations = append(s.XValidations, pathRequires, percentileOfLatency)
	}
	if strings.HasPrefix(path, "spec.functions.ports.qos.") || strings.Contains(path, ".classes.child.") {
		s.Description = "" // as of the same field of a link's qos, or of its child
	}
	switch {
	case strings.HasSuffix(path, ".child.qdisc"):
		s.Enum = words(chain.QueueKinds)
	case strings.HasSuffix(path, ".qos.classes"):
		if s.Type == "array" {
			named(s, *s.MaxItems)
		}
	}
}

// isItem reports whether s is an item of the list at path.
func isItem(path string, s *apiextensionsv1.JSONSchemaProps) bool {
	return slices.Contains([]string{"spec.functions", "spec.functions.ports", "spec.links", "spec.links.ends", "spec.paths"}, path) && s.Type != "array"
}

// named makes a list one of objects with different names, at least one.
func named(s *apiextensionsv1.JSONSchemaProps, most int64) {
	if s.Type != "array" {
		return
	}
	kind, least := "map", int64(1)
	s.XListType, s.XListMapKeys, s.MinItems, s.MaxItems = &kind, []string{"name"}, &least, &most
}

func require(s *apiextensionsv1.JSONSchemaProps, name string) {
	if s.Type == "object" && !slices.Contains(s.Required, name) {
		s.Required = append(s.Required, name)
		slices.Sort(s.Required)
	}
}

// Lists that rules compare: "function.port" of every port, and every end.
const (
	allPorts = `self.functions.map(f, f.ports.map(p, f.name + "." + p.name)).flatten()`
	allEnds  = `self.links.map(l, l.ends).flatten()`
)

// Rules between fields. A list of one binds what a rule uses often. To name the wrong end
// in the message would exceed the permitted cost.
var (
	endsArePorts = apiextensionsv1.ValidationRule{
		Rule:    fmt.Sprintf(`[%s].all(ports, self.links.all(l, l.ends.all(e, e in ports)))`, allPorts),
		Message: `an end names a function and one of its ports: write "function.port", or add the port to the function`,
	}
	portsAreEnds = apiextensionsv1.ValidationRule{
		Rule:    fmt.Sprintf(`[%s].all(ends, %s.all(p, ends.exists_one(e, e == p)))`, allEnds, allPorts),
		Message: "each port is on exactly one link: add a link to it, or give each link a port of its own",
	}
	needsArePlaced = apiextensionsv1.ValidationRule{
		Rule:    `has(self.placement) || self.functions.all(f, !has(f.cpus) && !has(f.memory) && !has(f.host))`,
		Message: "cpus, memory and host of a function count only if the chain asks for placement: add placement: {}, or remove them",
	}
	placedAreAlone = apiextensionsv1.ValidationRule{
		Rule:    `!has(self.placement) || self.functions.all(f, !has(f.instances))`,
		Message: "functions with instances cannot be placed yet: remove instances or placement",
	}
	directJoinsTwo = apiextensionsv1.ValidationRule{
		Rule:    `!has(self.forwarding) || self.forwarding != "direct" || self.ends.size() == 2`,
		Message: "forwarding direct joins two ends: write learning, or leave it out",
	}
	percentileOfDelay = apiextensionsv1.ValidationRule{
		Rule:    `!has(self.percentile) || has(self.latency) || has(self.packet_delay_variation)`,
		Message: "percentile has nothing to apply to: add latency or packet_delay_variation, or remove it",
	}
	pathRequires = apiextensionsv1.ValidationRule{
		Rule:    `has(self.latency) || has(self.packet_loss_ratio) || has(self.min_bitrate) || has(self.mtu)`,
		Message: "the path requires nothing: state a latency, a packet_loss_ratio, a min_bitrate or an mtu",
	}
	percentileOfLatency = apiextensionsv1.ValidationRule{
		Rule:    `!has(self.percentile) || has(self.latency)`,
		Message: "percentile has nothing to apply to: add latency, or remove it",
	}
	// A name of an object may be longer, and have dots.
	nameOfChain = apiextensionsv1.ValidationRule{
		Rule:    `self.metadata.name.size() <= 32 && self.metadata.name.matches("^[a-z0-9]([a-z0-9-]*[a-z0-9])?$")`,
		Message: "the name of a chain has 1 to 32 of a-z, 0-9 and -: shorten metadata.name, and replace dots",
	}
)

// reserved refuses some words.
func reserved(names []string) apiextensionsv1.ValidationRule {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = fmt.Sprintf("%q", name)
	}
	return apiextensionsv1.ValidationRule{
		Rule:    fmt.Sprintf("!(self in [%s])", strings.Join(quoted, ", ")),
		Message: fmt.Sprintf("choose another name: %s are reserved", strings.Join(names, ", ")),
	}
}
