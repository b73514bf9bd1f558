// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/drayage/dray/internal/host"
)

const (
	networkClass   = "0x02"   // of a PCI device: a network controller
	vendorMellanox = "0x15b3" // its cards serve DPDK through the kernel's driver
)

// planDrivers gives network cards to vfio-pci. A card that this host needs, or that
// vfio-pci cannot have, is an error: it was asked for by name.
func (s *System) planDrivers(report *Report, names []string) error {
	if len(names) == 0 {
		report.skip("drivers", "no network card was named with --bind")
		return nil
	}
	var addresses []string
	for _, name := range names {
		address, err := s.cardAddress(name)
		if err != nil {
			return err
		}
		addresses = append(addresses, address)
	}
	for _, address := range addresses {
		if err := s.planDriver(report, address, addresses); err != nil {
			return fmt.Errorf("bind %s to %s: %w", address, vfio, err)
		}
	}
	return nil
}

// cardAddress is the PCI address of an interface, or the address itself.
func (s *System) cardAddress(name string) (string, error) {
	if host.IsPCIAddress(name) {
		return name, nil
	}
	if name == "" || strings.ContainsAny(name, "/.") || !s.exists("sys/class/net/"+name) {
		return "", fmt.Errorf("%q is neither an interface of this host nor a PCI address such as 0000:01:00.0", name)
	}
	target, err := filepath.EvalSymlinks(filepath.Join(s.root, "sys/class/net", name, "device"))
	if err != nil {
		return "", fmt.Errorf("%s has no device on the PCI bus: only a network card can change its driver", name)
	}
	for ; target != "/" && target != "."; target = filepath.Dir(target) { // a virtio device is below the PCI device
		if address := filepath.Base(target); host.IsPCIAddress(address) {
			return address, nil
		}
	}
	return "", fmt.Errorf("%s has no device on the PCI bus: only a network card can change its driver", name)
}

func (s *System) planDriver(report *Report, address string, all []string) error {
	if err := s.isNetworkCard(address); err != nil {
		return err
	}
	now, err := s.driver(address)
	if err != nil {
		return err
	}
	key := Key{Kind: kindDriver, Name: address}
	if strings.TrimSuffix(now, overridden) == vfio {
		report.skip(key.String(), "it is %s already", vfio)
		return nil
	}
	if strings.HasSuffix(now, overridden) {
		return fmt.Errorf("its driver_override is set already: what set it (driverctl?) has to undo that first")
	}
	for _, check := range []func(string) error{s.isIdle, s.hasVFIO} {
		if err := check(address); err != nil {
			return err
		}
	}
	if err := s.ownsGroup(address, all); err != nil {
		return err
	}
	report.want(key, now, vfio+overridden)
	return nil
}

// isNetworkCard refuses any other device, whose driver may hold the root file system.
func (s *System) isNetworkCard(address string) error {
	class, err := s.read(deviceDir(address) + "/class")
	if missing(err) {
		return fmt.Errorf("there is no PCI device %s", address)
	}
	if err != nil {
		return err
	}
	if !strings.HasPrefix(class, networkClass) {
		return fmt.Errorf("PCI device %s is no network card (class %s)", address, class)
	}
	if vendor, err := s.read(deviceDir(address) + "/vendor"); err == nil && vendor == vendorMellanox {
		return fmt.Errorf("DPDK uses %s through its kernel driver: there is nothing to bind", address)
	}
	return nil
}

// isIdle refuses a card that something on this host uses.
func (s *System) isIdle(address string) error {
	dir := deviceDir(address)
	if n, err := s.read(dir + "/sriov_numvfs"); err == nil && n != "0" {
		return fmt.Errorf("it has %s virtual functions, which would be gone: write 0 to sriov_numvfs first", n)
	}
	links := s.names(dir + "/net")
	for _, child := range s.names(dir) {
		if strings.HasPrefix(child, "virtio") {
			links = append(links, s.names(dir+"/"+child+"/net")...)
		}
	}
	if len(links) == 0 && s.linkName(dir+"/driver") != "" {
		return fmt.Errorf("its interface is not in this network namespace: something else uses it")
	}
	for _, link := range links {
		why, err := s.inUse(link)
		if err != nil {
			return err
		}
		if why != "" {
			return fmt.Errorf("this host uses its interface %s: %s", link, why)
		}
	}
	return nil
}

// hasVFIO refuses a card without an IOMMU: a program could then read and write all
// memory through it.
func (s *System) hasVFIO(address string) error {
	if !s.exists(pciDir + "/drivers/" + vfio) {
		return &host.Unsupported{What: vfio, Why: "the kernel has not loaded the driver", Fix: "modprobe " + vfio}
	}
	if !s.exists(deviceDir(address) + "/iommu_group") {
		return &host.Unsupported{What: vfio, Why: "no IOMMU protects this host's memory from the card", Fix: "switch the IOMMU (VT-d, AMD-Vi) on in the firmware, and boot with intel_iommu=on iommu=pt"}
	}
	return nil
}

// ownsGroup refuses a card that shares its IOMMU group with a device that the kernel
// keeps: VFIO gives out whole groups.
func (s *System) ownsGroup(address string, all []string) error {
	for _, other := range s.names(deviceDir(address) + "/iommu_group/devices") {
		switch driver := s.linkName(deviceDir(other) + "/driver"); {
		case slices.Contains(all, other), driver == "", driver == vfio, driver == "pcieport":
		default:
			return fmt.Errorf("its IOMMU group also has %s with the driver %s: name both with --bind, or leave it", other, driver)
		}
	}
	return nil
}
