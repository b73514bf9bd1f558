// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/guest"
	"github.com/drayage/dray/internal/guest/wire"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/runtime"
)

// tapPrefix begins the names of the taps that QEMU makes in the sandbox.
const tapPrefix = "dray-tap"

// Boot implements runtime.Booter. A guest that runs is left alone.
func (*Runtime) Boot(ctx context.Context, s runtime.Spec) error {
	unlock, err := lockSandbox(s)
	if err != nil {
		return err
	}
	defer unlock()
	dir := guestDir(s)
	if info, err := guest.ReadInfo(dir); err == nil && info.Process.Alive() {
		if _, err := os.Stat(filepath.Join(dir, fileConnected)); err == nil {
			return nil
		}
	}
	// One that was being booted when its maker was killed may still run.
	if err := machineCgroup(s).Kill(ctx); err != nil {
		return err
	}
	if err := guest.Clear(dir); err != nil {
		return err
	}
	ports, err := readPorts(netns(s))
	if err != nil {
		return err
	}
	c, err := config(s, ports)
	if err != nil {
		return err
	}
	m, err := guest.Boot(ctx, c)
	if err != nil {
		return err
	}
	err = connect(ctx, s, ports)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, fileConnected), nil, 0o600)
	}
	if err != nil {
		m.Kill()
	}
	return err
}

// fileConnected is there once the guest's interfaces are joined to the ports.
const fileConnected = "connected"

// config is the function's guest.
func config(s runtime.Spec, ports []port) (guest.Config, error) {
	c := guest.Config{
		Name: s.Function.Name, Dir: guestDir(s), CPUs: s.CPUs, Detached: true,
		Place: host.Place{Netns: netns(s), Cgroup: machineCgroup(s)},
		User:  user(s), Hidden: slices.Concat(runtime.PrivateDirs, runtime.ScratchDirs, []string{s.State, s.Dir}),
	}
	var err error
	if c.Shown, err = programDirs(); err != nil {
		return c, err
	}
	c.Memory = uint64(s.Function.MachineMemory())
	if s.Function.VM != nil {
		c.Kernel, c.HugePages = guest.Flavour(s.Function.VM.Kernel), s.Function.VM.HugePages
	}
	for _, p := range ports {
		c.NICs = append(c.NICs, guest.NIC{Tap: p.tap, MAC: p.MAC, MTU: p.MTU})
	}
	return c, nil
}

// user is whom QEMU runs as.
func user(s runtime.Spec) int { return guest.User(s.Chain + "/" + s.Function.Name) }

// ownPrograms are those of Drayage's programs that run in functions.
var ownPrograms = []string{"draygen", "draygen-dpdk", "dray-vnf"}

// programDirs are the directories of Drayage's programs, wherever they are:
// beside this one, or in the PATH.
func programDirs() ([]string, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	files := []string{own}
	for _, name := range ownPrograms {
		if path, err := exec.LookPath(name); err == nil {
			files = append(files, path)
		}
	}
	var dirs []string
	for _, file := range files {
		// By the path that instruments call it by: a link would be none in the guest.
		dir, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs, nil
}

// lockSandbox keeps two commands from booting one guest.
func lockSandbox(s runtime.Spec) (unlock func(), err error) {
	f, err := os.Open(filepath.Dir(guestDir(s)))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	return func() { f.Close() }, nil
}

// port is an interface that is to be had in the guest.
type port struct {
	host.LinkState
	name, tap string
}

// readPorts lists what has been plumbed into the sandbox.
func readPorts(ns host.Netns) ([]port, error) {
	names, err := ns.Interfaces()
	if err != nil {
		return nil, err
	}
	var ports []port
	for _, name := range names {
		if strings.HasPrefix(name, tapPrefix) {
			continue // of a guest that is ending
		}
		p := port{name: name, tap: fmt.Sprintf("%s%d", tapPrefix, len(ports))}
		if p.LinkState, err = ns.ReadLink(name); err != nil {
			return nil, err
		}
		ports = append(ports, p)
	}
	return ports, nil
}

// connect joins each port to its tap, and configures its interface in the guest.
func connect(ctx context.Context, s runtime.Spec, ports []port) error {
	ns := netns(s)
	for _, p := range ports {
		if err := ns.SetMTU(p.tap, p.MTU); err != nil {
			return err
		}
		if err := ns.SetUp(p.tap); err != nil {
			return err
		}
		if err := ns.Join(p.name, p.tap); err != nil {
			return err
		}
	}
	var errs strings.Builder
	code, err := guest.Run(ctx, guestDir(s), guest.Command{
		Request: wire.Request{Argv: []string{"/bin/sh", "-e"}, Env: s.Environ(), Dir: "/"},
		Stdin:   strings.NewReader(script(ports)), Stderr: &errs,
	})
	if err == nil && code != 0 {
		err = fmt.Errorf("set up the guest's interfaces: status %d: %s", code, strings.TrimSpace(errs.String()))
	}
	return err
}

// script configures the guest's interfaces. The kernel numbers them in the order
// in which the machine has them.
func script(ports []port) string {
	var b strings.Builder
	b.WriteString("ip link set lo up\n")
	for i := range ports {
		// A port may be called as another's interface was.
		fmt.Fprintf(&b, "ip link set eth%d name dray-nic%d\n", i, i)
	}
	for i, p := range ports {
		fmt.Fprintf(&b, "ip link set dray-nic%d name %s mtu %d\nip link set %s up\n", i, p.name, p.MTU, p.name)
		for _, a := range p.Addrs {
			if a.Addr().IsLinkLocalUnicast() && a.Addr().Is6() {
				continue // the guest's kernel makes the same of the same MAC address
			}
			fmt.Fprintf(&b, "ip addr add %s dev %s%s\n", a, p.name, noDAD(a))
		}
	}
	return b.String()
}

// noDAD makes an IPv6 address usable at once.
func noDAD(a netip.Prefix) string {
	if a.Addr().Is6() {
		return " nodad"
	}
	return ""
}
