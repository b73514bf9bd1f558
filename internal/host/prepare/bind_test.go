// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/drayage/dray/test/testenv"
)

// A card that this host needs, or that vfio-pci cannot have, is refused with the reason before anything changes.
func TestRefusedCards(t *testing.T) {
	device := "sys/bus/pci/devices/" + card
	for name, test := range map[string]struct {
		bind    string
		changes map[string]string
		inUse   string
		says    string
	}{
		"in use":              {inUse: "it has the default route", says: "this host uses its interface eth1: it has the default route"},
		"virtual functions":   {changes: map[string]string{device + "/sriov_numvfs": "4\n"}, says: "it has 4 virtual functions"},
		"in a namespace":      {changes: map[string]string{device + "/net": ""}, says: "not in this network namespace"},
		"no such interface":   {bind: "eth9", says: `"eth9" is neither an interface`},
		"a path":              {bind: "../../etc", says: "neither an interface"},
		"no such device":      {bind: "0000:0f:00.0", says: "there is no PCI device"},
		"no network card":     {changes: map[string]string{device + "/class": "0x010802\n"}, says: "is no network card (class 0x010802)"},
		"a virtual interface": {bind: "br0", changes: map[string]string{"sys/class/net/br0/mtu": "1500\n"}, says: "has no device on the PCI bus"},
		"bifurcated":          {changes: map[string]string{device + "/vendor": "0x15b3\n"}, says: "there is nothing to bind"},
		"overridden":          {changes: map[string]string{device + "/driver_override": "uio_pci_generic\n"}, says: "its driver_override is set already"},
		"no vfio-pci":         {changes: map[string]string{"sys/bus/pci/drivers/vfio-pci": ""}, says: "modprobe vfio-pci"},
		"no IOMMU":            {changes: map[string]string{device + "/iommu_group": ""}, says: "boot with intel_iommu=on"},
		"a free neighbour":    {changes: map[string]string{"sys/kernel/iommu_groups/7/devices/0000:01:00.1": "x"}},
	} {
		s := newFake(t, test.changes)
		s.inUse = func(string) (string, error) { return test.inUse, nil }
		if test.bind == "" {
			test.bind = "eth1"
		}
		before := snapshot(t, s)
		_, err := s.Apply(context.Background(), t.TempDir(), Request{HugePages: []Pages{{page2M, 9}}, Bind: []string{test.bind}})
		if test.says == "" && err != nil || test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: error %v does not say %q", name, err, test.says)
		}
		if diff := cmp.Diff(before, snapshot(t, s)); test.says != "" && diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// VFIO gives out whole groups: another card in the group has to be bound as well.
func TestSharedGroup(t *testing.T) {
	other := "0000:01:00.1"
	s := newFake(t, map[string]string{
		"sys/kernel/iommu_groups/7/devices/" + other: "x", "sys/bus/pci/devices/" + other + "/class": "0x020000\n",
		"sys/bus/pci/devices/" + other + "/driver_override": "(null)\n", "sys/bus/pci/devices/" + other + "/net/eth2/mtu": "1500\n",
	})
	testenv.Must(t, os.Symlink("../../drivers/ixgbe", filepath.Join(s.root, "sys/bus/pci/devices", other, "driver")))
	testenv.Must(t, os.Symlink("../../../../kernel/iommu_groups/7", filepath.Join(s.root, "sys/bus/pci/devices", other, "iommu_group")))
	if _, err := s.Plan(Request{Bind: []string{card}}); err == nil || !strings.Contains(err.Error(), "its IOMMU group also has "+other+" with the driver ixgbe") {
		t.Error(err)
	}
	if plan, err := s.Plan(Request{Bind: []string{card, other}}); err != nil || len(plan.Changes) != 2 {
		t.Errorf("%v", err)
	}
}
