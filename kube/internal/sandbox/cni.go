// SPDX-License-Identifier: Apache-2.0

package sandbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"k8s.io/apimachinery/pkg/types"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/kube/internal/cni"
	"github.com/drayage/dray/kube/internal/socket"
)

// CNI learns of pods by the plugin dray-cni. What it knows is on disk: nobody tells a new
// instance of the pods that run already.
type CNI struct {
	dir string
	of  func(pod types.UID) ([]cni.Interface, error)
	log *slog.Logger
	mu  sync.Mutex // of the records
}

// NewCNI serves dray-cni in a directory. of are the interfaces of a pod; none if it has no
// claim any more.
func NewCNI(dir string, of func(types.UID) ([]cni.Interface, error), log *slog.Logger) *CNI {
	return &CNI{dir: dir, of: of, log: log}
}

// Expect makes a record, so that dray-cni calls for this pod. One that is there stays.
func (c *CNI) Expect(_ context.Context, pod types.UID) error {
	file, err := cni.Record(c.dir, pod)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := os.MkdirAll(c.dir, 0o700); err != nil {
		return err
	}
	_, err = os.Lstat(file)
	if errors.Is(err, fs.ErrNotExist) {
		err = write(file, cni.Attachment{Pod: pod})
	}
	return err
}

// Netns is the network namespace of a pod, a file of the node. "": it is not known.
func (c *CNI) Netns(pod types.UID) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	a, err := c.read(pod)
	if err != nil {
		c.log.Error("the record of a pod cannot be read", "pod", pod, "error", err)
	}
	return a.Netns
}

// damagedSuffix ends the names of records that are set aside.
const damagedSuffix = ".damaged"

// read is the record of a pod; without a pod if there is none. One that is damaged is set
// aside, and a new one made: dray-cni calls for the pod's next sandbox as well.
func (c *CNI) read(pod types.UID) (a cni.Attachment, err error) {
	file, err := cni.Record(c.dir, pod)
	if err != nil {
		return a, err
	}
	err = host.ReadJSON(file, cni.MaxMessage, &a)
	if err == nil && a.Pod != pod {
		err = host.Damaged(fmt.Errorf("%s is of pod %q", file, a.Pod))
	}
	switch {
	case err == nil:
		return a, nil
	case errors.Is(err, fs.ErrNotExist):
		return cni.Attachment{}, nil
	case !host.IsDamaged(err):
		return cni.Attachment{}, err
	}
	aside := file + damagedSuffix
	failed := write(aside, cni.Attachment{Pod: pod})
	if failed == nil { // the pod has a record at each moment
		failed = unix.Renameat2(unix.AT_FDCWD, aside, unix.AT_FDCWD, file, unix.RENAME_EXCHANGE)
	}
	c.log.Warn("the record of a pod is damaged: its interfaces stay as they are until the pod is replaced", "pod", pod, "error", errors.Join(err, failed), "kept as", aside)
	return cni.Attachment{}, nil
}

func write(file string, a cni.Attachment) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return host.ReplaceFile(file, text, 0o600)
}

// collectEvery is the time between two searches for records of pods that have gone. A
// record younger than that may be of a claim that is being prepared.
const collectEvery = time.Minute

// Run answers dray-cni until ctx ends.
func (c *CNI) Run(ctx context.Context, h Handler) {
	server := http.Server{Handler: c.handler(h), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go h.PodsKnown()
	go c.collectAlways(ctx)
	for ctx.Err() == nil {
		l, err := socket.Listen(cni.Socket(c.dir))
		if err == nil {
			err = server.Serve(l)
		}
		if ctx.Err() == nil {
			c.log.Error("dray-cni cannot reach this program, so no pod with interfaces starts", "error", err)
			_ = host.Sleep(ctx, again)
		}
	}
}

// handler answers dray-cni.
func (c *CNI) handler(h Handler) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST "+cni.PathAdd, func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(a cni.Attachment) (any, error) { return c.add(r.Context(), h, a) })
	})
	mux.HandleFunc("POST "+cni.PathGet, func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(a cni.Attachment) (any, error) { return c.of(a.Pod) })
	})
	mux.HandleFunc("POST "+cni.PathDel, func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(a cni.Attachment) (any, error) {
			return nil, c.end(h, a.Pod, func(was cni.Attachment) bool { return was.Container == a.Container })
		})
	})
	mux.HandleFunc("POST "+cni.PathGC, func(w http.ResponseWriter, r *http.Request) {
		answer(w, r, func(v cni.Valid) (any, error) { return nil, c.collect(h, v) })
	})
	return mux
}

// answer reads a question, and writes what f makes of it.
func answer[Q any](w http.ResponseWriter, r *http.Request, f func(Q) (any, error)) {
	var question Q
	text, err := io.ReadAll(http.MaxBytesReader(w, r.Body, cni.MaxMessage))
	if err == nil {
		err = json.Unmarshal(text, &question)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	result, err := f(question)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	_ = json.NewEncoder(w).Encode(result) // a plugin that is gone does not care
}

// add gives a pod its interfaces, in a namespace that is kept first.
func (c *CNI) add(ctx context.Context, h Handler, a cni.Attachment) (any, error) {
	file, err := cni.Record(c.dir, a.Pod)
	if err != nil {
		return nil, err
	}
	if a.Netns == "" {
		return nil, errors.New("the pod has no network namespace of its own")
	}
	c.mu.Lock()
	err = write(file, a)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	if err := h.PodStarts(ctx, a.Pod); err != nil {
		return nil, errors.Join(err, c.end(h, a.Pod, func(was cni.Attachment) bool { return was == a }))
	}
	return c.of(a.Pod)
}

// end forgets the namespace of a pod, if it is the one that is meant.
func (c *CNI) end(h Handler, pod types.UID, meant func(cni.Attachment) bool) error {
	c.mu.Lock()
	was, err := c.read(pod)
	if err != nil || was.Netns == "" || !meant(was) {
		c.mu.Unlock()
		return err
	}
	file, err := cni.Record(c.dir, pod)
	if err == nil {
		err = write(file, cni.Attachment{Pod: pod})
	}
	c.mu.Unlock()
	if err == nil {
		h.PodStopped(pod)
	}
	return err
}

// collect forgets the namespaces of a network's sandboxes that no longer exist.
func (c *CNI) collect(h Handler, valid cni.Valid) error {
	pods, err := c.pods()
	for _, pod := range pods {
		err = errors.Join(err, c.end(h, pod, func(was cni.Attachment) bool {
			return was.Network == valid.Network && !slices.Contains(valid.Containers, was.Container)
		}))
	}
	return err
}

// pods have a record, or one that is set aside or was not finished.
func (c *CNI) pods() ([]types.UID, error) {
	files, err := filepath.Glob(filepath.Join(c.dir, "*.json*"))
	var all []types.UID
	for _, f := range files {
		pod, _, _ := strings.Cut(filepath.Base(f), ".json")
		all = append(all, types.UID(pod))
	}
	return slices.Compact(all), err // they are sorted
}

// collectAlways removes records of pods that have gone, until ctx ends.
func (c *CNI) collectAlways(ctx context.Context) {
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		if err := c.removeStale(time.Now()); err != nil {
			c.log.Error("records of pods", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// removeStale removes the records of pods without interfaces.
func (c *CNI) removeStale(now time.Time) error {
	pods, err := c.pods()
	for _, pod := range pods {
		file, bad := cni.Record(c.dir, pod)
		if bad != nil {
			continue
		}
		if has, failed := c.of(pod); failed != nil || len(has) > 0 {
			err = errors.Join(err, failed)
			continue
		}
		files, failed := filepath.Glob(file + "*")
		err = errors.Join(err, failed)
		for _, f := range files {
			if info, gone := os.Lstat(f); gone == nil && now.Sub(info.ModTime()) >= collectEvery {
				err = errors.Join(err, os.RemoveAll(f))
			}
		}
	}
	return err
}
