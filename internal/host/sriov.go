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
	total int // virtual functions that the device supports
	vfs   []virtualFunction
}

// virtualFunction is one existing VF.
type virtualFunction struct {
	number  int    // its number in the physical function
	address string // on the PCI bus: "0000:01:10.0"
	link    string // its interface in this network namespace; empty: none, or several
}

// pciAddress is domain, bus, device and function. It becomes the name of a file.
var pciAddress = regexp.MustCompile(`^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$`)

// physicalFunctions lists the host's PFs by name. sysfs is its mount point: "/sys".
func physicalFunctions(sysfs string) ([]physicalFunction, error) {
	entries, err := os.ReadDir(filepath.Join(sysfs, "class/net"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // a container may have no sysfs
	}
	if err != nil {
		return nil, fmt.Errorf("look for SR-IOV: %w", err)
	}
	var all []physicalFunction
	for _, e := range entries { // in order of name
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

// readPhysicalFunction returns nil for an interface that is no PF, or is gone.
func readPhysicalFunction(sysfs, name string) (*physicalFunction, error) {
	device := filepath.Join(sysfs, "class/net", name, "device")
	text, err := os.ReadFile(filepath.Join(device, "sriov_totalvfs"))
	// Some entries are files, not interfaces: bonding_masters is one.
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
		return nil, nil // SR-IOV is off in its firmware
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

// readVirtualFunction reads the link "virtfn3" of a physical function's device. It
// ignores links unlike those the kernel makes.
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

// onlyInterface is a device's network interface, in the namespace that its sysfs
// was mounted in; empty if there is none, or more than one.
func onlyInterface(device string) string {
	entries, err := os.ReadDir(filepath.Join(device, "net"))
	if err != nil || len(entries) != 1 || len(entries[0].Name()) >= unix.IFNAMSIZ {
		return ""
	}
	return entries[0].Name()
}

// interfaceAt is the interface of the PCI device with that address, see
// onlyInterface; there is false if the device itself is gone.
func interfaceAt(sysfs, address string) (link string, there bool) {
	device := filepath.Join(sysfs, "bus/pci/devices", address)
	if _, err := os.Stat(device); err != nil {
		return "", false
	}
	return onlyInterface(device), true
}

// IsPCIAddress reports whether the text is a full address on the PCI bus.
func IsPCIAddress(text string) bool { return pciAddress.MatchString(text) }
