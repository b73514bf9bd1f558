// SPDX-License-Identifier: Apache-2.0

package hostile

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/test/testenv"
)

// patience is how long anything may take before it counts as hung: the machine may
// have a tenth of a CPU to spare.
const patience = 2 * time.Minute

// scene is a chain that is up, with a state directory of its own.
type scene struct {
	*session
	name     string
	program  string // dray
	state    string // directory
	programs string // directory that functions see
}

// newScene brings a chain up. file gets the directory of the programs.
func (s *session) newScene(name string, programs []string, file func(programs string) string) *scene {
	s.Helper()
	testenv.Root(s)
	testenv.Program(s, "runc")
	state, err := os.MkdirTemp("/run", "dray-hostile-")
	testenv.Must(s, err)
	testenv.NoLeaks(s, filepath.Base(state))
	s.Cleanup(func() { clearState(s.T, state) })
	testenv.Must(s, os.Chmod(state, 0o711))
	c := &scene{session: s, name: name, program: testenv.Built(s, "dray"), state: state, programs: visible(s.T, programs)}
	path := filepath.Join(s.TempDir(), "chain.yaml")
	testenv.Must(s, os.WriteFile(path, []byte(file(c.programs)), 0o600))
	s.Cleanup(func() {
		if s.Failed() {
			s.Log(c.dray("status", name))
		}
		if out, code := c.dray("down", name); code != 0 {
			s.finding("dray down: status %d: %s", code, out)
		}
	})
	if out, code := c.dray("up", path); code != 0 {
		s.Fatalf("dray up: status %d: %s", code, out)
	}
	return c
}

// clearState removes what outlives chains, and fails if anything else is there.
func clearState(t *testing.T, state string) {
	_ = os.RemoveAll(filepath.Join(state, ".failed"))
	for _, note := range []string{".lock", ".measuring", ".ran", "calibration.json"} {
		_ = os.Remove(filepath.Join(state, note))
	}
	if err := os.Remove(state); err != nil {
		t.Error(err)
	}
}

// visible copies programs to a directory that a container over the host's root sees.
func visible(t *testing.T, programs []string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "dray-hostile-")
	testenv.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	testenv.Must(t, os.Chmod(dir, 0o755))
	for _, program := range programs {
		built, err := os.ReadFile(program)
		testenv.Must(t, err)
		testenv.Must(t, os.WriteFile(filepath.Join(dir, filepath.Base(program)), built, 0o755))
	}
	return dir
}

// attackers are the programs of `make attackers`; the victim is of another build of
// libdray, perhaps with sanitizers.
func attackers(t *testing.T, victim string) (programs []string) {
	t.Helper()
	for _, name := range []string{"memory", "bells", "control", "resources"} {
		programs = append(programs, testenv.BuiltBy(t, "attackers", "out", "port-plain", "tests", "attack", "attack-"+name))
	}
	return append(programs, testenv.BuiltBy(t, "attackers", "out", victim, "tests", "attack", "attack-victim"))
}

func (c *scene) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Env = append(os.Environ(), "DRAY_STATE="+c.state)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// dray runs the program to its end: all its output, and its exit status.
func (c *scene) dray(args ...string) (string, int) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := c.command(ctx, args...)
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		return err.Error(), -1
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// attack runs an attacker inside a function, and adds what it did.
func (c *scene) attack(function, attacker, port string, d time.Duration) {
	c.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d+patience)
	defer cancel()
	cmd := c.command(ctx, "exec", c.name, function, "--", filepath.Join(c.programs, "attack-"+attacker), port,
		fmt.Sprintf("%.1f", d.Seconds()), fmt.Sprint(c.rng.Uint64()))
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.Output()
	var did struct{ Attempts, Lives, Refused, Escapes, Joined uint64 }
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if jsonErr := json.Unmarshal([]byte(lines[len(lines)-1]), &did); err != nil || jsonErr != nil {
		c.Fatalf("the attacker %s of %s ends with %v: %s%s", attacker, function, err, out, tail(log.String()))
	}
	c.result.Attempts += did.Attempts
	c.count("lives", did.Lives)
	c.count("refused", did.Refused)
	if did.Joined > 0 {
		c.count("joined", did.Joined)
	}
	if did.Escapes > 0 {
		c.finding("%d escapes: %s", did.Escapes, tail(log.String()))
	}
	if did.Attempts == 0 {
		c.Errorf("%s never got past the broker: %s", attacker, tail(log.String()))
	}
}

func tail(text string) string {
	return text[max(0, len(text)-2000):]
}

// functions is the state of every function.
func (c *scene) functions() map[string]node.FunctionStatus {
	c.Helper()
	var status node.Status
	text, err := os.ReadFile(filepath.Join(c.state, c.name, "status.json"))
	if err == nil {
		err = json.Unmarshal(text, &status)
	}
	testenv.Must(c, err)
	return status.Functions
}

// unharmed reports functions that run no longer, or run again.
func (c *scene) unharmed(before map[string]node.FunctionStatus, names ...string) {
	c.Helper()
	now := c.functions()
	for _, name := range names {
		if now[name].Phase != node.PhaseRunning || now[name].Process != before[name].Process {
			c.finding("function %s: %+v, and was %+v; its last output: %s", name, now[name], before[name], tail(c.log(name)))
		}
	}
}

func (c *scene) log(function string) string {
	out, _ := c.dray("logs", c.name, function)
	return out
}

// links is the state of every link; nil while no broker answers.
func (c *scene) links() map[string]broker.LinkStatus {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	client, err := broker.Dial(filepath.Join(c.state, c.name, "broker"))
	if err != nil {
		return nil
	}
	all, err := client.Status(ctx)
	if err != nil {
		return nil
	}
	links := map[string]broker.LinkStatus{}
	for _, l := range all {
		links[l.Name] = l
	}
	return links
}

// until waits for something that must come, and ends the test if it does not.
func (c *scene) until(what string, holds func() bool) {
	c.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			status, _ := c.dray("status", c.name)
			c.finding("not within %v: %s\n%s", patience, what, status)
			c.FailNow()
		}
	}
}

// received is how many packets an end has received, as its application says; 0 if it
// does not answer.
func (c *scene) received(link, function string) uint64 {
	for _, e := range c.links()[link].Ends {
		if e.Function == function {
			return e.Counters.RxPackets
		}
	}
	return 0
}

// passes waits until packets pass over a link, in both directions.
func (c *scene) passes(link string) {
	c.Helper()
	for _, e := range c.links()[link].Ends {
		before := c.received(link, e.Function)
		c.until(fmt.Sprintf("%s receives over %s", e.Function, link), func() bool {
			now := c.received(link, e.Function)
			if now < before {
				before = now // another instance
			}
			return now > before+100
		})
	}
}
