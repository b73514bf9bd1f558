// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// flowsOfTraffic is how many flows the traffic of the example has.
const flowsOfTraffic = 256

// session is what Redis has of a flow.
type session struct {
	ID, Worker string
	Packets    uint64 `json:",string"`
}

// allSessions is a script of Redis that returns all sessions as JSON.
const allSessions = `local all = {}
for _, key in ipairs(redis.call('KEYS', 'session:*')) do
  local fields, one = redis.call('HGETALL', key), {}
  for i = 1, #fields, 2 do one[fields[i]] = fields[i + 1] end
  all[key] = one
end
return cjson.encode(all)`

// example is a manifest of the example of a load balancer.
func (c *cluster) example(name string) string {
	c.t.Helper()
	text, err := os.ReadFile(filepath.Join("../../../examples/kubernetes/load-balancer", name))
	if err != nil {
		c.t.Fatal(err)
	}
	return string(text)
}

// balanced starts the example with one worker.
func (c *cluster) balanced() {
	c.t.Helper()
	for _, name := range []string{"chain.yaml", "redis.yaml", "balancer.yaml"} {
		c.apply(c.example(name))
	}
	c.in("rollout", "status", "deployment/redis", "deployment/balancer", "--timeout", patience.String())
	// This cluster has no kube-proxy, so Services have no address.
	redis := c.in("get", "pods", "-l", "app=redis", "-o", "jsonpath={.items[0].status.podIP}")
	c.apply(strings.Replace(c.example("worker.yaml"), "$(REDIS_SERVICE_HOST)", redis, 1))
	c.in("rollout", "status", "deployment/worker", "--timeout", patience.String())
	c.until("a worker that gets packets", func() error { return c.prints(`"up":true`, "logs", "deployment/balancer", "--tail=1") })
}

// send starts the traffic of the example, without an end, and waits for a session of each flow.
func (c *cluster) send() map[string]session {
	c.t.Helper()
	c.apply(strings.Replace(c.example("traffic.yaml"), "--duration, 60s, ", "", 1))
	c.until("traffic", func() error {
		_, err := c.try("-n", c.namespace, "wait", "--for=condition=Ready", "pod", "-l", "app=traffic", "--timeout=10s")
		return err
	})
	return c.served(1)
}

// stop ends the traffic, and returns what it counted.
func (c *cluster) stop() (r result) {
	c.t.Helper()
	name := strings.TrimSpace(c.in("get", "pods", "-l", "app=traffic", "-o", "jsonpath={.items[0].metadata.name}"))
	c.signal(name, "TERM", "draygen")
	c.in("wait", "--for=condition=complete", "job/traffic", "--timeout", patience.String())
	r = c.printed(name)
	c.in("delete", "job/traffic")
	return r
}

// answered is how many packets the balancer has got from the traffic, and how many of their
// answers left. draygen cannot say so if a signal ends it: some are then under way.
func (c *cluster) answered() (packets, answers uint64) {
	c.t.Helper()
	var first, last struct {
		Seconds float64
		Ports   []struct{ Received, Sent uint64 }
	}
	c.until("counts of the balancer", func() error {
		out, err := c.try("-n", c.namespace, "logs", "deployment/balancer", "--tail=1")
		if err == nil {
			err = json.Unmarshal([]byte(out), &last)
		}
		if err != nil || len(last.Ports) == 0 {
			return fmt.Errorf("%s: %w", out, err)
		}
		if first.Seconds == 0 {
			first = last
		}
		if last.Seconds < first.Seconds+2 { // answers to the last packets may be under way
			return errors.New("too early")
		}
		return nil
	})
	return last.Ports[0].Received, last.Ports[0].Sent
}

// signal sends a signal to a program of a pod.
func (c *cluster) signal(pod, signal, program string) {
	c.t.Helper()
	uid := c.in("get", "pod", pod, "-o", "jsonpath={.metadata.uid}")
	c.on(c.node(pod), "sh", "-c", fmt.Sprintf(
		`for p in $(pgrep -x %s); do if grep -q %s /proc/$p/cgroup; then kill -%s $p || true; fi; done`, program, uid, signal))
}

// sessions are those that Redis has.
func (c *cluster) sessions() (all map[string]session, err error) {
	out, err := c.try("-n", c.namespace, "exec", "deployment/redis", "--", "redis-cli", "EVAL", allSessions, "0")
	if err == nil {
		err = json.Unmarshal([]byte(out), &all)
	}
	return all, err
}

// served waits until each of so many workers, and no other, has sessions that get packets.
func (c *cluster) served(workers int) (all map[string]session) {
	c.t.Helper()
	before, err := c.sessions()
	if err != nil {
		before = nil
	}
	c.until(fmt.Sprintf("sessions at %d workers", workers), func() error {
		if all, err = c.sessions(); err != nil {
			return err
		}
		serve := map[string]int{}
		idle := 0
		for key, s := range all {
			serve[s.Worker]++
			if s.Packets <= before[key].Packets {
				idle++
			}
		}
		if len(serve) != workers || idle > 0 || len(all) != flowsOfTraffic {
			return fmt.Errorf("%d sessions, %d without packets, of workers %v", len(all), idle, serve)
		}
		return nil
	})
	return all
}

// continued checks that each session is the one that it was, and has lost no packet that was counted.
func (c *cluster) continued(what string, before, after map[string]session) {
	c.t.Helper()
	lost := 0
	for key, s := range before {
		if after[key].ID != s.ID || after[key].Packets < s.Packets {
			c.t.Errorf("%s: session %s was %+v, is %+v", what, key, s, after[key])
			lost++
		}
	}
	c.t.Logf("%s: %d sessions, %d lost", what, len(before), lost)
}

func packetsOf(all map[string]session) (n uint64) {
	for _, s := range all {
		n += s.Packets
	}
	return n
}

// workersPods are the names of the workers' pods that run.
func (c *cluster) workerPods() []string {
	c.t.Helper()
	return strings.Fields(c.in("get", "pods", "-l", "app=worker", "-o", `jsonpath={range .items[*]}{.metadata.name}{"\n"}{end}`))
}

// restarts is how often the containers of a pod were started again.
func (c *cluster) restarts(pod string) int {
	c.t.Helper()
	n, err := strconv.Atoi(c.in("get", "pod", pod, "-o", "jsonpath={.status.containerStatuses[0].restartCount}"))
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

// A load balancer's workers are scaled up and down under traffic without a loss. Then one is
// killed and one force-deleted, and their sessions continue at others.
func TestALoadBalancerKeepsItsSessions(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a minute: run make test-kube")
	}
	c := newCluster(t)
	c.balanced()
	first := c.send()
	for _, n := range []int{4, 1} {
		c.scale(n)
		c.continued(fmt.Sprintf("scaled to %d", n), first, c.served(n))
	}
	r := c.stop()
	c.until("every packet in a session", func() error {
		all, err := c.sessions()
		if n := packetsOf(all); err == nil && n < uint64(r.Sent) {
			err = fmt.Errorf("%d packets, sent %d", n, r.Sent)
		}
		return err
	})
	var packets, answers uint64
	c.until("an answer to each packet", func() error {
		if packets, answers = c.answered(); packets < uint64(r.Sent) || answers != packets {
			return fmt.Errorf("%d of %d packets, %d answers", packets, r.Sent, answers)
		}
		return nil
	})
	if r.Sent == 0 || r.Corrupt+r.Duplicates != 0 {
		t.Errorf("the balancer got %d packets and sent %d answers: %+v", packets, answers, r)
	}
	t.Logf("scaled from 1 to 4 and back: %d packets, %d lost", packets, packets-answers)

	c.continued("new traffic", first, c.send())
	c.scale(4)
	before := c.served(4)
	victim := c.workerPods()[0]
	c.signal(victim, "KILL", "dray-vnf")
	c.until(victim+" started again", func() error {
		var p corev1.Pod
		if err := c.get("pod", victim, &p); err != nil || p.Status.ContainerStatuses[0].RestartCount == 0 {
			return fmt.Errorf("%+v, %v", p.Status, err)
		}
		return nil
	})
	after := c.served(4)
	c.continued("a worker killed", before, after)
	c.in("delete", "pod", c.workerPods()[1], "--force", "--grace-period=0")
	c.scale(4)
	c.continued("a worker force-deleted", after, c.served(4))
	r = c.stop()
	if r.Sent == 0 || r.Corrupt+r.Duplicates != 0 {
		t.Errorf("killed: %+v", r)
	}
	all, allAnswers := c.answered()
	t.Logf("killed and force-deleted: %d packets, %d lost", all-packets, all-packets-(allAnswers-answers))
	c.in("delete", "deployment/worker", "deployment/balancer")
	c.until("clean", c.left)
}
