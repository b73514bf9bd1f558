// SPDX-License-Identifier: Apache-2.0

package nodeswitch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"time"
)

// Request is one call. Exactly one of its fields is set.
type Request struct {
	Info  bool   `json:"info,omitempty"`
	List  bool   `json:"list,omitempty"`
	Apply *Apply `json:"apply,omitempty"`
}

// Apply asks for links.
type Apply struct {
	Links []Link `json:"links"`
	Prune bool   `json:"prune,omitempty"` // remove all others
}

// Response is the answer.
type Response struct {
	Error string `json:"error,omitempty"`
	Info  *Info  `json:"info,omitempty"`
	Made  []Made `json:"made,omitempty"`
}

// CallTimeout bounds one call.
const CallTimeout = 10 * time.Second

const maxMessage = 1 << 20 // bytes

// Client calls the switch of a directory. Each call has a connection of its own.
type Client struct{ Dir string }

// ErrAbsent says that no switch runs.
var ErrAbsent = errors.New("dray-switch does not run on this node")

// Info says what the switch offers.
func (c Client) Info(ctx context.Context) (Info, error) {
	r, err := c.call(ctx, Request{Info: true})
	if err == nil && r.Info == nil {
		err = errors.New("dray-switch: no answer in the answer")
	}
	if err != nil {
		return Info{}, err
	}
	return *r.Info, nil
}

// Apply makes links, or changes them to what is asked for. With prune it then removes all others.
// The error of one link is in its Made.
func (c Client) Apply(ctx context.Context, links []Link, prune bool) ([]Made, error) {
	r, err := c.call(ctx, Request{Apply: &Apply{Links: links, Prune: prune}})
	return r.Made, err
}

// List returns all links.
func (c Client) List(ctx context.Context) ([]Made, error) {
	r, err := c.call(ctx, Request{List: true})
	return r.Made, err
}

func (c Client) call(ctx context.Context, q Request) (r Response, err error) {
	ctx, cancel := context.WithTimeout(ctx, CallTimeout)
	defer cancel()
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", ControlSocket(c.Dir))
	if err != nil {
		return r, fmt.Errorf("%w: %w", ErrAbsent, err)
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Now()) })
	defer stop()
	err = Write(conn, q)
	if err == nil {
		err = Read(conn, &r)
	}
	if err == nil && r.Error != "" {
		err = errors.New(r.Error)
	}
	if err != nil {
		return r, fmt.Errorf("dray-switch: %w", err)
	}
	return r, nil
}

// Write writes a message.
func Write(w io.Writer, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(text) > maxMessage {
		return fmt.Errorf("a message of %d bytes: at most %d", len(text), maxMessage)
	}
	_, err = w.Write(append(text, '\n'))
	return err
}

// Read reads what Write wrote.
func Read(r io.Reader, v any) error {
	text, err := bufio.NewReader(io.LimitReader(r, maxMessage+1)).ReadBytes('\n')
	if err != nil {
		return err
	}
	return json.Unmarshal(text, v)
}
