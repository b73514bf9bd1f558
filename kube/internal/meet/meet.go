// SPDX-License-Identifier: Apache-2.0

// Package meet lets the program of one pod connect to a socket of another pod, though no
// directory is in both. Each pod has a socket of the node's broker. When both have called, the
// broker makes a pair of sockets and gives each its half. Through it the one pod shows the
// other its socket: as a descriptor that can be connected to, and nothing else. The broker
// takes no descriptor and reads nothing from a pod, and pods that have met need it no longer.
package meet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"time"
)

// Meeting joins the two ends of a link.
type Meeting struct {
	Name string `json:"name"` // of the link
	Ends [2]End `json:"ends"` // the first shows its socket to the second
}

// End is one pod's.
type End struct {
	Socket string `json:"socket,omitempty"` // of the broker, in the pod's directory; "": no pod of this node
	User   int    `json:"user"`             // who alone may call
}

// answer is what became of the meetings that are wanted.
type answer struct {
	Error  string            `json:"error,omitempty"`
	Faults map[string]string `json:"faults,omitempty"` // by the name of the meeting
}

const (
	callTimeout = 10 * time.Second
	maxMessage  = 1 << 20 // bytes
)

func controlSocket(dir string) string { return filepath.Join(dir, "control") }

// ErrAbsent says that no broker arranges meetings.
var ErrAbsent = errors.New("the broker of this node does not answer, or is too old for such links; look at its pod dray-broker, and delete it to update it")

// Apply has the broker that keeps its control socket in dir arrange exactly these meetings.
// It returns what is wrong with some, by name.
func Apply(ctx context.Context, dir string, all []Meeting) (faults map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	c, err := (&net.Dialer{}).DialContext(ctx, "unix", controlSocket(dir))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Now()) })
	defer stop()
	if all == nil {
		all = []Meeting{}
	}
	if err := json.NewEncoder(c).Encode(all); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	var a answer
	if err := json.NewDecoder(io.LimitReader(c, maxMessage)).Decode(&a); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	if a.Error != "" {
		return nil, fmt.Errorf("broker: %s", a.Error)
	}
	return a.Faults, nil
}
