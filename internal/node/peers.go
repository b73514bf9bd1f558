// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/dpdk"
)

const (
	peerPatience = 30 * time.Second // for the other end's socket, which it makes when it runs
	// connectGrace is how long a command's first start may take to connect its
	// device. It doubles with each start that fails to.
	connectGrace = 3 * time.Second
	connectTries = 5
)

// peer is the other end of a DPDK device that connects to a socket only once, when
// it starts.
type peer struct {
	port, function string
	netns          host.Netns // where the peer listens
	own            host.Netns // of the function
	socket         string     // as the peer sees it
}

// peers are the peers of its devices.
func (l *Live) peers(f chain.Function) []peer {
	var list []peer
	for _, report := range l.State.Reports {
		for _, v := range report.Vdevs {
			if v.Function != f.Name || v.Awaits == "" {
				continue
			}
			for _, o := range report.Vdevs {
				if o.Dir == v.SocketDir() && o.Awaits == "" {
					list = append(list, l.peerOf(v, o))
				}
			}
		}
	}
	return list
}

func (l *Live) peerOf(v, other dpdk.Vdev) peer {
	p := peer{port: v.Port, function: other.Function, socket: filepath.Join(other.ReachedAt(), v.Awaits)}
	if f := l.Chain.Function(other.Function); f != nil && f.Runtime.Contained() {
		p.socket = filepath.Join(other.Inside(), v.Awaits)
	}
	if sandbox := l.State.Sandboxes[other.Function]; sandbox != nil {
		p.netns = sandbox.Netns
	}
	if sandbox := l.State.Sandboxes[v.Function]; sandbox != nil {
		p.own = sandbox.Netns
	}
	return p
}

// startsAfter are the functions whose sockets a function waits for over existing
// links, directly or indirectly.
func (l *Live) startsAfter(function string) []string {
	var all []string
	for next := []string{function}; len(next) > 0; next = next[1:] {
		for _, p := range l.peers(chain.Function{Name: next[0]}) {
			if !slices.Contains(all, p.function) {
				all = append(all, p.function)
				next = append(next, p.function)
			}
		}
	}
	return all
}

// awaitPeers waits until every peer listens.
func awaitPeers(ctx context.Context, peers []peer) error {
	deadline := time.Now().Add(peerPatience)
	for _, p := range peers {
		for {
			s, err := p.netns.UnixSocket(p.socket)
			if err != nil {
				return fmt.Errorf("port %s: %w", p.port, err)
			}
			if s.Listening {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("port %s: function %s, its other end, did not create its socket within %v: check with dray logs that its command runs", p.port, p.function, peerPatience)
			}
			if host.Sleep(ctx, s.Pause()) != nil {
				return ctx.Err()
			}
		}
	}
	return nil
}

// watchPeers returns why the command must restart: one of its devices is not
// connected, and never will be. It returns nil when ctx ends. early says that it
// never was: DPDK refuses a connection before the other end's device starts.
func watchPeers(ctx context.Context, peers []peer, grace time.Duration) (early bool, why error) {
	var connections []host.Connection
	for _, p := range peers {
		connections = append(connections, host.Connection{Netns: p.own, Path: p.socket})
	}
	switch i, early := host.WatchConnections(ctx, connections, grace); {
	case i < 0:
		return false, nil
	case early:
		return true, fmt.Errorf("port %s did not connect to %s within %v", peers[i].port, peers[i].function, grace)
	default:
		return false, fmt.Errorf("port %s lost %s, its other end, and its driver never reconnects", peers[i].port, peers[i].function)
	}
}

// watch returns why the command must restart, once its devices can no longer work; early
// says that they never did. It returns nil when ctx ends.
type watch func(ctx context.Context) (early bool, why error)

// watchAll is the watch of the other ends and of the processes of links.
func watchAll(peers []peer, grace time.Duration, carriers []carriedBy) watch {
	return func(ctx context.Context) (early bool, why error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		lost := make(chan error, 1)
		go func() {
			lost <- watchCarriers(ctx, carriers)
			cancel()
		}()
		early, why = watchPeers(ctx, peers, grace)
		cancel()
		if why == nil {
			why = <-lost
		}
		return early, why
	}
}

// attend waits until the command ends. It stops a command whose devices can no
// longer work; again reports that they never did. It does not wait for one that
// cannot be stopped.
func attend(ctx context.Context, instance runtime.Instance, devices watch) (code int, again bool, err error) {
	var why, failed error
	stop := func() {
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		failed = instance.Stop(grace)
	}
	watching, done := context.WithCancel(ctx)
	defer done()
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		if again, why = devices(watching); why != nil || ctx.Err() != nil {
			stop()
		}
	}()
	select {
	case <-instance.Done():
		done()
		<-watched
	case <-watched: // it has been stopped
		select {
		case <-instance.Done():
		default:
			if failed != nil {
				return 0, false, failed
			}
		}
	}
	code, err = instance.Wait() // it reports the end, whatever Stop did
	if why != nil && err == nil {
		err = why
	}
	return code, again, err
}
