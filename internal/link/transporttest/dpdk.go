// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
	"github.com/drayage/dray/test/testenv"
)

// firstUser is the host user of a rig's first function; the others follow.
const firstUser = 0x6fff0000

// hugePages is an application's huge pages in MiB, if it needs them;
// applications that share memory get one such amount.
const hugePages = 96

// RunDpdk runs the suite for links whose given ports are devices of DPDK
// applications, with the project's own generator as their application.
func RunDpdk(t *testing.T, d transport.Driver, ends ...int) {
	t.Setenv("DRAY_LIB", filepath.Dir(forAnyUser(t, dpdk.DriverFile)))
	require(t, d)
	program := forAnyUser(t, "draygen-dpdk")
	if d.Caps().HugePages {
		testenv.HugePages(t, 4*hugePages/2) // two links at once, with two applications each
	}
	openBefore, _ := leaks(t)
	o := Options{Dpdk: ends, Ports: max(2, len(ends))}
	t.Run("Caps", func(t *testing.T) { testCaps(t, d) })
	t.Run("SpecErrors", func(t *testing.T) { testSpecErrors(t, d, o) })
	t.Run("Traffic", func(t *testing.T) { testDpdkTraffic(t, d, program, o) })
	t.Run("Parallel", func(t *testing.T) { testNativeParallel(t, d, program, o) })
	t.Run("Removal", func(t *testing.T) { testDpdkRemoval(t, d, program, o) })
	t.Run("Revive", func(t *testing.T) { testRevive(t, d, program, o) })
	t.Run("Outage", func(t *testing.T) { testOutage(t, d, program, o) })
	t.Run("Faults", func(t *testing.T) {
		RunFaults(t, func(t *testing.T) World { return NewRig(t, d, o) })
	})
	t.Run("Cancel", func(t *testing.T) { testCancel(t, d, o) })
	checkLeaks(t, openBefore)
}

// forAnyUser copies a program of bin/ to where the applications' users can
// reach it, wherever the repository is. DPDK must also be able to load a
// driver from there, which it cannot below /tmp.
func forAnyUser(t *testing.T, name string) string {
	t.Helper()
	testenv.Root(t)
	content, err := os.ReadFile(testenv.Built(t, name))
	testenv.Must(t, err)
	dir, err := os.MkdirTemp("/var/cache", "dray-test-")
	testenv.Must(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	file := filepath.Join(dir, name)
	testenv.Must(t, errors.Join(os.Chmod(dir, 0o755), os.WriteFile(file, content, 0o755), os.Chmod(file, 0o755)))
	return file
}

// libdray reports whether the driver's dpdk ports are native ports underneath.
func libdray(d transport.Driver) bool {
	return slices.Contains(d.Caps().Faces, string(chain.FaceNative))
}

// makeDpdk creates the directories that the end's function would have.
func (r *Rig) makeDpdk(e *transport.End, i int) {
	r.t.Helper()
	if libdray(r.driver) {
		r.makeNative(e, i)
	}
	e.Function, e.Face, e.User = fmt.Sprintf("f%d", i), chain.FaceDPDK, firstUser+i
	e.Runtime = chain.RuntimeRunc
	if r.driver.Caps().Privileged {
		e.Runtime, e.User = chain.RuntimeProcess, 0
	}
	links := filepath.Join(r.dir, e.Function+".links")
	e.Dir = filepath.Join(links, e.Name)
	for _, dir := range []string{links, e.Dir, r.runtimeDir(*e)} {
		testenv.Must(r.t, os.Mkdir(dir, 0o700))
		testenv.Must(r.t, os.Chown(dir, e.User, e.User))
	}
	testenv.Must(r.t, os.Chmod(links, 0o711))
}

// runtimeDir is where EAL of an end's application keeps its files.
func (r *Rig) runtimeDir(e transport.End) string { return filepath.Join(r.dir, e.Function+".runtime") }

// asApplication makes the command run as an end's DPDK application: with the
// end's user, and the device in the link's report.
func (r *Rig) asApplication(cmd *exec.Cmd, e transport.End) {
	r.t.Helper()
	if err := clearSockets(e.Dir); err != nil { // as a runtime does
		r.t.Fatal(err)
	}
	cpus, err := host.AllowedCPUs()
	testenv.Must(r.t, err)
	app := dpdk.Application{Memory: 256 << 20, CPUs: cpus, Nodes: 1, Ports: filepath.Dir(e.Socket)}
	if r.driver.Caps().HugePages {
		app.HugePages = []chain.HugePages{{Size: 2 << 20, Limit: hugePages << 20}}
	}
	for _, v := range r.vdevs {
		if v.Function == e.Function && v.Port == e.Name {
			app.Vdevs = append(app.Vdevs, r.linked(v))
		}
	}
	if app.NeedsDriver() {
		if app.Driver, err = dpdk.FindDriver(); err != nil {
			r.t.Fatal(err)
		}
	}
	eal, err := app.EAL()
	if err != nil || len(app.Vdevs) != 1 {
		r.t.Fatalf("the report has %v for %s of %s: %v", app.Vdevs, e.Name, e.Function, err)
	}
	cmd.Args = append(cmd.Args, "--port", "dpdk:"+app.Devices()[0].Name, "--eal", strings.Join(eal, " "), "--mtu", fmt.Sprint(r.Spec.MTU))
	cmd.Env = append(os.Environ(), dpdk.RuntimeVariable+"="+dpdk.RuntimeDir(eal, r.runtimeDir(e)))
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(e.User), Gid: uint32(e.User)}}
	if app.Vdevs[0].PeerConnects {
		cmd.Args = append([]string{"sh", "-c", `umask 0; exec "$0" "$@"`, cmd.Path}, cmd.Args[1:]...)
		cmd.Path = "/bin/sh"
	}
}

// linked makes a container's link to its peer's socket.
func (r *Rig) linked(v transport.Vdev) transport.Vdev {
	if v.Peer != "" {
		testenv.Must(r.t, os.Symlink(filepath.Join(v.Peer, v.Awaits), filepath.Join(v.Dir, v.Awaits)))
		v.Peer = ""
	}
	return v
}

func clearSockets(dir string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
			return err
		}
	}
	return err
}

// RunDpdkBesideNative passes traffic between a port opened by libdray and one
// opened by net_dray.
func RunDpdkBesideNative(t *testing.T, d transport.Driver) {
	require(t, d)
	t.Setenv("DRAY_LIB", filepath.Dir(forAnyUser(t, dpdk.DriverFile)))
	testDpdkTraffic(t, d, forAnyUser(t, "draygen-dpdk"), Options{Native: []int{0}, Dpdk: []int{1}, Ports: 2})
}

// RunDpdkMany passes traffic between all ends of a link of more than two, as
// RunDpdk does between two.
func RunDpdkMany(t *testing.T, d transport.Driver, ends ...int) {
	require(t, d)
	testDpdkTraffic(t, d, forAnyUser(t, "draygen-dpdk"), Options{Dpdk: ends, Ports: len(ends)})
}

// RunDpdkForwarding kills each process of a link with that forwarding mode,
// and passes traffic after each, as RunDpdk does with the driver's own choice.
func RunDpdkForwarding(t *testing.T, d transport.Driver, f chain.Forwarding) {
	require(t, d)
	testRevive(t, d, forAnyUser(t, "draygen-dpdk"), Options{Dpdk: []int{0, 1}, Ports: 2, Forwarding: f})
}

// testDpdkTraffic sends packets between all ends, up to the driver's MTU, and
// checks that no function has an interface for it.
func testDpdkTraffic(t *testing.T, d transport.Driver, program string, o Options) {
	o.MTU = min(d.Caps().MaxMTU, jumbo)
	r := NewRig(t, d, o)
	r.Up()
	for from := range r.Spec.Ends {
		for to := range r.Spec.Ends {
			if from == to {
				continue
			}
			r.generate(program, from, to, r.Spec.MTU+14)
			if from+to == 1 { // the first two
				r.generate(program, from, to, 100)
			}
		}
	}
	for _, e := range r.Spec.Ends {
		if s, err := e.Netns.ReadLink(e.Name); err == nil && e.Dpdk() && !d.Caps().Privileged {
			t.Errorf("the function of dpdk port %s has an interface: %+v", e.Name, s)
		}
	}
}

// testDpdkRemoval removes a link from its journal alone, twice, and creates it again.
func testDpdkRemoval(t *testing.T, d transport.Driver, program string, o Options) {
	r := NewRig(t, d, o)
	for range 2 {
		r.Up()
		r.generate(program, 0, 1, 100)
		for range 2 {
			testenv.Must(t, r.Remove())
		}
		r.Clean("after removal")
	}
}

// testRevive kills each of the link's processes in turn, and checks that the
// driver restarts it and the rest of the link is unchanged.
func testRevive(t *testing.T, d transport.Driver, program string, o Options) {
	reviver, ok := d.(transport.Reviver)
	if !ok {
		t.Skip("the link has no process that could be started again")
	}
	r := NewRig(t, d, o)
	report := r.Up()
	if len(report.Processes) != d.Caps().Processes {
		t.Errorf("the report has processes %+v, but the driver states %d", report.Processes, d.Caps().Processes)
	}
	up := sortedLines(r.state())
	for _, victim := range slices.Clone(report.Processes) {
		killProcess(t, victim)
		ctx, cancel := context.WithTimeout(context.Background(), setupTimeout)
		defer cancel()
		began := time.Now()
		if err := reviver.Revive(ctx, r.Spec, report); err != nil {
			t.Fatalf("after %s was killed: %v%s", victim.Name, err, r.logs())
		}
		t.Logf("%s was there again %s after it had been killed", victim.Name, time.Since(began).Round(time.Millisecond))
		for _, p := range report.Processes {
			if !p.ID.Alive() || p.Name == victim.Name && p.ID == victim.ID {
				t.Errorf("after %s was killed, the report has %+v", victim.Name, p)
			}
		}
		if now := r.becomes(up); now != up {
			t.Errorf("after %s was killed, the link has changed:\nbefore:\n%s\nafter:\n%s", victim.Name, up, now)
		}
		r.generate(program, 1, 0, 100)
	}
	for _, p := range report.Processes {
		checkPolls(t, p)
	}
	if err := r.Remove(); err != nil {
		t.Error(err)
	}
	r.Clean("after a link whose processes were killed")
}

// checkPolls checks that a process has threads of the names by which it is watched.
func checkPolls(t *testing.T, p transport.Process) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", p.ID.PID))
	testenv.Must(t, err)
	var names []string
	for _, file := range files {
		if name, err := os.ReadFile(file); err == nil {
			names = append(names, string(name))
		}
	}
	polls := slices.ContainsFunc(names, func(name string) bool {
		return slices.ContainsFunc(p.Polls, func(first string) bool { return strings.HasPrefix(name, first) })
	})
	if polls != (len(p.Polls) > 0) {
		t.Errorf("%s is watched by threads named %q; it has %q", p.Name, p.Polls, names)
	}
}

// sortedLines removes the order of processes, which is their start order.
func sortedLines(state string) string {
	lines := strings.Split(state, "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func killProcess(t *testing.T, p transport.Process) {
	t.Helper()
	if !p.ID.Signal(syscall.SIGKILL) {
		t.Fatalf("%s (process %d) does not run", p.Name, p.ID.PID)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	testenv.Must(t, p.ID.AwaitEnd(ctx))
}

// KillDuring is a fault that kills the process of that name in the link's
// control group before the step whose name contains part.
func (r *Rig) KillDuring(part, process string) Fault {
	return func(s step.Step, p step.Phase) error {
		if p != step.Before || !strings.Contains(s.Name, part) {
			return nil
		}
		pids, err := r.Spec.Cgroup.Processes()
		if err != nil {
			return err
		}
		killed := 0
		for _, pid := range pids {
			comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
			if err == nil && strings.HasPrefix(process, strings.TrimSpace(string(comm))) {
				killed++
				if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
					return err
				}
			}
		}
		if killed == 0 {
			return fmt.Errorf("no %s runs before %q", process, s.Name)
		}
		return nil
	}
}
