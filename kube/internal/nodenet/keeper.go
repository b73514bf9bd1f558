// SPDX-License-Identifier: Apache-2.0

package nodenet

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/drayage/dray/kube/internal/socket"
)

// A keeper has namespaces open for a server that may die. It knows nothing of
// them but their names.

// keepRequest is one call to a keeper. Exactly one of its fields is set.
type keepRequest struct {
	Put  string `json:"put,omitempty"` // the namespace comes with it
	Drop string `json:"drop,omitempty"`
	Next *int   `json:"next,omitempty"` // which namespace, in no order
}

// keepResponse answers. The namespace of Next comes with it; no name: there is none.
type keepResponse struct {
	Name string `json:"name,omitempty"`
}

// keeper holds open files by name.
type keeper struct {
	mu    sync.Mutex
	files map[string]*os.File
	names []string
}

// Keep serves a keeper in dir until ctx ends.
func Keep(ctx context.Context, dir string) error {
	k := &keeper{files: map[string]*os.File{}}
	return socket.Serve(ctx, keeperSocket(dir), k.serve)
}

// serve answers calls until the connection ends.
func (k *keeper) serve(c *net.UnixConn) {
	for {
		_ = c.SetDeadline(time.Now().Add(callTimeout))
		var q keepRequest
		files, err := receive(c, &q)
		if err != nil {
			closeFiles(files)
			return
		}
		if err := k.answer(c, q, files); err != nil {
			return
		}
	}
}

// answer does one call. It keeps or closes the files.
func (k *keeper) answer(c *net.UnixConn, q keepRequest, files []*os.File) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case q.Put != "" && len(files) == 1:
		k.drop(q.Put)
		k.files[q.Put], k.names = files[0], append(k.names, q.Put)
		return send(c, keepResponse{Name: q.Put})
	case q.Drop != "":
		k.drop(q.Drop)
	case q.Next != nil && *q.Next >= 0 && *q.Next < len(k.names):
		name := k.names[*q.Next]
		return send(c, keepResponse{Name: name}, int(k.files[name].Fd()))
	}
	closeFiles(files)
	return send(c, keepResponse{})
}

func (k *keeper) drop(name string) {
	if f := k.files[name]; f != nil {
		_ = f.Close()
		delete(k.files, name)
		k.names = slices.DeleteFunc(k.names, func(n string) bool { return n == name })
	}
}

// kept is a server's way to its keeper. A keeper that is away is no error: it gets
// everything once it is back.
type kept struct{ dir string }

func (k kept) put(ctx context.Context, name string, file *os.File) error {
	_, _, err := k.call(ctx, keepRequest{Put: name}, int(file.Fd()))
	return err
}

func (k kept) drop(ctx context.Context, name string) error {
	_, _, err := k.call(ctx, keepRequest{Drop: name})
	return err
}

// all are the namespaces that the keeper has, by name. The caller closes them.
func (k kept) all(ctx context.Context) (map[string]*os.File, error) {
	found := map[string]*os.File{}
	for i := 0; ; i++ {
		r, files, err := k.call(ctx, keepRequest{Next: &i})
		if err != nil || r.Name == "" || len(files) != 1 {
			closeFiles(files)
			return found, err
		}
		found[r.Name] = files[0]
	}
}

// Kept are the names of what the keeper of a directory holds.
func Kept(ctx context.Context, dir string) ([]string, error) {
	found, err := kept{dir}.all(ctx)
	for _, f := range found {
		_ = f.Close()
	}
	return slices.Sorted(maps.Keys(found)), err
}

func (k kept) call(ctx context.Context, q keepRequest, fds ...int) (r keepResponse, files []*os.File, err error) {
	c, err := dial(ctx, keeperSocket(k.dir))
	if err != nil {
		return r, nil, err
	}
	defer c.Close()
	if err := send(c, q, fds...); err != nil {
		return r, nil, fmt.Errorf("keeper: %w", err)
	}
	files, err = receive(c, &r)
	return r, files, err
}
