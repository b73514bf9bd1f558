// SPDX-License-Identifier: Apache-2.0

package runc

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
)

// Sandbox implements runtime.Runtime.
func (*Runtime) Sandbox(s runtime.Spec) (*runtime.SandboxBuild, error) {
	source, err := rootSource(s)
	if err != nil {
		return nil, err
	}
	l := layout{dir: s.Dir}
	sandbox := &runtime.Sandbox{}
	named := func(what string) string { return s.Function.Name + ": " + what }
	steps := []step.Step{
		{
			Name:  named("claim user ids"),
			Makes: []step.Resource{host.DirResource(l.userRange())},
			Do: func(ctx context.Context) error {
				_, err := claimUserRange(ctx, l, s.Chain+"/"+s.Function.Name)
				return err
			},
		},
		{
			Name:  named("create user and network namespace"),
			Makes: []step.Resource{host.NamespaceResource(l.user()), host.NamespaceResource(l.net().Path)},
			Do: func(context.Context) error {
				m, err := readUserRange(l.userRange())
				if err != nil {
					return err
				}
				sandbox.Netns = l.net()
				return host.CreateUserNetns(l.user(), l.net().Path, m)
			},
		},
		{
			Name:  named("bind root file system"),
			Makes: []step.Resource{host.DirResource(l.root()), host.MountResource(l.root())},
			Do: func(context.Context) error {
				if err := host.CheckReachable(l.dir, "functions in user namespaces"); err != nil {
					return err
				}
				if err := host.MakeDirs(l.root(), 0o755); err != nil {
					return err
				}
				return host.BindReadOnly(source, l.root())
			},
		},
	}
	steps = append(steps, s.PortsSteps(sandbox, l.commandUser, runtime.HostMounts)...)
	steps = append(steps, s.TunSteps(l.commandUser)...)
	if len(s.CPUs) > 0 {
		steps = append(steps, step.Step{
			Name:  named("copy the kernel's view of the granted CPUs"),
			Makes: []step.Resource{host.DirResource(l.cpus())},
			Do:    func(context.Context) error { return cpuView{dir: l.cpus(), cpus: s.CPUs}.prepare() },
		})
	}
	return &runtime.SandboxBuild{Sandbox: sandbox, Steps: append(steps,
		step.Step{
			Name:  named("create runc directories"),
			Makes: []step.Resource{host.DirResource(l.bundles()), host.DirResource(l.state())},
			Do: func(context.Context) error {
				for _, dir := range []string{l.bundles(), l.state()} {
					if err := os.Mkdir(dir, 0o700); err != nil {
						return err
					}
				}
				return nil
			},
		},
		// Last, so removed first: its removal kills everything in the sandbox.
		step.Step{
			Name:  named("create cgroup"),
			Makes: append([]step.Resource{host.CgroupResource(s.EngineCgroup())}, s.CgroupResources()...),
			Do: func(context.Context) error {
				sandbox.Tools = s.ToolsCgroup()
				return createCgroups(s)
			},
		},
	)}, nil
}

// commandUser is the host uid of the function's root.
func (l layout) commandUser(context.Context) (int, error) {
	m, err := readUserRange(l.userRange())
	return m.HostID, err
}

func createCgroups(s runtime.Spec) error {
	if err := s.EngineCgroup().Create(host.Limits{}); err != nil {
		return err
	}
	children := []host.Cgroup{s.ToolsCgroup()} // runc makes "run"
	if len(s.Function.HugePages) > 0 {
		children = append(children, hugePagesCgroup(s))
	}
	return s.CreateCgroups(children...)
}

// hugePagesCgroup holds the function's processes in a hierarchy that runc
// ignores.
func hugePagesCgroup(s runtime.Spec) host.Cgroup { return s.Cgroup.Child("huge") }

// enginePlace is where runc is started.
func enginePlace(s runtime.Spec) host.Place {
	place := host.Place{Cgroup: s.EngineCgroup()}
	if len(s.Function.HugePages) > 0 {
		place.HugePages = hugePagesCgroup(s)
	}
	return place
}

// rootSource is the directory that the function sees as its root.
func rootSource(s runtime.Spec) (string, error) {
	if s.Function.Rootfs == "" {
		return "/", nil
	}
	dirs, need := []string{"", "proc", "sys", "dev"}, "proc, sys and dev"
	if s.HasPortSockets() {
		dirs, need = append(dirs, "run"), need+", and run for native and dpdk ports"
	}
	for _, dir := range dirs {
		path := filepath.Join(s.Function.Rootfs, dir)
		if info, err := os.Lstat(path); err != nil || !info.IsDir() {
			return "", fmt.Errorf("function %s: rootfs %s: %s is not a directory: a root file system needs (empty) %s", s.Function.Name, s.Function.Rootfs, path, need)
		}
	}
	return s.Function.Rootfs, nil
}
