// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
)

// Figures are a chain's functions, and the interfaces of its ports, for metrics.
type Figures struct {
	Found
	Functions  []FunctionStatus
	Interfaces []Interface
}

// Interface is a port that is an interface of its function, and what the kernel has
// counted there; nil: the interface is gone, or could not be looked at.
type Interface struct {
	Link, Function, Port string
	Traffic              *host.Traffic
}

// Figures reads the figures of this host's chains. A chain that is not up has only its
// condition. It asks no container engine.
func (n *Node) Figures() ([]Figures, error) {
	list, err := n.List()
	if err != nil {
		return nil, err
	}
	all := make([]Figures, 0, len(list))
	for _, found := range list {
		f := Figures{Found: found}
		if err := n.figures(&f); err != nil {
			f = Figures{Found: n.failed(f.Found, err)}
		}
		if f.Condition != Absent { // as another process has just removed it
			all = append(all, f)
		}
	}
	return all, nil
}

// failed is the condition of a chain of which something could not be read: another process
// may be at it.
func (n *Node) failed(was Found, err error) Found {
	if refused := new(refusedError); errors.As(err, &refused) {
		return Found{Chain: was.Chain, Condition: was.Condition, Detail: err.Error()}
	}
	now, again := n.inspect(was.Chain)
	if again != nil || now.Condition == Up {
		return Found{Chain: was.Chain, Condition: Broken, Detail: err.Error()}
	}
	return now
}

func (n *Node) figures(f *Figures) error {
	if f.Condition != Up && f.Condition != Busy {
		return nil
	}
	l, err := n.load(f.Chain)
	if err != nil {
		return err
	}
	f.Interfaces = l.interfaces()
	f.Functions, _, err = l.Status()
	return err
}

// interfaces are the ports that have an interface of their own, with one look into each
// function's namespace.
func (l *Live) interfaces() []Interface {
	var all []Interface
	names := map[string][]string{}
	for _, link := range l.State.Plan.Links {
		for _, e := range link.Ends {
			if e.Uplink != "" || e.Face != chain.FaceNetdev || l.State.Sandboxes[e.Function] == nil {
				continue
			}
			if made, _ := l.hasInterface(link, e); made {
				all = append(all, Interface{Link: link.Name, Function: e.Function, Port: e.Port})
				names[e.Function] = append(names[e.Function], e.Port)
			}
		}
	}
	traffic := map[string]map[string]host.Traffic{}
	for function, ports := range names {
		ns := l.State.Sandboxes[function].Netns
		if !ns.Exists() {
			continue
		}
		if read, err := ns.ReadTraffic(ports); err == nil { // else it is not known
			traffic[function] = read
		}
	}
	for i := range all {
		if t, ok := traffic[all[i].Function][all[i].Port]; ok {
			all[i].Traffic = &t
		}
	}
	return all
}
