// SPDX-License-Identifier: Apache-2.0

// Package sidecar runs host helper processes that carry links, such as a switch.
// Each runs in its own container with minimal privileges.
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

// Process is one process that carries a link. It runs as an ordinary host user,
// mapped to root in its own user namespace; in new mount, PID, IPC, UTS and
// control-group namespaces; under Docker's default seccomp profile. Of the host's
// files it sees only /usr, read-only, and Binds.
type Process struct {
	Name string // of the program, e.g. "dpdk-testpmd"; unique in Dir
	// Dir is on the host. It holds the container's root, bundle and log; Steps make
	// it.
	Dir string
	// Cgroup is the link's. The engine and runc get children of it.
	Cgroup host.Cgroup
	// Owner determines the process's host user: "chain/link".
	Owner string
	Args  []string // the program's path, below /usr, and its arguments
	Env   []string
	Binds []Bind
	// Files are host users. The process may open their files among Binds whatever
	// the mode; the files' group must be GID.
	Files []int
	// Netns is the network namespace; nil: a new, empty one.
	Netns *host.Netns
	// Userns is the user namespace that owns Netns; empty: a new one, whose only
	// capability is for Files.
	Userns string
	// Caps are capabilities over Netns, e.g. "CAP_NET_ADMIN".
	Caps    []string
	Devices []string // device nodes of the host, e.g. "/dev/net/tun"
	CPUs    []int    // nil: any
	Memory  uint64   // limit in bytes; 0: none
	// HugePages permits three more system calls, to place huge pages.
	HugePages bool
}

// Bind is a file or directory of the host that a sidecar sees.
type Bind struct {
	Source, Target string // absolute
	Write          bool
}

// startTimeout bounds the time from a process's start to its first sign of
// readiness; a busy machine takes seconds.
const startTimeout = 60 * time.Second

// firstID is the first of 2^24 host ids that sidecars run as. The range of
// functions in user namespaces follows it.
const firstID = 0x0f000000

// UID is the host user and group of that owner's sidecars.
func UID(owner string) int {
	h := fnv.New32a()
	h.Write([]byte(owner))
	return firstID + int(h.Sum32()&0xffffff)
}

// Log is where the process's output goes: a link to a file in logs.
func (p Process) Log() string { return filepath.Join(p.Dir, p.Name+".log") }

// logs is a small file system in memory: an end of the link can make the process print
// without end, and the supervisor, which shortens the log, may have ended.
func (p Process) logs() string { return filepath.Join(p.Dir, "log") }

// logsSize is enough for a log and what is written until it is shortened, in bytes.
const logsSize = 32 << 20

func (p Process) root() string        { return filepath.Join(p.Dir, "root") }
func (p Process) bundle() string      { return filepath.Join(p.Dir, p.Name+".bundle") }
func (p Process) runcState() string   { return filepath.Join(p.Dir, "runc") }
func (p Process) group() host.Cgroup  { return p.Cgroup.Child(p.Name) }
func (p Process) helper() host.Cgroup { return p.Cgroup.Child("runc") }

func (p Process) container() oci.Container {
	return oci.Container{ID: p.Name, Bundle: p.bundle(), State: p.runcState()}
}

// Beside is where helper programs of the process run, such as runc.
func (p Process) Beside() host.Place { return host.Place{Cgroup: p.helper()} }

// Probe reports whether this host can run sidecars, as an *host.Unsupported.
func Probe() error {
	if _, err := oci.Program(); err != nil {
		return err
	}
	return host.ProbeUserNetns(host.UserMapping{HostID: firstID, Size: 1})
}

// Steps make what Start needs. name turns an action into a step name.
func (p Process) Steps(name func(what string) string) []step.Step {
	return []step.Step{
		{
			Name:  name("create the directory of " + p.Name),
			Makes: []step.Resource{host.DirResource(p.Dir), host.MountResource(p.logs())},
			Do:    func(context.Context) error { return p.prepare() },
		},
		{
			Name: name("create the control group of " + p.Name),
			// runc makes the container's own, which holds the process.
			Makes: []step.Resource{host.CgroupResource(p.helper()), host.CgroupResource(p.group())},
			Do:    func(context.Context) error { return p.helper().Create(host.Limits{}) },
		},
	}
}

// prepare makes the container's root: mount points, and the links of a system with
// all programs below /usr.
func (p Process) prepare() error {
	dirs := []string{"usr", "proc", "sys", "dev", "tmp", "run", "var", "etc"}
	for _, b := range p.Binds {
		dirs = append(dirs, b.Target)
	}
	if err := host.MakeDir(p.Dir, 0o711); err != nil {
		return err
	}
	if err := os.Mkdir(p.logs(), 0o700); err != nil {
		return err
	}
	if err := host.MountLogs(p.logs(), logsSize); err != nil {
		return err
	}
	if err := os.Symlink(filepath.Join("log", filepath.Base(p.Log())), p.Log()); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := host.MakeDirs(filepath.Join(p.root(), dir), 0o755); err != nil {
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
	return host.CheckReachable(p.Dir, "a switch in a user namespace")
}

// Admit lets that owner's sidecar connect to sockets that the directory's owner
// makes in it: they get the sidecar's group.
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

// Start starts the process, replaces an earlier instance, and returns when it runs;
// Await checks that it works.
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
	if err := c.Run(ctx, p.Beside(), log, "run", "--detach", "--bundle", c.Bundle, "--pid-file", c.PIDFile(), c.ID); err != nil {
		return host.ProcessID{}, err
	}
	id, err := host.Identify(c.PID())
	if err != nil {
		return host.ProcessID{}, errors.New("it ended at once")
	}
	return id, nil
}

// clear removes what an ended instance left, and kills a running one.
func (p Process) clear(ctx context.Context) error {
	if err := p.group().Kill(ctx); err != nil {
		return err
	}
	return p.container().Delete(ctx, p.Beside())
}

// Await waits until ready returns true; it fails if the process ends first.
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

// Users are the host ids in the sidecar's user namespace, its own first, then those
// of Userns.
func (p Process) Users() []host.UserMapping {
	list := []host.UserMapping{{HostID: UID(p.Owner), Size: 1}}
	for _, u := range p.Files {
		if m := (host.UserMapping{HostID: u, Size: 1}); !slices.Contains(list, m) {
			list = append(list, m)
		}
	}
	return list
}
