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

	"github.com/drayage/dray/internal/spec/inventory"
)

// Group is a kind of thing that the doctor lists.
type Group string

const (
	Transports  Group = "transport"
	Runtimes    Group = "runtime"
	Qdiscs      Group = "qdisc"
	Instruments Group = "instrument"
)

// Key names one thing for MarkRun, such as "transport/veth".
func (g Group) Key(name string) string { return string(g) + "/" + name }

// ranFile lists what has run on this host, a key a line. It is only ever
// appended to, so that several `dray` need no lock.
const ranFile = ".ran"

// MarkRun notes that these have carried traffic, or run, on this host.
func MarkRun(stateDir string, keys ...string) error {
	known, err := ran(stateDir)
	if err != nil {
		return err
	}
	var added strings.Builder
	for _, key := range keys {
		if key == "" || strings.ContainsAny(key, "\n\r") {
			return fmt.Errorf("%q is no name of a thing that runs", key)
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
	_, err = f.WriteString(added.String())
	return errors.Join(err, f.Close())
}

// ran are the keys that were marked; a line that was cut short by a crash is a
// key that nothing has.
func ran(stateDir string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(stateDir, ranFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read what has run: %w", err)
	}
	return strings.Split(strings.TrimRight(string(b), "\n"), "\n"), nil
}

// Recall adds to an inventory what the state directory knows of this host: what
// could be used but never was becomes NeverRun, and what was measured becomes
// its calibration. An ordinary user who may not read a file there goes without it.
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
	calibration, err := LoadCalibration(CalibrationFile(stateDir))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
		return nil
	}
	markStale(calibration, inv.Host)
	inv.Calibration = calibration
	return err
}

func neverRun(item *inventory.Item, group Group, known []string) {
	if item.Status == inventory.OK && !slices.Contains(known, group.Key(item.Name)) {
		item.Status = inventory.NeverRun
		item.Reason = "it could be made, but has carried no traffic on this machine"
	}
}
