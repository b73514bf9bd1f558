// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"slices"
	"strconv"
)

// fault is a kind of fault.
type fault struct {
	kind string
	// ends says that it ends a pod of the victim.
	ends bool
	// strike does it, and returns a check that what was struck is back.
	strike func(s *storm, victim *pair) (healed func() error)
}

var kinds = []fault{
	{kind: "dray-node killed", strike: kill("/dray-node")},
	{kind: "dray-broker killed", strike: kill("/dray-broker")},
	{kind: "dray-operator killed", strike: killOperator},
	{kind: "kubelet killed", strike: kill("kubelet")},
	{kind: "containerd killed", strike: kill("containerd")},
	{kind: "API server away", strike: stopAPI},
	{kind: "receiver force-deleted", ends: true, strike: forceDelete("du")},
	{kind: "sender force-deleted", ends: true, strike: forceDelete("cu-up")},
	{kind: "power cut", ends: true, strike: powerCut},
}

// kill kills a program on the victim's node.
func kill(program string) func(*storm, *pair) func() error {
	return func(_ *storm, victim *pair) func() error { return victim.killed(program, victim.node) }
}

// killOperator kills the operator, which runs on one of the nodes.
func killOperator(s *storm, _ *pair) func() error {
	return s.any().killed("/dray-operator", "n1", "n2")
}

// killed kills a program on some nodes, and returns a check that it runs again.
func (c *cluster) killed(program string, nodes ...string) func() error {
	c.t.Helper()
	before := map[string][]string{}
	found := 0
	for _, n := range nodes {
		before[n] = c.processes(n, program)
		found += len(before[n])
		c.killProgram(n, program)
	}
	if found == 0 {
		c.t.Fatalf("%s does not run on %v", program, nodes)
	}
	return func() error {
		runs := 0
		for _, n := range nodes {
			for _, pid := range c.processes(n, program) {
				if slices.Contains(before[n], pid) {
					return fmt.Errorf("process %s is still there", pid)
				}
				runs++
			}
		}
		if runs == 0 {
			return fmt.Errorf("%s does not run again", program)
		}
		return nil
	}
}

// stopAPI stops the API server for some seconds: less than those after which a node counts as dead.
func stopAPI(s *storm, _ *pair) func() error {
	seconds := 2 + s.random.IntN(9)
	s.any().on("cp", "sh", "-c", "pkill -STOP -x kube-apiserver; sleep "+strconv.Itoa(seconds)+"; pkill -CONT -x kube-apiserver")
	return func() error {
		_, err := s.any().try("get", "--raw=/readyz")
		return err
	}
}

// forceDelete removes a pod at once, and makes it again. The new one waits until the old one has ended.
func forceDelete(name string) func(*storm, *pair) func() error {
	return func(_ *storm, victim *pair) func() error {
		victim.in("delete", "pod", name, "--force", "--grace-period=0")
		victim.apply(victim.manifest(name))
		return func() error { return nil } // a pod of that name is another one
	}
}

// powerCut cuts the power of the victim's node, and boots it.
func powerCut(_ *storm, victim *pair) func() error {
	before := victim.state().containers
	victim.must("reboot", victim.node)
	return func() error {
		for _, program := range []string{"/dray-node", "/dray-broker"} {
			if len(victim.processes(victim.node, program)) == 0 {
				return fmt.Errorf("%s does not run", program)
			}
		}
		now, err := victim.try("-n", victim.namespace, "get", "pods", "--sort-by=.metadata.name", "-o", "jsonpath={.items[*].status.containerStatuses[0].containerID}")
		if err == nil && now == before {
			err = fmt.Errorf("the kubelet has not started the pods again")
		}
		return err
	}
}
