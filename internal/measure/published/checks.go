// SPDX-License-Identifier: Apache-2.0

package published

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/node"
	"github.com/drayage/dray/internal/result/record"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/experiment"
	"github.com/drayage/dray/internal/spec/inventory"
)

// The functions of the checks chain: the one under test, its neighbour, and an
// unprotected one.
const (
	prisoner, neighbourName, openName = "a", "b", "open"
	hugePage                          = 2 << 20
	hugePagesNeeded                   = 8 // of the pool, for all three functions
)

// noHugePages is why huge pages cannot be tried in functions of a runtime on a host;
// empty: they can.
func noHugePages(h inventory.Host, rt chain.RuntimeName) string {
	if rt == chain.RuntimeDocker {
		return "Docker does not limit huge pages"
	}
	for _, h := range h.HugePages {
		if h.Size == hugePage && h.Free >= hugePagesNeeded {
			return ""
		}
	}
	return fmt.Sprintf("it needs %d free huge pages of 2Mi (sysctl vm.nr_hugepages=%d)", hugePagesNeeded, hugePagesNeeded)
}

// Unanswered is why the trials of a measured row will be inconclusive on a host;
// empty: they will not.
func Unanswered(h inventory.Host, r experiment.Row) string {
	if r.Figure == "limits_huge_pages" || r.Figure == "hides_huge_pages" {
		return noHugePages(h, r.Cell.Runtime)
	}
	return ""
}

// checksText is the checks chain.
func checksText(inv *inventory.Inventory, c experiment.Cell) string {
	huge := func(limit string) string {
		if noHugePages(inv.Host, c.Runtime) != "" {
			return ""
		}
		return ", hugepages: {2Mi: " + limit + "}"
	}
	given, taken, image := "", "", imageField(c)
	if cpus := inv.Host.CPUs; len(cpus) > 1 {
		given, taken = fmt.Sprintf(", cpus: \"%d\"", cpus[len(cpus)-1]), fmt.Sprintf(", cpus: \"%d\"", cpus[0])
	}
	script := strings.Replace(prologue+neighbour, "HUGE", fmt.Sprint(len(huge(""))), 1)
	return fmt.Sprintf("functions:\n"+
		"  - {name: %s, runtime: %s%s, memory: 64Mi, pids: 50%s%s}\n"+
		"  - {name: %s, runtime: %s%s, command: [perl, -e, %q]%s}\n"+
		"  - {name: %s, runtime: process%s%s}\n",
		prisoner, c.Runtime, image, given, huge("4Mi"), neighbourName, c.Runtime, image, script, huge("4Mi"), openName, taken, huge("8Mi"))
}

// checked tries each check without protection, and in a function.
func checked(ctx context.Context, r *Runner, live *node.Live, c experiment.Cell) (t record.Trial, err error) {
	t = record.Trial{Quantity: record.QChecks, Start: time.Now(), Marks: []string{}, Runtimes: map[string]string{prisoner: string(c.Runtime)}}
	stop, err := supervise(ctx, live)
	if err != nil {
		return t, err
	}
	defer stop()
	tg, err := aim(ctx, r.Inventory, live, c.Runtime)
	if err != nil {
		return t, err
	}
	l, err := net.Listen("unix", "@"+tg.address)
	if err != nil {
		return t, err
	}
	defer l.Close()
	var scripts []string
	for _, check := range checks {
		scripts = append(scripts, prologue+check.script(tg))
	}
	closed, err := tryIn(ctx, live, prisoner, scripts)
	if err != nil {
		return t, err
	}
	open, err := tryIn(ctx, live, openName, scripts)
	if err != nil {
		return t, err
	}
	t.Experiment = &record.Experiment{Values: map[string]float64{}, Why: map[string]string{}}
	for i, check := range checks {
		without := open[i]
		if !check.open {
			if without, err = tryOnHost(ctx, scripts[i]); err != nil {
				return t, err
			}
		}
		t.Raw += fmt.Sprintf("%s: without: %s; in the function: %s\n", check.figure, without, closed[i])
		holds, why := judge(without, closed[i])
		if why != "" {
			t.Experiment.Why[string(check.figure)] = why
			continue
		}
		t.Experiment.Values[string(check.figure)] = map[bool]float64{true: 1}[holds]
	}
	dropped, text, err := droppedSyscalls(r.Node.StateDir, live.Chain.Name, c.Runtime)
	if err != nil {
		t.Experiment.Why["syscalls_dropped"] = err.Error()
	} else {
		t.Experiment.Values["syscalls_dropped"] = float64(dropped)
	}
	t.Raw += text
	t.Duration = time.Since(t.Start)
	return t, nil
}

// judge returns whether a check holds, or why that is unknown: an action that
// also fails without the protection proves nothing.
func judge(without, within string) (holds bool, why string) {
	switch {
	case strings.HasPrefix(without, "unsupported: "):
		return false, strings.TrimPrefix(without, "unsupported: ")
	case without != "yes":
		return false, "the probe fails even without the protection: " + without
	case within == "yes":
		return false, ""
	case strings.HasPrefix(within, "no: ") || within == killed:
		return true, ""
	}
	return false, "the check did not finish: " + within
}

// killed is the outcome of a check that the kernel killed, for example when out
// of memory.
const killed = "killed"

// tryEach runs each script in its own perl, and ends each outcome with a NUL.
const tryEach = `$| = 1; for (@ARGV) { my $s = system "perl", "-e", $_; print "` + killed + `\n" if $s & 127; print "\0" }`

func tryIn(ctx context.Context, live *node.Live, function string, scripts []string) ([]string, error) {
	var out, errs bytes.Buffer
	code, err := live.Exec(ctx, function, append([]string{"perl", "-e", tryEach}, scripts...), runtime.Stdio{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs})
	outcomes := strings.Split(out.String(), "\x00")
	if err != nil || code != 0 || len(outcomes) != len(scripts)+1 {
		return nil, errors.Join(err, fmt.Errorf("%d checks in %s, %d outcomes, status %d: %s", len(scripts), function, len(outcomes)-1, code, firstLine(errs.Bytes())))
	}
	for i := range outcomes {
		outcomes[i] = strings.TrimSpace(outcomes[i])
	}
	return outcomes[:len(scripts)], nil
}

func tryOnHost(ctx context.Context, script string) (string, error) {
	out, err := host.Helper{Program: "perl", Args: []string{"-e", script}, Package: "perl-base"}.Output(ctx)
	if err != nil {
		return "", fmt.Errorf("a check on the host: %w", err)
	}
	return out, nil
}

// supervise runs a chain's commands until stop is called.
func supervise(ctx context.Context, live *node.Live) (stop func(), err error) {
	supervisor, err := live.Supervise()
	if err != nil {
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		supervisor.Run(running)
	}()
	return func() {
		cancel()
		<-done
	}, nil
}

// aim waits until the neighbour holds its secrets, and finds the targets.
func aim(ctx context.Context, inv *inventory.Inventory, live *node.Live, rt chain.RuntimeName) (target, error) {
	// The host's abstract socket namespace is shared by all state directories.
	address := fmt.Sprintf("dray-%s-%d-%x", live.Chain.Name, os.Getpid(), time.Now().UnixNano())
	t := target{secret: "held-by-the-neighbour", address: address, otherCPU: -1, otherNode: -1, hugePages: noHugePages(inv.Host, rt)}
	if len(inv.Host.CPUs) > 1 {
		t.otherCPU = inv.Host.CPUs[0]
		own := host.MemoryNodes(inv.Host.CPUs[len(inv.Host.CPUs)-1:])
		for _, node := range host.AllMemoryNodes() {
			if len(own) > 0 && !slices.Contains(own, node) {
				t.otherNode = node
			}
		}
	}
	// In perl's numbering of devices.
	ids, err := tryOnHost(ctx, `print join " ", map { my @s = stat; "$s[0]:$s[1]" } "/etc/shadow", "/root"`)
	if err != nil {
		return t, err
	}
	if _, err := fmt.Sscan(ids, &t.shadow, &t.home); err != nil {
		return t, fmt.Errorf("the host's /etc/shadow and /root are %q: %w", ids, err)
	}
	var log string
	for began := time.Now(); ; {
		log = live.LogTail(neighbourName, 3)
		if i := strings.Index(log, "memory "); i >= 0 {
			if _, err := fmt.Sscanf(log[i:], "memory %d huge %d", &t.memory, &t.huge); err == nil {
				break
			}
		}
		if time.Since(began) > startTime {
			return t, fmt.Errorf("the neighbour did not start; its last output: %s", log)
		}
		if err := host.Sleep(ctx, 5*time.Millisecond); err != nil {
			return t, err
		}
	}
	if t.memory < 0 {
		return t, errors.New("the neighbour could hold no secret in memory")
	}
	if t.hugePages == "" && t.huge < 0 {
		t.hugePages = "the neighbour got no huge page"
	}
	// It may write before its supervisor has published it.
	process, err := processOf(ctx, live, neighbourName)
	t.pid = process.PID
	return t, err
}

func firstLine(out []byte) string {
	line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return line
}
