// SPDX-License-Identifier: Apache-2.0

package switchd

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/link/ovsdpdk"
	"github.com/drayage/dray/kube/internal/nodeswitch"
)

// entry is a link that is wanted.
type entry struct {
	nodeswitch.Link
	VNI int `json:"vni,omitempty"` // at which this switch receives it; 0: it has no tunnel
}

const (
	maxName   = 512 // bytes
	maxQueues = 16
	leastMTU  = 68 // RFC 791
	maxVNI    = 1<<24 - 1
)

// check refuses what is no link of this switch.
func check(dir string, l *nodeswitch.Link) error {
	if l.Name == "" || len(l.Name) > maxName {
		return fmt.Errorf("the name of a link has 1 to %d bytes", maxName)
	}
	if l.MTU < leastMTU || l.MTU > nodeswitch.MaxMTU {
		return fmt.Errorf("MTU %d: a switch has %d to %d", l.MTU, leastMTU, nodeswitch.MaxMTU)
	}
	if len(l.Ports) < 1 || len(l.Ports) > 2 || len(l.Ports) == 2 && l.Ports[0].End == l.Ports[1].End {
		return errors.New("a link has one or two ports on a node, each an end of its own")
	}
	for _, p := range l.Ports {
		if p.End < 0 || p.End > 1 || p.Queues < 0 || p.Queues > maxQueues || filepath.Dir(p.Door) != filepath.Clean(dir) {
			return fmt.Errorf("end %d: not a port of a link", p.End)
		}
	}
	if p := l.Peer; p != nil && (!p.Addr.Is4() || p.VNI < 1 || p.VNI > maxVNI) {
		return fmt.Errorf("the switch at the other end has no IPv4 address, or no number: %s, %d", p.Addr, p.VNI)
	}
	return nil
}

// id names what Open vSwitch has of the link. Names of interfaces have at most 15 bytes.
func (e *entry) id() string {
	sum := sha256.Sum256([]byte(e.Name))
	return "l" + hex.EncodeToString(sum[:6])
}

// portName is the port of an end.
func (e *entry) portName(end int) string { return e.id() + "p" + strconv.Itoa(end) }

// tunnelName is the port towards the other switch.
func (e *entry) tunnelName() string { return e.id() + "t" }

// crosses reports whether packets go to another switch.
func (e *entry) crosses() bool { return e.Tunnel && e.Peer != nil && len(e.Ports) == 1 }

// queueBuffers are the packets that Open vSwitch counts for one more queue in each direction.
const queueBuffers = 4 << 10

// memory is what the link's ports take of the memory of packets, in bytes.
func (e *entry) memory() (total int) {
	m := ovsdpdk.PacketMemory
	for _, p := range e.Ports {
		total += (m.Buffers + queueBuffers*(max(1, p.Queues)-1)) * (m.Buffer(e.MTU) + m.Record)
	}
	return total
}

// merge returns the links that are wanted after a call, the oldest first.
func merge(old []entry, links []nodeswitch.Link, prune bool) []entry {
	var all []entry
	for _, e := range old {
		i := slices.IndexFunc(links, func(l nodeswitch.Link) bool { return l.Name == e.Name })
		if i >= 0 {
			all = append(all, entry{links[i], e.VNI})
		} else if !prune {
			all = append(all, e)
		}
	}
	for _, l := range links {
		if !slices.ContainsFunc(all, func(e entry) bool { return e.Name == l.Name }) {
			all = append(all, entry{Link: l})
		}
	}
	number(all)
	return all
}

// number gives each link with a tunnel the number at which this switch receives it: at random, as
// it is hard to guess, and needs no agreement.
func number(all []entry) {
	taken := map[int]bool{}
	for _, e := range all {
		taken[e.VNI] = true
	}
	for i := range all {
		e := &all[i]
		if !e.Tunnel {
			e.VNI = 0
		}
		for e.Tunnel && e.VNI == 0 {
			if n := 1 + rand.IntN(maxVNI); !taken[n] {
				e.VNI, taken[n] = n, true
			}
		}
	}
}

func journal(dir string) string { return filepath.Join(dir, "journal.json") }

// maxJournal bounds a journal that is read back, in bytes.
const maxJournal = 4 << 20

// load reads the journal. What is no longer a link of this switch is left out. A damaged journal
// is set aside: dray-node asks for the same links again.
func load(dir string, log *slog.Logger) ([]entry, error) {
	var all []entry
	err := host.ReadJSON(journal(dir), maxJournal, &all)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case host.IsDamaged(err):
		aside := journal(dir) + ".damaged"
		log.Warn("the journal is damaged; its links are made again", "error", err, "kept as", aside)
		return nil, errors.Join(os.RemoveAll(aside), os.Rename(journal(dir), aside))
	case err != nil:
		return nil, err
	}
	return slices.DeleteFunc(all, func(e entry) bool { return check(dir, &e.Link) != nil }), nil
}

// store writes the journal. A reader never sees half of it.
func store(dir string, all []entry) error {
	text, err := json.Marshal(all)
	if err != nil {
		return err
	}
	return host.ReplaceFile(journal(dir), text, 0o600)
}
