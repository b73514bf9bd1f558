// SPDX-License-Identifier: Apache-2.0

// Package docker runs a function as a Docker container. Drayage's own pause
// container holds the network namespace, so that ports are plumbed before the
// function starts and survive its restarts; the function joins it.
//
// Nothing runs privileged: no capability, no new privileges, Drayage's own seccomp
// profile, a read-only root with tmpfs for writes. Docker shows the whole
// host in /proc/cpuinfo and /sys, but the cpuset still applies.
//
// Instruments run in Drayage's own cgroup of the function, even if systemd places
// the container elsewhere: Drayage must be able to kill that cgroup.
package docker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/drayage/dray/internal/function/child"
	"github.com/drayage/dray/internal/function/dockercli"
	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Options selects the daemon and the pause program.
type Options struct {
	Client dockercli.Client
	// PauseProgram is a static program that calls Pause if its argument is "pause".
	// Empty: the running program, as `dray` is one.
	PauseProgram string
}

// Runtime is the docker runtime.
type Runtime struct {
	Options

	mu     sync.Mutex
	driver string // the daemon's cgroup driver, once known
}

// New returns the docker runtime.
func New(o Options) *Runtime { return &Runtime{Options: o} }

// Name implements runtime.Runtime.
func (*Runtime) Name() chain.RuntimeName { return chain.RuntimeDocker }

// Probe implements runtime.Runtime: the daemon answers.
func (r *Runtime) Probe(ctx context.Context) inventory.Item {
	version, err := r.Client.Output(ctx, "version", "--format", "{{.Server.Version}}")
	if err == nil && r.lacksAppArmor(ctx) {
		err = &host.Unsupported{What: "docker", Why: "docker needs apparmor_parser to load its AppArmor profile", Fix: "apt-get install apparmor"}
	}
	item := r.item(err, os.Geteuid())
	item.Version = version
	return item
}

// item is what the daemon's answer means, to a user of that id: only root may be sure to be let in.
func (r *Runtime) item(err error, uid int) inventory.Item {
	var failed *dockercli.Error
	switch {
	case errors.As(err, &failed) && failed.NoDaemon():
		err = &host.Unsupported{
			What: "docker", Why: "no docker daemon responds at " + r.Client.Host, Fix: "apt-get install docker.io && systemctl start docker, or set DOCKER_HOST",
		}
	case errors.Is(err, host.ErrUnsupported), errors.Is(err, context.DeadlineExceeded):
	case failed != nil && uid != 0:
		return inventory.NotTried(string(chain.RuntimeDocker))
	}
	return host.ProbeItem(string(chain.RuntimeDocker), err)
}

// lacksAppArmor reports whether the daemon refuses every container: it wants an
// AppArmor profile, and the program that loads one is not installed.
func (r *Runtime) lacksAppArmor(ctx context.Context) bool {
	options, err := r.Client.Output(ctx, "info", "--format", "{{.SecurityOptions}}")
	if err != nil || !strings.Contains(options, "name=apparmor") {
		return false
	}
	_, err = host.LookProgram("apparmor_parser")
	return errors.Is(err, exec.ErrNotFound)
}

// KindContainer is all containers at one daemon (Host) with the label of one
// function's cgroup (Path).
const KindContainer step.Kind = "docker-container"

// labelCgroup marks a function's containers with its cgroup, which is unique on
// the host; unrelated containers of the same name lack it.
const labelCgroup = "dray.cgroup"

func (r *Runtime) resource(s runtime.Spec) step.Resource {
	return step.Resource{Kind: KindContainer, Name: containerName(s), Path: s.Cgroup.Path, Host: r.Client.Host}
}

// Removers implements runtime.Runtime.
func (*Runtime) Removers() step.Removers { return step.Removers{KindContainer: removeContainers} }

func removeContainers(ctx context.Context, res step.Resource) error {
	client := dockercli.Client{Host: res.Host}
	if client.SocketGone() {
		return nil // the daemon is gone, and its containers are killed with the cgroup
	}
	if err := awaitCreation(ctx, host.Cgroup{Path: res.Path}); err != nil {
		return err
	}
	return removeLabelled(ctx, client, host.Cgroup{Path: res.Path})
}

// Find implements runtime.Finder: each container names the function's control group.
func (r *Runtime) Find(ctx context.Context, chain host.Cgroup) ([]step.Resource, error) {
	if r.Client.SocketGone() {
		return nil, nil // as for removeContainers
	}
	out, err := r.Client.Output(ctx, "ps", "--all", "--filter", "label="+labelCgroup, "--format", `{{.Label "`+labelCgroup+`"}}`)
	if errors.As(err, new(*host.Unsupported)) {
		return nil, nil // without the client dray has made none
	}
	paths := strings.Split(out, "\n")
	slices.Sort(paths)
	var found []step.Resource
	for _, path := range slices.Compact(paths) {
		if strings.HasPrefix(path, chain.Path+"/") {
			found = append(found, step.Resource{Kind: KindContainer, Path: path, Host: r.Client.Host})
		}
	}
	return found, err
}

// removeLabelled removes the function's containers that match the filters.
func removeLabelled(ctx context.Context, client dockercli.Client, function host.Cgroup, filters ...string) error {
	args := []string{"ps", "--all", "--quiet", "--no-trunc", "--filter", "label=" + labelCgroup + "=" + function.Path}
	for _, filter := range filters {
		args = append(args, "--filter", filter)
	}
	out, err := client.Output(ctx, args...)
	if err != nil {
		return err
	}
	for _, id := range strings.Fields(out) {
		var failed *dockercli.Error
		_, err := client.Output(ctx, "rm", "--force", "--volumes", id)
		if errors.As(err, &failed) && (failed.NotFound() || strings.Contains(failed.Stderr, "already in progress")) {
			continue
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitCreation waits for clients that are still creating a container: a killed
// `dray` leaves them behind, and their containers appear later.
func awaitCreation(ctx context.Context, function host.Cgroup) error {
	limited, cancel := context.WithTimeout(ctx, creationLimit)
	defer cancel()
	clients := createCgroup(runtime.Spec{Cgroup: function})
	for {
		pids, err := clients.Processes()
		if err != nil || len(pids) == 0 {
			return err
		}
		if host.Sleep(limited, 20*time.Millisecond) == nil {
			continue
		}
		if ctx.Err() != nil {
			return fmt.Errorf("docker clients %v have not finished creating a container: %w", pids, ctx.Err())
		}
		return child.KillCgroup(clients) // as create does
	}
}

func containerName(s runtime.Spec) string { return "dray-" + s.Chain + "-" + s.Function.Name }
func pauseName(s runtime.Spec) string     { return containerName(s) + "-pause" }

// clientCgroup holds docker clients that stay with a container, createCgroup
// clients that create one, pauseCgroup the pause container. All are leaves, as
// cgroup v2 requires for processes.
func clientCgroup(s runtime.Spec) host.Cgroup { return s.EngineCgroup().Child("client") }
func createCgroup(s runtime.Spec) host.Cgroup { return s.EngineCgroup().Child("create") }
func pauseCgroup(s runtime.Spec) host.Cgroup  { return s.EngineCgroup().Child("pause") }

// Sandbox implements runtime.Runtime.
func (r *Runtime) Sandbox(s runtime.Spec) (*runtime.SandboxBuild, error) {
	if s.Function.Image == "" {
		return nil, fmt.Errorf("function %s: runtime docker needs an image", s.Function.Name)
	}
	sandbox := &runtime.Sandbox{}
	named := func(what string) string { return s.Function.Name + ": " + what }
	steps := []step.Step{
		{
			Name: named("find image"),
			Do:   func(ctx context.Context) error { return r.findImage(ctx, s) },
		},
		{
			Name:  named("create cgroup"),
			Makes: append([]step.Resource{host.CgroupResource(s.EngineCgroup())}, s.CgroupResources()...),
			Do: func(context.Context) error {
				sandbox.Tools = s.ToolsCgroup()
				for _, c := range []host.Cgroup{clientCgroup(s), createCgroup(s), pauseCgroup(s)} {
					if err := c.Create(host.Limits{}); err != nil {
						return err
					}
				}
				return s.CreateCgroups(s.ToolsCgroup())
			},
		},
		{
			Name:  named("start pause container"),
			Makes: []step.Resource{host.DirResource(seccompFile(s)), r.resource(s)},
			Do:    func(ctx context.Context) error { return r.startPause(ctx, s) },
		},
		{
			Name:  named("pin network namespace"),
			Makes: []step.Resource{host.NamespaceResource(s.Netns().Path)},
			Do: func(ctx context.Context) error {
				pid, err := r.Client.PID(ctx, pauseName(s))
				if err != nil {
					return fmt.Errorf("function %s: %w", s.Function.Name, err)
				}
				sandbox.Netns = s.Netns()
				return host.PinNetns("/proc/"+strconv.Itoa(pid)+"/ns/net", s.Netns().Path)
			},
		},
	}
	// The pause container, of the same image, shows how users are mapped, and where the
	// daemon looks for what containers are to see: it may have mounts of its own.
	user := func(ctx context.Context) (int, error) { return r.commandUser(ctx, s) }
	show := func(ctx context.Context, dir string) error {
		pid, err := r.Client.PID(ctx, pauseName(s))
		if err != nil {
			return fmt.Errorf("function %s: %w", s.Function.Name, err)
		}
		return host.ShowMount(dir, pid)
	}
	steps = append(steps, s.PortsSteps(sandbox, user, show)...)
	steps = append(steps, s.TunSteps(user)...)
	return &runtime.SandboxBuild{Sandbox: sandbox, Steps: steps}, nil
}

// ImageError is an image that the daemon does not have. Drayage pulls none: a
// run must not depend on a registry.
type ImageError struct{ Function, Image string }

func (e *ImageError) Error() string {
	return fmt.Sprintf("function %s: docker has no image %s: docker pull %s", e.Function, e.Image, e.Image)
}

func (r *Runtime) findImage(ctx context.Context, s runtime.Spec) error {
	has, err := r.HasImage(ctx, s.Function.Image)
	if err == nil && !has {
		return &ImageError{Function: s.Function.Name, Image: s.Function.Image}
	}
	return err
}

// HasImage implements runtime.ImageKeeper.
func (r *Runtime) HasImage(ctx context.Context, image string) (bool, error) {
	_, err := r.Client.Output(ctx, "image", "inspect", "--format", "{{.Id}}", "--", image)
	var failed *dockercli.Error
	if errors.As(err, &failed) && failed.NotFound() {
		return false, nil
	}
	return err == nil, err
}

// ImageSize implements runtime.ImageKeeper.
func (r *Runtime) ImageSize(ctx context.Context, image string) (int64, error) {
	size, err := r.Client.Output(ctx, "image", "inspect", "--format", "{{.Size}}", "--", image)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(size, 10, 64)
}

// Check implements runtime.Checker: without its pause container a function cannot
// restart.
func (r *Runtime) Check(ctx context.Context, s runtime.Spec) error {
	_, err := r.Client.PID(ctx, pauseName(s))
	if dockercli.Ended(err) {
		return &runtime.GoneError{Err: fmt.Errorf("function %s lost its network namespace: %w", s.Function.Name, err)}
	}
	return err
}
