// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
)

// HasDpdkPorts reports whether the function runs its own DPDK application.
func (s Spec) HasDpdkPorts() bool { return s.Function.HasPort(chain.FaceDPDK) }

// LinkDir is the host directory in which the function may make a dpdk port's
// sockets.
func (s Spec) LinkDir(port string) string { return filepath.Join(s.linksDir(), port) }

func (s Spec) linksDir() string { return filepath.Join(s.Dir, "links") }

// runtimeDir is EAL's directory on the host's file system.
func (s Spec) runtimeDir() string { return filepath.Join(s.Dir, "dpdk") }

// driverFile is the function's own copy of net_dray. DPDK refuses a driver below a
// world-writable directory, and a restarted function must not load a newer build.
func (s Spec) driverFile() string { return filepath.Join(s.Dir, "lib", dpdk.DriverFile) }

// driver returns that copy, creating it if missing. Below a noexec directory,
// such as Debian's /run, it returns the file itself.
func (s Spec) driver() (string, error) {
	noexec, err := host.NoExec(s.Dir)
	if err != nil {
		return "", err
	}
	if noexec {
		return dpdk.FindDriver()
	}
	own := s.driverFile()
	if _, err := os.Stat(own); err == nil {
		return own, nil
	}
	found, err := dpdk.FindDriver()
	if err != nil {
		return "", err
	}
	content, err := os.ReadFile(found)
	if err != nil {
		return "", err
	}
	if err := host.MakeDirs(filepath.Dir(own), 0o755); err != nil {
		return "", err
	}
	// Atomic: another program of the function may look for it now.
	tmp, err := os.CreateTemp(filepath.Dir(own), "new-")
	if err != nil {
		return "", err
	}
	_, err = tmp.Write(content)
	err = errors.Join(err, tmp.Chmod(0o644), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), own)
	}
	if err != nil {
		return "", errors.Join(err, os.Remove(tmp.Name()))
	}
	return own, nil
}

// linksStep makes the directories of the dpdk ports. Only the function's own
// user, whose uid user returns, can enter them. They are small if the function's programs
// can be shown a file system that is mounted now.
func (s Spec) linksStep(sandbox *Sandbox, user func(context.Context) (int, error), show func(context.Context, string) error) step.Step {
	makes := []step.Resource{host.DirResource(s.linksDir()), host.DirResource(s.runtimeDir()), host.DirResource(filepath.Dir(s.driverFile()))}
	linkDir := func(_ context.Context, dir string, uid int) error { return os.Chown(dir, uid, -1) }
	if show != nil {
		linkDir = func(ctx context.Context, dir string, uid int) error {
			if err := host.MountScratch(dir, uid); err != nil {
				return err
			}
			return show(ctx, dir)
		}
		for _, p := range s.dpdkPorts() {
			makes = append(makes, host.MountResource(s.LinkDir(p)))
		}
	}
	return step.Step{
		Name:  s.Function.Name + ": create the directories of dpdk ports",
		Makes: makes,
		Do: func(ctx context.Context) error {
			uid, err := user(ctx)
			if err != nil {
				return err
			}
			if err := os.Mkdir(s.runtimeDir(), 0o700); err != nil {
				return err
			}
			if err := host.MakeDir(s.linksDir(), 0o711); err != nil {
				return err
			}
			for _, p := range s.dpdkPorts() {
				if err := os.Mkdir(s.LinkDir(p), 0o700); err != nil {
					return err
				}
				if err := linkDir(ctx, s.LinkDir(p), uid); err != nil {
					return err
				}
				if err := host.ShortenDir(s.LinkDir(p), dpdk.MemifSocket, dpdk.VhostSocket); err != nil {
					return err
				}
			}
			sandbox.Links, sandbox.RuntimeDir = s.linksDir(), s.runtimeDir()
			return nil
		},
	}
}

// dpdkPorts names the ports that have such a directory.
func (s Spec) dpdkPorts() []string {
	var names []string
	for _, p := range s.Function.Ports {
		if p.Face == chain.FaceDPDK {
			names = append(names, p.Name)
		}
	}
	return names
}

// ClearLinks empties the function's own directories: most DPDK drivers refuse to recreate
// an ended instance's sockets. It links to the sockets that containers connect to.
func (s Spec) ClearLinks() error {
	for _, v := range s.Vdevs {
		var err error
		switch {
		case v.Clears:
			err = clearShared(v.Dir)
		case v.Dir != "" && v.Dir == s.LinkDir(v.Port):
			err = empty(v.Dir, "")
		}
		if err == nil && v.Peer != "" {
			err = os.Symlink(filepath.Join(v.PeerInside(), v.Awaits), filepath.Join(v.Dir, v.Awaits))
		}
		if err != nil {
			return fmt.Errorf("function %s: %w", s.Function.Name, err)
		}
	}
	return nil
}

// clearShared removes the directory's EAL multi-process files, also those of a
// mount on it, which stays.
func clearShared(dir string) error {
	if err := empty(filepath.Join(dir, dpdk.HugeDir), ""); err != nil {
		return err
	}
	return empty(dir, dpdk.HugeDir)
}

// empty removes all that is in a directory, but for one name. It follows no links.
func empty(dir, but string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == but {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// Bind is a host file or directory that a container sees at Target.
type Bind struct {
	Source, Target string
	Writable       bool
}

// Binds are the host paths that a container's ports and programs need.
func (s Spec) Binds() ([]Bind, error) {
	list := s.programBinds()
	if s.HasPortSockets() {
		list = append(list, Bind{Source: s.PortsDir(), Target: PortsInside})
	}
	app := dpdk.Application{Vdevs: s.Vdevs}
	if app.NeedsDriver() {
		driver, err := s.driver()
		if err != nil {
			return nil, fmt.Errorf("function %s: %w", s.Function.Name, err)
		}
		list = append(list, Bind{Source: driver, Target: filepath.Join(dpdk.LibInside, filepath.Base(driver))})
	}
	sctp, err := s.sctpBinds()
	if err != nil {
		return nil, err
	}
	list = append(list, sctp...)
	for _, v := range s.Vdevs {
		if v.Dir != "" {
			list = append(list, Bind{Source: v.Dir, Target: v.Inside(), Writable: !v.ReadOnly})
		}
		if v.Peer != "" {
			list = append(list, Bind{Source: v.Peer, Target: v.PeerInside()})
		}
	}
	return list, nil
}

// RunMode is the mode of a container's /run. DPDK loads no driver from below a
// world-writable directory, whatever is mounted on it.
func (s Spec) RunMode() string {
	if s.HasDpdkPorts() {
		return "755"
	}
	return "1777"
}

// hugePageCalls are EAL's system calls in addition to the default seccomp
// profile: with huge pages it binds memory to NUMA nodes.
var hugePageCalls = []string{"mbind", "set_mempolicy", "get_mempolicy"}

// SeccompCalls are the function's allowed system calls in addition to the default
// profile.
func (s Spec) SeccompCalls() []string {
	if s.HasDpdkPorts() && len(s.Function.HugePages) > 0 {
		return hugePageCalls
	}
	return nil
}

// Capabilities are those that the function's command needs for its dpdk ports,
// sorted; nil except for transports that the chain's policy had to permit.
func (s Spec) Capabilities() []string {
	var list []string
	for _, v := range s.Vdevs {
		list = append(list, v.Capabilities...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// OpensSockets reports whether a process of another user connects to a socket
// that the function's command makes.
func (s Spec) OpensSockets() bool {
	return slices.ContainsFunc(s.Vdevs, func(v dpdk.Vdev) bool { return v.PeerConnects })
}

// Application is the function's DPDK application. inside: it sees a container's
// files. In a virtual machine it sees the machine's.
func (s Spec) Application(inside bool) (dpdk.Application, error) {
	if s.Function.Runtime == chain.RuntimeVM {
		return s.inMachine(), nil
	}
	app := dpdk.Application{
		Memory: s.Function.Memory, HugePages: s.Function.HugePages, CPUs: s.CPUs, Pinned: len(s.CPUs) > 0,
		Nodes: host.NUMANodes(), Vdevs: s.Vdevs, Inside: inside, Ports: s.PortsPath(),
	}
	if !app.Pinned {
		var err error
		if app.CPUs, err = host.AllowedCPUs(); err != nil {
			return app, err
		}
	}
	if app.NeedsDriver() {
		var err error
		if app.Driver, err = s.driver(); err != nil {
			return app, err
		}
	}
	return app, nil
}

// Resolve passes a function's program what its SCTP sockets need, and the arguments to
// attach to its dpdk ports. It returns the function with the environment variables, and
// the command with dpdk.Argument replaced. A function without either is unchanged.
func (s Spec) Resolve(argv []string, inside bool) (Spec, []string, error) {
	s, err := s.withSCTP(inside)
	if err != nil {
		return s, nil, err
	}
	if len(s.Vdevs) == 0 || !s.HasDpdkPorts() {
		return s, argv, nil
	}
	app, err := s.Application(inside)
	if err != nil {
		return s, nil, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	eal, err := app.EAL()
	if err != nil {
		return s, nil, fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	own := s.runtimeDir()
	if inside {
		own = "/tmp" // a tmpfs of the container's own, for any user
	}
	env := map[string]string{dpdk.Variable: strings.Join(eal, " "), dpdk.RuntimeVariable: dpdk.RuntimeDir(eal, own)}
	maps.Copy(env, s.Function.Env)
	s.Function.Env = env
	return s, dpdk.Expand(argv, eal), nil
}
