// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"github.com/drayage/dray/internal/spec/parse"
	"github.com/drayage/dray/internal/spec/schema"
	"go.yaml.in/yaml/v3"
)

var chainFields = append(parse.Header(Kind, func(c *Chain) (_, _ *string) { return &c.APIVersion, &c.Kind }), []parse.Field[Chain]{
	parse.NameField("name", "a chain's name", "The name of the chain for `dray status` and `dray down`. It must be unique on the host.",
		func(c *Chain) *string { return &c.Name }).As(schema.Ref("name")).Must(),
	{
		Name: "policy",
		Doc:  "What happens when a requirement cannot be met.",
		Form: schema.Ref("policy"),
		Decode: func(d *parse.Decoder, n *yaml.Node, c *Chain) {
			parse.Object(d, n, "a policy", policyFields, &c.Policy)
		},
	},
	{Name: "hosts", Doc: "Simulated hosts: network namespaces of the one machine, joined by an underlay of a stated rate and delay. Each function names its host, unless the hosts have resources: then the planner can place it.",
		Form: schema.Ref("hosts"), Decode: decodeHosts},
	{Name: "functions", Required: true, Doc: "The containers and processes of the chain, at least one. Names must be unique.",
		Form: schema.List(schema.Ref("function"), 1, 0), Decode: decodeFunctions},
	{Name: "links", Doc: "The links between ports. Names must be unique. A port without a link gets no interface.",
		Form: schema.List(schema.Ref("link"), 0, 0), Decode: decodeLinks},
	{Name: "paths", Doc: "Routes of packets through several functions, each with requirements from end to end. Names must be unique.",
		Form: schema.List(schema.Ref("packet-path"), 0, 0), Decode: decodePaths},
}...)

var policyFields = []parse.Field[Policy]{
	parse.ChoiceField("on_infeasible", "What to do with a requirement that the planner expects to be missed: `refuse` starts nothing and exits with 3; `warn` prints a warning, runs the chain and leaves the verdict to the measurement. A chain that cannot be built is always refused.",
		policies, func(p *Policy) *OnInfeasible { return &p.OnInfeasible }).Default("refuse"),
	parse.BooleanField("privileged", "Whether a link may use a transport that needs privileges for its functions. `af-xdp` needs host capabilities, `dpdk-ring` access to all DPDK memory of the other function. The plan lists them. A function gets only these.",
		func(p *Policy) *bool { return &p.Privileged }).Default(false),
}

func decodeFunctions(d *parse.Decoder, n *yaml.Node, c *Chain) {
	names := parse.NewUnique("functions")
	d.List(n, "functions", func(item *yaml.Node) {
		d.Part("function", item)
		f := Function{Runtime: RuntimeRunc, Restart: RestartNever, Pos: d.Position(item)}
		values := parse.Object(d, item, "a function", functionFields, &f)
		f.FieldPos = d.Positions(values)
		names.Add(d, f.Name, values["name"])
		checkRuntime(d, &f, values)
		checkEAL(d, &f, values["command"])
		c.Functions = append(c.Functions, f)
	})
	if n := parse.Deref(n); n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		d.Fail(n, "describe at least one", "the chain has no functions")
	}
}

func decodeLinks(d *parse.Decoder, n *yaml.Node, c *Chain) {
	names := parse.NewUnique("links")
	d.List(n, "links", func(item *yaml.Node) {
		d.Part("link", item)
		l := Link{Transport: TransportAuto, Isolation: IsolationLink, Traffic: TrafficUDP, Pos: d.Position(item)}
		values := parse.Object(d, item, "a link", linkFields, &l)
		l.FieldPos = d.Positions(values)
		names.Add(d, l.Name, values["name"])
		checkRates(d, &l, values)
		checkSlotLoad(d, &l, values)
		checkForwarding(d, &l, values)
		c.Links = append(c.Links, l)
	})
}
