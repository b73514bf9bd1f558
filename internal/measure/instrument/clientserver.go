// SPDX-License-Identifier: Apache-2.0

package instrument

import (
	"context"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// listenTimeout bounds how long a server may take to listen.
	listenTimeout = 10 * time.Second
	// lingerTimeout is how long a server may take to end by itself before it is interrupted.
	lingerTimeout = 2 * time.Second
	// hangTimeout bounds what only a program that hangs does not do in time: on a busy machine,
	// or an emulated one, a program has no CPU for many seconds.
	hangTimeout = 30 * time.Second
	// connectTimeout is how long a TCP client tries to reach its server.
	connectTimeout = 20 * time.Second
	// slack is added to the planned duration to get a client's time-out.
	slack = 10 * time.Second
)

// clientServer is a server at one endpoint and a client at the other.
type clientServer struct {
	from, to Endpoint
	client   []string
	server   []string // none: the client's peer is the kernel
	listen   socket   // where the server listens
	// ready reports whether a server that announces readiness can be used; nil: check
	// that it listens.
	ready func(*program) bool
	// serverEnds means that the server ends by itself after one client, having
	// printed the result; it is waited for. Other servers are killed.
	serverEnds bool
	linger     time.Duration // how long to wait for it; 0: lingerTimeout
	patience   time.Duration // until the server is ready; 0: listenTimeout
	timeout    time.Duration // of the client
	extra      []*os.File    // passed to the client
	// opened reports whether a client that must start first has opened its port. Once
	// the server is ready too, closing the client's standard input lets it continue.
	// nil: the server starts first.
	opened func(*program) bool
	// together says that such a client need not start first: it and the server start at once.
	together bool
	// holds is called when both have opened their ports; then such a client is let go. nil: nothing.
	holds func(context.Context) error
}

// outcome is the output of both programs.
type outcome struct {
	client, server []byte
	start          time.Time
	duration       time.Duration
}

// startServer starts the server and returns once it listens.
func (s clientServer) startServer(ctx context.Context) (*program, error) {
	server, err := launch(s.to, s.server)
	if err != nil {
		return nil, err
	}
	ready := s.ready
	if ready == nil {
		ready = s.listen.open
	}
	if err := await(ctx, server, ready, s.limit()); err != nil {
		server.kill()
		return nil, err
	}
	return server, nil
}

// limit is how long a program may take to be ready.
func (s clientServer) limit() time.Duration {
	if s.patience == 0 {
		return listenTimeout
	}
	return s.patience
}

// start starts both programs, and returns when the client was let go. On error
// neither runs.
func (s clientServer) start(ctx context.Context) (client, server *program, began time.Time, err error) {
	defer func() {
		if err != nil {
			client.kill()
			server.kill()
		}
	}()
	letGo := func() error { return nil }
	if s.opened != nil {
		if client, letGo, err = launchHeld(s.from, s.client); err != nil {
			return client, server, began, err
		}
	}
	if s.opened != nil && !s.together {
		err = await(ctx, client, s.opened, s.limit())
	}
	if err == nil && len(s.server) > 0 {
		server, err = s.startServer(ctx)
	}
	if err == nil && s.together {
		err = await(ctx, client, s.opened, s.limit())
	}
	if err == nil && s.holds != nil {
		err = s.holds(ctx)
	}
	if err != nil {
		return client, server, began, err
	}
	began = time.Now()
	if client == nil {
		client, err = launch(s.from, s.client, s.extra...)
	} else {
		err = letGo()
	}
	return client, server, began, err
}

// run runs both programs to the end. When it returns, both have been
// reaped.
func (s clientServer) run(ctx context.Context) (outcome, error) {
	client, server, began, err := s.start(ctx)
	o := outcome{start: began}
	if err != nil {
		return o, err
	}
	defer server.kill()
	defer client.kill()
	err = s.watch(ctx, client, server)
	o.duration = time.Since(o.start)
	if err == nil && s.serverEnds {
		s.endServer(server)
	}
	client.kill()
	o.client = append(client.out.bytes(), client.errOut.bytes()...)
	if server != nil {
		server.kill()
		o.server = append(server.out.bytes(), server.errOut.bytes()...)
	}
	if err == nil && (client.out.truncated() || server != nil && server.out.truncated()) {
		err = fmt.Errorf("%s printed over %d bytes", client.name, maxOutput)
	}
	return o, err
}

// endServer lets the server finish; if it missed its client's end, an interrupt
// makes it print its report.
func (s clientServer) endServer(server *program) {
	linger := s.linger
	if linger == 0 {
		linger = lingerTimeout
	}
	if !server.within(linger) {
		server.signal(unix.SIGINT)
		server.within(hangTimeout)
	}
}

// watch waits for the client's end. A dead server, the time-out and the context
// end the wait with an error.
func (s clientServer) watch(ctx context.Context, client, server *program) error {
	timeout := time.NewTimer(s.timeout)
	defer timeout.Stop()
	var serverDone <-chan struct{}
	if server != nil {
		serverDone = server.finished
	}
	select {
	case <-client.finished:
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", client.name, ctx.Err())
	case <-timeout.C:
		return fmt.Errorf("%s from %s to %s did not end within %v%s", client.name, s.from.Name, s.to.Name, s.timeout, client.complaint())
	case <-serverDone:
		// The client may have no CPU to end; if it continues, it has lost its peer.
		if server.err != nil || !client.within(hangTimeout) {
			return fmt.Errorf("the %s server in %s ended during the trial (%v): %q", server.name, s.to.Name, server.err, server.words())
		}
	}
	if client.err != nil {
		return fmt.Errorf("%s from %s to %s: %w: %q", client.name, s.from.Name, s.to.Name, client.err, client.words())
	}
	return nil
}
