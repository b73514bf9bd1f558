// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"slices"
	"strings"

	"github.com/drayage/dray/internal/spec/parse"
	"go.yaml.in/yaml/v3"
)

// argumentEAL is replaced by the arguments that attach an application to its ports.
const argumentEAL = "$(DRAY_EAL)"

// checkEAL refuses a command in which argumentEAL would have no effect.
func checkEAL(d *parse.Decoder, f *Function, command *yaml.Node) {
	if command == nil {
		return
	}
	hasPort := slices.ContainsFunc(f.Ports, func(p Port) bool { return p.Face == FaceDPDK })
	for i, arg := range f.Command {
		n := command
		if list := parse.Deref(command); list.Kind == yaml.SequenceNode && i < len(list.Content) {
			n = list.Content[i]
		}
		switch {
		case !strings.Contains(arg, argumentEAL):
		case arg != argumentEAL:
			d.Fail(n, "write it as an argument of its own, or use the environment variable DRAY_EAL in a script", "%s stands for several arguments, and cannot be a part of one", argumentEAL)
		case !hasPort:
			d.Fail(n, "remove it, or write face: dpdk for a port", "%s has no meaning: no port of the function has face: dpdk", argumentEAL)
		}
	}
}
