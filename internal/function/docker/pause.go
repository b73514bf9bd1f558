// SPDX-License-Identifier: Apache-2.0

package docker

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/drayage/dray/internal/function/runtime"
)

// pausePath is the pause program's path in the pause container.
const pausePath = "/dray-pause"

// Pause holds its container's namespaces, as its first process, until it is
// signalled to end: `dray pause`.
func Pause() {
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGINT)
	<-end
}

// startPause starts the function's own image with only the pause program running,
// so no other image is needed.
func (r *Runtime) startPause(ctx context.Context, s runtime.Spec) error {
	program := r.PauseProgram
	if program == "" {
		own, err := os.Executable()
		if err != nil {
			return fmt.Errorf("find the pause program: %w", err)
		}
		program = own
	}
	mount, err := bindMount(runtime.Bind{Source: program, Target: pausePath})
	if err != nil {
		return fmt.Errorf("the pause program: %w: move the program elsewhere", err)
	}
	args := []string{
		"run", "--detach", "--pull", "never", "--name", pauseName(s), "--hostname", s.Function.Name,
		"--network", "none", "--ipc", "private", "--user", "65534:65534", "--entrypoint", pausePath,
	}
	parent, err := r.cgroupParent(ctx, pauseCgroup(s))
	if err != nil {
		return err
	}
	seccomp, err := seccompFlags(s)
	if err != nil {
		return fmt.Errorf("function %s: %w", s.Function.Name, err)
	}
	args = append(args, seccomp...)
	args = append(args, mount...)
	args = append(args, labels(s)...)
	args = append(args, confinement...)
	args = append(args, parent...)
	if err := r.create(s, append(args, s.Function.Image, "pause")...); err != nil {
		return fmt.Errorf("function %s: pause container: %w", s.Function.Name, err)
	}
	return nil
}
