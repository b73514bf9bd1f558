// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// LogKeeperCommand is the sub-command of a supervisor's log keeper. It calls
// KeepOutput; its arguments are chain and functions.
const LogKeeperCommand = "keep-output"

// firstOutput is the log keeper's descriptor of the first function's output.
const firstOutput = 3

// Outlive keeps the functions' logs going if this process is killed. A log keeper,
// `program keep-output CHAIN FUNCTION…`, shares the pipes and then reads on. Call
// it before Run.
func (s *Supervisor) Outlive(program string) { s.keeper = program }

// keepLogKeeper keeps a log keeper running until ctx ends, then ends it.
func (s *Supervisor) keepLogKeeper(ctx context.Context) {
	for backoff := firstBackoff; ; backoff = min(2*backoff, longestBackoff) {
		if err := s.runLogKeeper(ctx); err != nil {
			fmt.Fprintln(os.Stderr, "dray: who keeps the functions' output:", err)
		}
		if host.Sleep(ctx, backoff) != nil {
			return
		}
	}
}

// runLogKeeper starts the log keeper and waits for its end, or kills it when ctx ends.
func (s *Supervisor) runLogKeeper(ctx context.Context) error {
	if len(s.outputs) == 0 {
		<-ctx.Done()
		return nil
	}
	cmd, err := s.startLogKeeper()
	if err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		return fmt.Errorf("it ended: %v", err)
	case <-ctx.Done():
	}
	_ = cmd.Process.Kill()
	<-ended
	return nil
}

// startLogKeeper starts it with duplicates of the outputs' reading ends.
func (s *Supervisor) startLogKeeper() (*exec.Cmd, error) {
	args := []string{LogKeeperCommand, s.live.Chain.Name}
	var files []*os.File
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	for _, name := range slices.Sorted(maps.Keys(s.outputs)) {
		file, err := s.outputs[name].read.Duplicate()
		if err != nil {
			return nil, err
		}
		args, files = append(args, name), append(files, file)
	}
	leaf := s.live.node.Cgroup(s.live.Chain.Name).Child(supervisorGroup)
	return s.live.detach(leaf, s.live.SupervisorLog(), s.keeper, args, files)
}

// KeepOutput is the log keeper: after the chain's supervisor ends, it copies the
// functions' output, from descriptor 3 on, to their logs, until all writers have
// ended.
func (n *Node) KeepOutput(ctx context.Context, chainName string, functions []string) error {
	var outputs []*output
	for i := range functions {
		// First, before anything else uses the number.
		if err := unix.Fstat(firstOutput+i, new(unix.Stat_t)); err != nil {
			return fmt.Errorf("this is an internal part of dray's supervisor, not for use by hand: no output of function %s: %w", functions[i], err)
		}
	}
	for i := range functions {
		o, err := readOutput(firstOutput+i, realClock)
		if err != nil {
			return err
		}
		outputs = append(outputs, o)
	}
	l := &Live{dir: n.dir(chainName)}
	s, err := l.published()
	if err != nil {
		return err
	}
	if err := awaitEnd(ctx, s.Supervisor); err != nil {
		return err
	}
	var wg sync.WaitGroup
	for i, o := range outputs {
		o.log = logger(l.LogFile(functions[i]))
		wg.Add(1)
		go func() {
			defer wg.Done()
			o.copy()
		}()
	}
	wg.Wait()
	return nil
}

// awaitEnd waits until a process ends, even if it cannot be watched.
func awaitEnd(ctx context.Context, id host.ProcessID) error {
	for id.AwaitEnd(ctx) != nil {
		if host.Sleep(ctx, longestBackoff) != nil {
			return ctx.Err()
		}
	}
	return nil
}
