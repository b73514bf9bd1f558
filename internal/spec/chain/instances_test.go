// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"fmt"
	"strings"
	"testing"
)

const withWorkers = `apiVersion: drayage/v1
kind: Chain
name: c
functions:
  - {name: lb, ports: [{name: in}, {name: w, queues: 2}, {name: out}]}
  - {name: worker, instances: 3, command: [run], ports: [{name: lb, queues: 2}, {name: db}]}
  - {name: store, ports: [{name: w}]}
  - {name: net, ports: [{name: a}, {name: b}]}
links:
  - {name: in, ends: [net.a, lb.in]}
  - {name: work, ends: [lb.w, worker.lb], requires: {latency: 1ms}}
  - {name: db, ends: [worker.db, store.w]}
  - {name: out, ends: [lb.out, net.b]}
`

// Each instance is a function with links and peers of its own.
func TestInstances(t *testing.T) {
	c, err := Parse("c.yaml", []byte(withWorkers))
	if err != nil {
		t.Fatal(err)
	}
	var functions, links []string
	for _, f := range c.Functions {
		text := f.Name + "(" + f.Of + ")" + strings.Join(f.Command, "")
		for _, p := range f.Ports {
			text += fmt.Sprintf(" %s/%d", p.Name, p.Queues)
		}
		functions = append(functions, text)
	}
	for _, l := range c.Links {
		links = append(links, fmt.Sprintf("%s %v %v", l.Name, l.Ends[0], l.Ends[1]))
	}
	for what, lists := range map[string][2]string{
		"functions": {strings.Join(functions, "\n"), `lb() in/1 w-0/2 w-1/2 w-2/2 out/1
worker-0(worker)run lb/2 db/1
worker-1(worker)run lb/2 db/1
worker-2(worker)run lb/2 db/1
store() w-0/1 w-1/1 w-2/1
net() a/1 b/1`},
		"links": {strings.Join(links, "\n"), `in net.a lb.in
work-0 lb.w-0 worker-0.lb
work-1 lb.w-1 worker-1.lb
work-2 lb.w-2 worker-2.lb
db-0 worker-0.db store.w-0
db-1 worker-1.db store.w-1
db-2 worker-2.db store.w-2
out lb.out net.b`},
	} {
		if lists[0] != lists[1] {
			t.Errorf("%s:\n%s\nwant\n%s", what, lists[0], lists[1])
		}
	}
	if l := c.Links[2]; l.Requires.Latency == 0 {
		t.Error("the link of an instance requires nothing")
	}
	if got := c.Function("worker-1").Declared() + " " + c.Function("lb").Declared(); got != "worker lb" {
		t.Errorf("declared as %s", got)
	}
}

// Instances of an external function are in network namespaces of their own.
func TestExternalInstances(t *testing.T) {
	text := strings.Replace(withWorkers, "command: [run]", "runtime: external, external: {netns: /run/netns/w}", 1)
	c, err := Parse("c.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		if got, want := c.Function(Numbered("worker", i)).External.Netns, fmt.Sprintf("/run/netns/w-%d", i); got != want {
			t.Errorf("instance %d is in %s, not %s", i, got, want)
		}
	}
}

// A short file must not become a chain that fills the memory.
func TestManyInstances(t *testing.T) {
	var b strings.Builder
	b.WriteString("apiVersion: drayage/v1\nkind: Chain\nname: c\nfunctions:\n")
	for i := range 200 {
		fmt.Fprintf(&b, "  - {name: f%d, instances: 32, ports: []}\n", i)
	}
	if _, err := Parse("c.yaml", []byte(b.String())); err == nil || !strings.Contains(err.Error(), "133:29: the instances of the chain and their ports are more than 4096") {
		t.Errorf("got %v", err)
	}
}
