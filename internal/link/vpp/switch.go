// SPDX-License-Identifier: Apache-2.0

package vpp

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/sidecar"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/link/vhost"
	"github.com/drayage/dray/internal/spec/chain"
)

const (
	inside  = "/vpp" // VPP's path of its configuration, read-only
	cli     = "/run/cli.sock"
	startup = inside + "/startup.conf"
	links   = inside + "/links.vpp"
)

// VPP's memory, in MiB; it may use more per thread and plugin.
const (
	heap         = 256
	processLimit = 1024
)

// askTimeout bounds one command to VPP.
const askTimeout = 10 * time.Second

// buffers is how many packets VPP can buffer.
const buffers = 16384

// vppSwitch is one link's VPP.
type vppSwitch struct {
	kind kind
	spec transport.Spec
	dir  string // holds its configuration
}

func newSwitch(k kind, s transport.Spec) vppSwitch {
	return vppSwitch{kind: k, spec: s, dir: filepath.Join(s.Dir, "vpp")}
}

// engine is VPP's process, on those CPUs. Before it starts, only the targets of its
// binds matter, and the installation may be empty.
func (v vppSwitch) engine(i installation, cpus []int) sidecar.Process {
	s := v.spec
	return sidecar.Process{
		Name: program, Dir: filepath.Join(s.Dir, "switch"), Cgroup: s.Cgroup, Owner: vhost.Owner(s),
		Args: []string{i.inside(program), "-c", startup}, Env: i.environment(home),
		Binds: append(append(v.kind.binds(s), sidecar.Bind{Source: v.dir, Target: inside}), i.binds()...),
		Files: v.kind.files(s), CPUs: cpus, Memory: processLimit << 20,
	}
}

func (v vppSwitch) writeConfig() error {
	if err := host.MakeDir(v.dir, 0o755); err != nil {
		return err
	}
	return host.MakeFile(filepath.Join(v.dir, filepath.Base(links)), []byte(v.commands()), 0o644)
}

// startupConfig is VPP's configuration on one CPU, without huge pages, and with
// nothing but that plugin.
func startupConfig(cpu int, plugin string) string {
	return fmt.Sprintf(`unix {
  nodaemon
  nosyslog
  nobanner
  nocolor
  runtime-dir /run
  cli-listen %s
}
cpu {
  main-core %d
}
memory {
  main-heap-size %dM
  main-heap-page-size 4k
}
buffers {
  buffers-per-numa %d
  page-size 4k
}
statseg {
  size 32M
  page-size 4k
}
plugins {
  plugin default { disable }
  plugin %s { enable }
}
`, cli, cpu, heap, buffers, plugin)
}

// bridged reports whether VPP switches by the addresses seen at each end, in a
// bridge domain, instead of joining two ends whatever the addresses.
func (v vppSwitch) bridged() bool {
	return len(v.spec.Ends) > 2 || v.spec.Forwarding == chain.ForwardingLearning
}

// commands create the interfaces and join them. A cross-connect has one
// direction, so two ends need two.
func (v vppSwitch) commands() string {
	var lines, names []string
	for i := range v.spec.Ends {
		create, name := v.kind.create(v.spec, i)
		lines, names = append(lines, create...), append(names, name)
	}
	if v.bridged() {
		lines = append(lines, "create bridge-domain 1 learn 1 forward 1 uu-flood 1 flood 1 arp-term 0")
		for _, name := range names {
			lines = append(lines, fmt.Sprintf("set interface l2 bridge %s 1", name))
		}
	} else {
		lines = append(lines,
			fmt.Sprintf("set interface l2 xconnect %s %s", names[0], names[1]),
			fmt.Sprintf("set interface l2 xconnect %s %s", names[1], names[0]))
	}
	for _, name := range names {
		lines = append(lines,
			fmt.Sprintf("set interface mtu packet %d %s", v.spec.MTU, name),
			fmt.Sprintf("set interface state %s up", name))
	}
	return strings.Join(lines, "\n") + "\n"
}

func (vhostUser) create(_ transport.Spec, i int) ([]string, string) {
	return []string{"create vhost-user socket " + vhost.Socket(i)}, fmt.Sprintf("VirtualEthernet0/0/%d", i)
}

// start starts or restarts VPP, and checks that it joins the ends.
func (v vppSwitch) start(ctx context.Context, r *transport.Report) error {
	installed, err := find()
	if err != nil {
		return err
	}
	cpus := v.spec.CPUs
	if len(cpus) == 0 {
		allowed, err := host.AllowedCPUs()
		if err != nil {
			return err
		}
		cpus = allowed[len(allowed)-1:] // VPP pins its main thread
	}
	file := filepath.Join(v.dir, filepath.Base(startup))
	if err := host.MakeFile(file, []byte(startupConfig(cpus[0], v.kind.plugin())), 0o644); err != nil {
		return err
	}
	e := v.engine(installed, cpus)
	id, err := e.Start(ctx)
	if err != nil {
		return err
	}
	ask := func(what ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		return e.Exec(ctx, append([]string{installed.inside(console), "-s", cli}, what...)...)
	}
	if r.Engine, err = v.configure(ctx, e, id, ask); err != nil {
		return err
	}
	r.Note(program, id, e.Log(), poller)
	return nil
}

// poller is the name of the thread that forwards.
const poller = "vpp_main"

// configure waits until VPP answers, has it execute the commands, and checks the
// result. It returns VPP's name and version. VPP's own way, startup-config, would wait
// for 2 s, and would not report an error.
func (v vppSwitch) configure(ctx context.Context, e sidecar.Process, id host.ProcessID, ask func(...string) (string, error)) (string, error) {
	var version string
	if err := e.Await(ctx, id, func() (ready bool) {
		out, err := ask("show", "version")
		version, ready = parseVersion(out)
		return ready && err == nil
	}); err != nil {
		return "", err
	}
	said, err := ask("exec", links)
	if err != nil {
		return "", err
	}
	modes, err := ask("show", "mode")
	if err != nil {
		return "", err
	}
	if err := v.joined(modes); err != nil {
		return "", fmt.Errorf("%w; to its configuration it said: %q%s", err, said, e.LastWords())
	}
	return program + " " + version, nil
}

// joined parses the output of "show mode": one line per interface, with its
// mode and its peer.
func (v vppSwitch) joined(out string) error {
	for i := range v.spec.Ends {
		_, name := v.kind.create(v.spec, i)
		mode := "xconnect"
		if v.bridged() {
			mode = "bridge"
		}
		found := false
		for _, line := range strings.Split(out, "\n") {
			fields := strings.Fields(line)
			if len(fields) >= 4 && fields[0] == "l2" && fields[1] == mode && fields[2] == name {
				found = true
			}
		}
		if !found {
			return fmt.Errorf("vpp does not confirm that it joins %s by %s: %q", name, mode, out)
		}
	}
	return nil
}
