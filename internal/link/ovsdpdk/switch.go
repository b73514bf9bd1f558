// SPDX-License-Identifier: Apache-2.0

package ovsdpdk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/sidecar"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vhost"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// inside is the path of the shared directory in the link's two processes, and
// sock the socket between them.
const (
	inside = "/ovs"
	sock   = "unix:" + inside + "/db.sock"
	bridge = "br0"
)

// toolTimeout bounds each command to the switch, in seconds. Without it,
// ovs-vsctl waits forever if ovs-vswitchd dies.
const toolTimeout = 30

// ovsSwitch is one link's database server and switch, each in its container.
type ovsSwitch struct {
	driver string
	ports  ports
	spec   transport.Spec // for a tunnel, one host's part of the link
	tunnel *tunnelEnd     // nil: all ends are on one host
	// direct says that packets from one end leave at the other.
	direct bool
	dir    string // shared: database and sockets; owned by their user
	db     sidecar.Process
	// running is the switch once it has started: nothing waits for an ended one.
	running *host.ProcessID
}

func (d driver) newSwitch(s transport.Spec) *ovsSwitch {
	w := &ovsSwitch{
		driver: d.Name(), ports: d.ports, spec: s, dir: filepath.Join(s.Dir, "ovs"),
		direct: len(s.Ends) == 2 && s.Forwarding != chain.ForwardingLearning,
	}
	w.db = sidecar.Process{
		Name: dbServer, Dir: filepath.Join(s.Dir, "db"), Cgroup: s.Cgroup, Owner: vhost.Owner(s),
		Env: environment, Binds: []sidecar.Bind{{Source: w.dir, Target: inside, Write: true}}, Memory: 128 << 20,
	}
	return w
}

var environment = []string{"OVS_RUNDIR=" + inside, "OVS_LOGDIR=" + inside, "OVS_DBDIR=" + inside}

// daemonArgs are arguments of both daemons.
func daemonArgs(daemon string) []string {
	return []string{"--unixctl=" + inside + "/" + daemon + ".ctl", "--no-chdir", "-vsyslog:off", "-vconsole:info"}
}

// vswitchd is the switch process, with that program, on those CPUs.
func (w *ovsSwitch) vswitchd(program string, cpus []int) sidecar.Process {
	s := w.spec
	e := sidecar.Process{
		Name: vswitchd, Dir: filepath.Join(s.Dir, "switch"), Cgroup: s.Cgroup, Owner: vhost.Owner(s),
		Args: append([]string{program, sock}, daemonArgs(vswitchd)...), Env: environment,
		Binds: append(w.ports.binds(s), sidecar.Bind{Source: w.dir, Target: inside, Write: true}),
		// Its datapath requires tap interfaces, for itself and for the bridge.
		Devices: []string{"/dev/net/tun"}, Caps: []string{"CAP_NET_ADMIN"},
		Files: w.ports.files(s), CPUs: cpus, HugePages: vhost.HugePages(s), Memory: uint64(w.memory()+processLimit) << 20,
	}
	if w.hasInterfaces() {
		ns := w.netns()
		e.Netns, e.Userns, e.Caps = &ns, userNamespace(s), append(e.Caps, "CAP_NET_RAW")
		// The thread that serves interfaces sleeps: on the polling thread's
		// CPU it would have to wait.
		e.CPUs = nil
	}
	return e
}

// pollingThread begins the names of the threads that poll the ports: "pmd-c01/id:8".
const pollingThread = "pmd-"

func portName(i int) string { return fmt.Sprintf("p%d", i+1) }

// processLimit bounds the switch's memory in addition to its packets, in MiB.
// Memory shared by applications is charged to them.
const processLimit = 512

// PacketMemory is the memory of the switch's packets. With memory per port, it
// creates 16,384 buffers for each port and some for its queues. Each is
// rounded up to 1 KiB, after a header of its own.
var PacketMemory = inventory.PacketMemory{
	Other: 96 << 20, Buffers: 24 << 10, PerPort: true, Extra: 154, Align: 1024, Record: 1024,
}

// memory is the packet memory of this link, in MiB.
func (w *ovsSwitch) memory() int { return PacketMemory.MiB(w.spec.MTU, len(w.spec.Ends)) }

// steps start the switch, until it forwards.
func (w *ovsSwitch) steps(report *transport.Report) []step.Step {
	s := w.spec
	name := func(what string) string { return s.StepName(w.driver, what) }
	steps := []step.Step{{
		Name:  name("create the directory of the database"),
		Makes: []step.Resource{host.DirResource(w.dir)},
		Do:    func(context.Context) error { return os.Mkdir(w.dir, 0o700) },
	}}
	steps = append(steps, w.db.Steps(name)...)
	steps = append(steps, w.vswitchd("", nil).Steps(name)...)
	steps = append(steps,
		step.Step{Name: name("create database"), Do: w.createDatabase},
		step.Step{Name: name("start " + dbServer), Do: func(ctx context.Context) error { return w.startDatabase(ctx, report) }},
		step.Step{Name: name("configure"), Do: w.configure},
		step.Step{Name: name("start " + vswitchd), Do: func(ctx context.Context) error { return w.startSwitch(ctx, report) }},
		step.Step{Name: name("create bridge"), Do: w.createBridge},
	)
	if w.tunnel != nil {
		steps = append(steps, step.Step{Name: name("find the other hosts"), Do: w.findHosts})
	}
	return append(steps,
		step.Step{Name: name("join the ends"), Do: w.join},
		step.Step{Name: name("check health"), Do: w.checkPorts},
	)
}

func (w *ovsSwitch) createDatabase(ctx context.Context) error {
	definition, err := Schema()
	if err != nil {
		return err
	}
	file := filepath.Join(w.dir, "conf.db")
	if _, err := (host.Helper{Program: "ovsdb-tool", Args: []string{"create", file, definition}, Package: debianPackage, Place: w.db.Beside()}).Run(ctx); err != nil {
		return err
	}
	id := sidecar.UID(vhost.Owner(w.spec))
	for _, path := range []string{file, filepath.Join(w.dir, ".conf.db.~lock~"), w.dir} {
		if err := os.Lchown(path, id, id); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

func (w *ovsSwitch) startDatabase(ctx context.Context, r *transport.Report) error {
	program, err := lookup(dbServer)
	if err != nil {
		return err
	}
	w.db.Args = append([]string{program, inside + "/conf.db", "--remote=p" + sock}, daemonArgs(dbServer)...)
	id, err := w.db.Start(ctx)
	if err != nil {
		return err
	}
	if err := w.db.Await(ctx, id, func() bool { return answers(ctx, filepath.Join(w.dir, "db.sock")) }); err != nil {
		return err
	}
	r.Note(w.named(dbServer), id, w.db.Log())
	return nil
}

// answers reports whether a process listens on a socket.
func answers(ctx context.Context, socket string) bool {
	conn, err := host.DialUnix(ctx, "unix", socket)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}

// configure sets, before the switch runs, how it starts DPDK. The switch adds
// --in-memory by itself, which EAL rejects without huge pages, unless legacy
// memory is configured.
func (w *ovsSwitch) configure(ctx context.Context) error {
	more, err := w.ports.eal()
	if err != nil {
		return err
	}
	extra := []string{"-m", strconv.Itoa(w.memory()), "--no-pci", "--no-telemetry"}
	if !vhost.HugePages(w.spec) {
		extra = append(extra, "--no-huge", "--legacy-mem", "--no-shconf")
	}
	return w.vsctl(ctx, "--no-wait", "set", "Open_vSwitch", ".",
		"other_config:dpdk-init=true", "other_config:per-port-memory=true",
		"other_config:dpdk-extra="+quote(strings.Join(append(extra, more...), " ")))
}

// quote quotes a value as one string for the parser of ovs-vsctl.
func quote(s string) string { return `"` + s + `"` }

func (w *ovsSwitch) startSwitch(ctx context.Context, r *transport.Report) error {
	program, err := FindSwitch(ctx)
	if err != nil {
		return err
	}
	cpus := w.spec.CPUs
	if len(cpus) == 0 {
		allowed, err := host.AllowedCPUs()
		if err != nil {
			return err
		}
		cpus = allowed[len(allowed)-1:] // a polling thread is pinned to its CPU
	}
	if err := w.vsctl(ctx, "--no-wait", "set", "Open_vSwitch", ".", "other_config:pmd-cpu-mask="+CPUMask(cpus), "other_config:pmd-maxsleep="+w.sleep()); err != nil {
		return err
	}
	e := w.vswitchd(program.Path, cpus)
	logged := e.LogSize()
	id, err := e.Start(ctx)
	if err != nil {
		return err
	}
	if err := e.Await(ctx, id, func() bool { return e.Logged(logged, "DPDK Enabled - initialized") }); err != nil {
		return err
	}
	w.running = &id
	r.Engine = "ovs " + program.Version
	r.Note(w.named(vswitchd), id, e.Log(), pollingThread)
	return nil
}

// CPUMask is a set of CPUs as a hexadecimal number, bit n for CPU n.
func CPUMask(cpus []int) string {
	var words []byte
	for _, cpu := range cpus {
		for len(words) <= cpu/4 {
			words = append(words, 0)
		}
		words[cpu/4] |= 1 << (cpu % 4)
	}
	mask := "0x"
	for i := len(words) - 1; i >= 0; i-- {
		mask += strconv.FormatUint(uint64(words[i]), 16)
	}
	return mask
}

func (w *ovsSwitch) createBridge(ctx context.Context) error {
	// secure: it forwards only by the flows.
	args := []string{"add-br", bridge, "--", "set", "bridge", bridge, "datapath_type=netdev", "fail_mode=secure", "other_config:disable-in-band=true"}
	for i := range w.spec.Ends {
		args = append(args, "--", "add-port", bridge, portName(i), "--", "set", "interface", portName(i),
			fmt.Sprintf("ofport_request=%d", i+1))
		args = append(args, w.ports.options(w.spec, i)...)
	}
	more, err := w.tunnelPorts()
	if err != nil {
		return err
	}
	return w.vsctl(ctx, append(args, more...)...)
}

// checkPorts checks that the switch forwards on every port: if it cannot open
// a port, ovs-vsctl still succeeds.
func (w *ovsSwitch) checkPorts(ctx context.Context) error {
	return w.retry(ctx, func() error {
		for i, port := range w.portNames() {
			number, err := w.tool(ctx, "ovs-vsctl", "--db="+sock, "get", "Interface", port, "ofport")
			if err != nil {
				return err
			}
			if number != strconv.Itoa(i+1) {
				reason, _ := w.tool(ctx, "ovs-vsctl", "--db="+sock, "get", "Interface", port, "error")
				return fmt.Errorf("ovs-vswitchd does not forward on port %s (%s): %s", port, number, reason)
			}
		}
		return nil
	})
}

// patience bounds the time until a newly started switch has applied its
// database.
const patience = time.Minute

// retry retries until success, until patience ends, or until the switch ends.
func (w *ovsSwitch) retry(ctx context.Context, try func() error) error {
	for deadline := time.Now().Add(patience); ; {
		err := try()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil || w.ended() || time.Now().After(deadline) {
			return fmt.Errorf("%w%s", err, w.vswitchd("", nil).LastWords())
		}
		_ = host.Sleep(ctx, 50*time.Millisecond) // the loop above notices if it ends
	}
}

// vsctl changes the link's database. Unless the arguments say otherwise, it
// waits until ovs-vswitchd has applied the change.
func (w *ovsSwitch) vsctl(ctx context.Context, args ...string) error {
	if _, err := w.tool(ctx, "ovs-vsctl", append([]string{"--db=" + sock}, args...)...); err != nil {
		return fmt.Errorf("%w%s", err, w.vswitchd("", nil).LastWords())
	}
	return nil
}

// tool runs one of Open vSwitch's tools next to the database server.
func (w *ovsSwitch) tool(ctx context.Context, program string, args ...string) (string, error) {
	path, err := lookup(program)
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if w.running != nil {
		go func() {
			if w.running.AwaitEnd(ctx) == nil {
				cancel() // otherwise the tool would wait forever
			}
		}()
	}
	out, err := w.db.Exec(ctx, append([]string{path, "--timeout=" + strconv.Itoa(toolTimeout)}, args...)...)
	if err != nil && w.ended() {
		return "", fmt.Errorf("%s has ended: %w", vswitchd, err)
	}
	return out, err
}

// ended reports whether the switch has started and ended.
func (w *ovsSwitch) ended() bool { return w.running != nil && !w.running.Alive() }

// revive restarts the processes that have ended.
func (w *ovsSwitch) revive(ctx context.Context, r *transport.Report) error {
	for _, p := range r.Processes {
		if p.Name == w.named(dbServer) && !p.ID.Alive() {
			if err := w.startDatabase(ctx, r); err != nil {
				return err
			}
		}
	}
	for _, p := range r.Processes {
		if p.Name == w.named(vswitchd) && !p.ID.Alive() {
			if err := w.startSwitch(ctx, r); err != nil {
				return err
			}
		}
	}
	if err := w.findHosts(ctx); err != nil {
		return err
	}
	// Also if an earlier attempt started the switch and then failed.
	if err := w.join(ctx); err != nil {
		return err
	}
	return w.checkPorts(ctx)
}
