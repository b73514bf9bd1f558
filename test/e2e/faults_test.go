// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/test/testenv"
)

// The chains of the fault table. The generator sends faultRate packets/s of 98 B,
// the sink polls, and both report their counts every faultTick:
//
//	gen  draygen-dpdk send ── n3 ── draygen-dpdk sink  sink
//
//	gen  draygen-dpdk send ── n3 ── dray-vnf l2fwd  vnf ── n6 ── draygen-dpdk sink  sink
//
// On vhost-user, ovs-dpdk, vpp and vpp-memif a switch is in the middle of each link.
const (
	faultRate = 10_000 // packets/s
	faultTick = 20 * time.Millisecond
	// faultPatience is how long anything may take before it counts as hung: the
	// machine may have a tenth of a CPU to spare.
	faultPatience = 90 * time.Second
)

// fault is one row of the table: the party to kill, and the chain's transport.
type fault struct {
	victim, transport string
	through           bool // the network function is in the chain, even if another dies
	learning          bool // the switch goes by the addresses seen at each end
	// may are the parties that may also be restarted.
	may []string
	// lossless faults lose no packet that was sent.
	lossless bool
	// brief includes the row in make test.
	brief bool
}

var faults = []fault{
	{victim: "link n3", transport: "vhost-user", brief: true},
	{victim: "link n3", transport: "vhost-user", through: true},
	{victim: "link n3", transport: "ovs-dpdk"},
	{victim: "link n3", transport: "vpp", brief: true, may: []string{"function gen", "function sink"}},
	{victim: "link n3", transport: "vpp", learning: true, through: true, may: []string{"function gen", "function vnf"}},
	{victim: "link n3", transport: "vpp-memif", brief: true, may: []string{"function gen", "function sink"}},
	{victim: "function gen", transport: "shm", brief: true},
	{victim: "function gen", transport: "vhost-user", brief: true},
	{victim: "function gen", transport: "vpp", learning: true, brief: true},
	{victim: "function gen", transport: "vpp-memif", brief: true},
	{victim: "function gen", transport: "memif", brief: true, may: []string{"function sink"}},
	{victim: "function sink", transport: "memif", may: []string{"function gen"}},
	{victim: "function vnf", transport: "shm", through: true, brief: true},
	{victim: "function vnf", transport: "vhost-user", through: true},
	{victim: "function vnf", transport: "vpp", through: true},
	{victim: "function vnf", transport: "vpp-memif", learning: true, through: true},
	{victim: "broker", transport: "shm", brief: true, lossless: true},
}

func (f fault) chain() string {
	name := "fault-" + strings.ReplaceAll(strings.TrimPrefix(f.victim, "function "), " ", "-") + "-" + f.transport
	if f.learning {
		name += "-mac"
	}
	if f.through {
		name += "-through"
	}
	return name
}

// yaml is the chain; programs is the directory of its functions' programs.
func (f fault) yaml(programs string) string {
	generator := func(name, args string) string {
		return fmt.Sprintf(`
  - name: %s
    runtime: runc
    memory: 512Mi
    restart: on-failure
    command:
      - sh
      - -c
      - exec %s/draygen-dpdk %s --port dpdk:0 --eal "$DRAY_EAL" --interval %s --peer-timeout %.0fs
    ports: [{name: n3, face: dpdk}]`, name, programs, args, faultTick, faultPatience.Seconds())
	}
	functions := generator("gen", fmt.Sprintf("send --rate %dpps --catch-up 100ms", faultRate)) + generator("sink", "sink --once")
	transport := f.transport
	if f.learning {
		transport += ", forwarding: learning"
	}
	links := fmt.Sprintf("\n  - {name: n3, ends: [gen.n3, sink.n3], transport: %s}", transport)
	if f.through {
		functions += fmt.Sprintf(`
  - name: vnf
    runtime: runc
    memory: 512Mi
    restart: on-failure
    command: [%s/dray-vnf, $(DRAY_EAL), --, l2fwd, --yield]
    ports: [{name: west, face: dpdk}, {name: east, face: dpdk}]`, programs)
		links = fmt.Sprintf(`
  - {name: n3, ends: [gen.n3, vnf.west], transport: %[1]s}
  - {name: n6, ends: [vnf.east, sink.n3], transport: %[1]s}`, transport)
	}
	return fmt.Sprintf("apiVersion: drayage/v1\nkind: Chain\nname: %s\nfunctions:%s\nlinks:%s\n", f.chain(), functions, links)
}

// TestFaults kills each party of a chain under load, with SIGKILL, and prints a
// table of the effects on the others. DRAY_TEST_FAULTS=N tries each row N times;
// without it, some rows once.
func TestFaults(t *testing.T) {
	t.Parallel()
	needDPDK(t)
	times := 0
	if asked := os.Getenv("DRAY_TEST_FAULTS"); asked != "" {
		var err error
		if times, err = strconv.Atoi(asked); err != nil || times < 1 {
			t.Fatalf("DRAY_TEST_FAULTS is %q: want a number from 1", asked)
		}
	}
	var table []string
	for _, f := range faults {
		if times == 0 && !f.brief {
			continue
		}
		t.Run(f.chain(), func(t *testing.T) {
			needSwitch(t, f.transport)
			programs := visible(t, "draygen-dpdk", "dray-vnf")
			b := newDPDKBench(t)
			for range max(times, 1) {
				row := f.kill(b, programs)
				t.Log(row)
				table = append(table, row)
			}
		})
	}
	t.Logf("\n| killed | over | no packet for | at most before | lost | unsent | restarted besides |\n|---|---|---|---|---|---|---|\n%s",
		strings.Join(table, "\n"))
}

// kill is one trial: its row of the table.
func (f fault) kill(b *bench, programs string) string {
	t, chain := b.t, f.chain()
	b.want(0, "up", b.file(f.yaml(programs)))
	defer func() { b.want(0, "down", chain) }()

	b.awaitPassing(chain, monotonic())
	time.Sleep(time.Second) // the undisturbed load, for comparison
	before := b.parties(chain)
	at := monotonic()
	b.kill(f.victim, func() int { return b.pidOf(chain, f.victim) })
	b.awaitParties(chain, f.victim+" runs again", func(now map[string]string) bool {
		return now[f.victim] != before[f.victim] && now[f.victim] != ""
	})
	if f.transport == "memif" { // a party without its peer may yet be replaced
		time.Sleep(2 * time.Second)
	}
	b.awaitPassing(chain, monotonic())
	after := b.parties(chain)
	until := monotonic()
	b.finish(chain, f.lossless)

	sent, arrived := b.roles(chain, "gen"), b.roles(chain, "sink")
	var besides []string
	for party := range maps.Keys(after) {
		if party != f.victim && after[party] != before[party] {
			besides = append(besides, party)
			if !slices.Contains(f.may, party) {
				t.Errorf("%s was killed, and %s was also restarted", f.victim, party)
			}
		}
	}
	slices.Sort(besides)
	lost, exact := lostBetween(sent, arrived)
	lost -= arrived.lostBefore(at) // such as packets sent before the sink existed
	if f.lossless && (lost != 0 || !exact) {
		t.Errorf("%s was killed, and %s packets were lost", f.victim, lossText(lost, exact))
	}
	if corrupt := arrived.sum(func(n counts) int { return n.Corrupt }); corrupt > 0 {
		t.Errorf("%d packets are corrupt", corrupt)
	}
	victimText := f.victim
	if f.through && f.victim != "function vnf" {
		victimText += ", beside a network function"
	}
	transportText := f.transport
	if f.learning {
		transportText += ", learning"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %d | %s |", victimText, transportText,
		gapText(arrived.gap(at, until)), gapText(arrived.gapBefore(at)), lossText(lost, exact),
		sent.sum(func(n counts) int { return n.Unsent }), or(strings.Join(besides, ", "), "nobody"))
}

// pidOf is the process to kill.
func (b *bench) pidOf(chain, victim string) int {
	b.t.Helper()
	switch kind, name, _ := strings.Cut(victim, " "); kind {
	case "broker":
		return b.brokerPID(chain)
	case "link":
		return b.switchOf(chain).ID.PID
	default:
		return functionPID(b.t, b, chain, name)
	}
}

// parties are all restartable parties with the instance that runs now; "" for one
// that does not.
func (b *bench) parties(chain string) map[string]string {
	b.t.Helper()
	type process struct{ PID int }
	type status struct {
		Functions []struct {
			Name    string
			Phase   node.Phase
			Process process
		}
		Links []struct {
			Name    string
			Error   string
			Revival *node.Revival
		}
		Broker *struct{ Process process }
	}
	list := map[string]string{}
	for _, s := range decodeChains[status](b.t, b.want(0, "status", chain, "--json")) {
		for _, f := range s.Functions {
			list["function "+f.Name] = ""
			if f.Phase == node.PhaseRunning {
				list["function "+f.Name] = fmt.Sprint(f.Process.PID)
			}
		}
		for _, l := range s.Links {
			list["link "+l.Name] = "the first"
			switch {
			case l.Error != "":
				list["link "+l.Name] = ""
			case l.Revival != nil:
				list["link "+l.Name] = fmt.Sprintf("restart %d", l.Revival.Restarts)
			}
		}
		if s.Broker != nil {
			list["broker"] = fmt.Sprint(s.Broker.Process.PID)
		}
	}
	return list
}

// awaitParties waits until holds accepts the parties.
func (b *bench) awaitParties(chain, what string, holds func(map[string]string) bool) {
	b.t.Helper()
	for end := time.Now().Add(faultPatience); !holds(b.parties(chain)); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("within %v not: %s; %s", faultPatience, what, b.want(0, "status", chain))
		}
	}
}

// awaitPassing waits until packets have arrived for a while after a time.
func (b *bench) awaitPassing(chain string, since nanoseconds) {
	b.t.Helper()
	const enough = faultRate / 10
	for end := time.Now().Add(faultPatience); b.roles(chain, "sink").between(since, monotonic()) < enough; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("no packets pass within %v: %s\ngen: %s\nsink: %s", faultPatience, b.want(0, "status", chain),
				tail(b.want(0, "logs", chain, "gen").Stdout), tail(b.want(0, "logs", chain, "sink").Stdout))
		}
	}
}

// finish makes the generator end its stream, and waits for its result and the
// sink's. A sink that missed the end at a CPU-starved switch is signalled to end, unless
// the link loses nothing; one whose driver crashes when its peer goes has no result.
func (b *bench) finish(chain string, lossless bool) {
	b.t.Helper()
	const grace = 3 * time.Second
	sink := functionPID(b.t, b, chain, "sink")
	b.terminate(chain, "gen")
	started, asked := time.Now(), false
	for time.Since(started) < faultPatience {
		time.Sleep(200 * time.Millisecond)
		if !b.roles(chain, "gen").reported() {
			continue
		}
		if b.roles(chain, "sink").reported() || functionPID(b.t, b, chain, "sink") != sink {
			return
		}
		if !asked && !lossless && time.Since(started) > grace {
			asked = true
			b.terminate(chain, "sink")
		}
	}
	b.t.Fatalf("the stream does not end within %v: %s", faultPatience, b.want(0, "status", chain))
}

func (b *bench) terminate(chain, function string) {
	b.t.Helper()
	pid := functionPID(b.t, b, chain, function)
	if pid == 0 {
		return // it has just ended by itself
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		b.t.Fatalf("end %s: %v", function, err)
	}
}

// nanoseconds is a CLOCK_MONOTONIC time, as in draygen's output.
type nanoseconds int64

func monotonic() nanoseconds {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &now) // never fails for this clock
	return nanoseconds(now.Nano())
}

// visible is a directory with programs of bin that a container over the host's
// root sees. The project may be in a home or on its own file system.
func visible(t *testing.T, names ...string) string {
	t.Helper()
	var paths []string
	for _, name := range names {
		paths = append(paths, testenv.Built(t, name))
	}
	return visibleFiles(t, paths...)
}

// visibleFiles is visible for programs at these paths.
func visibleFiles(t *testing.T, paths ...string) string {
	t.Helper()
	dir, err := os.MkdirTemp("/var/lib", "dray-e2e-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	shown := []string{dir}
	for _, path := range paths {
		to := filepath.Join(dir, filepath.Base(path))
		built, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(to, built, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		shown = append(shown, to)
	}
	for _, path := range shown { // whatever the umask
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
