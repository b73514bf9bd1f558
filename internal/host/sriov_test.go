// SPDX-License-Identifier: Apache-2.0

package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeSysfs is a tree of files and symbolic links; a link's text begins with "→".
func fakeSysfs(t *testing.T, tree map[string]string) string {
	t.Helper()
	root := t.TempDir()
	for path, text := range tree {
		path = filepath.Join(root, path)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if target, link := strings.CutPrefix(text, "→"); link {
			must(t, os.Symlink(target, path))
			continue
		}
		must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	return root
}

// card is a network card with three functions: one with an interface here, one
// without, and one with two.
func card() map[string]string {
	return map[string]string{
		"class/net/lo/operstate":                       "unknown\n",
		"class/net/bonding_masters":                    "bond0\n",
		"class/net/eth0":                               "→../../devices/pf/net/eth0",
		"devices/pf/net/eth0/device":                   "→../..",
		"devices/pf/sriov_totalvfs":                    "7\n",
		"devices/pf/virtfn0":                           "→../0000:01:10.0",
		"devices/pf/virtfn10":                          "→../0000:01:10.4",
		"devices/pf/virtfn2":                           "→../0000:01:10.2",
		"devices/0000:01:10.0/net/eth1/operstate":      "down\n",
		"devices/0000:01:10.2/uevent":                  "DRIVER=vfio-pci\n",
		"devices/0000:01:10.4/net/rep0/operstate":      "down\n",
		"devices/0000:01:10.4/net/rep1/operstate":      "down\n",
		"bus/pci/devices/0000:01:10.0":                 "→../../../devices/0000:01:10.0",
		"bus/pci/devices/0000:01:10.2":                 "→../../../devices/0000:01:10.2",
		"class/net/eth9/device/sriov_totalvfs":         "0\n",
		"class/net/eth8/device/uevent":                 "",
		"devices/0000:01:10.2/net_of_somebody/eth7/up": "",
	}
}

func TestPhysicalFunctions(t *testing.T) {
	sysfs := fakeSysfs(t, card())
	got, err := physicalFunctions(sysfs)
	must(t, err)
	want := []physicalFunction{{"eth0", 7, []virtualFunction{
		{0, "0000:01:10.0", "eth1"}, {2, "0000:01:10.2", ""}, {10, "0000:01:10.4", ""},
	}}}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(physicalFunction{}, virtualFunction{})); diff != "" {
		t.Error(diff)
	}
	for address, want := range map[string]string{"0000:01:10.0": "eth1", "0000:01:10.2": ""} {
		if link, there := interfaceAt(sysfs, address); link != want || !there {
			t.Errorf("%s has %q, %v", address, link, there)
		}
	}
	if got, err := physicalFunctions(filepath.Join(sysfs, "nowhere")); len(got) != 0 || err != nil {
		t.Errorf("without sysfs: %v, %v", got, err)
	}
	if _, there := interfaceAt(sysfs, "0000:01:10.6"); there {
		t.Error("a removed function still exists")
	}
}

// TestHostileSysfs: names that the kernel never makes are no VFs, and are not
// followed.
func TestHostileSysfs(t *testing.T) {
	tree := card()
	for name, target := range map[string]string{
		"virtfn01": "../0000:01:10.0", "virtfn-1": "../0000:01:10.0", "virtfn+3": "../0000:01:10.0", "virtfn": "../0000:01:10.0",
		"virtfn99999999999999999999": "../0000:01:10.0", "virtfn4": "../../../../etc", "virtfn5": "../0000:01:10.0/../lock", "virtfn6": "..",
	} {
		tree["devices/pf/"+name] = "→" + target
	}
	tree["devices/pf/virtfn7"] = "no link"
	tree["devices/0000:01:10.2/net/a-name-that-no-interface-has/up"] = ""
	got, err := physicalFunctions(fakeSysfs(t, tree))
	must(t, err)
	if len(got) != 1 || len(got[0].vfs) != 3 || got[0].vfs[1].link != "" {
		t.Errorf("%+v", got)
	}
	for _, total := range []string{"", "many", "-1", "65536", "99999999999999999999"} {
		tree["devices/pf/sriov_totalvfs"] = total
		if got, err := physicalFunctions(fakeSysfs(t, tree)); err == nil || !strings.Contains(err.Error(), "SR-IOV of eth0") {
			t.Errorf("total %q gave %+v, %v", total, got, err)
		}
	}
}
