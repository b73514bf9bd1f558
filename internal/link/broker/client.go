// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"time"

	"github.com/drayage/dray/internal/host"
)

// Client calls the broker of a directory. Its methods are safe for concurrent
// use; each call opens its own connection.
type Client struct {
	path string
}

// callTimeout bounds a call whose context has no deadline: allocating a large
// link takes a second.
const callTimeout = 30 * time.Second

// Dial finds the broker whose state is in dir. If none runs, the error is
// fs.ErrNotExist or ECONNREFUSED.
func Dial(dir string) (*Client, error) {
	c := &Client{path: filepath.Join(dir, controlName)}
	conn, err := c.connect(context.Background())
	if err != nil {
		return nil, err
	}
	return c, conn.Close()
}

// Add makes the broker serve a link. Adding the same link again is no error.
func (c *Client) Add(ctx context.Context, l Link) error {
	return c.call(ctx, "add", l, nil)
}

// Remove ends a link. The broker removes its sockets, releases its memory, and
// notifies the ends. Removing a missing link is no error.
func (c *Client) Remove(ctx context.Context, name string) error {
	return c.call(ctx, "remove", name, nil)
}

// Relink moves a link to the configuration l, under traffic. The ports must
// not change: names, sockets, owners, addresses, MTU, queues and quotas.
func (c *Client) Relink(ctx context.Context, l Link) error {
	return c.call(ctx, "relink", l, nil)
}

// Status is the state of each link, sorted by name.
func (c *Client) Status(ctx context.Context) ([]LinkStatus, error) {
	var all []LinkStatus
	return all, c.call(ctx, "status", nil, &all)
}

// connect opens a connection to the broker.
func (c *Client) connect(ctx context.Context) (*net.UnixConn, error) {
	conn, err := host.DialUnix(ctx, "unix", c.path)
	if err != nil {
		return nil, fmt.Errorf("no broker answers: %w", err)
	}
	return conn, nil
}

// procPath is a short path of a file in an open directory.
func procPath(dir int, name string) string {
	return "/proc/self/fd/" + strconv.Itoa(dir) + "/" + name
}

// request and response are one line each on the control socket.
type request struct {
	Method string          `json:"method"`
	Params json.RawMessage `json:"params,omitempty"`
}

type response struct {
	Error  string          `json:"error,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
}

// call sends one request and reads the response. result may be nil.
func (c *Client) call(ctx context.Context, method string, params, result any) error {
	conn, err := c.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(callTimeout)
	}
	if err := conn.SetDeadline(deadline); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	if err := c.exchange(conn, method, params, result); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("broker: %s: %w", method, err))
	}
	return nil
}

func (c *Client) exchange(conn *net.UnixConn, method string, params, result any) error {
	body, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(conn).Encode(request{Method: method, Params: body}); err != nil {
		return err
	}
	var r response
	if err := json.NewDecoder(bufio.NewReader(conn)).Decode(&r); err != nil {
		return err
	}
	if r.Error != "" {
		return errors.New(r.Error)
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(r.Result, result)
}
