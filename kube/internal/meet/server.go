// SPDX-License-Identifier: Apache-2.0

package meet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/drayage/dray/kube/internal/socket"
)

// server arranges meetings.
type server struct {
	log *slog.Logger

	mu       sync.Mutex
	meetings map[string]*meeting
}

// Serve arranges the meetings that callers of Apply want, until ctx ends. Its control socket
// is in dir.
func Serve(ctx context.Context, dir string, log *slog.Logger) error {
	s := &server{log: log, meetings: map[string]*meeting{}}
	defer s.apply(nil)
	return socket.Serve(ctx, controlSocket(dir), s.serve)
}

// serve answers one call.
func (s *server) serve(c *net.UnixConn) {
	_ = c.SetDeadline(time.Now().Add(callTimeout))
	var all []Meeting
	var a answer
	if err := json.NewDecoder(io.LimitReader(c, maxMessage)).Decode(&all); err != nil {
		a.Error = err.Error()
	} else {
		a.Faults = s.apply(all)
	}
	if err := json.NewEncoder(c).Encode(a); err != nil {
		s.log.Error("meetings", "error", err)
	}
}

// apply arranges exactly these meetings, and changes nothing at one that stays as it is. The
// faults are by name.
func (s *server) apply(all []Meeting) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	faults, keep := map[string]string{}, map[string]bool{}
	for _, want := range all {
		keep[want.Name] = true
		m := s.meetings[want.Name]
		if m == nil {
			m = &meeting{name: want.Name, log: s.log}
			s.meetings[want.Name] = m
		}
		if err := m.change(want.Ends); err != nil {
			faults[want.Name] = err.Error()
		}
	}
	for name, m := range s.meetings {
		if keep[name] {
			continue
		}
		if err := m.change([2]End{}); err != nil {
			s.log.Error("meeting", "link", name, "error", err)
		}
		delete(s.meetings, name)
	}
	return faults
}

// change closes the doors of ends that are not as they should be, and opens others.
func (m *meeting) change(ends [2]End) error {
	var errs []error
	for i, want := range ends {
		m.mu.Lock()
		d := m.doors[i]
		m.mu.Unlock()
		if d != nil && d.end == want || d == nil && want.Socket == "" {
			continue
		}
		if d != nil {
			m.set(i, nil)
			errs = append(errs, d.close())
		}
		if want.Socket == "" {
			continue
		}
		d, err := open(m, want)
		if err != nil {
			errs = append(errs, fmt.Errorf("socket of the broker: %w", err))
			continue
		}
		m.set(i, d)
		go d.admit()
	}
	return errors.Join(errs...)
}

func (m *meeting) set(i int, d *door) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.doors[i] = d
}
