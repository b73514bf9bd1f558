// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// physicalFunction is a network interface whose device has SR-IOV, as sysfs shows it.
type physicalFunction struct {
	name  string
	total int // virtual functions that the device can have
	vfs   []virtualFunction
}

// virtualFunction is one that is there.
type virtualFunction struct {
	number  int    // by which its physical function knows it
	address string // on the PCI bus: "0000:01:10.0"
	link    string // its interface in this network namespace; empty: it has none here, or several
}

// pciAddress is domain, bus, device and function. It becomes the name of a file.
var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// physicalFunctions are those of the host, by name. sysfs is where that is mounted:
// "/sys".
func physicalFunctions(sysfs string) ([]physicalFunction, error) {
	entries, err := os.ReadDir(filepath.Join(sysfs, "class/net"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a container may have no sysfs
	}
	if err != nil {
		return nil, fmt.Errorf("look for SR-IOV: %w", err)
	}
	var all []physicalFunction
	for _, e := range entries { // in the order of their names
		pf, err := readPhysicalFunction(sysfs, e.Name())
		if err != nil {
			return nil, fmt.Errorf("SR-IOV of %s: %w", e.Name(), err)
		}
		if pf != nil {
			all = append(all, *pf)
		}
	}
	return all, nil
}

// readPhysicalFunction returns nil for an interface that is none, or that went
// meanwhile.
func readPhysicalFunction(sysfs, name string) (*physicalFunction, error) {
	device := filepath.Join(sysfs, "class/net", name, "device")
	text, err := os.ReadFile(filepath.Join(device, "sriov_totalvfs"))
	// A file among the interfaces' directories is none: bonding_masters is one.
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	total, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 16)
	if err != nil {
		return nil, fmt.Errorf("sriov_totalvfs: %w", err)
	}
	if total == 0 {
		return nil, nil // its firmware has SR-IOV switched off
	}
	entries, err := os.ReadDir(device)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pf := &physicalFunction{name: name, total: int(total)}
	for _, e := range entries {
		if vf, ok := readVirtualFunction(device, e.Name()); ok {
			pf.vfs = append(pf.vfs, vf)
		}
	}
	slices.SortFunc(pf.vfs, func(a, b virtualFunction) int { return a.number - b.number })
	return pf, nil
}

// readVirtualFunction reads the link "virtfn3" of a physical function's device. What
// does not look as the kernel makes it is no virtual function.
func readVirtualFunction(device, name string) (virtualFunction, bool) {
	digits, ok := strings.CutPrefix(name, "virtfn")
	number, err := strconv.ParseUint(digits, 10, 16)
	if !ok || err != nil || strconv.FormatUint(number, 10) != digits {
		return virtualFunction{}, false
	}
	target, err := os.Readlink(filepath.Join(device, name))
	if err != nil || !pciAddress.MatchString(filepath.Base(target)) {
		return virtualFunction{}, false
	}
	vf := virtualFunction{number: int(number), address: filepath.Base(target)}
	vf.link = onlyInterface(filepath.Join(device, name))
	return vf, true
}

// onlyInterface is the network interface of a device, in the namespace that its
// sysfs was mounted in; empty if it has none there, or more than one.
func onlyInterface(device string) string {
	entries, err := os.ReadDir(filepath.Join(device, "net"))
	if err != nil || len(entries) != 1 || len(entries[0].Name()) >= unix.IFNAMSIZ {
		return ""
	}
	return entries[0].Name()
}

// interfaceAt is the interface of the PCI device with that address, see
// onlyInterface; there is false if the device itself has gone.
func interfaceAt(sysfs, address string) (link string, there bool) {
	device := filepath.Join(sysfs, "bus/pci/devices", address)
	if _, err := os.Stat(device); err != nil {
		return "", false
	}
	return onlyInterface(device), true
}
