// SPDX-License-Identifier: Apache-2.0

package transporttest

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/internal/link/transport"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/test/testenv"
)

// serving is the broker of a rig's native ports, run by this process.
type serving struct {
	stop  context.CancelFunc
	ended chan error
}

// startBroker returns once the broker answers.
func (r *Rig) startBroker() {
	r.t.Helper()
	r.Spec.Broker = filepath.Join(r.dir, "broker")
	ctx, stop := context.WithCancel(context.Background())
	s, ready := &serving{stop: stop, ended: make(chan error, 1)}, make(chan struct{})
	go func() {
		s.ended <- broker.Serve(ctx, broker.Options{Dir: r.Spec.Broker, Ready: func() { close(ready) }})
	}()
	select {
	case <-ready:
		r.broker = s
	case err := <-s.ended:
		r.t.Fatalf("broker: %v", err)
	}
}

func (r *Rig) stopBroker() {
	r.t.Helper()
	if r.broker == nil {
		return
	}
	r.broker.stop()
	if err := <-r.broker.ended; err != nil {
		r.t.Errorf("broker: %v", err)
	}
	r.broker = nil
}

// makeNative creates the directory that the end's function would have.
func (r *Rig) makeNative(e *transport.End, i int) {
	r.t.Helper()
	dir := filepath.Join(r.dir, fmt.Sprintf("f%d.ports", i))
	testenv.Must(r.t, os.Mkdir(dir, 0o755))
	e.Function, e.Face, e.Socket = fmt.Sprintf("f%d", i), chain.FaceNative, filepath.Join(dir, e.Name)
}

// describeSockets lists the existing port sockets, and the broker's links.
func (r *Rig) describeSockets(b *strings.Builder) {
	r.t.Helper()
	sockets, err := filepath.Glob(filepath.Join(r.dir, "*.ports", "*"))
	testenv.Must(r.t, err)
	for _, s := range sockets {
		fmt.Fprintf(b, "socket %s\n", s)
	}
	if r.broker == nil {
		return
	}
	client, err := broker.Dial(r.Spec.Broker)
	testenv.Must(r.t, err)
	links, err := client.Status(context.Background())
	testenv.Must(r.t, err)
	for _, l := range links {
		fmt.Fprintf(b, "broker serves %s %s\n", l.Name, l.Kind)
	}
}
