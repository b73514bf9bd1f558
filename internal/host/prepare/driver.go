// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	pciDir = "sys/bus/pci"
	vfio   = "vfio-pci"
	// noDriver is the value of a device that no driver has.
	noDriver = "none"
	// overridden ends the value of a device that only one driver may take.
	overridden = " (driver_override)"
)

func deviceDir(address string) string { return pciDir + "/devices/" + address }

// driver is a device's driver, and whether driver_override names one.
func (s *System) driver(address string) (string, error) {
	override, err := s.read(deviceDir(address) + "/driver_override")
	if err != nil {
		return "", err
	}
	name := s.linkName(deviceDir(address) + "/driver")
	if name == "" {
		name = noDriver
	}
	if override != "" && override != "(null)" {
		name += overridden
	}
	return name, nil
}

// changeDriver gives a device to the driver of the value, from any state that a
// change cut short has left. Only vfio-pci is overridden.
func (s *System) changeDriver(address, value string) error {
	if err := s.isNetworkCard(address); err != nil { // again: the journal may not be ours
		return err
	}
	want, override := strings.CutSuffix(value, overridden)
	if override != (want == vfio) {
		return fmt.Errorf("%s: dray sets driver_override for %s only", address, vfio)
	}
	if err := s.notHeld(address); err != nil {
		return err
	}
	text := ""
	if override {
		text = vfio
	}
	if err := s.set(deviceDir(address)+"/driver_override", text); err != nil {
		return fmt.Errorf("set the driver_override of %s: %w", address, err)
	}
	s.at("overridden")
	if err := s.unbind(address, want); err != nil {
		return err
	}
	s.at("unbound")
	return s.bind(address, want)
}

// unbind takes a device from its driver, unless that is the wanted one.
func (s *System) unbind(address, want string) error {
	now := s.linkName(deviceDir(address) + "/driver")
	if now == "" || now == want {
		return nil
	}
	if err := s.set(deviceDir(address)+"/driver/unbind", address); err != nil {
		return fmt.Errorf("take %s from the driver %s: %w", address, now, err)
	}
	return nil
}

// bind lets the kernel choose a driver, and insists on the wanted one.
func (s *System) bind(address, want string) error {
	dir := deviceDir(address) + "/driver"
	if want == noDriver || s.linkName(dir) == want {
		return nil
	}
	if err := s.set(pciDir+"/drivers_probe", address); err != nil {
		return fmt.Errorf("look for a driver of %s: %w", address, err)
	}
	if s.linkName(dir) == want {
		return nil
	}
	if err := s.set(pciDir+"/drivers/"+want+"/bind", address); err != nil {
		return fmt.Errorf("give %s to the driver %s: %w", address, want, err)
	}
	return nil
}

// notHeld refuses a device that a program has open: to unbind it would wait for that.
func (s *System) notHeld(address string) error {
	group := s.linkName(deviceDir(address) + "/iommu_group")
	if group == "" || s.linkName(deviceDir(address)+"/driver") != vfio {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(s.root, "dev/vfio", group), os.O_RDWR, 0)
	if errors.Is(err, unix.EBUSY) {
		return fmt.Errorf("a program uses %s through /dev/vfio/%s: end it first", address, group)
	}
	if err == nil {
		err = f.Close()
	}
	if missing(err) {
		return nil
	}
	return err
}
