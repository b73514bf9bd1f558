// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/drayage/dray/test/testenv"
)

// Of examples/worker-pool.yaml.
const (
	poolFlows = 256
	poolRedis = "10.56.0.1"
)

// pool is the example with a name of its own.
type pool struct {
	*bench
	chain, text, file string
}

// newPool brings the example up with parts of its file replaced.
func newPool(t *testing.T, chain string, changes ...string) *pool {
	t.Helper()
	testenv.Program(t, "redis-server", "redis-cli")
	b := newDPDKBench(t)
	programs := visible(t, "dray-vnf", "draygen")
	example, err := os.ReadFile(example("worker-pool.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer("[dray-vnf", "["+programs+"/dray-vnf", "[draygen", "["+programs+"/draygen",
		"--interval, 1s", "--interval, 100ms").Replace(string(example))
	text = edited(t, text, append([]string{"name: worker-pool", "name: " + chain}, changes...)...)
	p := &pool{b, chain, text, b.file(text)}
	b.want(0, "up", p.file)
	return p
}

// until waits for something, and says what was missing last.
func (p *pool) until(what string, is func() error) {
	p.t.Helper()
	var err error
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if err = is(); err == nil {
			return
		}
	}
	p.t.Fatalf("not within %v: %s: %v", patience, what, err)
}

// pooled is a session, as Redis has it.
type pooled struct {
	ID, Worker string
	Packets    uint64 `json:",string"`
}

// stored are all sessions that Redis has.
func (p *pool) stored() (all map[string]pooled, err error) {
	const script = `local all = {}
for _, key in ipairs(redis.call('KEYS', 'session:*')) do
  local fields, one = redis.call('HGETALL', key), {}
  for i = 1, #fields, 2 do one[fields[i]] = fields[i + 1] end
  all[key] = one
end
return cjson.encode(all)`
	r := p.dray("exec", p.chain, "redis", "--", "redis-cli", "-h", poolRedis, "EVAL", script, "0")
	if r.Code != 0 {
		return nil, errors.New(r.String())
	}
	return all, json.Unmarshal([]byte(r.Stdout), &all)
}

// served waits until so many workers have sessions, each of which gets packets.
func (p *pool) served(workers int) (all map[string]pooled) {
	p.t.Helper()
	before := map[string]pooled{}
	p.until(fmt.Sprintf("sessions at %d workers", workers), func() (err error) {
		if all, err = p.stored(); err != nil {
			return err
		}
		names, idle := map[string]int{}, 0
		for key, s := range all {
			names[s.Worker]++
			if s.Packets <= before[key].Packets {
				idle++
			}
		}
		if before = all; len(all) != poolFlows || len(names) != workers || idle > 0 {
			return fmt.Errorf("%d sessions, %d without packets, at %v", len(all), idle, names)
		}
		return nil
	})
	return all
}

// continued wants each session to be the one that it was, with every packet that was counted.
func (p *pool) continued(what string, before, after map[string]pooled) {
	p.t.Helper()
	lost := 0
	for key, s := range before {
		if after[key].ID != s.ID || after[key].Packets < s.Packets {
			p.t.Errorf("%s: session %s was %+v, is %+v", what, key, s, after[key])
			lost++
		}
	}
	p.t.Logf("%s: %d sessions, %d lost", what, len(before), lost)
}

// sessions are the counts of a worker's processes: how many sessions it has had, and how many of them it continues.
type sessions struct{ Live, Resumed int }

// reported are the last counts of each process that a worker has had, in order.
func (p *pool) reported(worker string) (list []sessions) {
	p.t.Helper()
	for _, text := range strings.Split(p.want(0, "logs", p.chain, worker).Stdout, "\n") {
		var line struct {
			Event    string
			Sessions sessions
		}
		switch {
		case !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &line) != nil: // EAL's, or cut by SIGKILL
		case line.Event == "ready":
			list = append(list, sessions{})
		case len(list) > 0:
			list[len(list)-1] = line.Sessions
		}
	}
	return list
}

// begun is how many sessions have begun in the pool, by the reports of all workers.
func (p *pool) begun() (n int) {
	p.t.Helper()
	for _, worker := range []string{"worker1", "worker2", "worker3"} {
		for _, s := range p.reported(worker) {
			n += s.Live - s.Resumed
		}
	}
	return n
}

// killWorker kills worker2, and waits until it is back and has sessions again.
func (p *pool) killWorker() {
	p.t.Helper()
	killFunction(p.t, p.bench, p.chain, "worker2")
	p.until("the killed worker has sessions again", func() error {
		if list := p.reported("worker2"); len(list) < 2 || list[1].Live == 0 {
			return fmt.Errorf("its processes: %v", list)
		}
		return nil
	})
}

// TestAWorkerPoolKeepsItsSessions kills a worker of the example under traffic, which comes back, and adds one.
// Each session outlives both.
func TestAWorkerPoolKeepsItsSessions(t *testing.T) {
	t.Parallel()
	p := newPool(t, "pool-stored")
	first := p.served(2)
	for _, function := range []string{"gen", "lb", "worker1", "redis"} {
		p.noCapabilities(p.chain, function)
	}
	p.killWorker()
	second := p.served(2)
	p.continued("a worker was killed", first, second)

	grown := edited(t, p.text, "    # command: *session\n", "    command: *session\n")
	if err := os.WriteFile(p.file, []byte(grown), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := changesOf(t, p.want(0, "apply", p.file, "--json")); got != "restart function worker3" {
		t.Errorf("applied: %s", got)
	}
	p.continued("a worker was added", second, p.served(3))
	p.until("no session has begun twice", func() error { // until Redis answers, one that moved looks so
		if n := p.begun(); n != poolFlows {
			return fmt.Errorf("%d flows have begun %d sessions", poolFlows, n)
		}
		return nil
	})
	p.want(0, "down", p.chain)
}

// TestAWorkerPoolWithoutAStore is the counter-case: the same workers keep their sessions themselves. The count that
// says above that no session was lost says here how many were.
func TestAWorkerPoolWithoutAStore(t *testing.T) {
	t.Parallel()
	p := newPool(t, "pool-own", `--redis, "`+poolRedis+`:6379", `, "")
	p.until("sessions at both workers", func() error {
		if n := p.begun(); n < poolFlows || len(p.reported("worker2")) == 0 || p.reported("worker2")[0].Live == 0 {
			return fmt.Errorf("%d sessions, worker2 has %v", n, p.reported("worker2"))
		}
		return nil
	})
	before := p.begun()
	p.killWorker()
	// Its successor gets the same flows, and knows none of their sessions.
	if again := p.reported("worker2")[1].Live; p.begun()-before < again {
		t.Errorf("the killed worker is back with %d sessions, and only %d have begun again", again, p.begun()-before)
	}
	t.Logf("a worker was killed, and came back: %d sessions, begun again %d times", poolFlows, p.begun()-before)
	p.want(0, "down", p.chain)
}
