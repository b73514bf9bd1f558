// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/plan"
)

// LinkFaults describes the fault of each link with ended host processes or without
// its broker, by link.
func (l *Live) LinkFaults() map[string]string {
	faults := map[string]string{}
	noBroker := ""
	if needsBroker(l.State.Plan) {
		noBroker = l.brokerFault()
	}
	revivals, unknown := l.Revivals()
	ports := l.portFaults()
	for _, link := range l.State.Plan.Links {
		var dead []string
		for _, p := range l.processes(link.Name, revivals) {
			if !p.ID.Alive() {
				dead = append(dead, fmt.Sprintf("%s (process %d)", p.Name, p.ID.PID))
			}
		}
		switch {
		case len(dead) > 0 && unknown != nil: // it may have been restarted
			faults[link.Name] = "its processes are not known: " + unknown.Error()
		case len(dead) > 0:
			faults[link.Name] = strings.Join(dead, " and ") + " has ended: no packets pass" + l.prospect(link.Transport, revivals[link.Name])
		case hasBrokeredEnd(link) && noBroker != "":
			faults[link.Name] = noBroker
		case ports[link.Name] != "":
			faults[link.Name] = ports[link.Name] + l.repair(link)
		}
	}
	return faults
}

// repair says how a link with a wrong port becomes as the chain says.
func (l *Live) repair(pl plan.Link) string {
	if l.checkLink(l.Chain, Change{}, pl, Wrong{}).Refused != "" {
		return ": dray down " + l.Chain.Name + ", then dray up"
	}
	return ": dray apply, with the chain's file, makes the link again"
}

// prospect is the outlook of a link with an ended process.
func (l *Live) prospect(driver string, r Revival) string {
	d, err := l.node.driver(driver)
	if err != nil {
		return ": " + err.Error()
	}
	_, revives := d.(transport.Reviver)
	functions, supervised, err := l.Status()
	switch {
	case !revives:
		return "; dray down " + l.Chain.Name + ", then dray up"
	case err == nil && len(functions) > 0 && !supervised:
		return ", and its supervisor is dead: dray down " + l.Chain.Name + ", then dray up"
	case r.Error != "":
		return "; it cannot be restarted: " + r.Error
	}
	return " until it is restarted"
}

// BrokerAnswers reports whether a broker serves the chain's native ports, even one
// started by hand.
func (l *Live) BrokerAnswers() bool {
	_, err := broker.Dial(l.BrokerDir())
	return err == nil
}

// brokerFault is why no native port of the chain can be opened now, or "".
func (l *Live) brokerFault() string {
	b, err := l.Broker()
	switch {
	case err != nil:
		return err.Error()
	case b == nil:
		return "its broker was never started"
	case !l.BrokerAnswers():
		return fmt.Sprintf("its broker (process %d) has ended: open ports keep working, but none can be opened", b.Process.PID)
	}
	return ""
}
