// SPDX-License-Identifier: Apache-2.0

package e2e

import "errors"

// pair is two pods on one node with traffic between them, and their namespace.
type pair struct {
	*cluster
	node      string
	hostUsers bool
}

// pods of a pair are started again by the kubelet.
func (p *pair) manifest(name string) string {
	command := map[string]string{"du": receives, "cu-up": sends}[name]
	return pod{name: name, function: name, command: command, hostUsers: p.hostUsers, node: p.node, restart: "Always"}.manifest()
}

func (p *pair) start() {
	p.t.Helper()
	p.apply(p.manifest("du"))
	p.apply(p.manifest("cu-up"))
	p.ready("du", "cu-up")
	p.flows()
}

// renew replaces both pods, so that sequence numbers begin again at both ends.
func (p *pair) renew() {
	p.t.Helper()
	p.in("delete", "pods", "--all")
	p.start()
}

// state is what a fault of something else must not change.
type state struct {
	containers string // their IDs
	damaged    int64  // packets that were lost or came wrongly since du was started
}

func (p *pair) state() state {
	p.t.Helper()
	s := state{containers: p.in("get", "pods", "--sort-by=.metadata.name", "-o", "jsonpath={.items[*].status.containerStatuses[0].containerID}")}
	received := int64(0)
	p.until("reports of du", func() error {
		s.damaged = 0
		all, err := p.intervals("du")
		for _, r := range all {
			s.damaged += r.Lost + r.Duplicates + r.Reordered + r.Corrupt
			received += r.Received
		}
		if err == nil && received == 0 {
			err = errors.New("nothing received yet")
		}
		return err
	})
	return s
}
