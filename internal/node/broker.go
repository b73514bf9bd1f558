// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/host/step"
	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/plan"
)

const (
	brokerGroup  = "broker"         // leaf of the chain's cgroup tree
	brokerFolder = "broker"         // its state directory, in the chain's
	fileBroker   = "broker.json"    // which process it is
	brokerStart  = 30 * time.Second // how long it may take to answer
	// brokerBackoff bounds the pause before it is started again: without it, no function
	// of the chain can open a port or recover.
	brokerBackoff = time.Second
	// brokerEnv marks the broker's environment: a program without the sub-command
	// must not start itself endlessly.
	brokerEnv = "DRAY_DAEMON"
)

// Broker is the process that serves a chain's native ports. Traffic continues
// without it.
type Broker struct {
	Process  host.ProcessID `json:"process"`
	Since    time.Time      `json:"since"`
	Restarts int            `json:"restarts"`
}

// BrokerDir is the state directory of the chain's broker, for broker.Dial.
func (l *Live) BrokerDir() string { return l.node.BrokerDir(l.Chain.Name) }

// BrokerDir is the state directory of a chain's broker, even if it has none.
func (n *Node) BrokerDir(chainName string) string {
	return filepath.Join(n.dir(chainName), brokerFolder)
}

// PortDirs are the paths by which programs on the host reach native ports' sockets, by
// function.
func (l *Live) PortDirs() map[string]string {
	dirs := map[string]string{}
	for _, f := range l.Chain.Functions {
		if sandbox := l.State.Sandboxes[f.Name]; sandbox != nil && sandbox.Ports != "" {
			dirs[f.Name] = l.spec(f).PortsPath()
		}
	}
	return dirs
}

// BrokerLog is the log of the chain's broker. No function's log has the name.
func (l *Live) BrokerLog() string { return filepath.Join(l.dir, "log", "dray.broker.log") }

// Broker reads which process serves the chain's native ports; nil if there is none.
func (l *Live) Broker() (*Broker, error) {
	var b Broker
	err := readJSON(filepath.Join(l.dir, fileBroker), &b)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case host.IsDamaged(err):
		return l.findBroker(err)
	case err != nil:
		return nil, err
	}
	return &b, nil
}

// errNoBroker says that the file that names the broker is damaged, and no broker runs.
var errNoBroker = errors.New("no broker runs")

// findBroker is the broker by its control group, if the file that names it is damaged.
func (l *Live) findBroker(damage error) (*Broker, error) {
	pids, err := l.node.Cgroup(l.Chain.Name).Child(brokerGroup).Processes()
	if err != nil {
		return nil, err
	}
	if len(pids) == 0 {
		return nil, fmt.Errorf("%w, and %w", errNoBroker, damage)
	}
	id, err := host.Identify(pids[0])
	if host.Exited(err) {
		return nil, fmt.Errorf("%w, and %w", errNoBroker, damage)
	}
	return &Broker{Process: id, Since: time.Now()}, err
}

// needsBroker reports whether libdray opens a port of the chain.
func needsBroker(p *plan.Plan) bool {
	return slices.ContainsFunc(p.Links, hasBrokeredEnd)
}

func hasBrokeredEnd(l plan.Link) bool {
	return slices.ContainsFunc(l.Ends, plan.End.Brokered)
}

// createBroker starts the chain's broker, and restarts it as long as this process
// owns the chain.
func (l *Live) createBroker(ctx context.Context, runner *step.Runner) error {
	leaf := l.node.Cgroup(l.Chain.Name).Child(brokerGroup)
	err := runner.Run(ctx, []step.Step{{
		Name:  "chain " + l.Chain.Name + ": start broker",
		Makes: []step.Resource{host.DirResource(l.BrokerDir()), host.CgroupResource(leaf)},
		Do: func(ctx context.Context) error {
			if err := os.Mkdir(l.BrokerDir(), 0o700); err != nil {
				return err
			}
			if err := leaf.Create(host.Limits{}); err != nil {
				return err
			}
			return l.startBroker(ctx, 0)
		},
	}})
	if err == nil {
		l.broker.begin(l.restartBroker)
	}
	return err
}

// startBroker starts `program daemon CHAIN` detached, and waits until it answers.
func (l *Live) startBroker(ctx context.Context, restarts int) error {
	if os.Getenv(brokerEnv) != "" {
		return errors.New("this program was started as a broker, but does not run one: make its sub-command \"daemon\" call broker.Serve")
	}
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	leaf := l.node.Cgroup(l.Chain.Name).Child(brokerGroup)
	limit := leaf.LimitPacketOptions()
	cmd, err := l.detach(leaf, l.BrokerLog(), program, []string{"daemon", l.Chain.Name}, nil, brokerEnv+"=1")
	if err != nil {
		return fmt.Errorf("start broker: %w", err)
	}
	if limit != nil { // it serves all the same: runc and docker functions have seccomp
		_ = appendLine(l.BrokerLog(), "dray: external functions can make packet rings: "+limit.Error())
	}
	id, err := host.Identify(cmd.Process.Pid)
	died := make(chan error, 1)
	go func() { died <- cmd.Wait() }()
	if err == nil {
		err = writeJSON(filepath.Join(l.dir, fileBroker), Broker{Process: id, Since: time.Now(), Restarts: restarts})
	}
	if err != nil {
		_ = cmd.Process.Kill() // no process would know it
		return fmt.Errorf("start broker: %w: %s", err, tail(l.BrokerLog(), 5))
	}
	err = l.awaitBroker(ctx, died)
	if err != nil && ctx.Err() == nil {
		_ = cmd.Process.Kill() // it would block the next one
	}
	return err
}

// awaitBroker waits until the broker answers.
func (l *Live) awaitBroker(ctx context.Context, died <-chan error) error {
	ctx, cancel := context.WithTimeout(ctx, brokerStart)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		_, err := broker.Dial(l.BrokerDir())
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w: %s", ctx.Err(), err, tail(l.BrokerLog(), 5))
		case err := <-died:
			return fmt.Errorf("the broker ended (%v): %s", err, tail(l.BrokerLog(), 5))
		case <-tick.C:
		}
	}
}

// restartBroker restarts the chain's broker whenever it ends, until ctx ends. That
// leaves the broker running.
func (l *Live) restartBroker(ctx context.Context) {
	backoff := firstBackoff
	for {
		b, err := l.Broker()
		switch {
		case errors.Is(err, errNoBroker):
			b = &Broker{}
		case err != nil: // it may run
			if host.Sleep(ctx, longestBackoff) != nil {
				return
			}
			continue
		case b == nil:
			return // it is removed, or there is none
		}
		if err := b.Process.AwaitEnd(ctx); err != nil {
			if host.Sleep(ctx, longestBackoff) != nil { // no free descriptor, say
				return
			}
			continue
		}
		if time.Since(b.Since) > healthyAfter {
			backoff = firstBackoff
		}
		for restarts := b.Restarts + 1; ; restarts++ {
			// Restart at once the first time: until then none can attach.
			err := l.startBroker(ctx, restarts)
			if err == nil {
				break
			}
			_ = appendLine(l.BrokerLog(), "dray: restart the broker: "+err.Error())
			if host.Sleep(ctx, backoff) != nil {
				return
			}
			backoff = min(2*backoff, brokerBackoff)
		}
		if host.Sleep(ctx, backoff) != nil {
			return
		}
		backoff = min(2*backoff, brokerBackoff)
	}
}

func appendLine(path, line string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, line)
	return errors.Join(err, f.Close())
}
