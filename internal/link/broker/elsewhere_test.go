// SPDX-License-Identifier: Apache-2.0

package broker_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/drayage/dray/internal/link/broker"
	"github.com/drayage/dray/test/testenv"
)

// without is the link with one of its ports on another host.
func without(l broker.Link, side int) broker.Link {
	l.Ends = append([]broker.End{}, l.Ends...)
	e := &l.Ends[side]
	e.Socket, e.Owner, e.Netns, e.Interface = "", 0, "", ""
	return l
}

// A port waits for its peer to come to this host, and again after the peer
// has left. Its application runs on.
func TestAPeerComesAndGoes(t *testing.T) {
	s := newFixture(t)
	c, b := s.spawn()
	l := s.link("f1u")
	s.add(c, without(l, 1))
	from := s.join(l.Ends[0], "send")
	until(t, "half", func() bool { return s.status(c, "f1u").State == broker.StateHalf })
	for round := range 3 {
		to := s.come(c, l)
		to.flows(300)
		if round == 1 { // the journal knows both ports, and also that one is missing
			b.kill()
			c, b = s.spawn()
			to.flows(300)
		}
		testenv.Must(t, c.Relink(context.Background(), without(l, 1)))
		until(t, "half", func() bool { return s.status(c, "f1u").State == broker.StateHalf })
		if _, err := os.Lstat(l.Ends[1].Socket); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("the socket of the port that left: %v", err)
		}
		to.kill()
	}
	b.kill()
	c, _ = s.spawn()
	until(t, "half", func() bool { return s.status(c, "f1u").State == broker.StateHalf })
	s.come(c, l).flows(300)
	from.end()
}

// come brings the second port to this host, and starts its application.
func (s *fixture) come(c *broker.Client, l broker.Link) *peer {
	s.t.Helper()
	testenv.Must(s.t, c.Relink(context.Background(), l))
	return s.join(l.Ends[1], "recv")
}

// The peer moves from this host to another, and back: the link changes from
// memory to interfaces and back, and the application that stays is not
// restarted. Each host has a broker.
func TestAPeerMovesToAnotherHost(t *testing.T) {
	here, there := newFixture(t), newFixture(t)
	hereClient, _ := here.serve()
	thereClient, _ := there.serve()
	ctx := context.Background()
	local := here.link("f1u")
	here.add(hereClient, local)
	from, to := here.join(local.Ends[0], "send"), here.join(local.Ends[1], "recv")
	to.flows(300)

	wired := local
	wired.Ends = append([]broker.End{}, local.Ends...)
	here.veth(&wired)
	remote := without(wired, 0)
	remote.Ends[1].Socket = there.link("f1u").Ends[1].Socket
	for range 2 {
		testenv.Must(t, hereClient.Relink(ctx, without(wired, 1)))
		to.kill()
		there.add(thereClient, remote)
		to = there.join(remote.Ends[1], "recv")
		to.flows(300)
		for _, st := range []broker.LinkStatus{here.active(hereClient, "f1u"), there.active(thereClient, "f1u")} {
			if st.Kind != broker.KindNetdev {
				t.Errorf("over interfaces: %+v", st)
			}
		}
		to.end()
		testenv.Must(t, thereClient.Remove(ctx, "f1u"))
		testenv.Must(t, hereClient.Relink(ctx, local))
		to = here.join(local.Ends[1], "recv")
		to.flows(300)
	}
	from.end()
	if got := to.seen(); got.Wrong != 0 {
		t.Errorf("%d packets were doubled or damaged: %+v", got.Wrong, got)
	}
}

func TestPortsElsewhereAreChecked(t *testing.T) {
	s := newFixture(t)
	c, _ := s.serve()
	ctx := context.Background()
	l, other := s.link("f1u"), s.link("n3")
	if err := c.Add(ctx, without(without(l, 0), 1)); err == nil || !strings.Contains(err.Error(), "none of its ports has a socket") {
		t.Errorf("a link without ports on this host: %v", err)
	}
	s.add(c, without(l, 1))
	other.Ends[1].Socket = l.Ends[1].Socket
	s.add(c, other)
	if err := c.Relink(ctx, l); err == nil || !strings.Contains(err.Error(), "belongs to link n3") {
		t.Errorf("a port comes at a socket of another link: %v", err)
	}
	l.Ends[1].Socket = filepath.Join(s.dir, "missing", "f1u")
	if err := c.Relink(ctx, l); err == nil || !strings.Contains(err.Error(), "directory of the socket") {
		t.Errorf("a port comes to a missing directory: %v", err)
	}
	if st := s.status(c, "f1u"); st.State != broker.StateEmpty || len(st.Ends) != 2 {
		t.Errorf("after the refusals: %+v", st)
	}
	l.Ends[1].Socket = s.link("n6").Ends[1].Socket // the refused ones are free again
	testenv.Must(t, c.Relink(ctx, l))
	l.Ends[1].MTU = 1400
	if err := c.Relink(ctx, without(l, 1)); err == nil || !strings.Contains(err.Error(), "cannot change port") {
		t.Errorf("a port leaves with another MTU: %v", err)
	}
}
