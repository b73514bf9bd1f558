// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/drayage/dray/internal/host"
)

// A window is an empty slot of the guest's bus: a root port, into which a file's memory
// can be plugged as a device (ivshmem-plain) while the guest runs.

// windowSlot is the bus slot whose functions are the root ports, below the devices of
// DPDK applications, which have the last slots.
const windowSlot = 0x10

// WindowBytes is the most memory that fits in a window. It reserves addresses only.
const WindowBytes = 256 << 20

// WindowAddress is the PCI address of a window's root port.
func WindowAddress(window int) string { return fmt.Sprintf("0000:00:%02x.%d", windowSlot, window) }

func windowArgs(windows int) []string {
	var list []string
	for i := range windows {
		list = append(list, "-device", fmt.Sprintf("pcie-root-port,id=window%d,bus=pcie.0,chassis=%d,addr=%#x.%d,multifunction=on,io-reserve=0,pref64-reserve=%d",
			i, i+1, windowSlot, i, WindowBytes))
	}
	return list
}

func windowMemory(window int) string { return fmt.Sprintf("memory%d", window) }

func windowDevice(window int) string { return fmt.Sprintf("device%d", window) }

// Plug maps a file into QEMU, and plugs it into an empty window of the guest in dir. The
// size is that of the whole file: a power of two.
func Plug(ctx context.Context, dir string, window, file int, size uint64) error {
	m, err := openMonitor(ctx, dir)
	if err != nil {
		return err
	}
	defer m.close()
	var added struct {
		Set int `json:"fdset-id"`
		FD  int `json:"fd"`
	}
	if err := m.executeWith(file, "add-fd", &added); err != nil {
		return err
	}
	// QEMU has its own mapping after this, or has failed.
	err = m.execute("object-add", map[string]any{
		"qom-type": "memory-backend-file", "id": windowMemory(window), "mem-path": fmt.Sprintf("/proc/self/fd/%d", added.FD), "share": true, "size": size,
	}, nil)
	if err := errors.Join(err, m.execute("remove-fd", map[string]any{"fdset-id": added.Set}, nil)); err != nil {
		return err
	}
	err = m.execute("device_add", map[string]any{
		"driver": "ivshmem-plain", "id": windowDevice(window), "memdev": windowMemory(window), "bus": fmt.Sprintf("window%d", window),
	}, nil)
	if err != nil {
		return errors.Join(err, m.execute("object-del", map[string]any{"id": windowMemory(window)}, nil))
	}
	return nil
}

// Unplug empties a window, and returns when the guest's kernel has let go of the device.
// Programs in the guest that still map it get SIGBUS.
func Unplug(ctx context.Context, dir string, window int) error {
	m, err := openMonitor(ctx, dir)
	if err != nil {
		return err
	}
	defer m.close()
	if err := m.execute("device_del", map[string]any{"id": windowDevice(window)}, nil); err != nil {
		return err
	}
	for {
		// The memory is in use until the device is gone.
		err := m.execute("object-del", map[string]any{"id": windowMemory(window)}, nil)
		if err == nil {
			return nil
		}
		if stop := host.Sleep(ctx, 20*time.Millisecond); stop != nil {
			return errors.Join(stop, err)
		}
	}
}
