// SPDX-License-Identifier: Apache-2.0

// Package inside is the guest's first process: it mounts the host's programs, and
// then becomes the agent that runs commands for the host.
//
// The guest has its own kernel: operations that only package host may do
// elsewhere do not affect the host here.
package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// ConfigFile is where the initramfs holds the Config, and ModuleDir the modules.
const (
	ConfigFile = "/dray-guest.json"
	ModuleDir  = "/dray-modules"
)

// PortPrefix begins the names of the agent's channels: "dray.0" and so on.
const PortPrefix = "dray."

// Config is the guest's configuration.
type Config struct {
	Modules  []string `json:"modules"` // files in ModuleDir, in load order
	Root     string   `json:"root"`    // 9p tag of the root's lower layer
	Mounts   []Mount  `json:"mounts"`
	Hostname string   `json:"hostname"`
	Channels int      `json:"channels"` // to the host
}

// Mount is an additional host directory.
type Mount struct {
	Tag      string `json:"tag"`
	Path     string `json:"path"`
	ReadOnly bool   `json:"read_only"`
}

// Main is the guest's first process. It never returns: on failure it reports on
// the console and powers the machine off.
func Main() {
	c, err := start()
	if err == nil {
		err = serve(c.Channels)
	}
	fmt.Fprintf(os.Stderr, "dray-guest: %v\n", err)
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	select {}
}

func start() (Config, error) {
	var c Config
	if err := mountKernelTrees(""); err != nil {
		return c, err
	}
	text, err := os.ReadFile(ConfigFile)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("%s: %w", ConfigFile, err)
	}
	for _, m := range c.Modules {
		if err := loadModule(filepath.Join(ModuleDir, m)); err != nil {
			return c, err
		}
	}
	if err := enterRoot(c); err != nil {
		return c, err
	}
	if err := unix.Sethostname([]byte(c.Hostname)); err != nil {
		return c, fmt.Errorf("host name: %w", err)
	}
	return c, nil
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load module %s: %w", filepath.Base(path), err)
	}
	return nil
}

// mount is one mount of the guest.
type mount struct {
	kind, source, target, options string
	flags                         uintptr
}

func (m mount) do(root string) error {
	target := root + m.target
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	if err := unix.Mount(m.source, target, m.kind, m.flags, m.options); err != nil {
		return fmt.Errorf("mount %s on %s: %w", m.kind, target, err)
	}
	return nil
}

func mountAll(root string, list []mount) error {
	for _, m := range list {
		if err := m.do(root); err != nil {
			return err
		}
	}
	return nil
}

// mountKernelTrees mounts the kernel file systems that every program expects.
func mountKernelTrees(root string) error {
	return mountAll(root, []mount{
		{"proc", "proc", "/proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"sysfs", "sysfs", "/sys", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"devtmpfs", "dev", "/dev", "mode=755", unix.MS_NOSUID},
	})
}

// ninep are the options of a 9p mount over virtio. The host's root does not
// change under the guest in any relevant way, so it is cached.
func ninep(readOnly bool) (options string, flags uintptr) {
	options = "trans=virtio,version=9p2000.L,msize=512000"
	if readOnly {
		return options + ",cache=loose", unix.MS_RDONLY
	}
	return options + ",cache=none", 0
}

// enterRoot makes the overlay and moves the whole process there. An initramfs
// cannot be pivoted away from, so it is mounted over.
func enterRoot(c Config) error {
	options, flags := ninep(true)
	layers := []mount{
		{"9p", c.Root, "/lower", options, flags},
		{"tmpfs", "tmpfs", "/upper", "mode=755", 0},
	}
	if err := mountAll("", layers); err != nil {
		return err
	}
	for _, dir := range []string{"/upper/data", "/upper/work"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	const root = "/root-of-guest"
	overlay := mount{"overlay", "overlay", root, "lowerdir=/lower,upperdir=/upper/data,workdir=/upper/work", 0}
	if err := overlay.do(""); err != nil {
		return err
	}
	if err := mountKernelTrees(root); err != nil {
		return err
	}
	if err := mountAll(root, []mount{
		{"devpts", "devpts", "/dev/pts", "mode=620,gid=5,ptmxmode=666", unix.MS_NOSUID | unix.MS_NOEXEC},
		{"tmpfs", "tmpfs", "/dev/shm", "mode=1777", unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "tmpfs", "/run", "mode=755", unix.MS_NOSUID | unix.MS_NODEV},
		{"cgroup2", "cgroup2", "/sys/fs/cgroup", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
	}); err != nil {
		return err
	}
	for _, m := range c.Mounts {
		if err := mountShare(root, m); err != nil {
			return err
		}
	}
	// DPDK and shells need these, and no udev makes them.
	for name, to := range map[string]string{"/dev/fd": "/proc/self/fd", "/dev/stdin": "/proc/self/fd/0", "/dev/stdout": "/proc/self/fd/1", "/dev/stderr": "/proc/self/fd/2"} {
		if err := os.Symlink(to, root+name); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if err := os.Chdir(root); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the root: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return fmt.Errorf("enter the root: %w", err)
	}
	return os.Chdir("/")
}

// mountShare mounts a host directory at its path. The path may contain symbolic
// links such as /lib, which the new root resolves.
func mountShare(root string, m Mount) error {
	path := m.Path
	if rest, below := strings.CutPrefix(path, "/lib/"); below {
		if to, err := os.Readlink(root + "/lib"); err == nil {
			path = filepath.Join("/", to, rest)
		}
	}
	options, flags := ninep(m.ReadOnly)
	return mount{"9p", m.Tag, path, options, flags}.do(root)
}
