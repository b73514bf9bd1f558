// SPDX-License-Identifier: Apache-2.0

package ovs

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/sockpath"
)

// The two daemons of a switch; each logs to <name>.log.
const (
	dbServer = "ovsdb-server"
	vswitchd = "ovs-vswitchd"
)

// startTimeout bounds a daemon's time to answer and a command's time to
// complete. Without it, ovs-vsctl waits forever if ovs-vswitchd dies.
const startTimeout = time.Minute

// engine is one link's database server and switch, on one host.
type engine struct {
	driver string // the driver's name
	on     string // the simulated host; empty: this one
	dir    string // database, sockets and logs; created by a step
	ns     host.Netns
	cgroup host.Cgroup
	// died is closed when the daemon of that name has ended.
	died map[string]chan struct{}
	// watch records a started daemon.
	watch func(daemon string, pid int) error
}

func (e *engine) path(name string) string { return filepath.Join(e.dir, name) }

// longestSocket is the longest name of a socket in the directory.
const longestSocket = vswitchd + ".ctl"

// sockets is the path of the directory by which the programs reach sockets in it.
func (e *engine) sockets() string { return sockpath.Dir(e.dir, longestSocket) }

func (e *engine) socket() string { return filepath.Join(e.sockets(), "db.sock") }

// control is a daemon's control socket.
func (e *engine) control(daemon string) string { return filepath.Join(e.sockets(), daemon+".ctl") }

// steps start the switch, until it accepts commands.
func (e *engine) steps(s transport.Spec) []step.Step {
	e.died = map[string]chan struct{}{dbServer: make(chan struct{}), vswitchd: make(chan struct{})}
	name := func(what string) string { return s.StepName(e.driver, e.named(what)) }
	return []step.Step{
		{
			Name: name("create database"),
			// The cgroup and its programs are removed first: a starting program creates files.
			Makes: []step.Resource{host.DirResource(e.dir), host.CgroupResource(e.cgroup)},
			Do:    e.createDatabase,
		},
		{Name: name("start " + dbServer), Do: e.startDatabase},
		{Name: name("start " + vswitchd), Do: e.startSwitch},
	}
}

// named adds the host to a step's name.
func (e *engine) named(what string) string {
	if e.on == "" {
		return what
	}
	return what + " on " + e.on
}

func (e *engine) createDatabase(ctx context.Context) error {
	if err := os.Mkdir(e.dir, 0o700); err != nil {
		return err
	}
	if err := host.ShortenDir(e.dir, longestSocket); err != nil {
		return err
	}
	if err := e.cgroup.Create(host.Limits{}); err != nil {
		return err
	}
	definition, err := schema()
	if err != nil {
		return err
	}
	_, err = e.run(ctx, "ovsdb-tool", "create", e.path("conf.db"), definition)
	return err
}

// run runs a tool until it exits. The tool is in the switch's cgroup, so it
// does not outlive the switch if dray is killed.
func (e *engine) run(ctx context.Context, program string, args ...string) (string, error) {
	return host.Helper{
		Program: program, Args: args, Package: debianPackage, Limit: startTimeout + 10*time.Second, // the tools have a limit of their own
		Place: host.Place{Netns: e.ns, Cgroup: e.cgroup},
	}.Output(ctx)
}

func (e *engine) startDatabase(ctx context.Context) error {
	pid, err := e.start(dbServer, e.path("conf.db"), "--remote=punix:"+e.socket())
	if err != nil {
		return err
	}
	if err := e.awaitSocket(ctx, dbServer, e.socket()); err != nil {
		return err
	}
	return e.watch(e.named(dbServer), pid)
}

func (e *engine) startSwitch(ctx context.Context) error {
	pid, err := e.start(vswitchd, "unix:"+e.socket())
	if err != nil {
		return err
	}
	if err := e.awaitSocket(ctx, vswitchd, e.control(vswitchd)); err != nil {
		return err
	}
	return e.watch(e.named(vswitchd), pid)
}

// start runs a daemon in the foreground: it is in the cgroup, so it needs no
// pidfile.
func (e *engine) start(daemon string, args ...string) (pid int, err error) {
	program, err := lookup(daemon)
	if err != nil {
		return 0, err
	}
	log, err := os.OpenFile(e.path(daemon+".log"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	defer log.Close()
	args = append(args, "--unixctl="+e.control(daemon), "--no-chdir", "-vsyslog:off", "-vconsole:info")
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", log, log
	cmd.Env = append(os.Environ(), "OVS_RUNDIR="+e.sockets(), "OVS_LOGDIR="+e.dir, "OVS_DBDIR="+e.dir)
	// A separate session: the terminal's interrupt is only for dray.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := (host.Place{Netns: e.ns, Cgroup: e.cgroup}).Start(cmd); err != nil {
		return 0, fmt.Errorf("start %s: %w", daemon, err)
	}
	go func() {
		_ = cmd.Wait() // its log says how it ended
		close(e.died[daemon])
	}()
	return cmd.Process.Pid, nil
}

// awaitSocket waits until the daemon answers on a socket.
func (e *engine) awaitSocket(ctx context.Context, daemon, socket string) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-e.died[daemon]:
			return fmt.Errorf("%s ended at once%s", daemon, e.lastWords(daemon))
		case <-ctx.Done():
			return fmt.Errorf("%s does not answer: %w%s", daemon, ctx.Err(), e.lastWords(daemon))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// vsctl runs one command on the link's own database, and waits until
// ovs-vswitchd has applied it.
func (e *engine) vsctl(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-e.died[vswitchd]: // otherwise ovs-vsctl would wait forever
			cancel()
		case <-ctx.Done():
		}
	}()
	timeout := fmt.Sprintf("--timeout=%d", int(startTimeout.Seconds()))
	out, err := e.run(ctx, "ovs-vsctl", append([]string{timeout, "--db=unix:" + e.socket()}, args...)...)
	select {
	case <-e.died[vswitchd]:
		return "", fmt.Errorf("%s has ended%s", vswitchd, e.lastWords(vswitchd))
	default:
	}
	if err != nil {
		return "", fmt.Errorf("%w%s", err, e.lastWords(vswitchd))
	}
	return out, nil
}

// appctl sends a command to ovs-vswitchd itself.
func (e *engine) appctl(ctx context.Context, args ...string) (string, error) {
	timeout := fmt.Sprintf("--timeout=%d", int(startTimeout.Seconds()))
	out, err := e.run(ctx, "ovs-appctl", append([]string{timeout, "--target=" + e.control(vswitchd)}, args...)...)
	if err != nil {
		return "", fmt.Errorf("%w%s", err, e.lastWords(vswitchd))
	}
	return out, nil
}

// lastWords is the end of a daemon's log, for error messages.
func (e *engine) lastWords(daemon string) string {
	b, err := os.ReadFile(e.path(daemon + ".log"))
	if err != nil || len(b) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return "; its log ends: " + lines[len(lines)-1]
}

// debianPackage contains the switch and its tools.
const debianPackage = "openvswitch-switch"

func lookup(program string) (string, error) { return host.NeedProgram(Name, program, debianPackage) }

// schema finds the definition of the switch's database.
func schema() (string, error) {
	return host.NeedFile(Name, "/usr/share/openvswitch/vswitch.ovsschema", debianPackage)
}
