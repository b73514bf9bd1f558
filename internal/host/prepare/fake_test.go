// SPDX-License-Identifier: Apache-2.0

package prepare

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/drayage/dray/test/testenv"
)

// card is the network card of the fake host, whose default driver is ixgbe.
const card = "0000:01:00.0"

// fakeHost has eight CPUs, systemd, cpufreq, two kinds of huge pages and a network card with an IOMMU.
var fakeHost = map[string]string{
	"proc/meminfo":                  "MemTotal:       16000000 kB\nMemAvailable:   12000000 kB\n",
	"proc/cmdline":                  "quiet iommu=pt\n",
	"proc/cpuinfo":                  "vendor_id : GenuineIntel\n",
	"sys/devices/system/cpu/online": "0-7\n",
	possibleCPUs:                    "0-7\n",
	"sys/devices/system/cpu/cpu0/topology/thread_siblings_list":          "0,4\n",
	"sys/devices/system/cpu/cpu1/topology/thread_siblings_list":          "1,5\n",
	"sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages":              "3\n",
	"sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages":           "0\n",
	"sys/devices/system/cpu/cpufreq/policy0/scaling_governor":            "powersave\n",
	"sys/devices/system/cpu/cpufreq/policy0/scaling_available_governors": "performance powersave\n",
	"sys/devices/virtual/workqueue/cpumask":                              "ff\n",
	"proc/irq/default_smp_affinity":                                      "ff\n",
	"proc/irq/24/smp_affinity_list":                                      "0-7\n",
	"proc/irq/25/smp_affinity_list":                                      "0-7\n",
	"proc/irq/26/smp_affinity_list":                                      "0\n",
	"proc/irq/27/smp_affinity_list":                                      "6\n",
	"proc/irq/28/smp_affinity_list":                                      "7\n", // managed
	"sys/fs/cgroup/cgroup.controllers":                                   "cpuset cpu\n",
	"sys/fs/cgroup/init.scope/cpuset.cpus":                               "\n",
	"sys/fs/cgroup/system.slice/cpuset.cpus":                             "0-5\n",
	"sys/fs/cgroup/docker/cgroup.events":                                 "populated 1\n",
	"sys/fs/cgroup/dev-mqueue.mount/cgroup.events":                       "populated 0\n",
	"sys/bus/pci/drivers_probe":                                          "",
	"sys/bus/pci/drivers/ixgbe/unbind":                                   "",
	"sys/bus/pci/drivers/ixgbe/bind":                                     "",
	"sys/bus/pci/drivers/vfio-pci/unbind":                                "",
	"sys/bus/pci/drivers/vfio-pci/bind":                                  "",
	"sys/bus/pci/devices/" + card + "/class":                             "0x020000\n",
	"sys/bus/pci/devices/" + card + "/vendor":                            "0x8086\n",
	"sys/bus/pci/devices/" + card + "/driver_override":                   "(null)\n",
	"sys/bus/pci/devices/" + card + "/net/eth1/mtu":                      "1500\n",
	"sys/bus/pci/devices/" + card + "/sriov_numvfs":                      "0\n",
	"sys/kernel/iommu_groups/7/type":                                     "DMA\n",
}

var fakeLinks = map[string]string{
	"sys/bus/pci/devices/" + card + "/driver":      "../../drivers/ixgbe",
	"sys/bus/pci/devices/" + card + "/iommu_group": "../../../../kernel/iommu_groups/7",
	"sys/kernel/iommu_groups/7/devices/" + card:    "../../../../bus/pci/devices/" + card,
	"sys/class/net/eth1/device":                    "../../../bus/pci/devices/" + card,
}

// newFake writes the fake host with changes: an empty text removes a file.
func newFake(t testing.TB, changes map[string]string) *System {
	t.Helper()
	root := t.TempDir()
	put := func(name, text string) {
		path := filepath.Join(root, name)
		testenv.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		testenv.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	for name, text := range fakeHost {
		put(name, text)
	}
	for name, target := range fakeLinks {
		testenv.Must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		testenv.Must(t, os.Symlink(target, filepath.Join(root, name)))
	}
	for name, text := range changes {
		if text == "" {
			testenv.Must(t, os.RemoveAll(filepath.Join(root, name)))
			continue
		}
		put(name, text)
	}
	return fakeAt(root)
}

// fakeAt is the fake host at a root, with a kernel that acts on writes.
func fakeAt(root string) *System {
	s := &System{root: root, bootID: "boot-1", inUse: func(string) (string, error) { return "", nil }}
	s.write = func(path, value string) error {
		return s.kernel(strings.TrimPrefix(path, root+"/"), strings.TrimSpace(value))
	}
	return s
}

// memoryFor is how many pages the fake kernel can make.
const memoryFor = 600

func (s *System) kernel(name, value string) error {
	device := "sys/bus/pci/devices/" + value
	switch base := filepath.Base(name); {
	case name == "proc/irq/28/smp_affinity_list":
		return unix.EIO
	case base == "cpuset.cpus" && value == "":
		return unix.ENOSPC // as long as there are programs in the group
	case base == "nr_hugepages":
		n, err := strconv.Atoi(value)
		if err != nil {
			return unix.EINVAL
		}
		value = strconv.Itoa(min(n, memoryFor))
	case base == "driver_override" && value == "":
		value = "(null)"
	case base == "unbind":
		return os.Remove(filepath.Join(s.root, device, "driver"))
	case base == "drivers_probe":
		driver, err := s.read(device + "/driver_override")
		if err != nil {
			return err
		}
		if driver == "(null)" {
			driver = "ixgbe"
		}
		return os.Symlink("../../drivers/"+driver, filepath.Join(s.root, device, "driver"))
	}
	if !s.exists(name) {
		return fs.ErrNotExist
	}
	return os.WriteFile(filepath.Join(s.root, name), []byte(value+"\n"), 0)
}

// snapshot is everything on the fake host.
func snapshot(t testing.TB, s *System) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if d.Type() == fs.ModeSymlink {
			all[path], err = os.Readlink(path)
			return err
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		if d.Name() == "cpuset.cpus" && all[path] == "0-7\n" {
			all[path] = "\n" // both mean all
		}
		return err
	})
	testenv.Must(t, err)
	return all
}
