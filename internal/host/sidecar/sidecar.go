// SPDX-License-Identifier: Apache-2.0

// Package sidecar runs helper processes of the host that carry links, such as a
// switch, each in a container of its own with the least that it needs.
package sidecar

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/oci"
	"github.com/drayage/dray/internal/host/step"
)

// Process is one process that carries a link. It runs as an ordinary user of the
// host, mapped to root in a user namespace of its own; in new mount, PID, IPC,
// UTS and control-group namespaces; under Docker's default seccomp profile; and
// sees of the host /usr, read-only, and Binds.
type Process struct {
	Name string // of the program, p.g. "dpdk-testpmd"; unique in Dir
	// Dir is on the host. It holds the container's root and bundle, and the log;
	// Steps make it.
	Dir string
	// Cgroup is that of the link. The engine and runc get children of it.
	Cgroup host.Cgroup
	// Owner decides which user of the host the process is: "chain/link".
	Owner string
	Args  []string // the program's path, below /usr, and its arguments
	Env   []string
	Binds []Bind
	// Files are the users of the host whose files among Binds the process may open
	// whatever their mode; their group must be GID.
	Files []int
	// Netns is the network namespace; nil: a new one, with nothing in it.
	Netns *host.Netns
	// Userns is the user namespace that owns Netns; empty: a new one, without a
	// capability but for Files.
	Userns string
	// Caps are capabilities over Netns, p.g. "CAP_NET_ADMIN".
	Caps    []string
	Devices []string // device nodes of the host, p.g. "/dev/net/tun"
	CPUs    []int    // nil: any
	Memory  uint64   // limit in bytes; 0: none
	// OpenSockets lets everybody connect to the sockets that the process makes who
	// gets to them.
	OpenSockets bool
	// HugePages lets the process place huge pages, by three system calls more.
	HugePages bool
}

// Bind is a file or directory of the host that a sidecar sees.
type Bind struct {
	Source, Target string // absolute
	Write          bool
}

// startTimeout bounds how long a process may take from its start to its first
// sign of readiness; a busy machine takes seconds.
const startTimeout = 60 * time.Second

// firstID opens the range of 2^24 host ids that sidecars run as. It ends where
// that of functions in user namespaces begins.
const firstID = 0x0f000000

// UID is the user and group of the host that a sidecar of that owner runs as.
func UID(owner string) int {
	h := fnv.New32a()
	h.Write([]byte(owner))
	return firstID + int(h.Sum32()&0xffffff)
}

// Log is where the process's output goes.
func (p Process) Log() string { return filepath.Join(p.Dir, p.Name+".log") }

func (p Process) root() string        { return filepath.Join(p.Dir, "root") }
func (p Process) bundle() string      { return filepath.Join(p.Dir, p.Name+".bundle") }
func (p Process) runcState() string   { return filepath.Join(p.Dir, "runc") }
func (p Process) group() host.Cgroup  { return p.Cgroup.Child(p.Name) }
func (p Process) helper() host.Cgroup { return p.Cgroup.Child("runc") }

func (p Process) container() oci.Container {
	return oci.Container{ID: p.Name, Bundle: p.bundle(), State: p.runcState()}
}

// runcPlace is where runc itself runs.
func (p Process) runcPlace() host.Place { return host.Place{Cgroup: p.helper()} }

// Probe reports whether this host can run sidecars, as an *host.Unsupported.
func Probe() error {
	if _, err := oci.Program(); err != nil {
		return err
	}
	return host.ProbeUserNetns(host.UserMapping{HostID: firstID, Size: 1})
}

// Steps make what Start needs. name makes a step's name of what it does.
func (p Process) Steps(name func(what string) string) []step.Step {
	return []step.Step{
		{
			Name:  name("create the directory of " + p.Name),
			Makes: []step.Resource{host.DirResource(p.Dir)},
			Do:    func(context.Context) error { return p.prepare() },
		},
		{
			Name: name("create the control group of " + p.Name),
			// The container's own is made by runc, and holds the process.
			Makes: []step.Resource{host.CgroupResource(p.helper()), host.CgroupResource(p.group())},
			Do:    func(context.Context) error { return p.helper().Create(host.Limits{}) },
		},
	}
}

// prepare makes the container's root: mount points, and the links of a system
// whose programs are all below /usr.
func (p Process) prepare() error {
	dirs := []string{"usr", "proc", "sys", "dev", "tmp", "run", "var", "etc"}
	for _, b := range p.Binds {
		dirs = append(dirs, b.Target)
	}
	if err := os.Mkdir(p.Dir, 0o711); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := os.MkdirAll(filepath.Join(p.root(), dir), 0o755); err != nil {
			return err
		}
	}
	if err := os.Mkdir(p.runcState(), 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(p.bundle(), 0o700); err != nil {
		return err
	}
	for link, target := range map[string]string{
		"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64", "var/run": "../run",
	} {
		if err := os.Symlink(target, filepath.Join(p.root(), link)); err != nil {
			return err
		}
	}
	return checkReachable(p.Dir)
}

// checkReachable makes sure that an ordinary user of the host can get to dir.
func checkReachable(dir string) error {
	for ; dir != "/"; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("a switch in a user namespace cannot enter %s: chmod o+x %s, or set DRAY_STATE to another directory", dir, dir)
		}
	}
	return nil
}

// Admit lets a sidecar of that owner connect to sockets that the directory's
// owner makes in it: they get the sidecar's group.
func Admit(dir, owner string) error {
	info, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if err := os.Chown(dir, -1, UID(owner)); err != nil {
		return err
	}
	return os.Chmod(dir, info.Mode().Perm()&0o700|0o050|os.ModeSetgid)
}

// Start starts the process in place of one that may have run before, and
// returns once it runs; see Await for whether it works.
func (p Process) Start(ctx context.Context) (host.ProcessID, error) {
	id, err := p.start(ctx)
	if err != nil {
		return id, fmt.Errorf("start %s: %w%s", p.Name, err, p.LastWords())
	}
	return id, nil
}

func (p Process) start(ctx context.Context) (host.ProcessID, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	if err := p.clear(ctx); err != nil {
		return host.ProcessID{}, err
	}
	if err := p.writeBundle(); err != nil {
		return host.ProcessID{}, err
	}
	log, err := os.OpenFile(p.Log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return host.ProcessID{}, err
	}
	defer log.Close()
	c := p.container()
	if err := c.Run(ctx, p.runcPlace(), log, "run", "--detach", "--bundle", c.Bundle, "--pid-file", c.PIDFile(), c.ID); err != nil {
		return host.ProcessID{}, err
	}
	id, err := host.Identify(c.PID())
	if err != nil {
		return host.ProcessID{}, errors.New("it ended at once")
	}
	return id, nil
}

// clear removes what an instance left that has ended, and kills one that has not.
func (p Process) clear(ctx context.Context) error {
	if err := p.group().Kill(ctx); err != nil {
		return err
	}
	return p.container().Delete(ctx, p.runcPlace())
}

// Await waits until ready returns true, and notices if the process ends first.
func (p Process) Await(ctx context.Context, id host.ProcessID, ready func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for !ready() {
		if !id.Alive() {
			return fmt.Errorf("%s has ended%s", p.Name, p.LastWords())
		}
		if err := host.Sleep(ctx, 10*time.Millisecond); err != nil {
			return fmt.Errorf("%s is not ready: %w%s", p.Name, err, p.LastWords())
		}
	}
	return nil
}

// Users are the host ids that the sidecar's user namespace knows, its own first:
// those of Userns too.
func (p Process) Users() []host.UserMapping {
	list := []host.UserMapping{{HostID: UID(p.Owner), Size: 1}}
	for _, u := range p.Files {
		if m := (host.UserMapping{HostID: u, Size: 1}); !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}
