// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"strings"

	"github.com/drayage/dray/internal/function/runtime"
	"github.com/drayage/dray/internal/spec/chain"
	"github.com/drayage/dray/internal/spec/units"
)

// driver is the guest's kernel driver that leaves a device to an application. Debian
// builds vfio without no-IOMMU mode.
const driver = "uio_pci_generic"

// deviceScript gives guest applications huge pages and their devices, which the
// guest's kernel has made interfaces. It does not change the host.
func deviceScript(ports []port, pages units.Bytes) string {
	var b strings.Builder
	for _, p := range ports {
		if p.slot == 0 {
			continue
		}
		if b.Len() == 0 {
			fmt.Fprintf(&b, reserve, pages/chain.VMPage, driver)
		}
		fmt.Fprintf(&b, "hand_over %s\n", runtime.MachineAddress(p.slot))
	}
	return b.String()
}

// reserve allocates the huge pages, by number, and loads the driver.
const reserve = `pages=%d
echo $pages >/proc/sys/vm/nr_hugepages
have=$(cat /proc/sys/vm/nr_hugepages)
if [ "$have" -lt $pages ]; then
	echo "the machine has room for only $have of $pages huge pages of 2Mi: give the function more memory" >&2
	exit 1
fi
mkdir -p /dev/hugepages
mount -t hugetlbfs -o pagesize=2M hugetlbfs /dev/hugepages
driver=%s
modprobe $driver
hand_over() {
	device=/sys/bus/pci/devices/$1
	echo $driver >$device/driver_override
	if [ -e $device/driver ]; then echo $1 >$device/driver/unbind; fi
	echo $1 >/sys/bus/pci/drivers_probe
	if [ "$(basename "$(readlink $device/driver)")" != $driver ]; then
		echo "the machine's kernel does not bind the driver $driver to $1" >&2
		exit 1
	fi
}
`
