// SPDX-License-Identifier: Apache-2.0

package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/internal/host"
)

// broker serves the links of one directory.
type broker struct {
	journal *journal
	log     *logger
	ledger  *ledger
	boot    string // boot id of the host

	timeouts      timeouts
	captures      atomic.Int32 // running
	packetSockets func(e *End, queues int) ([]int, error)

	mu    sync.Mutex // guards the fields below; never held while waiting for a link
	links map[string]*link
	// sockets are those of each link, by its name.
	sockets map[string][]string
	busy    map[string]chan struct{} // by name, while a link is added, removed or moved; closed after that
}

// Serve serves the journal's links in o.Dir, and links added later, until ctx
// ends. Then, or if it is killed, traffic continues; the next Serve adopts
// live links. It is an error if another broker serves o.Dir.
func Serve(ctx context.Context, o Options) error {
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	unlock, err := lock(filepath.Join(o.Dir, "lock"))
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer unlock()
	boot, err := host.BootID()
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	j, err := openJournal(o.Dir)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	b := &broker{
		journal: j, log: &logger{w: o.Log}, boot: boot, packetSockets: o.Sockets, timeouts: cmp.Or(o.timeouts, usual),
		links: map[string]*link{}, sockets: map[string][]string{}, busy: map[string]chan struct{}{},
	}
	if b.packetSockets == nil {
		b.packetSockets = PacketSockets
	}
	b.ledger = newLedger(b.log)
	defer b.ledger.close()
	defer b.leave()
	defer b.resume(ctx)()
	c, err := newControl(b, o.Dir)
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer c.close()
	if o.Ready != nil {
		o.Ready()
	}
	return c.serve(ctx)
}

// lock ensures that only one broker serves a directory.
func lock(path string) (unlock func(), err error) {
	if err := host.Vacate(path); err != nil {
		return nil, err
	}
	unlock, err = host.TryLockFile(path, unix.LOCK_EX)
	if errors.Is(err, host.ErrLocked) {
		return nil, fmt.Errorf("another broker serves this directory: %w", err)
	}
	return unlock, err
}
