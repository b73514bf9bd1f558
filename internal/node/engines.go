// SPDX-License-Identifier: Apache-2.0

package node

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/broker"
)

// LinkFaults tells of each link whose processes on the host do not all run what
// is wrong with it, by link.
func (l *Live) LinkFaults() map[string]string {
	faults := map[string]string{}
	noBroker := ""
	if needsBroker(l.State.Plan) {
		noBroker = l.brokerFault()
	}
	for _, link := range l.State.Plan.Links {
		var dead []string
		if report := l.State.Reports[link.Name]; report != nil {
			for _, p := range report.Processes {
				if !p.ID.Alive() {
					dead = append(dead, fmt.Sprintf("%s (process %d)", p.Name, p.ID.PID))
				}
			}
		}
		switch {
		case len(dead) > 0:
			faults[link.Name] = fmt.Sprintf("%s has ended: nothing passes; dray down %s, then dray up", strings.Join(dead, " and "), l.Chain.Name)
		case hasBrokeredEnd(link) && noBroker != "":
			faults[link.Name] = noBroker
		}
	}
	return faults
}

// BrokerAnswers reports whether a broker serves the chain's native ports, also one
// that somebody started by hand.
func (l *Live) BrokerAnswers() bool {
	_, err := broker.Dial(l.BrokerDir())
	return err == nil
}

// brokerFault is why nobody can open a native port of the chain now, or "".
func (l *Live) brokerFault() string {
	b, err := l.Broker()
	switch {
	case err != nil:
		return err.Error()
	case b == nil:
		return "its broker was never started"
	case !l.BrokerAnswers():
		return fmt.Sprintf("its broker (process %d) has ended: open ports go on, none can be opened", b.Process.PID)
	}
	return ""
}
