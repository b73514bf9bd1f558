// SPDX-License-Identifier: Apache-2.0

package runtime

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
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

// HasDpdkPorts reports whether the function runs a DPDK application of its own.
func (s Spec) HasDpdkPorts() bool { return s.Function.HasPort(chain.FaceDPDK) }

// LinkDir is the directory on the host in which the function may make the
// sockets of a dpdk port.
func (s Spec) LinkDir(port string) string { return filepath.Join(s.linksDir(), port) }

func (s Spec) linksDir() string { return filepath.Join(s.Dir, "links") }

// runtimeDir is where EAL keeps its directory on the host's file system.
func (s Spec) runtimeDir() string { return filepath.Join(s.Dir, "dpdk") }

// driverFile is the function's own copy of net_dray: DPDK refuses one below a
// directory that everybody may write to, and a new build is not to meet a function
// that starts again.
func (s Spec) driverFile() string { return filepath.Join(s.Dir, "lib", dpdk.DriverFile) }

// driver returns that copy, which it makes if there is none. Below a directory
// that nothing can be loaded from, as Debian's /run, it is the file itself.
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
	if err := os.MkdirAll(filepath.Dir(own), 0o755); err != nil {
		return "", err
	}
	// Whole or not at all: another program of the function may look for it now.
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
	return own, os.Chmod(filepath.Dir(own), 0o755) // whatever the umask
}

// linksStep makes the directories of the dpdk ports. Only the function's own
// user, whose uid user returns, gets into them.
func (s Spec) linksStep(sandbox *Sandbox, user func(context.Context) (int, error)) step.Step {
	return step.Step{
		Name:  s.Function.Name + ": create the directories of dpdk ports",
		Makes: []step.Resource{host.DirResource(s.linksDir()), host.DirResource(s.runtimeDir()), host.DirResource(filepath.Dir(s.driverFile()))},
		Do: func(ctx context.Context) error {
			uid, err := user(ctx)
			if err != nil {
				return err
			}
			if err := os.Mkdir(s.runtimeDir(), 0o700); err != nil {
				return err
			}
			if err := os.Mkdir(s.linksDir(), 0o711); err != nil {
				return err
			}
			if err := os.Chmod(s.linksDir(), 0o711); err != nil { // whatever the umask
				return err
			}
			for _, p := range s.Function.Ports {
				if p.Face != chain.FaceDPDK {
					continue
				}
				if err := os.Mkdir(s.LinkDir(p.Name), 0o700); err != nil {
					return err
				}
				if err := os.Chown(s.LinkDir(p.Name), uid, -1); err != nil {
					return err
				}
			}
			sandbox.Links, sandbox.RuntimeDir = s.linksDir(), s.runtimeDir()
			return nil
		},
	}
}

// ClearLinks removes the sockets that an instance which has ended left in the
// function's own directories: most DPDK drivers refuse to make them again.
func (s Spec) ClearLinks() error {
	for _, v := range s.Vdevs {
		if v.Clears {
			if err := clearShared(v.Dir); err != nil {
				return fmt.Errorf("function %s: %w", s.Function.Name, err)
			}
		}
		if v.Dir == "" || v.Dir != s.LinkDir(v.Port) {
			continue
		}
		entries, err := os.ReadDir(v.Dir)
		if err != nil {
			return fmt.Errorf("function %s: %w", s.Function.Name, err)
		}
		for _, e := range entries {
			if e.Type()&fs.ModeSocket == 0 {
				continue
			}
			if err := os.Remove(filepath.Join(v.Dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("function %s: %w", s.Function.Name, err)
			}
		}
	}
	return nil
}

// clearShared removes the files of two processes of EAL: those of what is in the
// directory, and of what is mounted there, which stays.
func clearShared(dir string) error {
	for _, d := range []string{filepath.Join(dir, dpdk.HugeDir), dir} {
		entries, err := os.ReadDir(d)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if d == dir && e.Name() == dpdk.HugeDir {
				continue
			}
			if err := os.RemoveAll(filepath.Join(d, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Bind is a file or directory of the host that a container sees at Target.
type Bind struct {
	Source, Target string
	Writable       bool
}

// Binds are what a container needs of the host for its ports.
func (s Spec) Binds() ([]Bind, error) {
	var list []Bind
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
	for _, v := range s.Vdevs {
		if v.Dir != "" {
			list = append(list, Bind{Source: v.Dir, Target: v.Inside(), Writable: !v.ReadOnly})
		}
	}
	return list, nil
}

// RunMode is the mode of a container's /run. DPDK loads no driver from below a
// directory that everybody may write to, whatever the mount on it.
func (s Spec) RunMode() string {
	if s.HasDpdkPorts() {
		return "755"
	}
	return "1777"
}

// hugePageCalls are the system calls that EAL makes beside those of the default
// seccomp profile: with huge pages it binds memory to NUMA nodes.
var hugePageCalls = []string{"mbind", "set_mempolicy", "get_mempolicy"}

// SeccompCalls are the system calls that the function may make beside the default
// profile's.
func (s Spec) SeccompCalls() []string {
	if s.HasDpdkPorts() && len(s.Function.HugePages) > 0 {
		return hugePageCalls
	}
	return nil
}

// Capabilities are those that the function's command needs for its dpdk ports,
// sorted; nil but for transports that the chain's policy had to permit.
func (s Spec) Capabilities() []string {
	var list []string
	for _, v := range s.Vdevs {
		list = append(list, v.Capabilities...)
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// OpensSockets reports whether somebody of another user connects to a socket
// that the function's command makes.
func (s Spec) OpensSockets() bool {
	return slices.ContainsFunc(s.Vdevs, func(v dpdk.Vdev) bool { return v.PeerConnects })
}

// Application is the function's DPDK application; inside says that it sees what
// a container sees. That of a function in a virtual machine sees the machine.
func (s Spec) Application(inside bool) (dpdk.Application, error) {
	if s.Function.Runtime == chain.RuntimeVM {
		return s.inMachine(), nil
	}
	app := dpdk.Application{
		Memory: s.Function.Memory, HugePages: s.Function.HugePages, CPUs: s.CPUs, Pinned: len(s.CPUs) > 0,
		Nodes: host.NUMANodes(), Vdevs: s.Vdevs, Inside: inside, Ports: s.PortsDir(),
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

// Resolve tells a function's program how to attach to the function's dpdk ports:
// it returns the function with the environment variable, and the command with
// the arguments in place of dpdk.Argument. A function without them stays as it is.
func (s Spec) Resolve(argv []string, inside bool) (Spec, []string, error) {
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
