// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/host"
	"github.com/drayage/dray/internal/spec/inventory"
)

// Group is a category in the doctor's list.
type Group string

const (
	Transports  Group = "transport"
	Runtimes    Group = "runtime"
	Qdiscs      Group = "qdisc"
	Instruments Group = "instrument"
)

// Key names one thing for MarkRun, such as "transport/veth".
func (g Group) Key(name string) string { return string(g) + "/" + name }

// ranFile lists what has run on this host, one key per line. Writers only append,
// so several `dray` need no lock.
const ranFile = ".ran"

// maxRan bounds the file in bytes; there are some dozens of keys.
const maxRan = 1 << 20

// MarkRun records that these carried traffic, or ran, on this host.
func MarkRun(stateDir string, keys ...string) error {
	known, err := ran(stateDir)
	if err != nil {
		return err
	}
	var added strings.Builder
	for _, key := range keys {
		if key == "" || strings.ContainsAny(key, "\n\r") {
			return fmt.Errorf("%q is not the name of a transport, runtime or instrument", key)
		}
		if !slices.Contains(known, key) {
			known = append(known, key)
			added.WriteString(key + "\n")
		}
	}
	if added.Len() == 0 {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(stateDir, ranFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return fmt.Errorf("note what has run: %w", err)
	}
	_, err = f.WriteString("\n" + added.String()) // after a line that a crash has cut off
	return errors.Join(err, f.Close())
}

// ran are the marked keys; a line torn by a crash is a key that matches nothing.
func ran(stateDir string) ([]string, error) {
	path := filepath.Join(stateDir, ranFile)
	b, err := host.ReadRegular(path, maxRan)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case host.IsDamaged(err):
		_ = os.RemoveAll(path) // it only says what has run, and is written again
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read what has run: %w", err)
	}
	return strings.FieldsFunc(string(b), func(c rune) bool { return c == '\n' }), nil
}

// Recall adds the state directory's knowledge of this host to an inventory: usable
// things that never ran become NeverRun, and measurements become calibration. A
// file that an ordinary user cannot read is skipped.
func Recall(inv *inventory.Inventory, stateDir string) error {
	known, err := ran(stateDir)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		return err
	}
	for i := range inv.Transports {
		neverRun(&inv.Transports[i].Item, Transports, known)
	}
	for _, list := range []struct {
		group Group
		items []inventory.Item
	}{{Runtimes, inv.Runtimes}, {Qdiscs, inv.Qdiscs}, {Instruments, inv.Instruments}} {
		for i := range list.items {
			neverRun(&list.items[i], list.group, known)
		}
	}
	RecallCalibration(inv, CalibrationFile(stateDir))
	return nil
}

func neverRun(item *inventory.Item, group Group, known []string) {
	if item.Status == inventory.OK && !slices.Contains(known, group.Key(item.Name)) {
		item.Status = inventory.NeverRun
		item.Reason = "it can be created, but has never carried traffic on this machine"
	}
}
