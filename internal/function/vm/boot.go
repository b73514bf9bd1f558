// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/function/guest"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
)

// Boot implements runtime.Booter. A running guest is left alone.
func (*Runtime) Boot(ctx context.Context, s runtime.Spec) error {
	// Two commands must not boot the same guest.
	sandbox, err := os.Open(filepath.Dir(guestDir(s)))
	if err != nil {
		return err
	}
	defer sandbox.Close() // also unlocks
	if err := host.Lock(ctx, sandbox, unix.LOCK_EX); err != nil {
		return err
	}
	dir := guestDir(s)
	if info, err := guest.ReadInfo(dir); err == nil && info.Process.Alive() {
		if _, err := os.Stat(filepath.Join(dir, fileConnected)); err == nil {
			return nil
		}
	}
	// A guest may still run if its maker was killed during boot.
	if err := machineCgroup(s).Kill(ctx); err != nil {
		return err
	}
	if err := guest.Clear(dir); err != nil {
		return err
	}
	ports, err := readPorts(s)
	if err != nil {
		return err
	}
	c, err := config(s, ports)
	if err != nil {
		return err
	}
	if err := guest.WritePorts(dir, nativePorts(s)); err != nil {
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

// fileConnected exists once the guest's interfaces are joined to the ports.
const fileConnected = "connected"

// config is the function's guest.
func config(s runtime.Spec, ports []port) (guest.Config, error) {
	c := guest.Config{
		Name: s.Function.Name, Dir: guestDir(s), CPUs: s.CPUs, Detached: true,
		Place: host.Place{Netns: s.Netns(), Cgroup: machineCgroup(s)},
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
	// With a single virtual CPU, an emulator also translates atomic instructions and
	// fences as if nothing else shared the memory.
	if s.HasDpdkPorts() || s.Function.HasPort(chain.FaceNative) {
		c.VCPUs = s.MachineVCPUs()
	}
	c.Windows = guest.PortWindows * len(nativePorts(s))
	if s.Function.VM != nil && s.Function.VM.NoHzFull {
		c.StopTick()
	}
	for _, p := range ports {
		c.NICs = append(c.NICs, guest.NIC{Tap: p.tap, Macvtap: p.macvtap, Socket: p.socket, MAC: p.mac, MTU: p.mtu, Slot: p.slot})
	}
	return c, nil
}

// user is the uid that QEMU runs as.
func user(s runtime.Spec) int { return guest.User(s.Chain + "/" + s.Function.Name) }

// programDirs are the directories of Drayage's programs: next to this one, or in
// the PATH. The guest sees everything in them.
func programDirs() ([]string, error) {
	own, err := os.Executable()
	if err != nil {
		return nil, err
	}
	files := []string{own}
	for _, name := range runtime.OwnPrograms {
		if path, err := exec.LookPath(name); err == nil {
			files = append(files, path)
		}
	}
	var dirs []string
	for _, file := range files {
		// By the path that instruments use: a link would not exist in the guest.
		dir, err := filepath.Abs(filepath.Dir(file))
		if err != nil {
			return nil, err
		}
		if slices.Contains(dirs, dir) {
			continue
		}
		if err := showable(dir); err != nil {
			return nil, err
		}
		dirs = append(dirs, dir)
	}
	return dirs, nil
}

// showable reports why a machine must not, or cannot, see a program directory.
func showable(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	for _, d := range []string{dir, real} {
		if slices.Contains(runtime.PrivateDirs, d) || slices.Contains(runtime.ScratchDirs, d) || filepath.Dir(d) == "/home" {
			return &host.Unsupported{
				What: "virtual machine with Drayage's programs in " + d, Why: "the machine would see everything else in that directory",
				Fix: "move the programs into their own folder, such as " + filepath.Join(d, "dray"),
			}
		}
	}
	info, err := os.Stat(real)
	if err != nil {
		return err
	}
	if info.Mode()&0o005 != 0o005 {
		return &host.Unsupported{
			What: "virtual machine with Drayage's programs in " + dir, Why: "its emulator runs as an ordinary user and may not read that folder",
			Fix: "chmod o+rx " + dir,
		}
	}
	return nil
}
